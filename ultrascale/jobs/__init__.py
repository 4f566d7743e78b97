"""Jobs: rendered as the objects that Kubernetes gets, sent there, and watched."""

from ultrascale.jobs.manifests import JobManifests, Manifest
from ultrascale.jobs.preparation import prepare

__all__ = ["JobManifests", "Manifest", "prepare"]
