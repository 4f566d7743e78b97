"""Each level of access sends, reads and cancels the jobs that the file says, and no others."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support import access_cases, access_table
from tests.support import job_manifests as given
from tests.support.applied import applied
from tests.support.cases import for_each
from tests.support.eks_access import GuardedApiServer, Person, resources_of
from tests.support.jobs import BATCH, HYBRID, JOB, KUEUE, SERVICE, having, job_cluster, prepared
from tests.support.pools import as_text, loads_own, pool_document
from tests.support.rbac import Access
from tests.support.stub_api_http import kubeconfig, serve
from ultrascale.cluster_api.objects import (
    HTTP_ROUTE,
    LEADER_WORKER_SET,
    LOCAL_QUEUE,
    SCALED_OBJECT,
    Kind,
    name,
)
from ultrascale.cluster_api.server import Cluster
from ultrascale.errors import ClusterError
from ultrascale.jobs import JobManifests
from ultrascale.jobs.cancellation import cancel, objects_of
from ultrascale.jobs.logs import Choice, lines
from ultrascale.jobs.manifests import kind_of
from ultrascale.jobs.status import job_status, jobs_in
from ultrascale.jobs.submission import send
from ultrascale.parts.hyperpod.workloads import HYPERPOD_JOB
from ultrascale.plan.cluster import assemble
from ultrascale_k8s.access import access_objects

Document = dict[str, Any]
ROLE = "arn:aws:iam::111122223333:role/Researchers"
HERE: Document = {"namespaces": ["training"]}
ARRAY = BATCH | {"array": {"size": 20, "parallelism": 4}}


def hyperpod(*, operated: bool = False) -> Document:
    document: Document = yaml.load(HYBRID.read_text(), yaml.CSafeLoader)
    document["hyperpod"]["training_operator"] = operated
    return document


FIXED = pool_document(nodes={"static": 2})
GOVERNED = JOB | {"pool": "hyperpod", "team": "production", "priority": "critical"}
GROUPS: Document = {"controllers": ["leader-worker-set"]}
SCALING: Document = {"controllers": ["keda"]}
FRONT: Document = {"front": {"exposure": "cluster"}}
CHAT: Document = SERVICE | {"model_names": ["chat"]}
# By what is sent: the cluster, the job, and the kinds of its objects.
SENT: dict[str, tuple[Document, Document, set[str]]] = {
    "Volcano Job": (job_cluster(), JOB, {"Job"}),
    "Volcano Job of one batch": (job_cluster(), BATCH, {"Job"}),
    "array": (job_cluster(), ARRAY, {"Job"}),
    "service": (job_cluster(), SERVICE, {"Deployment", "Service", "PodDisruptionBudget"}),
    "service behind the front": (
        having(job_cluster(serving=FRONT), CHAT),
        CHAT,
        {"Deployment", "Service", "PodDisruptionBudget", "NetworkPolicy", "HTTPRoute"},
    ),
    "service that follows its load": (
        job_cluster(serving=SCALING),
        SERVICE | {"autoscale": {"metric": "cpu", "target": 70, "max": 2}},
        {"Deployment", "Service", "PodDisruptionBudget", "ScaledObject"},
    ),
    "service of several nodes": (
        job_cluster(serving=GROUPS),
        SERVICE | {"nodes": 2},
        {"LeaderWorkerSet", "Service", "PodDisruptionBudget"},
    ),
    "service in a queue": (
        job_cluster(scheduling=KUEUE, serving=GROUPS),
        SERVICE | {"queue": "research"},
        {"LeaderWorkerSet", "Service", "PodDisruptionBudget"},
    ),
    "JobSet": (job_cluster(scheduling=KUEUE), JOB, {"JobSet"}),
    "Job in a queue of Kueue": (job_cluster(scheduling=KUEUE), BATCH, {"Job"}),
    "Indexed Job": (job_cluster(FIXED, scheduling=None), JOB, {"Job", "Service"}),
    "PyTorchJob": (hyperpod(), GOVERNED, {"PyTorchJob", "Service"}),
    "HyperPodPyTorchJob": (hyperpod(operated=True), GOVERNED, {"HyperPodPyTorchJob"}),
}
INSTALLED = {
    "volcano": ("/apis/batch.volcano.sh/v1alpha1", "/apis/scheduling.volcano.sh/v1beta1"),
    "kueue": ("/apis/jobset.x-k8s.io/v1alpha2", "/apis/kueue.x-k8s.io/v1beta2"),
}


def person(cluster: Document, policy: str, **scope: Any) -> Person:
    """Return whoever has a level of access in a cluster."""
    access = [{"role": ROLE, "policy": policy, **scope}]
    kubernetes = cluster.get("kubernetes", {}) | {"access": access}
    return _person(as_text(cluster | {"kubernetes": kubernetes}))


@cache
def _person(text: str) -> Person:
    access = assemble(loads_own(text)).access
    entry = access.entries[-1]
    return Person(entry, applied(access_objects(access.roles, access.bindings)))


def server(person: Person, cluster: Document, job: JobManifests) -> GuardedApiServer:
    """Return an API server with what the job needs, which serves what the cluster has installed."""
    stub = GuardedApiServer(person)
    stub.put(f"/api/v1/namespaces/{job.namespace}", {"kind": "Namespace"})
    scheduling: Document = cluster.get("scheduling") or {}
    gone = {
        path
        for name, paths in INSTALLED.items()
        if name != scheduling.get("queueing")
        for path in paths
    }
    stub.groups -= gone
    if any(each["kind"] == "HTTPRoute" for each in job.objects):
        stub.groups.add(HTTP_ROUTE.group_path)
    serving: Document = cluster.get("serving") or {}
    controllers = serving.get("controllers", ())
    if "keda" in controllers:
        stub.groups |= {SCALED_OBJECT.group_path, "/apis/metrics.k8s.io/v1beta1"}
    if "leader-worker-set" in controllers:
        stub.groups.add(LEADER_WORKER_SET.group_path)
    if "hyperpod" in cluster:
        stub.groups |= {"/apis/kubeflow.org/v1", LOCAL_QUEUE.group_path}
        if cluster["hyperpod"]["training_operator"]:
            stub.groups.add(HYPERPOD_JOB.group_path)
    for queue in ("default", "research"):
        stub.put(f"{given.QUEUES}/{queue}", {"kind": "Queue", "status": {"state": "Open"}})
    if job.local_queue is not None:
        path = LOCAL_QUEUE.path(job.namespace, job.local_queue)
        stub.put(path, {"spec": {"clusterQueue": "research"}})
    if job.priority_class is not None:
        stub.put(f"{given.PRIORITY_CLASSES}/{job.priority_class}", {"kind": "PriorityClass"})
    for claim in job.claims:
        path = f"/api/v1/namespaces/{job.namespace}/persistentvolumeclaims/{claim}"
        stub.put(path, {"kind": "PersistentVolumeClaim", "status": {"phase": "Bound"}})
    return stub


def scope_of(cluster: Document) -> Mapping[str, Any]:
    return {"team": "production"} if "hyperpod" in cluster else HERE


@pytest.mark.parametrize(
    ("kind", "level"), [*((kind, "edit") for kind in SENT), ("JobSet", "admin")]
)
def test_an_editor_sends_reads_and_cancels_each_kind_of_job(
    kind: str, level: str, tmp_path: Path
) -> None:
    document, wanted, kinds = SENT[kind]
    job = prepared(document, wanted)
    assert {str(each["kind"]) for each in job.objects} == kinds
    stub = server(person(document, level, **scope_of(document)), document, job)

    with serve(stub):
        cluster = Cluster.connected(kubeconfig(tmp_path, stub.url))
        notes = send(cluster, job)
        look(cluster, stub, job)
        cancel(cluster, job.namespace, objects_of(cluster, job.namespace, job.name))

    assert not [note for note in notes if "not checked" in note]
    assert not any(f"/{job.name}" in path for path in stub.paths())


@pytest.mark.parametrize("kind", SENT)
def test_a_viewer_reads_each_kind_of_job_and_sends_none(kind: str, tmp_path: Path) -> None:
    document, wanted, _ = SENT[kind]
    job = prepared(document, wanted)
    stub = server(person(document, "view", **scope_of(document)), document, job)

    with serve(stub):
        cluster = Cluster.connected(kubeconfig(tmp_path, stub.url))
        with pytest.raises(ClusterError, match="nothing was sent"):
            send(cluster, job)
        for each in job.objects:
            stub.put(kind_of(each).path(job.namespace, name(each)), {**each})
        look(cluster, stub, job)
        with pytest.raises(ClusterError, match="cannot delete"):
            cancel(cluster, job.namespace, objects_of(cluster, job.namespace, job.name))


def look(cluster: Cluster, stub: GuardedApiServer, job: JobManifests) -> None:
    pod = f"/api/v1/namespaces/{job.namespace}/pods/{job.name}-0"
    stub.put(pod, given.pod(f"{job.name}-0", job.name) | {"status": {"phase": "Running"}})
    stub.write(pod, "2026-11-21T12:00:00Z loss 3.1", ends=True)
    assert job.name in [each.name for each in jobs_in(cluster, job.namespace)]
    job_status(cluster, job.namespace, job.name)
    choice = Choice(pod=f"{job.name}-0")
    assert [*lines(cluster, job.namespace, job.name, choice, follow=False)]
    stub.remove(pod)


@for_each(access_cases.rights())
def test_nobody_has_more_or_less_than_the_file_says(
    level: str, access: Access, allowed: bool
) -> None:
    assert person(job_cluster(), level, **HERE).allows(access) is allowed


def test_nobody_admits_a_job_past_its_queue() -> None:
    editor = person(job_cluster(scheduling=KUEUE), "edit", **HERE)

    for resource in ("workloads", "localqueues"):
        for verb in ("create", "patch", "update", "delete"):
            assert not editor.allows(Access(verb, "kueue.x-k8s.io", resource, "training", "it"))
    assert not editor.allows(Access("patch", "kueue.x-k8s.io", "clusterqueues", None, "research"))


def test_a_role_with_a_queue_sends_no_kind_that_waits_in_none() -> None:
    document = hyperpod() | {"hyperpod": {}, "scheduling": KUEUE, "jobs": {}}
    document.pop("backend", None)
    researcher = person(document, "edit", queue="research")

    assert researcher.allows(Access("create", "jobset.x-k8s.io", "jobsets", "training"))
    assert not researcher.allows(Access("create", "kubeflow.org", "pytorchjobs", "training"))
    assert researcher.allows(Access("list", "kubeflow.org", "pytorchjobs", "training"))


SCALED: Document = {
    "autoscale": {"metric": "cpu", "target": 70, "max": 3},
    **{key: value for key, value in SERVICE.items() if key != "name"},
}
OF_TWO_NODES: Document = {"nodes": 2} | {
    key: value for key, value in SCALED.items() if key != "autoscale"
}
SERVING: Document = {"chat": SCALED, "large": OF_TWO_NODES}
OF_SERVICES = (
    ("leaderworkerset.x-k8s.io", "leaderworkersets"),
    ("keda.sh", "scaledobjects"),
    ("gateway.networking.k8s.io", "httproutes"),
)


@pytest.mark.parametrize(("group", "resource"), OF_SERVICES)
def test_levels_of_access_cover_the_kinds_of_services(group: str, resource: str) -> None:
    front = {"front": {"exposure": "cluster"}}
    document = job_cluster(scheduling=KUEUE, jobs=SERVING, serving=front)
    viewer, editor = (person(document, level, **HERE) for level in ("view", "edit"))

    for verb in ("get", "list", "watch"):
        assert viewer.allows(Access(verb, group, resource, "training"))
    for verb in ("create", "patch", "delete"):
        assert editor.allows(Access(verb, group, resource, "training"))
        assert not viewer.allows(Access(verb, group, resource, "training"))
        assert not editor.allows(Access(verb, group, resource, "kube-system"))
    without = person(job_cluster(scheduling=KUEUE), "edit", **HERE)
    assert not without.allows(Access("list", group, resource, "training"))


# Kinds that change what becomes of requests for all models, beside routes.
OF_THE_FRONT = (
    ("gateway.networking.k8s.io", "gateways"),
    ("gateway.networking.k8s.io", "grpcroutes"),
    ("gateway.networking.k8s.io", "httproutes/status"),
    ("gateway.networking.k8s.io", "listenersets"),
    ("gateway.networking.k8s.io", "referencegrants"),
    ("gateway.envoyproxy.io", "backends"),
    ("gateway.envoyproxy.io", "envoyextensionpolicies"),
    ("gateway.envoyproxy.io", "securitypolicies"),
    ("elbv2.k8s.aws", "targetgroupbindings"),
    ("eks.amazonaws.com", "targetgroupbindings"),
    ("admissionregistration.k8s.io", "validatingadmissionpolicies"),
    ("", "namespaces"),
)


@pytest.mark.parametrize("level", ["edit", "admin"])
def test_nobody_makes_a_kind_of_the_front_but_routes(level: str) -> None:
    own = person(having(job_cluster(serving=FRONT), CHAT), level, **HERE)
    for group, resource in OF_THE_FRONT:
        for verb in ("create", "patch", "update"):
            assert not own.allows(Access(verb, group, resource, "training", "front"))
            assert not own.allows(Access(verb, group, resource, "envoy-gateway-system", "front"))
    for other in ("envoy-gateway-system", "default"):
        routes = Access("create", "gateway.networking.k8s.io", "httproutes", other)
        assert not own.allows(routes)


@pytest.mark.parametrize(("group", "resource"), OF_SERVICES)
def test_a_role_with_a_queue_sends_services_to_it(group: str, resource: str) -> None:
    front = {"front": {"exposure": "cluster"}}
    document = job_cluster(scheduling=KUEUE, jobs=SERVING, serving=front)

    researcher = person(document, "edit", queue="research")

    for verb in ("create", "get", "patch", "delete"):
        assert researcher.allows(Access(verb, group, resource, "training"))
        assert not researcher.allows(Access(verb, group, resource, "kube-system"))


def test_a_role_with_a_queue_sends_a_service_that_follows_its_load(tmp_path: Path) -> None:
    serving = {"controllers": ["keda", "leader-worker-set"], "front": {"exposure": "cluster"}}
    scaled = SERVICE | SCALED | {"queue": "research", "model_names": ["chat"]}
    document = having(job_cluster(scheduling=KUEUE, serving=serving), scaled)
    job = prepared(document, scaled)
    assert {"LeaderWorkerSet", "ScaledObject", "HTTPRoute"} <= {
        str(each["kind"]) for each in job.objects
    }
    stub = server(person(document, "edit", queue="research"), document, job)

    with serve(stub):
        cluster = Cluster.connected(kubeconfig(tmp_path, stub.url))
        send(cluster, job)
        sent = [path for path in stub.paths() if path.endswith("/chat")]
        cancel(cluster, job.namespace, objects_of(cluster, job.namespace, job.name))

    assert len(sent) == len(job.objects)
    assert not any(path.endswith("/chat") for path in stub.paths())


def test_a_role_with_a_queue_scales_nothing_where_no_service_waits() -> None:
    """No policy would hold it to its queue."""
    serving = {"controllers": ["keda"], "front": {"exposure": "cluster"}}
    document = job_cluster(scheduling=KUEUE, serving=serving)

    researcher = person(document, "edit", queue="research")

    for group, resource in OF_SERVICES[1:]:
        assert researcher.allows(Access("list", group, resource, "training"))
        assert not researcher.allows(Access("create", group, resource, "training"))


def test_a_level_of_the_whole_cluster_holds_in_each_namespace() -> None:
    auditor = person(job_cluster(), "view")

    for namespace in ("training", "kube-system"):
        assert auditor.allows(Access("list", "", "pods", namespace))
        assert auditor.allows(Access("list", "batch.volcano.sh", "jobs", namespace))
        assert not auditor.allows(Access("list", "", "secrets", namespace))


def test_everybody_sees_the_nodes_the_queues_and_the_priorities() -> None:
    viewer = person(job_cluster(), "view", **HERE)

    assert viewer.allows(Access("list", "", "nodes", None))
    assert viewer.allows(Access("get", "scheduling.volcano.sh", "queues", None, "research"))
    assert viewer.allows(Access("list", "scheduling.k8s.io", "priorityclasses", None))


def test_eks_policies_leave_out_what_our_roles_bring() -> None:
    """Otherwise our Roles would repeat EKS's, which may be narrowed by a change of theirs."""
    of_eks = {*resources_of("AmazonEKSAdminPolicy")}
    document, *_ = SENT["HyperPodPyTorchJob"]

    for each in (job_cluster(), job_cluster(scheduling=KUEUE), document):
        granted = {
            (group, resource)
            for manifest in person(each, "edit", **scope_of(each)).documents
            for rule in manifest.get("rules", ())
            for group in rule["apiGroups"]
            for resource in rule["resources"]
        }
        assert granted
        assert not granted & of_eks


@pytest.mark.parametrize("kind", [HTTP_ROUTE, LEADER_WORKER_SET, SCALED_OBJECT], ids=str)
def test_jobs_go_on_where_others_have_installed_what_the_file_does_not_name(
    kind: Kind, tmp_path: Path
) -> None:
    """KEDA, LeaderWorkerSet and gateways are widespread, and give the file's users no rights."""
    document = job_cluster()
    job = prepared(document, SERVICE)
    stub = server(person(document, "edit", **scope_of(document)), document, job)
    stub.groups.add(kind.group_path)

    with serve(stub):
        cluster = Cluster.connected(kubeconfig(tmp_path, stub.url))
        send(cluster, job)
        found = jobs_in(cluster, job.namespace)
        cancel(cluster, job.namespace, objects_of(cluster, job.namespace, job.name))

    assert [each.name for each in found] == [job.name]
    assert not any(f"/{job.name}" in path for path in stub.paths())


def test_the_page_says_all_that_a_level_allows() -> None:
    assert access_table.page() == access_table.PAGE.read_text(), (
        "run `python -m tests.support.access_table`"
    )
    rights = access_table.rights()
    assert rights["", "secrets"] == ("", "reads, writes", "reads, writes")
    assert rights["kueue.x-k8s.io", "localqueues"] == ("reads", "reads", "reads")
    assert rights["rbac.authorization.k8s.io", "rolebindings"] == ("", "", "reads, writes")
