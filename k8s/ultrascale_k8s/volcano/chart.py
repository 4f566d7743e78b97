"""Charts of Volcano: its kinds, and its three programs."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

import cdk8s
from constructs import Construct

from ultrascale.documents import JsonObject, mapping
from ultrascale.parts.volcano.model import Plan
from ultrascale_k8s._api_objects import define_objects
from ultrascale_k8s.upstream import upstream_objects
from ultrascale_k8s.volcano.admission import define_admission
from ultrascale_k8s.volcano.controllers import define_controllers
from ultrascale_k8s.volcano.scheduler import define_scheduler

# Upstream's CustomResourceDefinitions of eleven kinds are ten times as large; each travels whole in
# a manifest. So these keep every field that they do not name, and leave pod templates, volume
# claims and `status` to the kinds that own them; otherwise they serve the same API.

# Deleting a CRD deletes every object of its kind, so neither Helm nor Argo CD may delete it.
KEEP_ON_DELETE: Mapping[str, str] = MappingProxyType(
    {
        "helm.sh/resource-policy": "keep",
        "argocd.argoproj.io/sync-options": "Prune=false,Delete=false",
    }
)


def crds() -> Sequence[JsonObject]:
    """Return the CustomResourceDefinitions."""
    return [
        {**crd, "metadata": {**mapping(crd, "metadata"), "annotations": dict(KEEP_ON_DELETE)}}
        for crd in upstream_objects("volcano-crds").values()
    ]


class VolcanoCrdsChart(cdk8s.Chart):
    """Defines Volcano's CustomResourceDefinitions; applied before all other charts of Volcano."""

    def __init__(self, scope: Construct, id: str) -> None:
        super().__init__(scope, id, disable_resource_name_hashes=True)
        define_objects(self, crds())


class VolcanoChart(cdk8s.Chart):
    """Defines Volcano's scheduler, controllers and webhook server in Volcano's own namespace.

    All three run on the system pool only: a webhook server that waited for capacity which Volcano
    schedules would refuse the very jobs that bring that capacity.
    """

    def __init__(self, scope: Construct, id: str, *, plan: Plan) -> None:
        super().__init__(scope, id, disable_resource_name_hashes=True)
        define_scheduler(self, plan)
        define_controllers(self, plan)
        define_admission(self, plan)
