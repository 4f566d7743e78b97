"""Each change to a deployed cluster is told, with who made it, and nothing is made up."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.accept_runs import STACK, apply, make_run, release, serve_kinds, write_assembly
from tests.support.stub_api_server import Object, Refusal, StubApiServer
from ultrascale.accept import objects as level
from ultrascale.accept.model import Run
from ultrascale.cluster_api.objects import DEPLOYMENT, NETWORK_POLICY, NODE_POOL, Kind
from ultrascale.cluster_api.server import Cluster
from ultrascale.findings import Finding

MAP = Kind("v1", "ConfigMap", "configmaps")
HOOKS = Kind(
    "admissionregistration.k8s.io/v1",
    "ValidatingWebhookConfiguration",
    "validatingwebhookconfigurations",
    namespaced=False,
)
POLICY = Kind(
    HOOKS.api_version, "ValidatingAdmissionPolicy", "validatingadmissionpolicies", namespaced=False
)
SLICES = Kind("discovery.k8s.io/v1", "EndpointSlice", "endpointslices")
PART_OF = {"app.kubernetes.io/part-of": "ultrascale"}
SETTINGS = "/api/v1/namespaces/training/configmaps/settings"
POOL = "/apis/karpenter.sh/v1/nodepools/reserved"
SERVER = "/apis/apps/v1/namespaces/training/deployments/server"
CHART = {
    "Type": "Custom::AWSCDK-EKS-HelmChart",
    "Properties": {
        "Release": "kueue",
        "Version": "0.19.14",
        "Namespace": "training",
        "Values": '{"replicas":2}',
    },
}
RELEASE = "/api/v1/namespaces/training/secrets/sh.helm.release.v1.kueue.v1"
CHARTS_MAP = "/api/v1/namespaces/training/configmaps/manager"


def documents() -> dict[str, Object]:
    pod = {"containers": [{"name": "main", "image": "example.com/a:1", "env": [env("A")]}]}
    server = {"replicas": 2, "template": {"spec": pod}}
    pool = {"replicas": 4, "limits": {"nodes": "4"}}
    return {
        SETTINGS: make(MAP, "settings", labels=PART_OF, data={"dns": "@", "at": "nfs://@/x"}),
        POOL: make(NODE_POOL, "reserved", spec=pool),
        SERVER: make(DEPLOYMENT, "server", labels=PART_OF, spec=server),
    }


def env(name: str) -> Object:
    return {"name": name, "value": "1"}


def make(kind: Kind, name: str, labels: Object | None = None, **fields: Any) -> Object:
    metadata: Object = {"name": name, **({"labels": labels} if labels else {})}
    if kind.namespaced:
        metadata["namespace"] = "training"
    return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata, **fields}


@pytest.fixture
def run(stub: StubApiServer, cluster: Cluster, tmp_path: Path) -> Run:
    write_assembly(tmp_path, [*documents().values()], {"Chart": CHART})
    serve_kinds(stub, MAP, NODE_POOL, DEPLOYMENT, NETWORK_POLICY, HOOKS, POLICY, SLICES)
    for path, manifest in documents().items():
        apply(stub, path, manifest)
    manifest = json.dumps(make(MAP, "manager", data={"a": "1"}))
    stub.put(RELEASE, release("kueue", "0.19.14", {"replicas": 2}, manifest))
    apply(stub, CHARTS_MAP, make(MAP, "manager", data={"a": "1"}))
    return make_run(cluster, tmp_path)


def problems(run: Run) -> list[Finding]:
    found = [finding for check in level.checks(run.plan) for finding in check.run(run)]
    assert all(finding.evidence for finding in found)
    return [finding for finding in found if finding.state != "pass"]


def test_nothing_is_made_up_of_what_nobody_touched(run: Run) -> None:
    for _ in range(20):
        assert problems(run) == []


Change = Callable[[StubApiServer], object]
ENV = {"template": {"spec": {"containers": [{"name": "main", "env": [env("A"), env("B")]}]}}}


def again(path: str, **fields: Any) -> Change:
    """An earlier file's object, or one of somebody with the CDK's own program."""
    manifest = documents()[path] | fields
    return lambda stub: apply(stub, path, manifest)


def refuse_dead_webhook(stub: StubApiServer) -> None:
    words = 'failed calling webhook "v.kueue": connection refused'
    stub.refuse("PATCH", "configmaps", Refusal(500, words))


def hook(stub: StubApiServer, fails: str) -> None:
    service = {"namespace": "training", "name": "hooks"}
    one = {"name": "v.kueue", "failurePolicy": fails, "clientConfig": {"service": service}}
    stub.put(f"{HOOKS.path()}/kueue", {"webhooks": [one]})


def policy(stub: StubApiServer, **checking: Any) -> None:
    metadata = {"labels": PART_OF}
    stub.put(f"{POLICY.path()}/gate", {"metadata": metadata, "status": {"typeChecking": checking}})


WARNING = {"fieldRef": "spec.validations[0]", "warning": "ERROR: undeclared reference"}
OTHERS = "/apis/networking.k8s.io/v1/namespaces/training/networkpolicies/old"


def edit(path: str, manager: str, **fields: Any) -> Change:
    return lambda stub: stub.edit(path, manager, **fields)


def put(path: str, document: Object) -> Change:
    return lambda stub: stub.put(path, document)


DEPLOYED, CONFIG = "Deployment training/server", "ConfigMap training/settings"
NODES = "NodePool reserved"
OF_HELM, DEAD = "release training/kueue", "no pod behind Service training/hooks"
DATA = {"dns": "@", "at": "nfs://@/x"}
ELSEWHERE = {**DATA, "dns": "fs-2.example"}
NOTED = {"annotations": {"a": "b"}}
OLD = make(NETWORK_POLICY, "old", labels=PART_OF)
BY_HAND: list[tuple[Change, str, str]] = [
    (edit(SERVER, "kubectl-edit", spec={"replicas": 5}), DEPLOYED, "is 5 by kubectl-edit, 2"),
    (edit(SERVER, "kubectl-edit", spec=ENV), DEPLOYED, "env[B]"),
    (edit(SETTINGS, "kubectl-edit", data={"more": "x"}), CONFIG, "data.more is x by kubectl-edit"),
    (edit(SETTINGS, "k9s", metadata=NOTED), CONFIG, "annotations.a is b by k9s, nothing"),
    (edit(POOL, "kubectl-patch", spec={"replicas": 0}), NODES, "replicas is 0 by kubectl-patch, 4"),
    (edit(CHARTS_MAP, "kubectl-edit", data={"a": "2"}), OF_HELM, "data.a is 2 by kubectl-edit, 1"),
    (again(SETTINGS, data={**DATA, "old": "y"}), CONFIG, "data.old is y, nothing in the file"),
    (again(SETTINGS, data=ELSEWHERE), CONFIG, "data.at is nfs://fs-1.example/x, nfs://fs-2.ex"),
    (lambda stub: apply(stub, OTHERS, OLD), "NetworkPolicy training/old", "no more"),
    (put(RELEASE, release("kueue", "0.19.1", {"replicas": 2})), OF_HELM, "version is 0.19.1, 0.19"),
    (put(RELEASE, release("kueue", "0.19.14", {"replicas": 3})), OF_HELM, "replicas is 3, 2 in"),
    (lambda stub: hook(stub, "Ignore"), "kueue v.kueue", DEAD),
]
BROKEN: list[tuple[Change, str, str]] = [
    (lambda stub: stub.remove(SERVER), DEPLOYED, "not there"),
    (lambda stub: stub.resources["/apis/karpenter.sh/v1"].clear(), NODES, "v1 is not served"),
    (refuse_dead_webhook, CONFIG, "failed calling webhook"),
    (lambda stub: stub.remove(RELEASE), OF_HELM, "no deployed release"),
    (lambda stub: hook(stub, "Fail"), "kueue v.kueue", DEAD),
    (lambda stub: policy(stub, expressionWarnings=[WARNING]), "gate", "undeclared reference"),
]


@pytest.mark.parametrize(
    ("change", "subject", "state", "words"),
    [
        *((change, subject, "differs", words) for change, subject, words in BY_HAND),
        *((change, subject, "failed", words) for change, subject, words in BROKEN),
    ],
)
def test_a_change_is_found_with_its_field_and_its_author(
    run: Run, stub: StubApiServer, change: Change, subject: str, state: str, words: str
) -> None:
    change(stub)
    found = {(f.subject, f.state): f.evidence for f in problems(run)}
    assert words in found[subject, state]


CHECKED: Object = {"metadata": {"labels": PART_OF}, "status": {"typeChecking": {}}}
REVISION = {"annotations": {"deployment.kubernetes.io/revision": "1"}}
HASH = {"annotations": {"karpenter.sh/nodepool-hash": "1"}}


@pytest.mark.parametrize(
    "change",
    [
        edit(SERVER, "kube-controller-manager", metadata=REVISION),
        edit(SERVER, "kube-controller-manager", status={"replicas": 2}),
        edit(POOL, "karpenter", metadata=HASH),
        edit(POOL, "ultrascale", spec={"replicas": 2}),
        put(OTHERS, make(NETWORK_POLICY, "old")),
        put(f"{POLICY.path()}/gate", CHECKED),
    ],
)
def test_controllers_and_objects_of_others_are_no_difference(
    run: Run, stub: StubApiServer, change: Change
) -> None:
    change(stub)
    assert problems(run) == []


def test_a_reader_gets_the_stated_fields_and_the_note_that_it_is_weaker(
    run: Run, stub: StubApiServer
) -> None:
    stub.refuse("PATCH", "", Refusal(403, "no right"))
    assert problems(run) == []
    (check, *_) = level.checks(run.plan)
    (whole,) = (finding for finding in check.run(run) if finding.subject == STACK)
    assert "weaker: no right to patch configmaps, deployments.apps" in whole.evidence
    stub.edit(SERVER, "kubectl-edit", spec={"replicas": 5})
    assert [finding.subject for finding in problems(run)] == ["Deployment training/server"]


def test_a_file_that_was_never_deployed_is_told_in_one_line(run: Run, stub: StubApiServer) -> None:
    for path in documents():
        stub.remove(path)
    stub.remove(CHARTS_MAP)
    (never,) = (finding for finding in problems(run) if finding.check == "objects")
    assert (never.state, "never deployed" in never.evidence) == ("failed", True)


def test_what_cannot_be_read_is_not_run(run: Run, stub: StubApiServer) -> None:
    stub.refuse("GET", SETTINGS, Refusal(403, "no right"))
    assert [(f.subject, f.state) for f in problems(run)] == [
        ("ConfigMap training/settings", "not run")
    ]
