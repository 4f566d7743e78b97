"""Where the pods of a Helm chart run that has no values for it."""

import json
from collections.abc import Iterator, Mapping

from ultrascale.plan.model import HyperPodChartPlan
from ultrascale.plan.names import INSTANCE_TYPE_LABEL

Patch = Mapping[str, object]

_POD = "/spec/template/spec"


def kustomization(plan: HyperPodChartPlan) -> Mapping[str, object]:
    """Return the kustomization of what Helm renders, which is its resource ``rendered.yaml``.

    Its operations are JSON, which is YAML: kustomize takes them as text.

    Source: https://kubectl.docs.kubernetes.io/references/kustomize/kustomization/patches/
    """
    return {"resources": ["rendered.yaml"], "patches": [*_patches(plan)]}


def _patches(plan: HyperPodChartPlan) -> Iterator[Patch]:
    controllers = {"kind": "Deployment"}
    yield _patch(controllers, "nodeSelector", dict(plan.controller_node_selector))
    for name, types in plan.daemon_set_types.items():
        term = {"key": INSTANCE_TYPE_LABEL, "operator": "In", "values": list(types)}
        required = {"nodeSelectorTerms": [{"matchExpressions": [term]}]}
        affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
        yield _patch({"kind": "DaemonSet", "name": name}, "affinity", affinity)
    for key in plan.plugin_taints:
        yield _patch({"kind": "DaemonSet"}, "tolerations/-", {"key": key, "operator": "Exists"})


def _patch(target: Mapping[str, str], field: str, value: object) -> Patch:
    # `add` replaces what is there.
    operation = {"op": "add", "path": f"{_POD}/{field}", "value": value}
    return {"target": target, "patch": json.dumps([operation])}
