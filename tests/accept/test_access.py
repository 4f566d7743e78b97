"""Rights of roles are seen to end where the file says, and a lost group is no proof of it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.accept_runs import FILE, make_run
from tests.support.pools import as_text, loads_own
from tests.support.stub_api_server import RefusedError, Request, StubApiServer
from ultrascale.accept import access
from ultrascale.cluster_api.server import Cluster
from ultrascale.findings import Finding
from ultrascale.plan.cluster import assemble
from ultrascale.plan.names import QUEUE_ROLE, access_group

ROLES = "arn:aws:iam::111122223333:role"
POLICY = "ValidatingAdmissionPolicy 'ultrascale-{}' denied request"
CANNOT = 'User "{}" cannot {} resource "{}" in API group "" in the namespace "{}"'
Judge = Callable[[str, list[str], Request], None]


def run_checks(cluster: Cluster, folder: Path, **fields: Any) -> dict[str, Finding]:
    """Return the finding of each role: one with a queue of its own, and one that only reads."""
    document = yaml.load(FILE.read_text(), yaml.CSafeLoader)
    document["kubernetes"]["access"] = [
        {"role": f"{ROLES}/sender", "policy": "edit", "queue": "applied"},
        {"role": f"{ROLES}/reader", "policy": "view", "namespaces": ["training"]},
    ]
    run = make_run(cluster, folder, plan=assemble(loads_own(as_text(document))), **fields)
    checks = [*access.checks(run.plan)]
    assert [check.subject for check in checks] == ["sender in training", "reader in training"]
    return {check.subject.split()[0]: f for check in checks for f in check.run(run)}


def judge(user: str, groups: list[str], request: Request, *, blind: str = "") -> None:
    """Judge as EKS's access policies, RBAC and the policies of the stacks do, but for one."""
    role, at = user.rpartition("/")[2], request.path.split("/")
    namespace, resource = at[at.index("namespaces") + 1], at[at.index("namespaces") + 2]
    assert "system:authenticated" in groups

    def refuse(what: str, status: int, message: str) -> None:
        if what != blind:
            raise RefusedError(status, message)

    if namespace != "training" or (role == "reader" and request.method != "GET"):
        what = "secrets" if resource == "secrets" else "elsewhere"
        refuse(what, 403, CANNOT.format(user, request.method, resource, namespace))
    elif request.method == "DELETE":
        refuse("isolation", 422, POLICY.format("own-objects"))
    elif request.method == "POST":
        queue = request.body["metadata"].get("labels", {}).get("kueue.x-k8s.io/queue-name")
        if queue is None:
            refuse("queue", 422, POLICY.format("queued-jobs"))
        elif access_group(QUEUE_ROLE, "training", queue) not in groups:
            refuse("others", 422, POLICY.format("access-jobs"))


@pytest.fixture(autouse=True)
def isolated(stub: StubApiServer) -> None:
    stub.put("/api/v1/namespaces/kube-system", {"kind": "Namespace"})
    policies = "/apis/networking.k8s.io/v1/namespaces/training/networkpolicies"
    stub.put(f"{policies}/default-deny-ingress", {"kind": "NetworkPolicy"})


def test_each_role_is_tried_beside_its_allowed_neighbour(
    stub: StubApiServer, cluster: Cluster, tmp_path: Path
) -> None:
    before = stub.paths()
    stub.judge_person = judge
    found = run_checks(cluster, tmp_path)
    assert {name: finding.state for name, finding in found.items()} == {
        "sender": "pass",
        "reader": "pass",
    }
    assert "queue of others, deletes the isolation" in found["sender"].evidence
    assert stub.paths() == before


@pytest.mark.parametrize("blind", ["queue", "others", "isolation", "elsewhere", "secrets"])
def test_a_right_beyond_the_file_is_found(
    stub: StubApiServer, cluster: Cluster, tmp_path: Path, blind: str
) -> None:
    def blindly(user: str, groups: list[str], request: Request) -> None:
        judge(user, groups, request, blind=blind)

    stub.judge_person = blindly
    assert run_checks(cluster, tmp_path)["sender"].state == "differs"


def refuse_all(status: int, message: str) -> Judge:
    def refuse(*_: object) -> None:
        raise RefusedError(status, message)

    return refuse


@pytest.mark.parametrize("message", [CANNOT.format("x", "impersonate", "users", ""), "no right"])
@pytest.mark.parametrize("allowed", [True, False])
def test_what_refuses_everything_proves_nothing_and_a_review_is_asked(
    stub: StubApiServer, cluster: Cluster, tmp_path: Path, message: str, *, allowed: bool
) -> None:
    stub.judge_person = refuse_all(403, message)
    stub.groups.add("/apis/authorization.k8s.io/v1")
    stub.review = lambda spec: allowed
    found = run_checks(cluster, tmp_path, account=object())
    assert {finding.state for finding in found.values()} == {"not run"}
    assert all("review" in finding.evidence for finding in found.values())
    assert "differs: " in found["sender"].evidence


def test_a_refusal_for_another_reason_is_no_proof(
    stub: StubApiServer, cluster: Cluster, tmp_path: Path
) -> None:
    def failing(user: str, groups: list[str], request: Request) -> None:
        if "kube-system" in request.path:
            raise RefusedError(500, "etcd is slow")
        judge(user, groups, request)

    stub.judge_person = failing
    assert run_checks(cluster, tmp_path)["sender"].state == "failed"
    stub.judge_person = refuse_all(422, POLICY.format("access-jobs"))
    assert run_checks(cluster, tmp_path)["sender"].state == "failed"


def test_without_eks_its_access_policies_are_not_missed(
    stub: StubApiServer, cluster: Cluster, tmp_path: Path
) -> None:
    stub.judge_person = refuse_all(403, "no right")
    said: list[str] = []
    assert run_checks(cluster, tmp_path, say=said.append) == {}
    assert len(said) == 2


def test_each_group_has_a_header_of_its_own(stub: StubApiServer, cluster: Cluster) -> None:
    seen: list[list[str]] = []
    stub.judge_person = lambda _, groups, __: seen.append(groups)
    groups = [f"group-{number}" for number in range(80)]
    cluster.impersonating("me", groups).get("/version")
    assert [sorted(each) for each in seen] == [sorted(groups)]
