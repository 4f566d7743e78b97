"""A job is sent whole or not at all, and only where it can run."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from tests.support import job_manifests as given
from tests.support.stub_api_http import kubeconfig, serve
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


@pytest.fixture
def cluster(stub: StubApiServer, tmp_path: Path) -> Cluster:
    return Cluster.connected(kubeconfig(tmp_path, stub.url))


def made(stub: StubApiServer) -> set[str]:
    kinds = ("/services/", "/jobs/", "/deployments/", "/poddisruptionbudgets/")
    return {path for path in stub.paths() if any(kind in path for kind in kinds)}


def writes(stub: StubApiServer) -> list[Request]:
    """Return what was sent: jobs are created, and what may be there already is applied."""
    return [each for each in stub.requests if each.method in ("POST", "PATCH")]


def test_what_is_sent_is_what_was_rendered(stub: StubApiServer, cluster: Cluster) -> None:
    job = given.manifests()

    assert send(cluster, job) == ()

    assert made(stub) == {f"{given.SERVICES}/bert", f"{given.VOLCANO_JOBS}/bert"}
    sent = [each.body for each in writes(stub) if not each.dry_run]
    assert sent == [*job.objects]


def test_every_object_is_judged_before_the_first_is_made(
    stub: StubApiServer, cluster: Cluster
) -> None:
    send(cluster, given.manifests())

    assert [each.dry_run for each in writes(stub)] == [True, True, False, False]


def test_a_webhook_that_refuses_the_last_object_leaves_nothing(
    stub: StubApiServer, cluster: Cluster
) -> None:
    told = 'admission webhook "validatejob.volcano.sh" denied the request: job minAvailable > total'
    stub.refuse("POST", "/jobs$", Refusal(400, told))

    with pytest.raises(ClusterError) as error:
        send(cluster, given.manifests())

    assert told in str(error.value)
    assert "nothing was sent" in str(error.value)
    assert made(stub) == set()
    assert all(each.dry_run for each in writes(stub))


def test_every_refusal_of_the_dry_run_is_told_at_once(
    stub: StubApiServer, cluster: Cluster
) -> None:
    stub.refuse("PATCH", "/services/bert$", Refusal(422, "spec.ports: Required value"))
    stub.refuse("POST", "/jobs$", Refusal(400, "denied the request"))

    with pytest.raises(ClusterError) as error:
        send(cluster, given.manifests())

    assert "spec.ports: Required value" in str(error.value)
    assert "denied the request" in str(error.value)


def test_what_was_made_goes_again_when_a_later_object_fails(
    stub: StubApiServer, cluster: Cluster
) -> None:
    stub.refuse("POST", "/jobs$", Refusal(403, "exceeded quota: gpus", dry_run=False))

    with pytest.raises(ClusterError) as error:
        send(cluster, given.manifests())

    assert "exceeded quota: gpus" in str(error.value)
    assert "deleted again: Service bert" in str(error.value)
    assert made(stub) == set()


def test_an_object_whose_creation_was_never_answered_is_taken_back(
    stub: StubApiServer, cluster: Cluster
) -> None:
    stub.refuse("POST", "/jobs$", Refusal(0, dry_run=False, after=True))

    with pytest.raises(ClusterError) as error:
        send(cluster, given.manifests())

    assert "Job bert" in str(error.value)
    assert made(stub) == set()


def test_what_cannot_be_deleted_again_is_named(stub: StubApiServer, cluster: Cluster) -> None:
    stub.refuse("POST", "/jobs$", Refusal(403, "exceeded quota: gpus", dry_run=False))
    stub.refuse("DELETE", "/services/bert", Refusal(403, "services is forbidden"))

    with pytest.raises(ClusterError) as error:
        send(cluster, given.manifests())

    assert "could not be deleted: Service bert" in str(error.value)
    assert "ultrascale cancel bert -n training" in str(error.value)


MISSING: list[tuple[str, dict[str, Any], list[str]]] = [
    ("namespace", {"namespace": "nowhere"}, ["namespace nowhere does not exist"]),
    ("claims", {"claims": ("a", "b")}, ["claim a does not exist", "claim b does not exist"]),
    ("queue", {"queue": "reserch"}, ["queue reserch does not exist", "--queue: research"]),
    ("account", {"service_account": "s3"}, ["service account s3 does not exist", "training"]),
    ("priority", {"priority_class": "top"}, ["priority class top does not exist", "high"]),
    (
        "secret",
        {"secrets": {"hub": ("HF_TOKEN",)}},
        ["secret hub does not exist in namespace training", "--from-literal=HF_TOKEN=..."],
    ),
    (
        "all",
        {"claims": ("a",), "queue": "q", "priority_class": "p"},
        ["claim a", "queue q", "priority class p"],
    ),
]


@pytest.mark.parametrize(
    ("changes", "lines"), [case[1:] for case in MISSING], ids=[case[0] for case in MISSING]
)
def test_all_that_the_cluster_lacks_is_told_before_anything_is_sent(
    stub: StubApiServer, cluster: Cluster, changes: dict[str, Any], lines: list[str]
) -> None:
    with pytest.raises(ClusterError) as error:
        send(cluster, given.manifests(**changes))

    for line in lines:
        assert line in str(error.value)
    assert stub.asked("POST") == []


def test_a_cluster_without_volcano_is_told_apart_from_a_missing_queue(
    stub: StubApiServer, cluster: Cluster
) -> None:
    stub.groups -= {"/apis/batch.volcano.sh/v1alpha1", "/apis/scheduling.volcano.sh/v1beta1"}

    with pytest.raises(ClusterError) as error:
        send(cluster, given.manifests())

    assert str(error.value).count("\n") == 0
    assert "Volcano is not installed" in str(error.value)


@pytest.mark.parametrize("state", ["Closed", "Closing"])
def test_a_closed_queue_is_refused(stub: StubApiServer, cluster: Cluster, state: str) -> None:
    stub.update(f"{given.QUEUES}/research", status={"state": state})

    with pytest.raises(ClusterError, match=f"its state is {state}"):
        send(cluster, given.manifests())


@pytest.mark.parametrize(
    ("capability", "fits"), [("32", True), ("31", False), ("0.031k", False), ("1Ki", True)]
)
def test_a_job_that_its_queue_can_never_hold_is_refused(
    stub: StubApiServer, cluster: Cluster, capability: str, fits: bool
) -> None:
    stub.update(
        f"{given.QUEUES}/research", spec={"capability": {"aws.amazon.com/neuron": capability}}
    )

    if fits:
        send(cluster, given.manifests(pods=2))
        return
    with pytest.raises(ClusterError, match=r"needs 32 aws\.amazon\.com/neuron at once"):
        send(cluster, given.manifests(pods=2))


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

    with pytest.raises(ClusterError) as error:
        send(cluster, given.manifests())

    assert "Job bert exists already (Running)" in str(error.value)
    assert "`ultrascale cancel bert -n training`" in str(error.value)
    assert "--name" in str(error.value)


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

    with pytest.raises(ClusterError) as error:
        send(cluster, job)

    assert "Service" not in str(error.value)

    stub.objects.pop(path)
    with pytest.raises(ClusterError, match="Service bert of a deleted job is still there"):
        send(cluster, job)


def test_a_name_that_a_job_of_another_kind_has_is_refused(
    stub: StubApiServer, cluster: Cluster
) -> None:
    stub.put(f"{given.DEPLOYMENTS}/bert-7f9", given.deployment("bert"))

    with pytest.raises(ClusterError, match="Deployment bert exists already"):
        send(cluster, given.manifests())


def test_a_service_that_an_ended_job_left_behind_is_no_hindrance(
    stub: StubApiServer, cluster: Cluster
) -> None:
    """Kubernetes takes an ended job away after its time, and nothing that was sent with it."""
    send(cluster, given.manifests())
    stub.remove(f"{given.VOLCANO_JOBS}/bert")

    send(cluster, given.manifests())

    assert made(stub) == {f"{given.SERVICES}/bert", f"{given.VOLCANO_JOBS}/bert"}


def test_a_service_of_somebody_else_is_not_lost_to_a_job_of_its_name(
    stub: StubApiServer, cluster: Cluster
) -> None:
    """Volcano would take it for the job's own, and delete it with the first restart."""
    job = given.manifests("mlflow", objects=(given.volcano_job("mlflow", plugins={"svc": []}),))
    stub.put(f"{given.SERVICES}/mlflow", {"kind": "Service", "metadata": {"name": "mlflow"}})

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
    told = 'Apply failed with 1 conflict: conflict with "kubectl-edit": .spec.replicas'
    stub.refuse("PATCH", "/deployments/", Refusal(409, told, "Conflict"))

    with pytest.raises(ClusterError) as error:
        send(cluster, given.service())

    assert told in str(error.value)
    assert "--force-conflicts --field-manager=ultrascale" in str(error.value)
    assert made(stub) == set()


def test_a_new_service_that_fails_half_way_leaves_nothing(
    stub: StubApiServer, cluster: Cluster
) -> None:
    stub.refuse("PATCH", "/poddisruptionbudgets/", Refusal(500, "timeout", dry_run=False))

    with pytest.raises(ClusterError, match="deleted again: Deployment chat, Service chat"):
        send(cluster, given.service())

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


def test_a_service_never_takes_over_what_is_not_its_own(
    stub: StubApiServer, cluster: Cluster
) -> None:
    stub.put(f"{given.DEPLOYMENTS}/chat", {"kind": "Deployment", "spec": {"replicas": 1}})

    with pytest.raises(ClusterError, match="not of a job of this name"):
        send(cluster, given.service())

    assert stub.asked("PATCH") == []


def test_a_secret_without_the_variables_key_is_refused_and_its_values_stay_unsaid(
    stub: StubApiServer, cluster: Cluster
) -> None:
    stub.put(f"{given.NAMESPACE}/secrets/hub", {"kind": "Secret", "data": {"token": "c2VjcmV0"}})

    with pytest.raises(ClusterError) as error:
        send(cluster, given.manifests(secrets={"hub": ("HF_TOKEN",)}))

    assert "secret hub has no key HF_TOKEN, only token" in str(error.value)
    assert "c2VjcmV0" not in str(error.value)


def test_a_user_who_may_not_read_secrets_is_told_that_nobody_looked(
    stub: StubApiServer, cluster: Cluster
) -> None:
    told = 'secrets "hub" is forbidden: User "me" cannot get resource "secrets"'
    stub.refuse("GET", "/secrets/hub", Refusal(403, told, "Forbidden"))

    (unchecked,) = send(cluster, given.manifests(secrets={"hub": ("HF_TOKEN",)}))

    assert unchecked == f"not checked before sending: {told}"
    assert f"{given.VOLCANO_JOBS}/bert" in made(stub)


def test_a_user_who_may_not_read_queues_can_still_submit(
    stub: StubApiServer, cluster: Cluster
) -> None:
    told = 'queues.scheduling.volcano.sh "research" is forbidden: User "me" cannot get resource'
    stub.refuse("GET", "/queues", Refusal(403, told, "Forbidden"))

    (unchecked,) = send(cluster, given.manifests())

    assert told in unchecked
    assert f"{given.VOLCANO_JOBS}/bert" in made(stub)


def test_a_field_that_the_server_does_not_know_is_refused(
    stub: StubApiServer, cluster: Cluster
) -> None:
    job: dict[str, Any] = {**given.volcano_job(), "sepc": {}}

    with pytest.raises(ClusterError, match='unknown field "sepc"'):
        send(cluster, given.manifests(objects=(job,)))


SCALED: Object = {
    "apiVersion": "keda.sh/v1alpha1",
    "kind": "ScaledObject",
    "metadata": {"name": "chat", "labels": {given.JOB_LABEL: "chat"}},
    "spec": {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "chat"},
        "minReplicaCount": 2,
    },
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


def test_a_service_that_follows_the_load_begins_with_its_fewest_replicas(
    stub: StubApiServer, cluster: Cluster
) -> None:
    stub.groups |= {"/apis/keda.sh/v1alpha1"}

    send(cluster, scaled_service())

    assert replicas_sent(stub) == [2]


@pytest.mark.parametrize(
    ("manager", "sent"), [("kube-controller-manager", None), ("ultrascale", 7)]
)
def test_a_service_that_is_sent_again_keeps_the_replicas_it_has(
    stub: StubApiServer, cluster: Cluster, manager: str, sent: int | None
) -> None:
    """Without the number that we wrote last, the API server would go back to one."""
    stub.groups |= {"/apis/keda.sh/v1alpha1"}
    running = given.deployment(pods=7)
    stub.put(f"{given.DEPLOYMENTS}/chat", set_by(manager, running))

    send(cluster, scaled_service())

    assert replicas_sent(stub) == [sent]


def test_a_service_with_a_fixed_number_is_scaled_no_longer(
    stub: StubApiServer, cluster: Cluster
) -> None:
    stub.groups |= {"/apis/keda.sh/v1alpha1"}
    stub.put(SCALED_OBJECT, SCALED)

    send(cluster, given.service(pods=3))

    assert SCALED_OBJECT not in stub.paths()
    assert replicas_sent(stub) == [3]


@pytest.mark.parametrize("manager", ["kube-controller-manager", "keda"])
def test_a_fixed_number_takes_the_place_of_the_autoscalers(
    stub: StubApiServer, cluster: Cluster, manager: str
) -> None:
    """The API server keeps a number that another manager has set, unless it is told."""
    stub.groups |= {"/apis/keda.sh/v1alpha1"}
    stub.put(SCALED_OBJECT, SCALED)
    stub.put(f"{given.DEPLOYMENTS}/chat", set_by(manager, given.deployment(pods=7)))

    send(cluster, given.service(pods=3))

    assert replicas_sent(stub) == [3]


def test_a_fixed_number_is_refused_where_an_autoscaler_that_is_hidden_would_change_it(
    stub: StubApiServer, cluster: Cluster
) -> None:
    stub.groups |= {"/apis/keda.sh/v1alpha1"}
    stub.put(f"{given.DEPLOYMENTS}/chat", set_by("keda", given.deployment(pods=7)))
    stub.refuse("GET", "/scaledobjects$", Refusal(403, "cannot list resource scaledobjects"))

    with pytest.raises(ClusterError, match="cannot list resource scaledobjects"):
        send(cluster, given.service(pods=3))

    assert replicas_sent(stub) == []


def test_a_number_that_a_person_has_set_is_not_taken_over(
    stub: StubApiServer, cluster: Cluster
) -> None:
    stub.put(f"{given.DEPLOYMENTS}/chat", set_by("kubectl", given.deployment(pods=7)))

    with pytest.raises(ClusterError, match="force-conflicts"):
        send(cluster, given.service(pods=3))

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

    with pytest.raises(ClusterError, match="KEDA is not installed; deploy the cluster file's"):
        send(cluster, scaled_service())

    assert writes(stub) == []


def test_a_service_that_follows_its_cpu_is_refused_where_nobody_measures_it(
    stub: StubApiServer, cluster: Cluster
) -> None:
    """Its replicas would stay at the fewest, whatever comes."""
    stub.groups |= {"/apis/keda.sh/v1alpha1"}
    found = scaled_service()
    by_cpu: Object = {**SCALED, "spec": {**SCALED["spec"], "triggers": [{"type": "cpu"}]}}
    job = replace(found, objects=(*found.objects[:-1], by_cpu))

    with pytest.raises(ClusterError, match="metrics-server is not installed; deploy the cluster"):
        send(cluster, job)
    assert writes(stub) == []

    stub.groups |= {"/apis/metrics.k8s.io/v1beta1"}
    send(cluster, job)
    assert writes(stub)
