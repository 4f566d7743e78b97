"""Static NodePools in CloudFormation: what it is told, and what the CDK's kubectl handler does."""

import importlib.util
import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import aws_cdk as cdk
import pytest
import yaml
from aws_cdk.assertions import Template

from tests.support.construct_stacks import make_context, make_stack, resources
from tests.support.helm_tools import KUBECTL, unpack_tools
from tests.support.static_node_pools import Document, calendar_patch, make_node_pool, patched
from ultrascale_constructs import platform
from ultrascale_constructs.platform import ManifestApplier
from ultrascale_constructs.static_node_pool import apply_static_node_pool, seed

APPLIED = "Custom::AWSCDK-EKS-KubernetesResource"
SETTINGS = Path(platform.__file__).parent / "kubectl" / "kuberc"
PATCHED = "Custom::AWSCDK-EKS-KubernetesPatch"


class Deploy:
    """A stack that applies one static NodePool."""

    def __init__(self, node_pool: Document, *, sized_by_calendar: bool = True) -> None:
        stack = make_stack()
        manifests = ManifestApplier(stack, "Manifests", cluster=make_context(stack))
        apply_static_node_pool(
            manifests, "NodePool:gpu", node_pool, sized_by_calendar=sized_by_calendar
        )
        self.template = Template.from_stack(stack)
        self._app = stack.node.root

    @property
    def seed(self) -> Document:
        (body,) = resources(self.template, APPLIED)
        return body

    @property
    def patch(self) -> Document:
        (body,) = resources(self.template, PATCHED)
        return body

    def handler(self, name: str) -> ModuleType:
        """Return a module of the CDK's own kubectl handler, as it is deployed."""
        assert isinstance(self._app, cdk.App)
        (file,) = Path(self._app.outdir).glob(f"asset.*/{name}/__init__.py")
        spec = importlib.util.spec_from_file_location(name, file)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module


@pytest.fixture(scope="module")
def deploy() -> Deploy:
    return Deploy(make_node_pool())


@pytest.fixture(scope="module")
def next_deploy() -> Deploy:
    changed = make_node_pool(limits={"nodes": "64"}, replicas=3)
    changed["metadata"]["labels"]["team"] = "b"
    return Deploy(changed, sized_by_calendar=False)


def test_a_changed_pool_updates_the_patch_in_place_and_never_the_seed(
    deploy: Deploy, next_deploy: Deploy
) -> None:
    (applied,) = deploy.template.find_resources(APPLIED)

    assert deploy.seed == next_deploy.seed
    assert deploy.patch != next_deploy.patch
    for kind in (APPLIED, PATCHED):
        before, after = (each.template.find_resources(kind) for each in (deploy, next_deploy))
        assert before.keys() == after.keys()
    # A release of the CDK that adds a property would apply the seed again, and set running pools
    # to no nodes: see first that it does not.
    assert {*deploy.seed["Properties"]} == {"ServiceToken", "Manifest", "ClusterName", "Overwrite"}
    # The pool is there before it is patched, and goes with the stack.
    assert applied in deploy.patch["DependsOn"]
    assert deploy.seed["DeletionPolicy"] == "Delete"
    # kubectl fails on an object that is gone, and with it the deletion of the stack.
    assert deploy.patch["DeletionPolicy"] == deploy.patch["UpdateReplacePolicy"] == "Retain"


class TestHandler:
    """Run of the CDK's own handler; a recorder takes the place of kubectl."""

    @pytest.fixture
    def commands(self, monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
        run: list[list[str]] = []

        def record(command: list[str], **_: object) -> bytes:
            run.append(command)
            return b""

        monkeypatch.setenv("PATH", "/usr/bin")  # which the handler's import extends
        monkeypatch.setattr(subprocess, "check_call", record)
        monkeypatch.setattr(subprocess, "check_output", record)
        return run

    @pytest.mark.parametrize("request_type", ["Create", "Update"])
    def test_it_patches_the_pool_with_a_json_patch(
        self, deploy: Deploy, commands: list[list[str]], request_type: str
    ) -> None:
        handle: Callable[[Document, None], None] = deploy.handler("patch").patch_handler

        handle(_event(deploy.patch, request_type), None)

        command = commands[-1]
        assert command[3:5] == ["patch", "nodepools.karpenter.sh/gpu"]
        assert command[command.index("--type") + 1] == "json"
        operations = json.loads(command[command.index("-p") + 1])
        assert operations == calendar_patch(make_node_pool())

    def test_what_it_would_restore_is_a_patch_that_changes_nothing(
        self, deploy: Deploy, commands: list[list[str]]
    ) -> None:
        deploy.handler("patch").patch_handler(_event(deploy.patch, "Delete"), None)

        command = commands[-1]
        assert patched(make_node_pool(), json.loads(command[command.index("-p") + 1])) == (
            make_node_pool()
        )

    def test_it_applies_the_seed_when_the_pool_is_made(
        self,
        deploy: Deploy,
        commands: list[list[str]],
        monkeypatch: pytest.MonkeyPatch,
        tmp_path: Path,
    ) -> None:
        handler = deploy.handler("apply")
        monkeypatch.setattr(handler, "outdir", str(tmp_path))

        handler.apply_handler(_event(deploy.seed, "Create"), None)

        assert commands[-1][:2] == ["kubectl", "apply"]
        assert json.loads((tmp_path / "manifest.yaml").read_text()) == seed(make_node_pool())


def test_a_pool_whose_nodes_drain_for_days_holds_up_no_deployment(
    deploy: Deploy, tmp_path: Path
) -> None:
    (handler,) = (
        body
        for body in resources(deploy.template, "AWS::Lambda::Function")
        if "KUBERC" in body["Properties"].get("Environment", {}).get("Variables", {})
    )
    kubectl = unpack_tools(tmp_path, (KUBECTL,)) / KUBECTL
    settings = subprocess.run(
        [kubectl, "alpha", "kuberc", "view"],
        env={"KUBERC": str(SETTINGS)},
        capture_output=True,
        check=True,
    )

    # Lambda unpacks a layer there, with the folder's files.
    assert handler["Properties"]["Environment"]["Variables"]["KUBERC"] == f"/opt/{SETTINGS.name}"
    assert len(handler["Properties"]["Layers"]) == 3
    (defaults,) = yaml.safe_load(settings.stdout)["defaults"]
    (limit,) = (each["default"] for each in defaults["options"] if each["name"] == "timeout")
    # The NodePool, and its node class after it, in one function's time.
    assert defaults["command"] == "delete"
    assert 2 * int(limit.removesuffix("m")) * 60 < handler["Properties"]["Timeout"]


def _event(body: Document, request_type: str) -> Document:
    """Return what CloudFormation sends: every value of a custom resource is a string there."""
    properties = {
        key: value if isinstance(value, str) else json.dumps(value)
        for key, value in body["Properties"].items()
    }
    return {"RequestType": request_type, "ResourceProperties": properties}
