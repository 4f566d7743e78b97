"""A job is sent whole or not at all, and only where it can run."""

from collections.abc import Iterator
from typing import Any

import pytest
from msgspec.structs import replace

from tests.support import job_manifests as given
from tests.support.stub_api_http import serve
from tests.support.stub_api_server import Object, Refusal, Request, StubApiServer
from ultrascale.cluster_api.objects import LOCAL_QUEUE, Kind
from ultrascale.cluster_api.server import Cluster
from ultrascale.errors import ClusterError
from ultrascale.jobs.manifests import JobManifests
from ultrascale.jobs.submission import send
from ultrascale.parts.kueue.workloads import JOBSET
from ultrascale.parts.volcano.workloads import VOLCANO_JOB


@pytest.fixture
def stub() -> Iterator[StubApiServer]:
    server = StubApiServer()
    # A cluster with Volcano has neither.
    server.groups -= {JOBSET.group_path, LOCAL_QUEUE.group_path}
    given.furnish(server)
    with serve(server):
        yield server


def made(stub: StubApiServer) -> set[str]:
    kinds = ("/services/", "/jobs/", "/deployments/", "/poddisruptionbudgets/")
    return {path for path in stub.paths() if any(kind in path for kind in kinds)}


def writes(stub: StubApiServer) -> list[Request]:
    """Return what was sent: jobs are created, and what may be there already is applied."""
    return [each for each in stub.requests if each.method in ("POST", "PATCH")]


def refusal(cluster: Cluster, job: JobManifests) -> str:
    with pytest.raises(ClusterError) as error:
        send(cluster, job)
    return str(error.value)


def test_what_is_sent_is_what_was_rendered(stub: StubApiServer, cluster: Cluster) -> None:
    job = given.manifests()
    assert send(cluster, job) == ()
    assert made(stub) == {f"{given.SERVICES}/bert", f"{given.VOLCANO_JOBS}/bert"}
    sent = [each.body for each in writes(stub) if not each.dry_run]
    assert sent == [*job.objects]
    # Every object is judged before the first is made.
    assert [each.dry_run for each in writes(stub)] == [True, True, False, False]
    # Kubernetes takes an ended job away after its time, and nothing that was sent with it.
    stub.remove(f"{given.VOLCANO_JOBS}/bert")
    send(cluster, given.manifests())
    assert made(stub) == {f"{given.SERVICES}/bert", f"{given.VOLCANO_JOBS}/bert"}


def test_a_webhook_that_refuses_the_last_object_leaves_nothing(
    stub: StubApiServer, cluster: Cluster
) -> None:
    job: dict[str, Any] = {**given.volcano_job(), "sepc": {}}
    assert 'unknown field "sepc"' in refusal(cluster, given.manifests(objects=(job,)))
    webhook = 'admission webhook "validatejob.volcano.sh" denied the request: job minAvailable'
    stub.refuse("POST", "/jobs$", Refusal(400, webhook))
    stub.refuse("PATCH", "/services/bert$", Refusal(422, "spec.ports: Required value"))
    told = refusal(cluster, given.manifests())
    for words in (webhook, "spec.ports: Required value", "nothing was sent"):
        assert words in told
    assert made(stub) == set()
    assert all(each.dry_run for each in writes(stub))


@pytest.mark.parametrize(
    ("failure", "told"),
    [
        (Refusal(403, "exceeded quota: gpus", dry_run=False), "exceeded quota: gpus"),
        # Its creation was never answered.
        (Refusal(0, dry_run=False, after=True), "Job bert"),
    ],
)
def test_what_was_made_goes_again_when_a_later_object_fails(
    stub: StubApiServer, cluster: Cluster, failure: Refusal, told: str
) -> None:
    stub.refuse("POST", "/jobs$", failure)
    line = refusal(cluster, given.manifests())
    assert told in line
    assert "deleted again: " in line
    assert "Service bert" in line
    assert made(stub) == set()


def test_what_cannot_be_deleted_again_is_named(stub: StubApiServer, cluster: Cluster) -> None:
    stub.refuse("POST", "/jobs$", Refusal(403, "exceeded quota: gpus", dry_run=False))
    stub.refuse("DELETE", "/services/bert", Refusal(403, "services is forbidden"))
    told = refusal(cluster, given.manifests())
    assert "could not be deleted: Service bert" in told
    assert "ultrascale cancel bert -n training" in told


_HUB: dict[str, Any] = {"secrets": {"hub": ("HF_TOKEN",)}}
MISSING: list[tuple[dict[str, Any], list[str]]] = [
    ({"namespace": "nowhere"}, ["namespace nowhere does not exist"]),
    ({"claims": ("a", "b")}, ["claim a does not exist", "claim b does not exist"]),
    ({"queue": "reserch"}, ["queue reserch does not exist", "--queue: research"]),
    ({"service_account": "s3"}, ["service account s3 does not exist", "training"]),
    ({"priority_class": "top"}, ["priority class top does not exist", "high"]),
    (_HUB, ["secret hub does not exist in namespace training", "--from-literal=HF_TOKEN=..."]),
    (
        {"claims": ("a",), "queue": "q", "priority_class": "p"},
        ["claim a", "queue q", "priority class p"],
    ),
]


@pytest.mark.parametrize(("changes", "lines"), MISSING)
def test_all_that_the_cluster_lacks_is_told_before_anything_is_sent(
    stub: StubApiServer, cluster: Cluster, changes: dict[str, Any], lines: list[str]
) -> None:
    told = refusal(cluster, given.manifests(**changes))
    for line in lines:
        assert line in told
    assert stub.asked("POST") == []


def test_a_cluster_without_volcano_is_told_apart_from_a_missing_queue(
    stub: StubApiServer, cluster: Cluster
) -> None:
    for state in ("Closed", "Closing"):
        stub.update(f"{given.QUEUES}/research", status={"state": state})
        assert f"its state is {state}" in refusal(cluster, given.manifests())
    stub.groups -= {"/apis/batch.volcano.sh/v1alpha1", "/apis/scheduling.volcano.sh/v1beta1"}
    told = refusal(cluster, given.manifests())
    assert "\n" not in told
    assert "Volcano is not installed" in told


@pytest.mark.parametrize(
    ("capability", "fits"), [("32", True), ("31", False), ("0.031k", False), ("1Ki", True)]
)
def test_a_job_that_its_queue_can_never_hold_is_refused(
    stub: StubApiServer, cluster: Cluster, capability: str, fits: bool
) -> None:
    spec = {"capability": {"aws.amazon.com/neuron": capability}}
    stub.update(f"{given.QUEUES}/research", spec=spec)
    if fits:
        send(cluster, given.manifests(pods=2))
    else:
        told = refusal(cluster, given.manifests(pods=2))
        assert "needs 32 aws.amazon.com/neuron at once" in told


@pytest.mark.parametrize(("given_out", "waits"), [("32", False), ("33", True), (None, False)])
def test_a_job_that_waits_for_its_queue_is_told_of_the_nodes_that_stand_idle_meanwhile(
    stub: StubApiServer, cluster: Cluster, given_out: str | None, waits: bool
) -> None:
    """Karpenter launches them for its pods all the same: $20 to $140 an hour for each."""
    path = f"{given.QUEUES}/research"
    stub.update(path, spec={"capability": {"aws.amazon.com/neuron": "64"}})
    if given_out is not None:
        allocated = {"aws.amazon.com/neuron": given_out, "cpu": "8"}
        stub.update(path, status={"state": "Open", "allocated": allocated})

    notes = send(cluster, given.manifests(pods=2))

    assert [note[:44] for note in notes] == (
        ["queue research has 31 aws.amazon.com/neuron "] if waits else []
    )
    assert f"{given.VOLCANO_JOBS}/bert" in made(stub)


def test_a_job_of_the_same_name_is_refused_with_the_way_out(
    stub: StubApiServer, cluster: Cluster
) -> None:
    send(cluster, given.manifests())
    stub.update(f"{given.VOLCANO_JOBS}/bert", status={"state": {"phase": "Running"}})
    told = refusal(cluster, given.manifests())
    assert "Job bert exists already (Running)" in told
    assert "`ultrascale cancel bert -n training`" in told
    assert "--name" in told
    # A job of another kind may have the name.
    stub.remove(f"{given.VOLCANO_JOBS}/bert")
    stub.put(f"{given.DEPLOYMENTS}/bert-7f9", given.deployment("bert"))
    assert "Deployment bert exists already" in refusal(cluster, given.manifests())


def test_the_service_that_volcano_made_for_a_job_is_not_told_beside_the_job(
    stub: StubApiServer, cluster: Cluster
) -> None:
    """It goes with the job, by the one way out that is told."""
    job = given.manifests(objects=(given.volcano_job(plugins={"svc": []}),))
    send(cluster, job)
    path = f"{given.VOLCANO_JOBS}/bert"
    made_by_volcano = {"kind": "Job", "name": "bert", "uid": stub.objects[path]["metadata"]["uid"]}
    service = {"kind": "Service", "metadata": {"ownerReferences": [made_by_volcano]}}
    stub.put(f"{given.SERVICES}/bert", service)
    assert "Service" not in refusal(cluster, job)
    stub.objects.pop(path)
    assert "Service bert of a deleted job is still there" in refusal(cluster, job)


@pytest.mark.parametrize(
    "owners",
    [[], [{"kind": "Job", "name": "other"}], [{"kind": "Deployment", "name": "mlflow"}]],
    ids=["nobody", "another job", "another kind"],
)
def test_a_service_of_somebody_else_is_not_lost_to_a_job_of_its_name(
    stub: StubApiServer, cluster: Cluster, owners: list[dict[str, str]]
) -> None:
    """Volcano would take it for the job's own, and delete it with the first restart."""
    job = given.manifests("mlflow", objects=(given.volcano_job("mlflow", plugins={"svc": []}),))
    metadata = {"name": "mlflow", "ownerReferences": owners}
    stub.put(f"{given.SERVICES}/mlflow", {"kind": "Service", "metadata": metadata})

    with pytest.raises(ClusterError, match="Service mlflow exists already"):
        send(cluster, job)

    assert not writes(stub)
    stub.remove(f"{given.SERVICES}/mlflow")
    assert send(cluster, job) == ()


def test_a_service_sent_again_is_updated(stub: StubApiServer, cluster: Cluster) -> None:
    send(cluster, given.service(pods=2))

    send(cluster, given.service(pods=3))

    found = stub.find(f"{given.DEPLOYMENTS}/chat")
    assert found is not None
    assert found["spec"]["replicas"] == 3
    assert stub.asked("POST") == []


def test_a_field_that_another_manager_set_is_told_and_left_to_it(
    stub: StubApiServer, cluster: Cluster
) -> None:
    conflict = 'Apply failed with 1 conflict: conflict with "kubectl-edit": .spec.replicas'
    stub.refuse("PATCH", "/deployments/", Refusal(409, conflict, "Conflict"))
    told = refusal(cluster, given.service())
    assert conflict in told
    assert "--force-conflicts --field-manager=ultrascale" in told
    assert made(stub) == set()


def test_a_new_service_that_fails_half_way_leaves_nothing(
    stub: StubApiServer, cluster: Cluster
) -> None:
    # What is not of a job of its name it never takes over.
    stub.put(f"{given.DEPLOYMENTS}/chat", {"kind": "Deployment", "spec": {"replicas": 1}})
    assert "not of a job of this name" in refusal(cluster, given.service())
    assert stub.asked("PATCH") == []
    stub.remove(f"{given.DEPLOYMENTS}/chat")
    stub.refuse("PATCH", "/poddisruptionbudgets/", Refusal(500, "timeout", dry_run=False))
    told = refusal(cluster, given.service())
    assert "deleted again: Deployment chat, Service chat" in told
    assert made(stub) == set()


def test_a_service_whose_update_fails_half_way_goes_on_serving(
    stub: StubApiServer, cluster: Cluster
) -> None:
    send(cluster, given.service(pods=2))
    stub.refuse("PATCH", "/poddisruptionbudgets/", Refusal(500, "timeout", dry_run=False))

    with pytest.raises(ClusterError, match="updated before: Service chat, Deployment chat"):
        send(cluster, given.service(pods=3))

    assert f"{given.DEPLOYMENTS}/chat" in made(stub)


def test_an_interrupted_submission_leaves_nothing(
    stub: StubApiServer, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    create = Cluster.create

    def interrupted(self: Cluster, kind: Kind, *args: Any, dry_run: bool) -> Any:
        answer = create(self, kind, *args, dry_run=dry_run)
        if kind == VOLCANO_JOB and not dry_run:
            raise KeyboardInterrupt
        return answer

    monkeypatch.setattr(Cluster, "create", interrupted)

    with pytest.raises(KeyboardInterrupt):
        send(cluster, given.manifests())

    assert made(stub) == set()


def test_a_secret_without_the_variables_key_is_refused_and_its_values_stay_unsaid(
    stub: StubApiServer, cluster: Cluster
) -> None:
    stub.put(f"{given.NAMESPACE}/secrets/hub", {"kind": "Secret", "data": {"token": "c2VjcmV0"}})
    told = refusal(cluster, given.manifests(**_HUB))
    assert "secret hub has no key HF_TOKEN, only token" in told
    assert "c2VjcmV0" not in told


@pytest.mark.parametrize("path", ["/secrets/hub", "/queues"])
def test_a_user_who_may_not_read_is_told_that_nobody_looked(
    stub: StubApiServer, cluster: Cluster, path: str
) -> None:
    told = f'{path} is forbidden: User "me" cannot get resource'
    job = given.manifests(**_HUB) if path == "/secrets/hub" else given.manifests()
    stub.refuse("GET", path, Refusal(403, told, "Forbidden"))
    (unchecked,) = send(cluster, job)
    assert unchecked == f"not checked before sending: {told}"
    assert f"{given.VOLCANO_JOBS}/bert" in made(stub)


_TARGET = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "chat"}
SCALED: Object = {
    "apiVersion": "keda.sh/v1alpha1",
    "kind": "ScaledObject",
    "metadata": {"name": "chat", "labels": {given.JOB_LABEL: "chat"}},
    "spec": {"scaleTargetRef": _TARGET, "minReplicaCount": 2},
}
SCALED_OBJECT = "/apis/keda.sh/v1alpha1/namespaces/training/scaledobjects/chat"


def scaled_service() -> JobManifests:
    found = given.service()
    plain = [given.without_replicas(each) for each in found.objects]
    return replace(found, objects=(*plain, SCALED))


def set_by(manager: str, deployment: Object) -> Object:
    """Return a Deployment whose number of replicas ``manager`` has set."""
    owner: Object = {"manager": manager, "fieldsV1": {"f:spec": {"f:replicas": {}}}}
    metadata: Object = {**deployment["metadata"], "managedFields": [owner]}
    return {**deployment, "metadata": metadata}


def replicas_sent(stub: StubApiServer) -> list[Any]:
    sent = [each for each in writes(stub) if "/deployments/chat" in each.path and not each.dry_run]
    return [each.body["spec"].get("replicas") for each in sent]


@pytest.mark.parametrize(
    ("manager", "sent"), [("kube-controller-manager", None), ("ultrascale", 7), (None, 2)]
)
def test_a_service_that_is_sent_again_keeps_the_replicas_it_has(
    stub: StubApiServer, cluster: Cluster, manager: str | None, sent: int | None
) -> None:
    """Without the number that we wrote last, the API server would go back to one."""
    stub.groups |= {"/apis/keda.sh/v1alpha1"}
    if manager is not None:
        stub.put(f"{given.DEPLOYMENTS}/chat", set_by(manager, given.deployment(pods=7)))
    # A new one that follows the load begins with its fewest.
    send(cluster, scaled_service())
    assert replicas_sent(stub) == [sent]


@pytest.mark.parametrize("manager", ["kube-controller-manager", "keda", None])
def test_a_fixed_number_takes_the_place_of_the_autoscalers(
    stub: StubApiServer, cluster: Cluster, manager: str | None
) -> None:
    """The API server keeps a number that another manager has set, unless it is told."""
    stub.groups |= {"/apis/keda.sh/v1alpha1"}
    stub.put(SCALED_OBJECT, SCALED)
    if manager is not None:
        stub.put(f"{given.DEPLOYMENTS}/chat", set_by(manager, given.deployment(pods=7)))
    send(cluster, given.service(pods=3))
    assert SCALED_OBJECT not in stub.paths()
    assert replicas_sent(stub) == [3]


def test_a_fixed_number_is_refused_where_an_autoscaler_that_is_hidden_would_change_it(
    stub: StubApiServer, cluster: Cluster
) -> None:
    # One that a person has set is not taken over.
    stub.put(f"{given.DEPLOYMENTS}/chat", set_by("kubectl", given.deployment(pods=7)))
    assert "force-conflicts" in refusal(cluster, given.service(pods=3))
    stub.groups |= {"/apis/keda.sh/v1alpha1"}
    stub.put(f"{given.DEPLOYMENTS}/chat", set_by("keda", given.deployment(pods=7)))
    stub.refuse("GET", "/scaledobjects$", Refusal(403, "cannot list resource scaledobjects"))
    told = refusal(cluster, given.service(pods=3))
    assert "cannot list resource scaledobjects" in told
    assert replicas_sent(stub) == []


@pytest.mark.parametrize(
    ("kind", "group"),
    [
        ("httproutes", "/apis/gateway.networking.k8s.io/v1"),
        ("networkpolicies", "/apis/networking.k8s.io/v1"),
    ],
)
def test_what_a_service_has_no_more_goes_as_it_is_sent_again(
    stub: StubApiServer, cluster: Cluster, kind: str, group: str
) -> None:
    """A route that stays would go on sending requests to a service that is kept from the front."""
    stub.groups |= {group}
    path = f"{group}/namespaces/training/{kind}"
    labels = {given.JOB_LABEL: "chat"}
    stub.put(f"{path}/chat", {"metadata": {"labels": labels}})
    stub.put(f"{path}/other", {"metadata": {"labels": {given.JOB_LABEL: "other"}}})

    send(cluster, given.service())

    assert f"{path}/chat" not in stub.paths()
    assert f"{path}/other" in stub.paths()


def test_a_service_that_follows_the_load_is_refused_where_nobody_would_scale_it(
    stub: StubApiServer, cluster: Cluster
) -> None:
    stub.groups -= {"/apis/keda.sh/v1alpha1"}
    told = refusal(cluster, scaled_service())
    assert "KEDA is not installed; deploy the cluster file's" in told
    # The replicas of one that follows its CPU would stay at the fewest, whatever comes.
    stub.groups |= {"/apis/keda.sh/v1alpha1"}
    found = scaled_service()
    by_cpu: Object = {**SCALED, "spec": {**SCALED["spec"], "triggers": [{"type": "cpu"}]}}
    job = replace(found, objects=(*found.objects[:-1], by_cpu))
    assert "metrics-server is not installed; deploy the cluster" in refusal(cluster, job)
    assert writes(stub) == []
    stub.groups |= {"/apis/metrics.k8s.io/v1beta1"}
    send(cluster, job)
    assert writes(stub)
