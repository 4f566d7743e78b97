"""Jobs: rendered as Kubernetes objects, submitted and followed."""

from typing import TYPE_CHECKING

from ultrascale.jobs.manifests import JobManifests, Manifest
from ultrascale.jobs.options import JobOptions
from ultrascale.jobs.preparation import prepare

if TYPE_CHECKING:
    from ultrascale.jobs.submitted import SubmittedJob, submit

__all__ = ["JobManifests", "JobOptions", "Manifest", "SubmittedJob", "prepare", "submit"]


def __getattr__(name: str) -> object:
    """Return a name whose module imports the client of API servers, at its first use."""
    if name not in ("SubmittedJob", "submit"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from ultrascale.jobs import submitted

    return getattr(submitted, name)
