"""The entry point of a worker on arq.

``python -m <package> worker`` and ``arq <package>.worker.Main`` run the same code: a
``Consumer``, which is arq's Worker with two changes.  It takes messages in batches (one
script call for all queues, in order of preference), and whatever Redis answers cannot
end it.  arq's own retries, timeouts, results and signal handlers are off.
"""

from __future__ import annotations

import asyncio
import importlib.metadata
import logging
import sys
from collections.abc import Callable
from typing import Any, Final

from arq.worker import Function, Worker, func
from redis.exceptions import RedisError

from . import catalog, operations
from .broker import TAKE, message_in, pack, queue_key, redis_settings, unpack
from .errors import QueueError, SetupError
from .process import Process
from .record import Message
from .registry import PROJECT

log = logging.getLogger(__name__)

SUPPORTED: Final = ((0, 26), (0, 28))
POLL: Final = 0.01  # seconds between two looks at Redis
BURST_IDLE: Final = 1.0  # seconds between two looks whether anything is due


class Consumer(Worker):
    """arq's Worker: its poll loop, its pool and its health record; our way of taking."""

    def __init__(self, process: Process, **settings: Any) -> None:
        self.process = process
        self._keys = [queue_key(queue) for queue in process.queues]
        super().__init__(
            functions(),
            queue_name=self._keys[0],
            redis_settings=redis_settings(),
            handle_signals=False,
            max_jobs=process.worker.concurrency,
            poll_delay=POLL,
            keep_result=0,
            max_tries=1,
            retry_jobs=False,
            health_check_interval=PROJECT.heartbeat,
            health_check_key=f"{PROJECT.name}:health:{process.beat.boot}",
            job_serializer=pack,
            job_deserializer=unpack,
            log_results=False,
            **settings,
        )
        self._running: set[asyncio.Task[None]] = set()
        self._taking = asyncio.Lock()
        self._refill: asyncio.Task[None] | None = None
        self._take: Any = None

    async def _poll_iteration(self) -> None:
        """One look at Redis; between two looks the ends of jobs cause their own."""
        try:
            await self._fill()
            await self.heart_beat()
        except (RedisError, OSError) as error:
            log.warning("redis: %s", str(error).split("\n")[0])
            await asyncio.sleep(0.5)

    async def _fill(self) -> None:
        """Takes as many messages as there are free slots and starts them."""
        async with self._taking:
            free = self.max_jobs - len(self._running)
            if free <= 0 or not self.allow_pick_jobs or not self.process.beat.fit():
                return
            if self._take is None:
                self._take = self.pool.register_script(TAKE)
            for _queue, _id, body in await self._take(keys=self._keys, args=[free]):
                message = message_in(body)
                if message is None:
                    log.warning("an entry in Redis that is not ours was dropped")
                    self.jobs_failed += 1
                    continue
                task = asyncio.create_task(self._run(message))
                self._running.add(task)
                task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        # Jobs end in batches (one commit): the first of a batch looks for all of them.
        self._running.discard(task)
        if self._refill is None or self._refill.done():
            self._refill = asyncio.create_task(self._guarded_fill())

    async def _guarded_fill(self) -> None:
        try:
            await self._fill()
        except (RedisError, OSError):
            pass  # the next look says it

    async def _run(self, message: Message) -> None:
        try:
            await self.process.runner.run(message)
            self.jobs_complete += 1
        except Exception:
            log.exception("job %s: the engine failed", message.id)
            self.jobs_failed += 1

    async def leave(self) -> None:
        """Closes the connections; never raises."""
        if self._pool is None:
            return
        try:
            await self.pool.delete(self.health_check_key)
            await self.pool.aclose(close_connection_pool=True)
        except (RedisError, OSError) as error:
            log.info("redis: %s", str(error).split("\n")[0])

    def busy(self) -> bool:
        """Whether any message is being claimed, run or finished."""
        return bool(self._running)


async def serve(worker_name: str | None, burst: bool = False) -> int:
    """Runs a worker until it is drained; returns the process's exit code."""
    check_version()
    loop = asyncio.get_running_loop()
    woken = asyncio.Event()

    def deliver(calls: list[Callable[[], None]]) -> None:
        _threadsafe(loop, lambda: [call() for call in calls])

    process = Process(catalog.worker_named(worker_name), "arq", deliver)
    consumer = Consumer(process)
    process.start(
        wake=lambda: _threadsafe(loop, woken.set),
        on_loop=lambda call: _threadsafe(loop, call),
    )
    process.handle_signals()
    polling = asyncio.create_task(consumer.main())
    burst_task = asyncio.create_task(_burst(process, consumer)) if burst else None
    waiting = asyncio.create_task(woken.wait())
    try:
        await asyncio.wait({polling, waiting}, return_when=asyncio.FIRST_COMPLETED)
        if polling.done() and not polling.cancelled() and polling.exception():
            log.error("redis: %s", polling.exception())
            process.drain("arq's worker ended", code=1)
        consumer.allow_pick_jobs = False
        while consumer.busy():
            await asyncio.sleep(0.02)
    finally:
        for task in (polling, waiting, burst_task):
            if task is not None:
                task.cancel()
        await asyncio.gather(polling, waiting, return_exceptions=True)
        await consumer.leave()
        process.close()
    return process.exit_code


async def _burst(process: Process, consumer: Consumer) -> None:
    """Drains when nothing is due and nothing runs, at two looks in a row."""
    idle = 0
    while True:
        await asyncio.sleep(BURST_IDLE)
        try:
            due = await asyncio.to_thread(operations.due, process.queues)
        except QueueError:
            continue
        idle = 0 if due or consumer.busy() else idle + 1
        if idle >= 2:
            process.drain("nothing is due")
            return


def functions() -> list[Function]:
    """One arq function per job name, for arq's tools; messages run by ``Consumer``."""
    return [func(_hosted, name=name, keep_result=0) for name in sorted(catalog.BY_NAME)]


async def _hosted(ctx: dict[Any, Any], *_args: object) -> None:
    """Never called: messages are taken by the Consumer of the same process."""


async def _start_up(ctx: dict[Any, Any]) -> None:
    # `arq <package>.worker.Main` hosts the consumer; when that is drained, arq's own
    # worker is told to end as well.
    host = asyncio.current_task()

    async def run() -> None:
        code = 2
        try:
            code = await serve(None)
        except QueueError as error:
            log.error("%s", error)
        finally:
            ctx["exit_code"] = code
            if host is not None:
                host.cancel()

    ctx["serving"] = asyncio.create_task(run())


async def _shut_down(ctx: dict[Any, Any]) -> None:
    await ctx["serving"]
    if ctx["exit_code"]:
        raise SystemExit(ctx["exit_code"])


def _main() -> type:
    """Settings for ``arq <package>.worker.Main``; flat, since arq ignores inherited ones."""
    settings = {
        "functions": functions(),
        "queue_name": f"{PROJECT.name}:host",
        "redis_settings": redis_settings(),
        "on_startup": _start_up,
        "on_shutdown": _shut_down,
        "handle_signals": False,
        "keep_result": 0,
        "max_tries": 1,
        "retry_jobs": False,
        "job_serializer": pack,
        "job_deserializer": unpack,
        "health_check_interval": PROJECT.heartbeat,
    }
    return type("Main", (), settings)


def __getattr__(name: str) -> type:
    # Made when arq asks for it: only then must the addresses be set.
    if name != "Main":
        raise AttributeError(name)
    try:
        return _main()
    except SetupError as error:
        print(error, file=sys.stderr)
        raise SystemExit(2) from None


def check_version() -> None:
    """SetupError unless the installed arq is one this code was tested with."""
    text = importlib.metadata.version("arq")
    version = tuple(int(part) for part in text.split(".")[:2])
    if not SUPPORTED[0] <= version <= SUPPORTED[1]:
        low, high = (".".join(map(str, v)) for v in SUPPORTED)
        raise SetupError(
            f"arq {text} is not supported: install arq >= {low} and <= {high}.*"
        )


def run(worker_name: str | None, burst: bool) -> int:
    """The ``worker`` command."""
    return asyncio.run(serve(worker_name, burst))


def _threadsafe(loop: asyncio.AbstractEventLoop, call: Callable[[], object]) -> None:
    try:
        loop.call_soon_threadsafe(call)
    except RuntimeError:
        pass  # the loop is closed: nobody waits for the answer any more
