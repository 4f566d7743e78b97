"""`serving`: what all services share; parts have its keys."""

from ultrascale.config._base import Section


class Serving(Section):
    """Controllers of services, and their address."""
