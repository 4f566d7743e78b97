"""The command `make admission`, before a server that judges by schemas, RBAC and CEL of ours."""

import sys
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.support import access_cases, api_admission
from tests.support.admission import Policy
from tests.support.api_admission import Admission, Answers, table
from tests.support.assembly import Assembly
from tests.support.charts import Helm
from tests.support.folders import ROOT
from tests.support.kubernetes_schemas import MINORS, is_core, validate_core
from tests.support.rbac import Access, Rbac
from tests.support.stub_api_http import kubeconfig, serve
from tests.support.stub_api_server import Object, Reply, Request, StubApiServer
from ultrascale.cluster_api.connection import connect

CASES = [
    *(
        each
        for part in ("queued", "services")
        for _, each, *_ in access_cases.objects(part).values()
    ),
    *(each for each, _ in access_cases.bound("kueue", "applied").values()),
]
OF_VOLCANO = [each for each, _ in access_cases.bound("volcano", "test").values()]
RBAC, POLICIES = "rbac.authorization.k8s.io/v1", "admissionregistration.k8s.io/v1"
QUEUED = "ultrascale-queued-"


class JudgingServer(StubApiServer):
    """Serves all kinds that it is told of, and keeps what is no dry run."""

    def __init__(self, assembly: Assembly) -> None:
        super().__init__()
        objects = assembly.documents
        # Whether objects of a kind have namespaces
        self.kinds = {
            **{(d["apiVersion"], d["kind"]): True for d in [*CASES, *OF_VOLCANO]},
            **{(d["apiVersion"], d["kind"]): "namespace" in d["metadata"] for d in objects},
            (RBAC, "RoleBinding"): True,
            (POLICIES, "ValidatingAdmissionPolicy"): False,
            (POLICIES, "ValidatingAdmissionPolicyBinding"): False,
        }
        self.groups |= {f"/apis/{version}" for version, _ in self.kinds}
        self.warning = ""  # Warning of each answer to what is applied
        self.type_warning = ""  # What is wrong with the types of each policy
        self.blind = ""  # A policy that refuses nothing

    def respond(self, request: Request) -> Reply:
        body: Any = request.body
        if request.method == "GET" and request.path.count("/") <= 3:
            version = request.path.removeprefix("/apis/").removeprefix("/api/")
            resources = [
                {"name": f"{kind.lower()}s", "kind": kind, "namespaced": namespaced}
                for (of, kind), namespaced in self.kinds.items()
                if of == version
            ]
            return Reply(200, {"resources": resources})
        if request.path.endswith("/subjectaccessreviews"):
            return Reply(201, {"status": {"allowed": self._allows(body["spec"])}})
        if request.method == "POST":
            return self._made(request, body)
        if "apply" not in request.headers.get("content-type", ""):
            return super().respond(request)
        if is_core(body) and (reasons := validate_core(body, MINORS[0])):
            return Reply(422, {"code": 422, "message": reasons[0]})
        if not request.dry_run:
            warnings = [{"fieldRef": "spec", "warning": self.type_warning}]
            types = {"expressionWarnings": warnings if self.type_warning else []}
            body = self.put(request.path, deepcopy(body) | {"status": {"typeChecking": types}})
        headers = {"Warning": f'299 - "{self.warning}"'} if self.warning else {}
        return Reply(200, body, headers)

    def _allows(self, spec: Object) -> bool:
        asked = spec["resourceAttributes"]
        part = f"/{asked['subresource']}" if asked["subresource"] else ""
        access = Access(
            asked["verb"],
            asked["group"],
            asked["resource"] + part,
            asked["namespace"] or None,
            asked["name"] or None,
        )
        documents = [each for each in self.objects.values() if "apiVersion" in each]
        return Rbac(documents, groups=spec["groups"], user=spec["user"]).allows(access)

    def _made(self, request: Request, body: Object) -> Reply:
        plural, groups = request.path.rpartition("/")[2], request.headers.get("impersonate-group")
        asked_by = groups.split(", ") if groups else []
        rights = [] if groups else ["patch nodes"]
        group = body["apiVersion"].rpartition("/")[0]
        for policy in (p for p in self.objects.values() if "validations" in p.get("spec", {})):
            name, rules = policy["metadata"]["name"], policy["spec"]["matchConstraints"]
            (rule, *_) = rules["resourceRules"]
            if rule["apiGroups"] == [group] and plural in rule["resources"] and name != self.blind:
                for why in Policy(policy).refusals(body, groups=asked_by, rights=rights):
                    message = f"ValidatingAdmissionPolicy '{name}' denied request: {why}"
                    return Reply(422, {"code": 422, "message": message})
        return Reply(201, body)


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api_admission, "PATIENCE", 0.1)


def answers(stub: JudgingServer, assembly: Assembly, folder: Path, *, create: bool) -> Answers:
    name = "llm-kueue" if assembly.plan.name == "llm" else assembly.plan.name
    file = ROOT / "clusters" / f"{name}.yaml"
    with serve(stub):
        transport, _ = connect(kubeconfig(folder, stub.url), None)
        return Admission(transport).ask(file, assembly, Helm(folder), create=create)


@pytest.mark.parametrize("cluster", ["llm", "trainium"])
def test_what_a_server_takes_of_a_file_is_well(
    cluster: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    assembly: Assembly = request.getfixturevalue(cluster)
    found = answers(JudgingServer(assembly), assembly, tmp_path, create=True)

    assert found.is_well, [*table([found])]
    assert found.sent >= len(assembly.documents)
    cases = CASES if cluster == "llm" else [*access_cases.rights(), *OF_VOLCANO]
    assert found.played == len(cases)


def test_without_create_nothing_is_made_and_what_needs_it_is_told(
    trainium: Assembly, tmp_path: Path
) -> None:
    stub = JudgingServer(trainium)
    found = answers(stub, trainium, tmp_path, create=False)

    assert found.is_well
    assert found.played == 0
    assert any("cases" in each for each in found.unsent)
    assert all(each.dry_run for each in stub.asked("PATCH"))


def test_refusals_warnings_types_and_cases_are_told(llm: Assembly, tmp_path: Path) -> None:
    (name, (first, *_)), *_ = llm.charts.items()
    bad: Object = {**first, "metadata": {**first["metadata"], "lables": {}}}
    stub = JudgingServer(llm)
    stub.warning, stub.type_warning, stub.blind = (
        "deprecated",
        "undefined field 'spce'",
        f"{QUEUED}jobs",
    )
    changed = replace(llm, charts={**llm.charts, name: [bad]})

    found = answers(stub, changed, tmp_path, create=True)

    assert ["lables" in each for each in found.refused] == [True]
    assert any("deprecated" in each for each in found.warned)
    assert any("spce" in each for each in found.warned)
    assert "Job without a queue: allowed" in found.differing
    assert "pod by itself: allowed" not in found.differing
    assert not found.is_well


def test_a_server_that_is_away_is_told_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = kubeconfig(tmp_path, "http://127.0.0.1:1")
    monkeypatch.setattr(sys, "argv", ["admission", f"--kubeconfig={file}"])

    assert api_admission.main() == 1
    assert "cannot be reached" in capsys.readouterr().out
