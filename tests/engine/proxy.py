"""A TCP relay in front of a server, to lose what real networks lose."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Callable
from typing import Self

import servers

# Looks at what a client sends; true = pass it on, then cut before the answer.
Cut = Callable[[bytes], bool]


class Proxy:
    """Relays a port of its own to another on this machine."""

    def __init__(self, target: int, cut: Cut | None = None) -> None:
        self._target = target
        self._cut = cut
        self._listener = socket.create_server((servers.HOST, 0))
        self.port: int = self._listener.getsockname()[1]
        self._generation = 0
        self._open: list[socket.socket] = []
        self.cuts = 0

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.close()
        for end in self._open:
            with contextlib.suppress(OSError):
                end.close()

    def swallow(self) -> None:
        """From now on the connections that exist stay open and lead nowhere."""
        self._generation += 1

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                outer, _ = self._listener.accept()
                try:
                    inner = socket.create_connection((servers.HOST, self._target))
                except OSError:
                    outer.close()
                    continue
                self._open += [outer, inner]
                cutting = threading.Event()
                for ends in ((outer, inner, True), (inner, outer, False)):
                    threading.Thread(
                        target=self._pump,
                        args=(*ends, cutting, self._generation),
                        daemon=True,
                    ).start()

    def _pump(
        self,
        source: socket.socket,
        sink: socket.socket,
        up: bool,
        cutting: threading.Event,
        generation: int,
    ) -> None:
        try:
            while data := source.recv(65536):
                if generation != self._generation or (not up and cutting.is_set()):
                    continue  # read, and never passed on
                cut = up and self._cut is not None and self._cut(data)
                if cut:
                    cutting.set()
                sink.sendall(data)
                if cut:
                    self.cuts += 1
                    time.sleep(0.3)  # the server has done it by then
                    break
        except OSError:
            pass
        if generation == self._generation:
            for end in (source, sink):
                with contextlib.suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)
