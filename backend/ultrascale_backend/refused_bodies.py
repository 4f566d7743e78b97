"""Requests with a body that is too large, from clients that are still sending it."""

import asyncio
from typing import TYPE_CHECKING

from starlette.datastructures import Headers

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

_TOO_LARGE = 413
_MOST_BYTES = 2**24
_MOST_SECONDS = 10.0


class ReadRefusedBodies:
    """Reads the rest of a body before it answers that it is too large.

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
            if message["type"] == "http.response.start" and message["status"] == _TOO_LARGE:
                await body.read_rest()
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

    async def read_rest(self) -> None:
        try:
            async with asyncio.timeout(_MOST_SECONDS):
                while self._more and self._bytes < _MOST_BYTES:
                    await self.receive()
        except TimeoutError:
            return
