"""Requests that are refused before their body was read, from clients that still send it."""

import asyncio
from typing import TYPE_CHECKING

from starlette.datastructures import Headers

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

# What a client goes on sending, in bytes, after it was refused: as too large, or as nobody who may
# send anything.
_MOST_BYTES = {413: 2**24, 401: 2**20, 429: 2**20, 503: 2**20}
_MOST_SECONDS = 10.0


class ReadRefusedBodies:
    """Reads the rest of a body before it answers that nothing is done with it.

    The connection is closed with the answer, and a client that is still writing then would be told
    of a connection that was reset, instead of what is wrong.

    Source: https://www.rfc-editor.org/rfc/rfc9112#section-9.6
    """

    def __init__(self, app: "ASGIApp") -> None:
        """Wrap an application."""
        self._app = app

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        """Answer a request."""
        if scope["type"] != "http" or "expect" in Headers(scope=scope):
            # A client that expects to be asked for its body has sent none yet.
            await self._app(scope, receive, send)
            return
        body = _Body(receive)

        async def answer(message: "Message") -> None:
            if message["type"] == "http.response.start":
                await body.read_rest(_MOST_BYTES.get(message["status"], 0))
            await send(message)

        await self._app(scope, body.receive, answer)


class _Body:
    def __init__(self, receive: "Receive") -> None:
        self._receive = receive
        self._more = True
        self._bytes = 0

    async def receive(self) -> "Message":
        message = await self._receive()
        self._more = bool(message.get("more_body", False))
        self._bytes += len(message.get("body", b""))
        return message

    async def read_rest(self, most_bytes: int) -> None:
        """Read until the body ends, is larger than ``most_bytes``, or takes too long."""
        try:
            async with asyncio.timeout(_MOST_SECONDS):
                while self._more and self._bytes < most_bytes:
                    await self.receive()
        except TimeoutError:
            return
