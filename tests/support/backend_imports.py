"""Imports and models of the backend that `tests.support.forked` makes once, before it forks."""

# They are imported for the processes that follow.
# pyright: reportUnusedImport=false

from pathlib import Path
from tempfile import TemporaryDirectory

import anyio._backends._asyncio
import kubernetes
import uvicorn.protocols.http.h11_impl

import ultrascale_backend.service
from tests.support.backend_files import write_files
from ultrascale_backend.rendering import open_renderer

# Pydantic builds its models when they are first used.
with TemporaryDirectory() as _folder:
    open_renderer(*write_files(Path(_folder)), account="111122223333")


__all__ = ["anyio", "kubernetes", "ultrascale_backend", "uvicorn"]
