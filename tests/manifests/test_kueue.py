"""Kueue's objects: valid under upstream's definitions, and of use to a cluster."""

from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest
import yaml

from tests.support.crd_schemas import CRD_FOLDERS, CrdSet
from tests.support.folders import ROOT
from tests.support.kubernetes_schemas import payload_bytes
from tests.support.queued_pools import planned, queued_document
from ultrascale.parts.kueue.model import Plan as KueuePlan
from ultrascale.plan import ClusterPlan, load
from ultrascale_k8s import define_charts

Document = dict[str, Any]
FOLDER = CRD_FOLDERS / "kueue-v0.19.2"
CHECKED = (
    *("clusterqueues", "cohorts", "localqueues", "resourceflavors", "topologies"),
    "workloadpriorityclasses",
)
# Kueue keeps the name of a flavor or queue in labels, and has `-` between parts of others.
LONGEST_NAME = 63
NAME = "app.kubernetes.io/name"


@cache
def upstream() -> CrdSet:
    if not FOLDER.is_dir():
        pytest.skip(f"the CRDs of Kueue are not in {FOLDER}")
    files = (FOLDER / f"kueue.x-k8s.io_{name}.yaml" for name in CHECKED)
    return CrdSet.from_documents(
        yaml.load(file.read_text(), Loader=yaml.CSafeLoader) for file in files
    )


@pytest.fixture(scope="module")
def plan() -> ClusterPlan:
    return load(ROOT / "clusters" / "llm-kueue.yaml")


@pytest.fixture(scope="module")
def objects(plan: ClusterPlan) -> list[Document]:
    """The objects in the order in which they are applied."""
    charts = define_charts(plan).of_layers["scheduling"]
    return [dict(manifest) for chart in charts for manifest in chart.manifests]


def of_kind(objects: list[Document], kind: str) -> dict[str, Document]:
    return {each["metadata"]["name"]: each for each in objects if each["kind"] == kind}


def groups(objects: list[Document]) -> Iterator[tuple[str, Document]]:
    """Yield each resource group with the name of its queue or cohort."""
    for each in objects:
        for group in each.get("spec", {}).get("resourceGroups", ()):
            yield each["metadata"]["name"], group


# --- definitions ---------------------------------------------------------------------------------


def test_kueues_definitions_take_every_object(objects: list[Document]) -> None:
    assert [found for each in objects for found in upstream().validate(each)] == []


def test_nothing_is_left_to_a_default_but_whether_a_queue_is_held(objects: list[Document]) -> None:
    """A queue that an operator holds by kubectl would run again with the next deploy."""
    for each in objects:
        stored = dict(upstream().stored(each))
        if "spec" in stored:
            spec = dict(stored["spec"])
            held = spec.pop("stopPolicy", None)
            assert held == ("None" if "Queue" in each["kind"] else None)
            stored["spec"] = spec
        assert stored == each


FLAVOR: Document = {"kind": "ResourceFlavor", "spec": {"topologyName": "aws-3"}}
LEVELS = ("topology.k8s.aws/network-node-layer-1", "kubernetes.io/hostname")
QUOTA: Document = {"name": "nvidia.com/gpu", "nominalQuota": "8"}


def queue(*resources: Document, covered: tuple[str, ...] = ("nvidia.com/gpu",)) -> Document:
    flavors = {"flavors": [{"name": "burst", "resources": list(resources)}]} if resources else {}
    groups = [{"coveredResources": list(covered), **flavors}]
    return {"kind": "ClusterQueue", "spec": {"resourceGroups": groups}}


def levels(*keys: str) -> Document:
    return {"kind": "Topology", "spec": {"levels": [{"nodeLabel": key} for key in keys]}}


BAD: dict[str, tuple[Document, str]] = {
    "topology without labels of nodes": (FLAVOR, "nodeLabel"),
    "node above its network": (levels(*reversed(LEVELS)), "lowest level"),
    "level that stands twice": (levels(LEVELS[0], *LEVELS), "unique"),
    "more than it may have, and nobody to borrow from": (
        queue(QUOTA | {"borrowingLimit": "8"}),
        "cohort is empty",
    ),
    "resource without a quota": (queue(QUOTA, covered=("nvidia.com/gpu", "cpu")), "same number"),
    "quota that is not a quantity": (queue(QUOTA | {"nominalQuota": "all"}), "nominalQuota"),
    "queue without flavors": (queue(covered=("cpu",)), "flavors"),
}


@pytest.mark.parametrize("name", BAD)
def test_the_definitions_refuse_what_kueue_would(name: str) -> None:
    body, wrong = BAD[name]
    whole = {"apiVersion": "kueue.x-k8s.io/v1beta2", "metadata": {"name": "it"}, **body}

    assert wrong in " ".join(upstream().validate(whole))


# --- what definitions do not say -----------------------------------------------------------------


def test_names_and_objects_fit_where_kueue_and_cloudformation_write_them(
    objects: list[Document],
) -> None:
    assert max(len(each["metadata"]["name"]) for each in objects) <= LONGEST_NAME
    assert max(payload_bytes([each]) for each in objects) < 10_000


def test_every_name_is_that_of_an_object_that_is_applied_before(objects: list[Document]) -> None:
    seen: dict[str, set[str]] = {}
    for each in objects:
        spec = each.get("spec", {})
        named: dict[str, set[str]] = {
            "Topology": {spec["topologyName"]} if "topologyName" in spec else set(),
            "Cohort": {spec["cohortName"]} if "cohortName" in spec else set(),
            "ClusterQueue": {spec["clusterQueue"]} if "clusterQueue" in spec else set(),
            "ResourceFlavor": {
                flavor["name"]
                for group in spec.get("resourceGroups", ())
                for flavor in group["flavors"]
            },
        }
        assert all(names <= seen.get(kind, set()) for kind, names in named.items())
        seen.setdefault(each["kind"], set()).add(each["metadata"]["name"])


def test_a_resource_and_a_flavor_stand_once_in_a_queue(objects: list[Document]) -> None:
    """Kueue's webhook refuses a queue in which one stands twice."""
    resources: dict[str, list[str]] = {}
    flavors: dict[str, list[str]] = {}
    for name, group in groups(objects):
        resources.setdefault(name, []).extend(group["coveredResources"])
        flavors.setdefault(name, []).extend(flavor["name"] for flavor in group["flavors"])

    for found in (*resources.values(), *flavors.values()):
        assert len(found) == len({*found})


def test_queues_with_a_topology_have_flavors_with_one_alone(
    plan: ClusterPlan, objects: list[Document]
) -> None:
    """A queue of both kinds of flavors would take a job by one kind and never by the other."""
    kueue = plan.part(KueuePlan)
    assert kueue is not None
    placed = {
        name
        for name, each in of_kind(objects, "ResourceFlavor").items()
        if "topologyName" in each["spec"]
    }
    by_topology = {each.name: each.topology for each in kueue.queues}

    assert placed
    for name, each in of_kind(objects, "ClusterQueue").items():
        flavors = {flavor["name"] for group in [*groups([each])] for flavor in group[1]["flavors"]}
        assert (flavors <= placed) if by_topology[name] else not (flavors & placed)


def test_a_queue_takes_the_jobs_of_its_namespaces_and_no_others(
    plan: ClusterPlan, objects: list[Document]
) -> None:
    kueue = plan.part(KueuePlan)
    assert kueue is not None
    local = {
        (each["metadata"]["namespace"], each["metadata"]["name"])
        for each in objects
        if each["kind"] == "LocalQueue"
    }

    assert local == {
        (namespace, each.name) for each in kueue.queues for namespace in each.namespaces
    }
    assert "serving" not in {namespace for namespace, _ in local}


def test_no_two_charts_hold_a_queue_or_flavor(plan: ClusterPlan) -> None:
    """An object that leaves the file leaves the cluster only with its chart."""
    charts = define_charts(plan).of_layers["scheduling"]
    leaving = ("ClusterQueue", "ResourceFlavor", "Topology")
    found = [
        sum(manifest["kind"] in leaving for manifest in chart.manifests)
        for chart in charts
        if not chart.name.startswith(("cohort", "workload-priorities"))
    ]

    assert found
    assert set(found) == {1}
    assert not any(chart.retained for chart in charts)


def test_queues_may_have_the_names_of_parts_of_the_platform() -> None:
    queues = ({"name": name} for name in ("gate", "priorities", "fleet", "cohort"))

    charts = define_charts(planned(queued_document(*queues)))

    assert len({chart.name for chart in charts.all}) == len(charts.all)


def test_the_api_server_reaches_what_both_controllers_serve(plan: ClusterPlan) -> None:
    """Their namespaces are closed, and no webhook would answer: no job could be made."""
    (chart,) = (each for each in define_charts(plan).platform if each.name == "queueing-ingress")
    found = {
        (policy["metadata"]["namespace"], policy["spec"]["podSelector"]["matchLabels"][NAME]): {
            port["port"] for rule in policy["spec"]["ingress"] for port in rule["ports"]
        }
        for policy in map(dict[str, Any], chart.manifests)
    }

    assert found == {
        ("kueue-system", "kueue"): {9443, 8443, 8082},
        ("jobset-system", "jobset"): {9443, 8443},
    }
    # Kueue runs on where it leaves the file, and its webhooks judge jobs.
    assert chart.retained


def test_priority_counts_in_a_queue_on_nodes_that_it_borrows_too(objects: list[Document]) -> None:
    """By `Never` Kueue looks for no job to preempt beyond the queue's own quota.

    Source: fitsResourceQuota of https://github.com/kubernetes-sigs/kueue/blob/v0.19.2/pkg/scheduler/flavorassigner/flavorassigner.go
    """
    queues = [each for each in objects if each["kind"] == "ClusterQueue"]

    assert queues
    for each in queues:
        preemption = each["spec"]["preemption"]
        assert preemption["withinClusterQueue"] == "LowerPriority"
        assert preemption["borrowWithinCohort"]["policy"] == "LowerPriority"
        # Jobs of other queues stay: none has so low a priority.
        assert preemption["borrowWithinCohort"]["maxPriorityThreshold"] == -(2**31)


def test_the_quotas_of_queues_and_of_the_cohort_are_the_planned_ones(
    plan: ClusterPlan, objects: list[Document]
) -> None:
    kueue = plan.part(KueuePlan)
    assert kueue is not None

    planned_quotas = {
        (holder.name, quota.flavor): quota.nominal
        for holder in (kueue.cohort, *kueue.queues)
        for group in holder.groups
        for quota in group.quotas
    }

    assert planned_quotas == {
        (holder, flavor["name"]): int(flavor["resources"][0]["nominalQuota"])
        for holder, group in groups(objects)
        for flavor in group["flavors"]
    }
