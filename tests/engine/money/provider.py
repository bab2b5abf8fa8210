"""A provider of paid calls, as a process of its own: it survives every kill of a worker.

    python provider.py PORT_FILE BILL_FILE [keyed]

It takes one JSON line a connection and answers with one.  It writes its bill, one line a
charge, before it answers; with `keyed`, it charges a key once and then repeats itself.
What it does with the n-th request of a step is the n-th word of the request's `do` (the
last word repeats):

    ok            bills and answers
    429, 400 ...  answers with this status; bills from 500 on; 429=SECONDS to wait
    reset         bills and closes the connection
    hang          bills and never answers
    slow=SECONDS  bills, waits, answers
    gate=PATH     bills, waits until the file exists, answers
    unreadable    bills; the client will not understand
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections import Counter

SEEN: Counter[tuple[str, str]] = Counter()
KNOWN: dict[str, dict[str, object]] = {}


class Provider:
    def __init__(self, bill: str, keyed: bool) -> None:
        self.bill = os.open(bill, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        self.keyed = keyed

    def charge(self, request: dict[str, object]) -> None:
        line = " ".join(
            str(request[name]) for name in ("job", "step", "key", "cost", "pid")
        )
        os.write(self.bill, f"{line}\n".encode())
        os.fsync(self.bill)

    async def serve(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        try:
            answer = await self.answer(json.loads(await reader.readline()))
            if answer is not None:
                writer.write((json.dumps(answer) + "\n").encode())
                await writer.drain()
        except (OSError, ValueError):
            pass
        finally:
            writer.close()

    async def answer(self, request: dict[str, object]) -> dict[str, object] | None:
        step = (str(request["job"]), str(request["step"]))
        words = str(request["do"]).split()
        word, _, more = words[min(SEEN[step], len(words) - 1)].partition("=")
        SEEN[step] += 1
        status = int(word) if word.isdigit() else 200
        answer: dict[str, object] = {
            "status": status,
            "cost": request["cost"],
            "text": f"{step[1]} of {step[0]}",
        }
        if 400 <= status < 500:
            return answer | {"retry_after": float(more or 0)}
        if self.keyed and request["key"] in KNOWN:
            return KNOWN[str(request["key"])]
        self.charge(request)
        if status == 200:
            KNOWN[str(request["key"])] = answer
        if word == "reset":
            return None
        if word == "hang":
            await asyncio.sleep(3600)
        elif word == "slow":
            await asyncio.sleep(float(more))
        elif word == "gate":
            while not os.path.exists(more):
                await asyncio.sleep(0.01)
        elif word == "unreadable":
            answer["unreadable"] = True
        elif word == "odd":
            answer["text"] = "NUL \x00 half \ud800"
        return answer


async def main(port_file: str, bill: str, keyed: bool) -> None:
    provider = Provider(bill, keyed)
    server = await asyncio.start_server(provider.serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    part = f"{port_file}.part"
    with open(part, "w") as file:
        file.write(str(port))
    os.replace(part, port_file)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], "keyed" in sys.argv[3:]))
