"""A pooler in transaction mode: each transaction meets another server process.

It knows nothing of prepared statements, and gives its clients a process id of its own,
as poolers do.
"""

from __future__ import annotations

import contextlib
import select
import socket
import struct
import threading
from typing import Self

import servers

SSL, GSS = 80877103, 80877104  # asked for before the start; answered with N


class Pooler:
    """Listens at ``port`` for a server on this machine that asks for no password."""

    def __init__(self, target: int, processes: int = 3) -> None:
        self._target, self._processes = target, processes
        self._listener = socket.create_server((servers.HOST, 0))
        self.port: int = self._listener.getsockname()[1]
        self.turns = 0

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                threading.Thread(
                    target=self._serve, args=(client,), daemon=True
                ).start()

    def _serve(self, client: socket.socket) -> None:
        with contextlib.ExitStack() as stack:
            stack.enter_context(client)
            stack.enter_context(contextlib.suppress(OSError, EOFError))
            start = begun(client)
            open_ = [
                stack.enter_context(
                    socket.create_connection((servers.HOST, self._target))
                )
                for _ in range(self._processes)
            ]
            said = [greeting(one, start) for one in open_]
            client.sendall(said[0])
            self._relay(client, open_)

    def _relay(self, client: socket.socket, open_: list[socket.socket]) -> None:
        asked = 0  # Syncs and queries whose end the server has not told
        halfway = False  # something was sent that no Sync has followed
        used = False  # more than Syncs was sent since the last turn
        up, down = b"", b""
        while True:
            ready, _, _ = select.select([client, open_[0]], [], [])
            if client in ready:
                messages, up = split(up + received(client))
                for kind, _, whole in messages:
                    asked += kind in b"SQ"
                    halfway = kind not in b"SQ"
                    used = used or kind != b"S"
                    open_[0].sendall(whole)
            if open_[0] in ready:
                messages, down = split(down + received(open_[0]))
                for kind, body, whole in messages:
                    client.sendall(whole)
                    asked -= kind == b"Z"
                    idle = (kind, body) == (b"Z", b"I") and not asked
                    if idle and used and not halfway:
                        open_.append(open_.pop(0))
                        used = False
                        self.turns += 1


def split(data: bytes) -> tuple[list[tuple[bytes, bytes, bytes]], bytes]:
    """The whole messages (kind, body, all of it), and the beginning of the next."""
    found = []
    while len(data) >= 5:
        end = 1 + int(struct.unpack("!i", data[1:5])[0])
        if len(data) < end:
            break
        found.append((data[:1], data[5:end], data[:end]))
        data = data[end:]
    return found, data


def begun(client: socket.socket) -> bytes:
    """The client's first words, without its questions for encryption."""
    while True:
        head = received(client, 8)
        size, code = struct.unpack("!ii", head)
        if code not in (SSL, GSS):
            return head + received(client, size - 8)
        client.sendall(b"N")


def greeting(server: socket.socket, start: bytes) -> bytes:
    """What the server says up to its first readiness, under another process id."""
    server.sendall(start)
    data, said = b"", b""
    while True:
        messages, data = split(data + received(server))
        for kind, _, whole in messages:
            said += b"K" + struct.pack("!iii", 12, 1, 1) if kind == b"K" else whole
            if kind == b"Z":
                return said


def received(end: socket.socket, size: int = 0) -> bytes:
    """What has come, or exactly so many bytes."""
    data = end.recv(size or 65536, socket.MSG_WAITALL if size else 0)
    if not data:
        raise EOFError
    return data
