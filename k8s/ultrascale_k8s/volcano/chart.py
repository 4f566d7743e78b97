"""Volcano's three programs in one chart."""

import cdk8s
from constructs import Construct

from ultrascale.plan.model import VolcanoPlan
from ultrascale_k8s.volcano.admission import define_admission
from ultrascale_k8s.volcano.controllers import define_controllers
from ultrascale_k8s.volcano.scheduler import define_scheduler


class VolcanoChart(cdk8s.Chart):
    """Defines Volcano's scheduler, controllers and webhook server in the namespace made for them.

    All three run on the system pool only: a webhook server that waited for capacity which Volcano
    schedules would refuse the very jobs that bring that capacity.
    """

    def __init__(self, scope: Construct, id: str, *, plan: VolcanoPlan) -> None:
        super().__init__(scope, id, disable_resource_name_hashes=True)
        define_scheduler(self, plan)
        define_controllers(self, plan)
        define_admission(self, plan)
