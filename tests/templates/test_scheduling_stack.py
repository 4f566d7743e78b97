"""Order and values by which Helm brings Kueue and JobSet into the cluster."""

import json
from typing import Any

import pytest
import yaml
from aws_cdk.assertions import Template
from msgspec.structs import replace

from tests.support.construct_stacks import cluster_of, flat, logical_id, resources
from tests.support.queued_pools import planned, queued_document
from ultrascale.parts.kueue.model import Plan as KueuePlan
from ultrascale.plan import ClusterPlan, stack_sizes
from ultrascale_k8s import define_charts
from ultrascale_stacks.kueue import (
    SchedulingStack,
    certificate_without_owner,
    jobset_values,
    kueue_values,
)

CHARTS = "Custom::AWSCDK-EKS-HelmChart"
MANIFESTS = "Custom::AWSCDK-EKS-KubernetesResource"
QUEUES = (
    {"name": "foundation", "guarantee": {"reserved": 12}, "fair_share_weight": 3},
    {"name": "applied", "guarantee": {"reserved": 4}},
)


@pytest.fixture(scope="module")
def plan() -> ClusterPlan:
    return planned(queued_document(*QUEUES))


@pytest.fixture(scope="module")
def kueue(plan: ClusterPlan) -> KueuePlan:
    found = plan.part(KueuePlan)
    assert found is not None
    return found


@pytest.fixture(scope="module")
def stack(plan: ClusterPlan) -> Template:
    cluster = cluster_of(plan, define_charts(plan))
    return Template.from_stack(SchedulingStack(cluster, "research-scheduling"))


def helm_chart(stack: Template, release: str) -> dict[str, Any]:
    (found,) = (b for b in resources(stack, CHARTS) if b["Properties"]["Release"] == release)
    return found


def before(stack: Template, body: dict[str, Any]) -> set[str]:
    """Return the logical ids of everything that is deployed before a resource."""
    everything = stack.to_json()["Resources"]
    found: set[str] = set()
    waiting = [*body.get("DependsOn", ())]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            depends = everything[name].get("DependsOn", ())
            waiting += [depends] if isinstance(depends, str) else depends
    return found


def test_jobset_comes_before_kueue_and_queues_after_both(stack: Template) -> None:
    jobset, controller = (
        logical_id(stack, CHARTS, Release=release) for release in ("jobset", "kueue")
    )

    assert jobset in before(stack, helm_chart(stack, "kueue"))
    for body in resources(stack, MANIFESTS):
        assert controller in before(stack, body)


def test_both_charts_are_upstreams_at_the_pinned_versions_and_queues_outlive_them(
    stack: Template, kueue: KueuePlan
) -> None:
    found = {body["Properties"]["Release"]: body for body in resources(stack, CHARTS)}

    assert {
        name: [body["Properties"][key] for key in ("Repository", "Version", "Namespace")]
        for name, body in found.items()
    } == {
        "jobset": [kueue.jobset_chart, kueue.jobset_version, "jobset-system"],
        "kueue": [kueue.chart, kueue.version, "kueue-system"],
    }
    for body in found.values():
        # Queues are applied once the webhooks that judge them are served.
        assert body["Properties"]["Wait"] is True
        assert "Atomic" not in body["Properties"]
        assert body["DeletionPolicy"] == body["UpdateReplacePolicy"] == "Retain"
    assert {body["DeletionPolicy"] for body in resources(stack, MANIFESTS)} == {"Delete"}


def test_a_queue_takes_no_more_of_its_stack_than_is_counted(stack: Template) -> None:
    counted = stack_sizes.OF_ITEM["queue of Kueue"].size_bytes
    queues = [
        body
        for body in resources(stack, MANIFESTS)
        if "ClusterQueue" in body["Properties"]["Manifest"]
    ]

    assert len(queues) == len(QUEUES)
    assert max(len(json.dumps(body)) for body in queues) < counted


@pytest.mark.parametrize("release", ["jobset", "kueue"])
def test_no_controller_is_throttled(stack: Template, kueue: KueuePlan, release: str) -> None:
    """Null takes away the limit that the chart has of its own."""
    values = json.loads(helm_chart(stack, release)["Properties"]["Values"])
    controller = values.get("controllerManager", {}).get("manager") or values["controller"]

    assert values == (jobset_values(kueue) if release == "jobset" else kueue_values(kueue))
    assert controller["resources"]["limits"]["cpu"] is None
    assert controller["resources"]["limits"]["memory"]


def test_another_configuration_of_kueue_needs_no_room_for_a_third_pod(kueue: KueuePlan) -> None:
    values: Any = kueue_values(kueue)
    controller = values["controllerManager"]

    assert controller["strategy"]["rollingUpdate"] == {"maxSurge": 0, "maxUnavailable": 1}
    assert controller["replicas"] - 1 >= controller["podDisruptionBudget"]["minAvailable"]


def test_users_pods_never_take_the_place_of_jobsets_controller(stack: Template) -> None:
    patch = patch_of(stack, "deployment/jobset-controller")

    assert patch["Properties"]["ResourceNamespace"] == "jobset-system"
    assert "system-cluster-critical" in patch["Properties"]["ApplyPatchJson"]


def patch_of(stack: Template, name: str) -> dict[str, Any]:
    found = resources(stack, "Custom::AWSCDK-EKS-KubernetesPatch")
    (patch,) = (body for body in found if body["Properties"]["ResourceName"] == name)
    return patch


def test_helm_may_change_jobset_once_its_controller_has_written_the_certificate(
    stack: Template,
) -> None:
    """The chart declares the certificate empty: https://github.com/kubernetes-sigs/jobset/issues/1205."""
    secret = "secret/jobset-webhook-server-cert"
    patch = patch_of(stack, secret)
    operations = json.loads(patch["Properties"]["ApplyPatchJson"])
    (owners,) = (each["value"] for each in operations if each["path"] == "/metadata/managedFields")
    logical = logical_id(stack, "Custom::AWSCDK-EKS-KubernetesPatch", ResourceName=secret)

    assert logical in before(stack, helm_chart(stack, "jobset"))
    # Without any, the API server would make up one that owns everything.
    assert [owner["fieldsV1"].keys() for owner in owners] == [{"f:metadata"}]


def test_the_certificate_is_given_free_whenever_helm_runs(kueue: KueuePlan) -> None:
    larger = replace(kueue, jobset_manager=replace(kueue.jobset_manager, memory="2Gi"))
    newer = replace(kueue, jobset_version="0.12.1")
    each = [json.dumps(certificate_without_owner(plan)) for plan in (kueue, larger, newer)]

    assert len(set(each)) == 3
    assert certificate_without_owner(kueue) == certificate_without_owner(
        replace(kueue, version="0.19.15")
    )


# --- the configuration, which replaces the chart's own -------------------------------------------


def configuration(kueue: KueuePlan) -> dict[str, Any]:
    values: Any = kueue_values(kueue)
    return yaml.safe_load(values["managerConfig"]["controllerManagerConfigYaml"])


def test_kueue_takes_the_jobs_of_queued_namespaces_by_their_kinds(kueue: KueuePlan) -> None:
    found = configuration(kueue)
    (term,) = found["managedJobsNamespaceSelector"]["matchExpressions"]

    # Every part that the chart's own configuration states at v0.19.2: one that is missing here
    # would come from Kueue's defaults.
    assert found.keys() >= {
        *("apiVersion", "kind", "health", "metrics", "webhook", "leaderElection", "controller"),
        *("clientConnection", "integrations"),
    }
    assert found["integrations"]["frameworks"] == ["batch/job", "jobset.x-k8s.io/jobset"]
    assert (term["operator"], term["values"]) == ("In", ["training"])
    # Ours that open file systems to jobs wait in no queue.
    assert found["manageJobsWithoutQueueName"] is False
    # Every pod asks for memory too, and one of EFA for interfaces and huge pages: pods that ask
    # for more than a queue counts are admitted.
    assert found["resources"] == {"quotaCheckStrategy": "IgnoreUndeclared"}
    # A job that lacks nodes is sent back, and a job that lost one is not.
    assert flat(found["waitForPodsReady"]) == {
        "timeout": f"{kueue.readiness.timeout_seconds}s",
        "recoveryTimeout": "0s",
        "blockAdmission": False,
        "requeuingStrategy.timestamp": "Eviction",
        "requeuingStrategy.backoffBaseSeconds": kueue.readiness.backoff_base_seconds,
        "requeuingStrategy.backoffMaxSeconds": kueue.readiness.backoff_max_seconds,
        "requeuingStrategy.backoffLimitCount": kueue.readiness.backoff_limit,
    }


def test_idle_quota_is_shared_by_weights_where_queues_have_some(kueue: KueuePlan) -> None:
    plain = planned(queued_document({"name": "all"})).part(KueuePlan)
    assert plain is not None

    assert "fairSharing" in configuration(kueue)
    assert "fairSharing" not in configuration(plain)
