"""The Node.js process of jsii, which forks of one process use one after another.

Its first synthesis takes seconds, and later ones a fraction of these. A fork ends between two
requests, and what it leaves in Node.js has names that no other fork uses.
"""

from contextlib import suppress
from typing import Any

from jsii._kernel.providers.process import ProcessProvider, _NodeProcess  # pyright: ignore
from jsii._kernel.types import LoadRequest, LoadResponse
from jsii._runtime import kernel


class SharedNode(ProcessProvider):
    """jsii's way to a Node.js process, which a new one can replace."""

    def __init__(self) -> None:
        self._loads: list[LoadRequest] = []
        self._begin()
        kernel.provider = self

    def load(self, request: LoadRequest) -> LoadResponse:
        """Load a library, also into later processes."""
        self._loads.append(request)
        return super().load(request)

    def restart(self) -> None:
        """Replace the process: it keeps all objects, or was left in the midst of a request."""
        process: Any = self._process
        process._process.kill()
        with suppress(OSError, ValueError):
            process.stop()
        self._begin()
        for request in self._loads:
            super().load(request)

    def _begin(self) -> None:
        process = _NodeProcess()
        process.start()
        # A property there, which keeps the first process.
        type(self)._process = process
