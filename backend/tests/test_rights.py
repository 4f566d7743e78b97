"""The backend may do all that a job takes, in the namespaces of its jobs, and nothing else."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.support import job_manifests as given
from tests.support.applied import applied
from tests.support.folders import ROOT
from tests.support.jobs import operated_file
from tests.support.pools import make_cluster
from tests.support.rbac import Access, Rbac, accesses_of
from tests.support.stub_api_http import kubeconfig, serve
from tests.support.stub_api_server import Object, StubApiServer
from ultrascale import plan
from ultrascale.cluster_api.objects import INDEXED_JOB, LOCAL_QUEUE, Kind
from ultrascale.cluster_api.server import Cluster
from ultrascale.jobs.cancellation import cancel, objects_of
from ultrascale.jobs.logs import Choice, lines
from ultrascale.jobs.progress import Followed, follow
from ultrascale.jobs.status import job_status, jobs_in
from ultrascale.jobs.submission import send
from ultrascale.parts.backend.model import Plan
from ultrascale.parts.hyperpod.workloads import PYTORCH_JOB
from ultrascale.parts.kueue.workloads import JOBSET
from ultrascale.parts.volcano.workloads import VOLCANO_JOB
from ultrascale.plan.names import QUEUE_LABEL
from ultrascale_backend.rendering import open_renderer
from ultrascale_k8s.backend import backend_objects, backend_rights_objects

BACKEND = {"submits_to": ["tune"]}
JOBS: dict[str, Any] = {"tune": {"node_selector": {"node-type": "train"}}}
POD = f"{given.PODS}/bert-0"


def backend_of(cluster: plan.ClusterPlan) -> Plan:
    backend = cluster.part(Plan)
    assert backend is not None
    return backend


def rights(backend: Plan) -> Rbac:
    """Return what the rendered objects grant the backend."""
    namespaces = (*backend.job_namespaces, *backend.team_namespaces)
    objects = (*backend_objects(backend), *backend_rights_objects(backend, namespaces))
    return Rbac(applied(objects), account="backend", namespace=backend.namespace)


@pytest.fixture(scope="module")
def with_volcano() -> Rbac:
    scheduling = {"queueing": "volcano", "queues": [{"name": "research"}]}
    document = make_cluster(jobs=JOBS, backend=BACKEND, scheduling=scheduling)
    return rights(backend_of(plan.plan_cluster(document)))


@pytest.fixture(scope="module")
def with_kueue() -> Rbac:
    scheduling = {"queueing": "kueue", "queues": [{"name": "research"}]}
    document = make_cluster(jobs=JOBS, backend=BACKEND, scheduling=scheduling)
    return rights(backend_of(plan.plan_cluster(document)))


@pytest.fixture(scope="module")
def hybrid() -> Rbac:
    return rights(backend_of(plan.load(ROOT / "clusters" / "hybrid-hyperpod.yaml")))


@pytest.fixture
def stub() -> Iterator[StubApiServer]:
    server = StubApiServer()
    given.furnish(server)
    server.groups |= {PYTORCH_JOB.group_path, JOBSET.group_path, LOCAL_QUEUE.group_path}
    server.put(LOCAL_QUEUE.path("training", "research"), {"spec": {"clusterQueue": "research"}})
    with serve(server):
        yield server


def life_of_a_job(stub: StubApiServer, folder: Path, kind: Kind) -> list[Access]:
    """Return what is asked of the API server from the first look to the end of a job."""
    cluster = Cluster.connected(kubeconfig(folder, stub.url))
    workload: Object = {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "metadata": {"name": "bert", "labels": {given.JOB_LABEL: "bert"}},
        "spec": {"suspend": True} if kind == JOBSET else {},
    }
    if kind == JOBSET:
        workload["metadata"]["labels"][QUEUE_LABEL] = "research"
    headless, *_ = given.manifests().objects
    queue = "research" if kind == VOLCANO_JOB else None
    local = "research" if kind == JOBSET else None
    job = given.manifests(
        objects=(headless, workload), queue=queue, local_queue=local, service_account="trainer"
    )
    stub.put(f"{given.NAMESPACE}/serviceaccounts/trainer", {"kind": "ServiceAccount"})
    send(cluster, job)
    stub.put(POD, given.pod("bert-0"))
    stub.update(POD, status={"phase": "Running"})
    stub.write(POD, "2026-11-21T12:00:00Z loss 3.1", ends=True)
    jobs_in(cluster, "training")
    job_status(cluster, "training", "bert")
    assert [*lines(cluster, "training", "bert", Choice(pod="bert-0"), follow=False)]
    followed = Followed(name="bert", namespace="training", kinds=(kind,))
    follow(cluster, followed, report=lambda _: None, until=lambda _: True)
    cancel(cluster, "training", objects_of(cluster, "training", "bert"))
    return [access for each in stub.requests for access in accesses_of(each)]


@pytest.fixture
def life(stub: StubApiServer, tmp_path: Path, request: pytest.FixtureRequest) -> Sequence[Access]:
    return life_of_a_job(stub, tmp_path, request.param)


def refused(rbac: Rbac, asked: Sequence[Access]) -> set[Access]:
    return {each for each in asked if not rbac.allows(each)}


# Kinds that come with services and jobs of Ray, of which these clusters have none.
NOT_HERE = {"gateway.networking.k8s.io", "keda.sh", "leaderworkerset.x-k8s.io", "ray.io"}


@pytest.mark.parametrize("life", [VOLCANO_JOB, INDEXED_JOB], indirect=True)
def test_a_job_is_sent_followed_read_and_cancelled_where_volcano_runs(
    with_volcano: Rbac, life: Sequence[Access]
) -> None:
    # Kinds that are not installed: a refusal is taken for their absence.
    absent = {"hyperpodpytorchjobs", "jobsets", "pytorchjobs"}
    missing = {each for each in refused(with_volcano, life) if each.group not in NOT_HERE}

    assert {each for each in missing if each.resource not in absent} == set()


@pytest.mark.parametrize("life", [JOBSET, INDEXED_JOB], indirect=True)
def test_a_job_is_sent_followed_read_and_cancelled_where_kueue_runs(
    with_kueue: Rbac, life: Sequence[Access]
) -> None:
    absent = {
        *NOT_HERE,
        "batch.volcano.sh",
        "kubeflow.org",
        "sagemaker.amazonaws.com",
        "scheduling.volcano.sh",
    }

    assert {each for each in refused(with_kueue, life) if each.group not in absent} == set()


@pytest.mark.parametrize("life", [JOBSET], indirect=True)
def test_nothing_is_granted_under_kueue_that_no_job_takes(
    with_kueue: Rbac, life: Sequence[Access]
) -> None:
    used = {(each.verb, each.group, each.resource) for each in life if each.namespace}
    used |= {(verb, "batch", "jobs") for verb, _, kind in used if kind == "jobsets"}
    used.add(("list", "", "events"))

    assert with_kueue.granted("training") - used == set()


@pytest.mark.parametrize("life", [PYTORCH_JOB, INDEXED_JOB], indirect=True)
def test_a_job_is_sent_followed_read_and_cancelled_on_hyperpod(
    hybrid: Rbac, life: Sequence[Access]
) -> None:
    absent = {
        *NOT_HERE,
        "batch.volcano.sh",
        "jobset.x-k8s.io",
        "sagemaker.amazonaws.com",
        "scheduling.volcano.sh",
    }

    assert {each for each in refused(hybrid, life) if each.group not in absent} == set()


@pytest.mark.parametrize("life", [VOLCANO_JOB], indirect=True)
def test_nothing_is_granted_in_a_namespace_of_jobs_that_no_job_takes(
    with_volcano: Rbac, life: Sequence[Access]
) -> None:
    # A job of Kubernetes itself takes what a Volcano job does.
    used = {(each.verb, each.group, each.resource) for each in life if each.namespace}
    used |= {(verb, "batch", kind) for verb, group, kind in used if group == "batch.volcano.sh"}
    # Asked only while no pod is there.
    used.add(("list", "", "events"))

    assert with_volcano.granted("training") - used == set()


@pytest.mark.parametrize(
    "access",
    [
        Access("get", "", "secrets", "training", "token"),
        Access("list", "", "secrets", "backend"),
        Access("create", "", "pods", "training"),
        Access("create", "", "pods/exec", "training", "bert-0"),
        Access("delete", "", "pods", "training", "bert-0"),
        Access("patch", "batch", "jobs", "training", "bert"),
        Access("delete", "", "persistentvolumeclaims", "training", "training-data-pvc"),
        Access("create", "apps", "deployments", "training"),
        Access("create", "", "serviceaccounts/token", "training", "default"),
        Access("create", "rbac.authorization.k8s.io", "rolebindings", "training"),
        Access("create", "batch", "jobs", "backend"),
        Access("create", "batch", "jobs", "kube-system"),
        Access("create", "batch", "jobs", "default"),
        # A team whose template it does not launch.
        Access("create", "kubeflow.org", "pytorchjobs", "hyperpod-ns-research"),
        Access("list", "batch", "jobs", None),
        Access("list", "", "pods", None),
        Access("list", "", "nodes", None),
        Access("get", "", "namespaces", "kube-system", "kube-system"),
        Access("patch", "", "nodes", None, "node-1"),
        # What `system:auth-delegator` would grant beside reviews of tokens.
        Access("create", "authorization.k8s.io", "subjectaccessreviews", None),
    ],
    ids=lambda access: f"{access.verb} {access.resource} in {access.namespace}",
)
def test_what_reaches_beyond_jobs_is_refused(hybrid: Rbac, access: Access) -> None:
    assert not hybrid.allows(access)


def test_a_governed_template_runs_in_its_teams_namespace(hybrid: Rbac) -> None:
    assert hybrid.allows(Access("create", "kubeflow.org", "pytorchjobs", "hyperpod-ns-production"))


def test_our_application_may_make_and_follow_the_jobs_of_its_rules(hybrid: Rbac) -> None:
    file = ROOT / "clusters" / "hybrid-hyperpod.yaml"
    followed = open_renderer(file, None, account=None).followed
    assert followed

    asked = {
        Access(verb, group, kind, namespace)
        for namespace, resource in followed
        for kind, _, group in [resource.partition(".")]
        for verb in ("create", "get", "list", "watch", "delete")
    }

    assert refused(hybrid, [*asked]) == set()


def test_nothing_is_written_outside_the_namespaces_of_jobs(hybrid: Rbac) -> None:
    # A review is answered and not stored.
    reviews = ("create", "authentication.k8s.io", "tokenreviews")
    written = hybrid.granted(None) - {reviews}

    assert reviews in hybrid.granted(None)
    assert {verb for verb, _, _ in written} <= {"get", "list", "watch"}


def test_free_nodes_are_read_only_where_a_job_has_tiers_to_choose_from() -> None:
    jobs = JOBS | {"burst": {"prefer": ["train", "more"]}}
    pools = [
        {"name": "system", "instance_types": ["m7i.2xlarge"], "nodes": {"min": 2, "max": 4}},
        {"name": "train", "instance_types": ["trn1.32xlarge"], "nodes": {"max": 2}},
        {"name": "more", "instance_types": ["trn1.32xlarge"], "nodes": {"max": 2}},
    ]
    cluster = make_cluster(
        jobs=jobs,
        backend={"submits_to": ["burst"]},
        pools=[
            {"provisioner": "managed-node-group", "zones": ["us-west-2b"], **pool} for pool in pools
        ],
    )

    found = rights(backend_of(plan.plan_cluster(cluster))).granted(None)

    assert {("list", "", "nodes"), ("list", "", "pods")} <= found


def test_where_the_training_operator_is_its_jobs_are_the_backends_to_send(tmp_path: Path) -> None:
    operated = rights(backend_of(plan.load(operated_file(tmp_path))))

    for verb in ("create", "get", "list", "watch", "delete"):
        access = Access(
            verb, "sagemaker.amazonaws.com", "hyperpodpytorchjobs", "hyperpod-ns-production"
        )
        assert operated.allows(access)
