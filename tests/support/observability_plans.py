"""Clusters with the section `observability`, planned."""

from collections.abc import Mapping
from typing import Any

import yaml

from tests.support.folders import ROOT
from tests.support.pools import make_document
from ultrascale import config, plan
from ultrascale.parts.observability.model import AlertsPlan, Plan
from ultrascale.plan import ClusterPlan

HYBRID = yaml.safe_load((ROOT / "clusters" / "hybrid-hyperpod.yaml").read_text())
EMAIL = {"email": "ana@example.com"}
EVERYTHING = {"dashboards": True, "alarms": EMAIL}
SLO = {"threshold_ms": 15, "goal_percent": 90}
VERSION = {"amazon-sagemaker-hyperpod-observability": "v1.0.4-eksbuild.1"}


def planned(document: Mapping[str, Any]) -> ClusterPlan:
    return plan.plan_cluster(config.loads(yaml.safe_dump(dict(document), sort_keys=False)))


def hybrid(**observability: Any) -> ClusterPlan:
    section = {**HYBRID["observability"], **observability}
    kubernetes = {**HYBRID["kubernetes"]}
    if section.get("hyperpod_addon"):
        kubernetes["addons"] = VERSION
    return planned({**HYBRID, "observability": section, "kubernetes": kubernetes})


def neuron(**changes: Any) -> ClusterPlan:
    return planned(make_document(observability=EVERYTHING, **changes))


def objective(tier: str = "8xl", /, **slo: float) -> ClusterPlan:
    """Return a cluster with an objective for writes."""
    section = EVERYTHING | {"write_latency_slo": SLO | slo}
    kubernetes = {**make_document()["kubernetes"], "control_plane_tier": tier}
    return planned(make_document(observability=section, kubernetes=kubernetes))


def serving() -> ClusterPlan:
    """Return a cluster with a model server of two replicas."""
    job = {
        "kind": "service",
        "pool": "train",
        "image": "docker.io/vllm/vllm-openai:v0.33.0",
        "replicas": 2,
        "startup_seconds": 900,
        "tokens_per_second": 800,
    }
    return neuron(jobs={"chat": job})


def of(cluster: ClusterPlan) -> Plan:
    own = cluster.part(Plan)
    assert own is not None
    return own


def alerts(cluster: ClusterPlan) -> AlertsPlan:
    found = of(cluster).alerts
    assert found is not None
    return found


HYBRID_PLAN = hybrid()
CLUSTERS = {
    "hybrid": HYBRID_PLAN,
    "with HyperPod's add-on": hybrid(hyperpod_addon=True),
    "neuron": neuron(),
    "with an objective": objective(),
    "with a service": serving(),
}
