"""`serving`: what the cluster has for all services, whose keys are those of parts."""

from ultrascale.config._base import Section


class Serving(Section):
    """Controllers of services, and their address."""
