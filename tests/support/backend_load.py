"""Very many requests at once, over connections of their own."""

import asyncio
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Load:
    """Results of the requests."""

    statuses: Sequence[int]  # HTTP status of each
    bodies: Sequence[Any]  # What was answered to each
    seconds: Sequence[float]  # How long each took, from connecting on


def submit_at_once(ports: Sequence[int], body: Any, keys: Sequence[str], *, token: str) -> Load:
    """Send one request for each key at the same time, in turn to each port."""
    return asyncio.run(_submit(ports, json.dumps(body).encode(), keys, token))


async def _submit(ports: Sequence[int], body: bytes, keys: Sequence[str], token: str) -> Load:
    turns = [(ports[number % len(ports)], key) for number, key in enumerate(keys)]
    answers = await asyncio.gather(*(_post(port, key, body, token) for port, key in turns))
    statuses, bodies, seconds = zip(*answers, strict=True)
    return Load(statuses, bodies, seconds)


async def _post(port: int, key: str, body: bytes, token: str) -> tuple[int, Any, float]:
    began = time.monotonic()
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    head = (
        f"POST /requests HTTP/1.1\r\nHost: backend\r\nConnection: close\r\n"
        f"Authorization: Bearer {token}\r\nIdempotency-Key: {key}\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    writer.write(head.encode() + body)
    answer = await reader.read()
    writer.close()
    await writer.wait_closed()
    top, _, content = answer.partition(b"\r\n\r\n")
    return int(top.split()[1]), json.loads(content), time.monotonic() - began
