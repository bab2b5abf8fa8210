"""A provider of calls, as a process of its own: it answers each JSON line at once.

python -m bench.provider PORT_FILE
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path


async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    request = json.loads(await reader.readline())
    reply = {"text": f"an answer to {request['step']}", "cost": "0.01"}
    writer.write(json.dumps(reply).encode() + b"\n")
    await writer.drain()
    writer.close()


async def serve(port_file: Path) -> None:
    server = await asyncio.start_server(answer, "127.0.0.1", 0, backlog=1024)
    port = server.sockets[0].getsockname()[1]
    part = port_file.with_suffix(".part")
    part.write_text(str(port))
    part.rename(port_file)
    await server.serve_forever()


@contextlib.contextmanager
def running(folder: Path) -> Iterator[str]:
    """A provider, started and stopped; its port."""
    file = folder / "provider-port"
    process = subprocess.Popen([sys.executable, "-m", "bench.provider", str(file)])
    try:
        while not file.exists():
            if process.poll() is not None:
                raise RuntimeError("the provider did not start")
            time.sleep(0.02)
        yield file.read_text()
    finally:
        process.kill()
        process.wait()


async def ask(step: str, key: str) -> dict[str, str]:
    """One call, on a connection of its own, like the simplest client there is."""
    port = int(os.environ["BENCH_PROVIDER"])
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(json.dumps({"step": step, "key": key}).encode() + b"\n")
        reply: dict[str, str] = json.loads(await reader.readline())
        return reply
    finally:
        writer.close()


if __name__ == "__main__":
    asyncio.run(serve(Path(sys.argv[1])))
