"""Jobs: rendered as Kubernetes objects, submitted and followed."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ultrascale.jobs.manifests import JobManifests, Manifest
    from ultrascale.jobs.options import JobOptions
    from ultrascale.jobs.preparation import prepare
    from ultrascale.jobs.submitted import SubmittedJob, submit

__all__ = ["JobManifests", "JobOptions", "Manifest", "SubmittedJob", "prepare", "submit"]

# Modules of these names. The first four import the renderers of jobs, the others the client of API
# servers as well.
_MODULES = {
    "JobManifests": "manifests",
    "JobOptions": "options",
    "Manifest": "manifests",
    "prepare": "preparation",
    "SubmittedJob": "submitted",
    "submit": "submitted",
}


def __getattr__(name: str) -> object:
    """Return a name, whose module is imported at its first use."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
