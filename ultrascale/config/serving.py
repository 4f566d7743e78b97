"""`serving`: what the cluster has for all services."""

from typing import Literal

from ultrascale.config._base import Section
from ultrascale.config._values import Distinct

ServingController = Literal["keda", "leader-worker-set"]


class Serving(Section):
    """Controllers of services, and their address."""

    controllers: Distinct[ServingController] | None = None
    """Controllers in the cluster: `keda` lets replicas follow the load, `leader-worker-set` runs
    replicas of several nodes.

    Default: those that services of `jobs` need.
    """
