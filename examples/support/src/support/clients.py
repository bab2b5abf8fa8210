"""What a worker's jobs share: opened before its first job, closed after its last."""

from __future__ import annotations

from support_queue.hooks import WorkerContext

from .writer import Client


async def open_clients(worker: WorkerContext) -> None:
    """Handlers find what is put on ``worker.state`` as ``job.state``."""
    worker.state.writer = Client()


async def close_clients(worker: WorkerContext) -> None:
    """Also at the end of a worker that makes room for a fresh one."""
    await worker.state.writer.close()
