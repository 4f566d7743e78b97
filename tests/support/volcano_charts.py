"""A plan to bend and rendered objects for the tests of Volcano's charts."""

from typing import Any

import cdk8s

from ultrascale.catalog.versions import image
from ultrascale.parts.volcano.model import NodeScoringPlan
from ultrascale.parts.volcano.model import Plan as VolcanoPlan
from ultrascale.parts.volcano.scale import SCALES
from ultrascale.plan.scale import ROWS
from ultrascale_k8s.volcano.admission import VolcanoWebhooksChart
from ultrascale_k8s.volcano.chart import VolcanoChart

Documents = dict[tuple[str, str], dict[str, Any]]

PROGRAMS = ("volcano-scheduler", "volcano-controllers", "volcano-admission")


def make_plan(**changes: Any) -> VolcanoPlan:
    plan: dict[str, Any] = {
        "version": image("volcano-scheduler").tag,
        "scheduler_image": image("volcano-scheduler").reference,
        "controllers_image": image("volcano-controller-manager").reference,
        "webhook_image": image("volcano-webhook-manager").reference,
        "queues": (),
        "enqueue": False,
        "topology_aware": True,
        "topology_layers": 3,
        "accelerator_resources": ("nvidia.com/gpu", "aws.amazon.com/neuron"),
        "scoring": NodeScoringPlan(percent=1, least=100, left_out=("podtopologyspread",)),
        "scale": SCALES[ROWS[0].nodes],
    }
    return VolcanoPlan(**{**plan, **changes})


def render_volcano(**changes: Any) -> list[dict[str, Any]]:
    chart = VolcanoChart(cdk8s.Testing.app(), "volcano", plan=make_plan(**changes))
    return cdk8s.Testing.synth(chart)


def render_webhooks() -> list[dict[str, Any]]:
    chart = VolcanoWebhooksChart(cdk8s.Testing.app(), "volcano-webhooks")
    return cdk8s.Testing.synth(chart)


def keyed(documents: list[dict[str, Any]]) -> Documents:
    return {(d["kind"], d["metadata"]["name"]): d for d in documents}


def pod(by_name: Documents, program: str) -> dict[str, Any]:
    return by_name["Deployment", program]["spec"]["template"]["spec"]


def container(by_name: Documents, program: str) -> dict[str, Any]:
    (only,) = pod(by_name, program)["containers"]
    return only
