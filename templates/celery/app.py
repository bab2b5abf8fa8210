"""The celery app of this package: its settings, its tasks.

Everything that celery would do about failure, time and money is off, since the record
does it.  What is set here is tested against the names that celery knows: it takes an
unknown one without a word.
"""

from __future__ import annotations

import importlib.metadata
from typing import Any, Final
from urllib.parse import quote

from celery import Celery
from celery.app.defaults import NAMESPACES, flatten
from kombu import Exchange, Queue

from . import catalog
from .broker import HIGH, NORMAL, PREFIX
from .definitions import Worker
from .errors import SetupError
from .registry import PROJECT
from .server import TIMEOUT, Address
from .transport import STRANGER

SUPPORTED: Final = ((5, 5), (5, 7))

# A message that a worker took and has not begun is put back by another after so long.
# Recovery has always acted first, so this is more than the longest job may take.
MARGIN: Final = 600.0
WITHOUT_TIMEOUT: Final = 30 * 86_400.0

Settings = dict[str, Any]


def check_version() -> None:
    """SetupError unless the installed celery is one this code was tested with."""
    text = importlib.metadata.version("celery")
    version = tuple(int(part) for part in text.split(".")[:2])
    if not SUPPORTED[0] <= version <= SUPPORTED[1]:
        low, high = (".".join(map(str, v)) for v in SUPPORTED)
        raise SetupError(
            f"celery {text} is not supported: install celery[redis] >= {low} and <= {high}.*"
        )


def visibility_timeout() -> float:
    """Seconds after which a message that was taken and not begun is put back."""
    timeouts = [job.timeout for job in catalog.ALL]
    limited = [timeout for timeout in timeouts if timeout is not None]
    longest = max(limited, default=0.0) if len(limited) == len(timeouts) else 0.0
    return longest + MARGIN if longest else WITHOUT_TIMEOUT


def settings(worker: Worker, pool: str, address: Address) -> Settings:
    """All that is set, for one worker of the spec."""
    return {
        "broker_url": _url(address),
        "broker_transport": f"{__package__}.transport:Transport",
        "broker_use_ssl": address.tls_options() or None,
        "broker_transport_options": transport_options(),
        "broker_connection_retry": True,
        "broker_connection_retry_on_startup": True,
        "broker_connection_max_retries": None,
        "broker_channel_error_retry": True,
        "result_backend": None,
        "task_ignore_result": True,
        "task_store_errors_even_if_ignored": False,
        "task_acks_late": False,
        "task_reject_on_worker_lost": False,
        "task_track_started": False,
        "task_send_sent_event": False,
        "task_serializer": "json",
        "result_serializer": "json",
        "accept_content": ["json"],
        "task_queues": _queues(),
        "task_default_queue": catalog.served(worker)[0],
        "task_default_exchange": PROJECT.name,
        "task_create_missing_queues": False,
        "worker_pool": pool,
        "worker_consumer": f"{__package__}.consumer:Consumer",
        "worker_concurrency": worker.concurrency,
        "worker_prefetch_multiplier": 1,
        "worker_enable_prefetch_count_reduction": False,
        "worker_cancel_long_running_tasks_on_connection_loss": False,
        "worker_detect_quorum_queues": False,
        "worker_disable_rate_limits": True,
        "worker_soft_shutdown_timeout": 0.0,
        "worker_proc_alive_timeout": 120.0,
        "worker_lost_wait": 1.0,
        "worker_max_tasks_per_child": None,
    } | _known({"worker_disable_prefetch": True})


def transport_options() -> Settings:
    """What goes to kombu's Redis transport."""
    return {
        "visibility_timeout": visibility_timeout(),
        "global_keyprefix": PREFIX,
        "priority_steps": [HIGH, NORMAL],
        "queue_order_strategy": "priority",
        "socket_connect_timeout": TIMEOUT,
        "socket_timeout": 5,
        "socket_keepalive": True,
    }


def make(worker: Worker, pool: str) -> Celery:
    """The app.  Raises SetupError with one sentence."""
    check_version()
    app = Celery(PROJECT.name, set_as_current=True)
    app.conf.update(settings(worker, pool, Address.read()))
    for name in (*catalog.BY_NAME, STRANGER):
        app.task(_task, name=name, shared=False, typing=False, max_retries=0)
    return app


def _task(row_id: str, dispatch: int) -> None:
    """A job's message, from claim to finish.  Nothing comes back, nothing is raised."""
    from .worker import run_message

    run_message(row_id, dispatch)


def _queues() -> list[Queue]:
    exchange = Exchange(PROJECT.name, type="direct")
    return [Queue(name, exchange, routing_key=name) for name in catalog.QUEUE_NAMES]


def _url(address: Address) -> str:
    user = quote(address.username or "", safe="")
    password = f":{quote(address.password, safe='')}" if address.password else ""
    who = f"{user}{password}@" if user or password else ""
    scheme = "rediss" if address.tls else "redis"
    host = f"[{address.host}]" if ":" in address.host else address.host
    return f"{scheme}://{who}{host}:{address.port}/{address.database}"


def _known(wanted: Settings) -> Settings:
    """Those that the installed celery has: an older one takes them without a word."""
    names = dict(flatten(NAMESPACES))
    return {name: value for name, value in wanted.items() if name in names}
