"""The change guard tells what an update takes from pods and jobs that run."""

from typing import Any

import pytest

from tests.guard.test_in_use import daemon
from tests.guard.test_queues import queueing
from tests.support.cases import for_each
from tests.support.changes import Body, between, body, manifest, node_pool, template
from ultrascale.guard import compare

OUTAGE = frozenset({"outage"})


def quotas(**flavors: str) -> Body:
    group = {
        "coveredResources": ["nvidia.com/gpu"],
        "flavors": [
            {"name": name, "resources": [{"name": "nvidia.com/gpu", "nominalQuota": amount}]}
            for name, amount in flavors.items()
        ],
    }
    return queueing("ClusterQueue", resourceGroups=[group])


def preemption(reclaim: str) -> Body:
    return queueing("ClusterQueue", preemption={"reclaimWithinCohort": reclaim})


def queue(**spec: Any) -> Body:
    metadata = {"name": "research"}
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "metadata": metadata,
        "spec": spec,
    }


def etcd(folder: str = "/data/members-1", *, replicas: int = 1, mount: str = "/data") -> Body:
    container = {
        "name": "etcd",
        "args": ["--name=$(POD_NAME)", f"--data-dir={folder}"],
        "volumeMounts": [{"name": "data", "mountPath": mount}],
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": "etcd", "namespace": "training"},
        "spec": {
            "replicas": replicas,
            "persistentVolumeClaimRetentionPolicy": {"whenScaled": "Delete"},
            "volumeClaimTemplates": [{"metadata": {"name": "data"}}],
            "template": {"spec": {"containers": [container]}},
        },
    }


def namespace(level: str) -> Body:
    labels = {"pod-security.kubernetes.io/enforce": level}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a", "labels": labels}}


def pool(**labels: str) -> Body:
    found = node_pool()
    found["spec"]["template"].setdefault("metadata", {}).setdefault("labels", {}).update(labels)
    return found


def priorities(highest: int) -> Body:
    rule = {"expression": f"!has(object.spec.priority) || object.spec.priority <= {highest}"}
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": "p"},
        "spec": {"validations": [rule]},
    }


# By change: an object before and after, and what is told. The way back is safe.
LOST = {
    "a lower guarantee": (quotas(reserved="64"), quotas(reserved="32"), "reserved: 64 -> 32"),
    "a flavor that a queue may use no more": (
        quotas(reserved="64", spot="8"),
        quotas(reserved="64"),
        "of spot: 8 -> nothing",
    ),
    "jobs that others may reclaim": (preemption("Never"), preemption("Any"), "Never -> Any"),
    "a lower weight in Kueue": (
        queueing("ClusterQueue", fairSharing={"weight": "2"}),
        queueing("ClusterQueue", fairSharing={"weight": "500m"}),
        "weight: 2 -> 500m",
    ),
    "a lower weight in Volcano": (queue(weight=4), queue(weight=1), "weight: 4 -> 1"),
    "a queue that may be reclaimed": (
        queue(weight=1, reclaimable=False),
        queue(weight=1, reclaimable=True),
        "reclaimable",
    ),
    "a lower guarantee in Volcano": (
        queue(guarantee={"resource": {"cpu": "8"}}),
        queue(guarantee={"resource": {"cpu": "4"}}),
        "cpu: 8 -> 4",
    ),
    "a stricter level of pods": (namespace("baseline"), namespace("restricted"), "-> restricted"),
    "a lower limit of priorities": (priorities(1000), priorities(999), "above 999, of which 1000"),
    "a label of Karpenter's nodes": (pool(team="a"), pool(), "team: a -> nothing"),
}


@for_each(LOST)
def test_jobs_that_run_lose_by_an_update(before: Body, after: Body, told: str) -> None:
    changes = between({"A": manifest(before)}, {"A": manifest(after)})

    assert changes.verdicts == OUTAGE
    (change,) = (each for each in changes.resources if each.lost)
    assert told in change.lost
    back = between({"A": manifest(after)}, {"A": manifest(before)})
    assert not [each for each in back.resources if each.lost]


@for_each(
    {
        "another folder": (etcd(), etcd("/data/members-3", replicas=3)),
        "another mount": (etcd(), etcd("/other/members-1", mount="/other")),
        "fewer replicas, whose volumes go": (etcd(replicas=3), etcd(replicas=1)),
    }
)
def test_a_program_that_begins_without_its_data_is_refused(before: Body, after: Body) -> None:
    changes = between({"A": manifest(before)}, {"A": manifest(after)})

    assert changes.verdicts == {"loses data"}
    assert not between({"A": manifest(before)}, {"A": manifest(before)}).verdicts


@pytest.mark.parametrize(
    ("kind", "before", "after", "verdict", "told"),
    [
        (
            "AWS::EKS::Addon",
            {"AddonName": "vpc-cni", "AddonVersion": "v1.22.4-eksbuild.3"},
            {"AddonName": "vpc-cni", "AddonVersion": "v1.9.0-eksbuild.1"},
            "cuts running nodes off",
            "v1.9.0",
        ),
        (
            "AWS::EKS::Nodegroup",
            {"Labels": {"team": "a"}},
            {"Labels": {"team": "b"}},
            "outage",
            "team: a -> b",
        ),
        (
            "AWS::SageMaker::ClusterSchedulerConfig",
            {"SchedulerConfig": {"PriorityClasses": [{"Name": "low", "Weight": 1}]}},
            {"SchedulerConfig": {"PriorityClasses": [{"Name": "high", "Weight": 1}]}},
            "outage",
            "a priority that jobs name",
        ),
    ],
)
def test_nodes_that_run_lose_by_an_update(
    kind: str, before: Body, after: Body, verdict: str, told: str
) -> None:
    changes = between({"A": body(kind, before)}, {"A": body(kind, after)})

    assert changes.verdicts == {verdict}
    assert told in changes.resources[0].lost
    newer = {**after, "AddonVersion": "v1.23.0-eksbuild.1", "Labels": {**before.get("Labels", {})}}
    if "SchedulerConfig" in before:
        classes = before["SchedulerConfig"]["PriorityClasses"]
        newer = {"SchedulerConfig": {"PriorityClasses": [*classes, {"Name": "new", "Weight": 9}]}}
    assert between({"A": body(kind, before)}, {"A": body(kind, newer)}).is_safe


def tainted(*keys: str, drifting: str = "0") -> Body:
    found = node_pool()
    found["spec"]["disruption"] = {"budgets": [{"nodes": drifting}]}
    taints = [{"key": key, "value": "a", "effect": "NoSchedule"} for key in keys]
    found["spec"]["template"]["spec"]["taints"] = taints
    return found


def plugin(*keys: str, path: str = "/var/lib/kubelet/device-plugins") -> Body:
    tolerations = [{"key": key, "operator": "Exists"} for key in keys]
    if "" in keys:
        tolerations = [{"operator": "Exists"}]
    return daemon(path=path, tolerations=tolerations)


@for_each(
    {
        "another taint": (("a",), ("b",), plugin("a"), plugin("b"), True),
        "no taint": (("a",), (), plugin("a"), plugin(), True),
        "the taint of another pool alone": ((), (), plugin("a"), plugin("b"), False),
        "a plugin that bears all": (("a",), ("b",), plugin(""), plugin(""), False),
        "a plugin that bears all now": (("a",), ("b",), plugin("a"), plugin(""), False),
        "one that still bears it": (("a",), ("b",), plugin("a"), plugin("a", "b"), False),
        "an exporter": (("a",), ("b",), plugin("a", path="/x"), plugin("b", path="/x"), False),
    }
)
def test_a_device_plugin_stays_on_nodes_with_their_former_taint(
    was: tuple[str, ...], becomes: tuple[str, ...], old: Body, new: Body, told: bool
) -> None:
    """Karpenter's nodes keep it; a pod that restarts there would find no GPU."""
    changes = between(
        {"A": manifest(tainted(*was)), "B": manifest(old)},
        {"A": manifest(tainted(*becomes)), "B": manifest(new)},
    )

    assert ("cuts running nodes off" in changes.verdicts) is told
    # Nodes that drift are replaced by others, and those of a pool that leaves end.
    rolls = between(
        {"A": manifest(tainted(*was, drifting="10%")), "B": manifest(old)},
        {"A": manifest(tainted(*becomes, drifting="10%")), "B": manifest(new)},
    )
    assert "cuts running nodes off" not in rolls.verdicts
    gone = between({"A": manifest(tainted(*was)), "B": manifest(old)}, {"B": manifest(new)})
    assert "cuts running nodes off" not in gone.verdicts


def test_two_engines_do_not_give_the_same_nodes_away() -> None:
    kueue = {"c-scheduling": template({"A": manifest(quotas(reserved="64"))})}
    platform = {"c-platform": template({"B": manifest(queue(weight=1))})}

    changes = compare({**kueue, "c-platform": template({})}, platform, region="us-west-2")

    assert changes.verdicts == OUTAGE
    (change,) = changes.protected
    assert change.ids[0] == "c-scheduling"
    assert compare({**kueue, **platform}, platform, region="us-west-2").is_safe
