"""Controllers on accelerated nodes take the place of jobs, and keep the nodes from going."""

import json
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

import pytest

from tests.support.admission import Policy
from tests.support.folders import ROOT
from tests.support.jobs import BATCH, CPU_POOL, SERVICE, job_cluster, pod_spec, prepared
from tests.support.kubernetes_schemas import named
from tests.support.kubernetes_schemas import pod_spec as pods_of
from tests.support.pools import NEURON_POOL
from ultrascale import plan
from ultrascale.catalog import addons
from ultrascale.plan.model import AddonPlan, ClusterPlan, IsolationPlan
from ultrascale.plan.names import ROLE_LABEL, SYSTEM_ROLE
from ultrascale_k8s import define_charts
from ultrascale_k8s.node_isolation import policy_manifest

Document = Mapping[str, Any]

CLUSTERS = ROOT / "clusters"
FILES = ("auto-mode", "hybrid-hyperpod", "mixed-capacity", "trainium-bert")
HYBRID = "hybrid-hyperpod"
SMALL = {"cpu": 4, "memory": "8Gi"}
# No source shows that its schema has a key for it, and one key too many fails the deploy. Its two
# small pods may run anywhere.
UNPLACED = {"aws-fsx-csi-driver"}


@cache
def planned(file: str) -> ClusterPlan:
    return plan.load(CLUSTERS / f"{file}.yaml")


@cache
def manifests(file: str) -> tuple[Document, ...]:
    charts = define_charts(planned(file))
    return tuple(manifest for chart in charts.all for manifest in chart.manifests)


def isolation() -> IsolationPlan:
    found = planned(HYBRID).isolation
    assert found is not None
    return found


@cache
def policy() -> Policy:
    return Policy(policy_manifest(isolation()))


def system_addons(cluster: ClusterPlan) -> Iterator[AddonPlan]:
    """Yield the add-ons with a Deployment."""
    control_plane = cluster.control_plane
    for addon in (*control_plane.node_addons, *control_plane.workload_addons):
        if addons.addon(addon.name).needs_schedulable_node:
            yield addon


@pytest.mark.parametrize("file", FILES)
def test_every_pod_of_our_charts_keeps_off_nodes_without_taints(file: str) -> None:
    """In every namespace: nothing of ours may need the exemption of AWS's."""
    lands = [
        named(manifest)
        for manifest in manifests(file)
        if manifest["kind"] != "DaemonSet"
        and (spec := pods_of(manifest)) is not None
        and policy().refusals({"spec": spec})
    ]

    assert lands == []


@pytest.mark.parametrize("file", FILES)
def test_every_add_on_with_a_deployment_keeps_to_the_system_nodes(file: str) -> None:
    lands = {
        addon.name
        for addon in system_addons(planned(file))
        if not {f'"{ROLE_LABEL}"', f'"{SYSTEM_ROLE}"'} <= set(_words(addon.configuration))
    }

    assert lands <= UNPLACED


def _words(configuration: Document) -> list[str]:
    text = json.dumps(configuration)
    for mark in "{}[],:":
        text = text.replace(mark, " ")
    return text.split()


class TestJobs:
    """The policy must not refuse what this project itself sends."""

    @pytest.mark.parametrize("scheduling", [{"queueing": "volcano"}, {}])
    @pytest.mark.parametrize("job", [BATCH, SERVICE], ids=["batch", "service"])
    def test_a_job_without_accelerators_goes_to_its_own_pool(
        self, job: dict[str, Any], scheduling: dict[str, Any]
    ) -> None:
        cluster = job_cluster(NEURON_POOL, CPU_POOL, scheduling=scheduling)

        spec = pod_spec(prepared(cluster, job | {"pool": "cpu", "resources": SMALL}))

        assert not any("neuron" in str(each) for each in spec["containers"])
        assert policy().refusals({"spec": spec}) == []

    def test_a_job_with_accelerators_goes_where_they_are(self) -> None:
        assert policy().refusals({"spec": pod_spec(prepared())}) == []


def test_the_policy_is_there_before_anything_that_makes_pods() -> None:
    first, *_ = define_charts(planned(HYBRID)).platform

    assert {str(each["kind"]) for each in first.manifests} == {
        "ValidatingAdmissionPolicy",
        "ValidatingAdmissionPolicyBinding",
    }


@pytest.mark.parametrize("file", [file for file in FILES if file != HYBRID])
def test_clusters_whose_nodes_have_taints_have_no_policy(file: str) -> None:
    assert planned(file).isolation is None


def test_aws_s_own_namespaces_are_exempt_and_those_of_users_are_not() -> None:
    assert "default" not in isolation().exempt_namespaces
    assert not {plan.name for plan in planned(HYBRID).namespaces} & {*isolation().exempt_namespaces}
