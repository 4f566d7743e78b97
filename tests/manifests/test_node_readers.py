"""The right of pods of jobs to read Nodes, where ranks follow the network."""

from typing import Any

import pytest

from tests.support.jobs import KUEUE, VOLCANO, job_cluster
from tests.support.pools import make_cluster
from ultrascale.plan.cluster import assemble
from ultrascale_k8s.platform import define_charts

TRAIN = {**job_cluster()["pools"][1], "nodes": {"static": 8}}


def objects(**changes: Any) -> list[Any]:
    document = job_cluster(TRAIN, **changes)
    charts = define_charts(assemble(make_cluster(**document)))
    return [
        each
        for chart in charts.platform
        if chart.name == "node-readers"
        for each in chart.manifests
    ]


def test_pods_of_jobs_may_get_a_node_by_its_name_and_nothing_else() -> None:
    role, binding = objects()

    assert role["rules"] == [{"apiGroups": [""], "resources": ["nodes"], "verbs": ["get"]}]
    assert binding["roleRef"]["name"] == role["metadata"]["name"] == "ultrascale-node-reader"
    assert [each["name"] for each in binding["subjects"]] == ["system:serviceaccounts:training"]


@pytest.mark.parametrize(
    "scheduling",
    [
        None,
        VOLCANO | {"rendezvous": {"ranks": "index"}},
        KUEUE | {"queues": [{"name": "research", "topology": True}]},
    ],
    ids=["no engine", "ranks by index", "placed by Kueue"],
)
def test_nobody_has_it_where_no_job_needs_it(scheduling: dict[str, Any] | None) -> None:
    assert objects(scheduling=scheduling) == []


@pytest.mark.parametrize(("pools", "has_it"), [(1, False), (2, True)])
def test_nobody_has_it_where_jobs_have_two_nodes_at_most(pools: int, has_it: bool) -> None:
    small = [
        {**TRAIN, "name": f"train-{number}", "nodes": {"static": 2}} for number in range(pools)
    ]
    charts = define_charts(assemble(make_cluster(**job_cluster(*small))))

    assert ("node-readers" in {chart.name for chart in charts.platform}) == has_it
