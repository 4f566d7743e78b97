"""The change guard tells what Kubernetes and services refuse, before a deployment starts."""

from typing import Any

from tests.support.cases import for_each
from tests.support.changes import Body, between, body, manifest, node_pool, of
from ultrascale.guard import Changes

CANNOT = frozenset({"cannot be deployed"})
RDS, AURORA, EKS = "AWS::RDS::DBInstance", "AWS::RDS::DBCluster", "AWS::EKS::Cluster"


def an_object(kind: str, api: str, name: str = "x", **parts: Any) -> Body:
    return {"apiVersion": api, "kind": kind, "metadata": {"name": name}, **parts}


def applied(old: Body, new: Body) -> Changes:
    return between({"M": manifest(old)}, {"M": manifest(new)})


def workload(kind: str, app: str) -> Body:
    return an_object(kind, "apps/v1", spec={"selector": {"matchLabels": {"app": app}}})


def job(image: str) -> Body:
    pod = {"containers": [{"name": "a", "image": image}]}
    return an_object("Job", "batch/v1", spec={"template": {"spec": pod}, "backoffLimit": 3})


def claim(size: str) -> Body:
    requests = {"resources": {"requests": {"storage": size}}}
    return an_object("PersistentVolumeClaim", "v1", spec={"volumeName": "v", **requests})


def definition(*versions: str, scope: str = "Namespaced") -> Body:
    spec = {"scope": scope, "versions": [{"name": version} for version in versions]}
    return an_object("CustomResourceDefinition", "apiextensions.k8s.io/v1", spec=spec)


def static(replicas: int | None) -> Body:
    pool = node_pool()
    sizes = {} if replicas is None else {"replicas": replicas}
    return {**pool, "spec": {**pool["spec"], **sizes}}


RBAC, SCHEDULING, STORAGE = (
    f"{group}.k8s.io/v1" for group in ("rbac.authorization", "scheduling", "storage")
)
REFUSED: dict[str, tuple[Body, ...]] = {
    "priority": tuple(an_object("PriorityClass", SCHEDULING, value=value) for value in (1, 2)),
    "preemption": tuple(
        an_object("PriorityClass", SCHEDULING, value=1, preemptionPolicy=policy)
        for policy in ("Never", "PreemptLowerPriority")
    ),
    "template of a Job": (job("a:1"), job("a:2")),
    "selector of a Deployment": (workload("Deployment", "a"), workload("Deployment", "b")),
    "selector of a DaemonSet": (workload("DaemonSet", "a"), workload("DaemonSet", "b")),
    "claims of a StatefulSet": tuple(
        an_object("StatefulSet", "apps/v1", spec={"volumeClaimTemplates": [{"size": size}]})
        for size in (1, 2)
    ),
    "parameters of a StorageClass": tuple(
        an_object("StorageClass", STORAGE, parameters={"type": kind}) for kind in ("gp3", "io2")
    ),
    "source of a volume": tuple(
        an_object("PersistentVolume", "v1", spec={"csi": {"volumeHandle": id}}) for id in "ab"
    ),
    "smaller claim": (claim("10Gi"), claim("9000Mi")),
    "address of a Service": tuple(
        an_object("Service", "v1", spec={"clusterIP": address}) for address in ("None", "10.0.0.9")
    ),
    "role of a binding": tuple(
        an_object("RoleBinding", RBAC, roleRef={"name": name}) for name in "ab"
    ),
    "scope of a definition": (definition("v1"), definition("v1", scope="Cluster")),
    "stored version of a definition": (definition("v1beta1", "v1"), definition("v1")),
    "immutable ConfigMap": tuple(
        an_object("ConfigMap", "v1", immutable=True, data={"a": value}) for value in "ab"
    ),
    "static NodePool": (static(2), static(None)),
}
TAKEN: dict[str, tuple[Body, ...]] = {
    "larger claim": (claim("10Gi"), claim("20Gi")),
    "replicas of a StatefulSet": tuple(
        an_object("StatefulSet", "apps/v1", spec={"replicas": count}) for count in (1, 3)
    ),
    "ConfigMap": tuple(an_object("ConfigMap", "v1", data={"a": value}) for value in "ab"),
    "another version of a definition": (definition("v1"), definition("v1", "v2")),
    "another Job": (job("a:1"), {**job("a:2"), "metadata": {"name": "y"}}),
    "size of a static NodePool": (static(2), static(3)),
    "Job's limit": (job("a:1"), {**job("a:1"), "spec": {**job("a:1")["spec"], "backoffLimit": 4}}),
}


@for_each(REFUSED)
def test_what_kubernetes_refuses_is_refused_before_the_deployment_is_stuck(
    old: Body, new: Body
) -> None:
    changes = applied(old, new)

    assert changes.verdicts == CANNOT, changes
    (refused,) = (change for change in changes.resources if change.fails)
    assert (refused.name, refused.type) == (
        "x" if "x" in str(old["metadata"]) else "train",
        (f"Kubernetes::{old['kind']}"),
    )


@for_each(TAKEN)
def test_what_kubernetes_takes_is_not_said_to_fail(old: Body, new: Body) -> None:
    assert "cannot be deployed" not in applied(old, new).verdicts


def test_an_object_that_was_deleted_by_hand_may_go_on_by_name() -> None:
    old, new = REFUSED["priority"]

    assert applied(old, new).permit("c-storage/x").is_safe


STEPS: dict[str, tuple[str, str, str, str]] = {
    "cluster back": (EKS, "Version", "1.36", "1.35"),
    "cluster by two minors": (EKS, "Version", "1.34", "1.36"),
    "group back": ("AWS::EKS::Nodegroup", "Version", "1.36", "1.35"),
    "AMI back": ("AWS::EKS::Nodegroup", "ReleaseVersion", "1.35.8-20260930", "1.35.8-20260801"),
    "Aurora back": (AURORA, "EngineVersion", "17", "16"),
    "RDS back": (RDS, "EngineVersion", "17.9", "17.6"),
    "RDS by a major version that nobody allowed": (RDS, "EngineVersion", "17.9", "18.1"),
    "smaller disk": (RDS, "AllocatedStorage", "200", "100"),
    "smaller file system": ("AWS::FSx::FileSystem", "StorageCapacity", "4800", "2400"),
    "access entries off": (EKS, "AccessConfig", "API", "CONFIG_MAP"),
}


@for_each(STEPS)
def test_a_step_that_the_service_refuses_is_said_to_fail(
    kind: str, path: str, old: str, new: str
) -> None:
    def properties(value: str) -> Body:
        inner = {"AuthenticationMode": value} if path == "AccessConfig" else value
        return body(kind, {path: inner})

    changes = between({"A": properties(old)}, {"A": properties(new)})

    assert "cannot be deployed" in changes.verdicts
    assert of(changes, "A").fails


@for_each({"one minor": ("1.34", "1.35"), "a patch": ("1.35", "1.35")})
def test_the_next_minor_of_a_cluster_passes(old: str, new: str) -> None:
    assert between({"A": body(EKS, {"Version": old})}, {"A": body(EKS, {"Version": new})}).is_safe


def test_a_chart_with_definitions_never_goes_back_by_a_minor_version() -> None:
    def chart(version: str) -> Body:
        return body("Custom::AWSCDK-EKS-HelmChart", {"Release": "karpenter", "Version": version})

    assert between({"A": chart("1.15.1")}, {"A": chart("1.14.3")}).verdicts == CANNOT
    assert between({"A": chart("1.15.2")}, {"A": chart("1.15.1")}).is_safe
    assert between({"A": chart("1.14.3")}, {"A": chart("1.15.1")}).is_safe


def test_an_object_that_moves_between_charts_is_deleted_by_the_older_one() -> None:
    account = an_object("ServiceAccount", "v1")

    changes = between({"A": manifest(account)}, {"B": manifest(account)})

    assert changes.verdicts == CANNOT
