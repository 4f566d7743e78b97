"""The chart `training-job` makes what `submit` makes of the same values, by the real Helm."""

import json
import os
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.folders import ROOT
from tests.support.helm_tools import HELM, unpack_tools
from tests.support.job_values import SEED, resources, sent, template, told
from tests.support.jobs import IMAGE
from ultrascale.catalog import runtime_environment
from ultrascale.documents import JsonObject
from ultrascale.jobs.manifests import as_yaml
from ultrascale.jobs.preparation import JobCluster
from ultrascale.plan.pools.tiers import node_tiers

CHART = ROOT / "charts" / "training-job"
VALUES: Any = yaml.safe_load((CHART / "values.yaml").read_text())
Helm = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="module")
def helm(tmp_path_factory: pytest.TempPathFactory) -> Helm:
    """Run Helm, which finds nothing of the user's, and no cluster."""
    folder = unpack_tools(tmp_path_factory.mktemp("helm"), (HELM,))
    environment = {"HOME": str(folder), "PATH": os.defpath}

    def run(*arguments: str | Path) -> "subprocess.CompletedProcess[str]":
        command = [folder / HELM, *arguments]
        return subprocess.run(
            command, cwd=folder, env=environment, capture_output=True, text=True, check=False
        )

    return run


@pytest.fixture
def installed(helm: Helm, tmp_path: Path) -> Callable[..., list[Any]]:
    """Return what Helm makes of values, or the lines with which it refuses."""

    def run(name: str, values: Mapping[str, Any], *files: Path, release: str = "tune") -> list[Any]:
        own = tmp_path / "values.json"
        own.write_text(json.dumps({"template": name, "image": IMAGE, **values}))
        options = [option for file in (*files, own) for option in ("--values", file)]
        answer = helm("template", release, CHART, *options)
        if answer.returncode:
            return answer.stderr.splitlines()
        return [each for each in yaml.safe_load_all(answer.stdout) if each]

    return run


def as_data(objects: Sequence[JsonObject]) -> list[Any]:
    """Return objects without the types that a file of them would not have."""
    return list(yaml.safe_load_all(as_yaml(objects)))


WORDS = ["bash", "-c", "echo $HOME $(A) $$ '\"${COMMAND}\"' ${NAME}\n", "--größe", "1e6"]


SAME: list[tuple[str, dict[str, Any]]] = [
    *((name, {}) for name in ("production", "development", "research")),
    (
        "production",
        {
            "command": WORDS[:2],
            "args": WORDS[2:],
            "env": {"Z": "$A", "CUDA_VISIBLE_DEVICES": "0,1", "NCCL_DEBUG": "${environment}"},
            "modelType": "llama",
            "backoffLimit": 0,
            "ttlSecondsAfterFinished": 2_000_000,
        },
    ),
    # Variables that are allowed knowingly.
    (
        "production",
        {
            "env": {"NCCL_BUFFSIZE": "8388608", "NCCL_NET": "Socket"},
            "allowEnv": ["NCCL_BUFFSIZE", "NCCL_NET"],
        },
    ),
    # One claim twice.
    (
        "development",
        {
            "modelType": "",
            "args": [],
            "env": {"MODEL_TYPE": "own", "NCCL_DEBUG": None},
            "dataPvcName": "model-checkpoints-pvc",
        },
    ),
    ("research", {"dataPvcName": "", "checkpointPvcName": None}),
    ("research", {"dataPvcName": "training-data-pvc-s3"}),
    # A part of a node has no EFA interface that could lie idle.
    (
        "production",
        resources({"nvidia.com/gpu": "4"}, {"nvidia.com/gpu": 2, "cpu": "500m"})
        | {"env": {"NCCL_NET": "Socket"}},
    ),
    # A whole node with EFA.
    (
        "development",
        resources(
            {"nvidia.com/gpu": 8, "cpu": 64, "memory": "96000M"},
            {"nvidia.com/gpu": None, "cpu": None, "memory": "7Ki"},
            "development",
        ),
    ),
    (
        "research",
        resources(
            {"nvidia.com/gpu": None},
            {"nvidia.com/gpu": None, "cpu": None, "memory": 123456789},
            "research",
        ),
    ),
    # Labels that nodes do not have, and one that they have.
    (
        "production",
        {"nodeSelectors": {"hyperpod": {"labels": {"gpu-type": "h100"}}}}
        | template(nodeSelector={"rack": "7", "ultrascale.dev/role": "reserved"}),
    ),
    (
        "development",
        template(
            "development",
            priorityClassName="low",
            nodeSelector={"node-type": "eks-spot"},
            tolerations=[
                {"key": "own", "operator": "Exists"},
                {"key": "spot", "value": "true", "effect": "NoSchedule"},
                {"key": "spot", "value": "true"},
            ],
        ),
    ),
]


@pytest.mark.parametrize(("name", "values"), SAME)
def test_helm_makes_the_objects_that_submit_sends(
    hybrid: JobCluster, installed: Callable[..., list[Any]], name: str, values: dict[str, Any]
) -> None:
    assert installed(name, values) == as_data(sent(hybrid, name, values | {"name": "tune"}).objects)


def test_a_job_has_its_own_name_or_that_of_its_release(installed: Callable[..., list[Any]]) -> None:
    names = [
        found["metadata"]["name"]
        for values in ({}, {"name": "own"})
        for found in installed("research", values, release="nightly")
    ]

    assert names == ["nightly", "own"]


def node(name: str, label: str, value: str | None) -> tuple[str, dict[str, Any]]:
    return name, template(name, nodeSelector={label: value})


def asks(limits: dict[str, Any], requests: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    return "production", resources(limits, requests)


NEVER: list[tuple[str, dict[str, Any], str]] = [
    ("prod", {}, 'template: no template "prod"; known: development, production, research'),
    ("production", {"image": ""}, "image: no whole reference"),
    ("production", {"image": "train:1"}, "image: no whole reference"),
    ("production", {"image": "docker.io/x/train:latest"}, "image: a tag that moves"),
    ("production", {"comand": ["x"]}, "'comand' not allowed"),
    ("production", {"env": {"A": 1}}, "got number, want string"),
    ("production", {"env": {"RANK": "0"}}, "env.RANK: torchrun sets its own value"),
    (
        "production",
        {"env": {"NCCL_NET": "Socket"}},
        "env.NCCL_NET: leaves the EFA interfaces of the pods idle: traffic would go over TCP, "
        "got Socket; leave it out",
    ),
    ("production", {"dataPvcName": "x"}, "dataPvcName: no claim that the cluster file makes"),
    (
        "research",
        {"nodeSelectors": {"eksSpot": {"enabled": False}}},
        "disabled; set nodeSelectors.eksSpot.enabled: true",
    ),
    (
        *node("research", "node-type", "x"),
        'got "x"; known: eks-on-demand, eks-spot; send other jobs by ultrascale submit',
    ),
    (
        *node("research", "node-type", "hyperpod"),
        'node-type: the chart renders no such job for cluster hybrid-hyperpod, got "hyperpod"',
    ),
    (
        *node("research", "topology.kubernetes.io/zone", "us-east-1a"),
        "not a label of all nodes of eks-spot",
    ),
    (
        *node("production", "node-type", None),
        'got ""; known: hyperpod, eks-on-demand, eks-spot',
    ),
    (
        "production",
        template(priorityClassName="low"),
        'got "low"; known: critical, high, medium',
    ),
    (*asks({"nvidia.com/gpu": 3}, {}), "known: 8, 4, 2, 1"),
    (
        *asks({"nvidia.com/gpu": 4}, {}),
        "requests.nvidia.com/gpu: more than its limit, 4, got 8",
    ),
    (
        *asks({"vpc.amazonaws.com/efa": 2}, {}),
        "a job of 8 nvidia.com/gpu has 4 EFA interfaces here, got 2",
    ),
    (*asks({"aws.amazon.com/neuron": 1}, {}), "GPUs and Neuron devices in one pod"),
    (*asks({}, {"cpu": "90906m"}), "ask for at most 90905m"),
    (*asks({}, {"memory": "1Ti"}), "ask for at most 1023922Mi"),
]


def test_helm_refuses_what_would_never_run_and_tells_all_mistakes_at_once(
    installed: Callable[..., list[Any]],
) -> None:
    for name, values, text in NEVER:
        assert text in "\n".join(str(line) for line in installed(name, values))
    values = {"image": "", "dataPvcName": "x", "env": {"RANK": "0"}}
    values |= resources({"nvidia.com/gpu": 3}, {"nvidia.com/gpu": 3})
    lines = "\n".join(installed("production", values))
    for key in ("image: ", "dataPvcName: ", "env.RANK: ", "jobTemplates.production.resources: "):
        assert f"\n{key}" in lines


def test_whoever_installs_is_told_what_does_not_hold(helm: Helm) -> None:
    limit = "jobTemplates.research.resources.limits.cpu=8"
    options = ["--set", f"template=research,image={IMAGE},{limit}", "--dry-run=client"]

    told = helm("install", "tune", CHART, *options).stdout.partition("NOTES:\n")[2]

    assert told.splitlines() == [
        "tune: sent to namespace training",
        "jobTemplates.research.tolerations: nvidia.com/gpu=true:NoSchedule is added, as nodes "
        "there have that taint.",
        "priorityClasses.preemptible.preemptionPolicy: PreemptLowerPriority does not count: "
        "the cluster's is Never.",
        "jobTemplates.research.resources.limits.cpu: 8 is left out: a limit would throttle the "
        "pod.",
        'env.CUDA_VISIBLE_DEVICES: "all" is left out: CUDA sees no device by that word.',
    ]


def test_helm_finds_nothing_wrong_with_the_chart_and_packages_it(
    helm: Helm, tmp_path: Path
) -> None:
    linted = helm("lint", CHART, "--strict")
    packaged = helm("package", CHART, "--destination", tmp_path)

    assert "0 chart(s) failed" in linted.stdout
    assert "[WARNING]" not in linted.stdout
    assert not packaged.returncode
    assert (tmp_path / "training-job-0.1.0.tgz").is_file()


TEMPLATES = ("production", "development", "research")


@pytest.mark.parametrize("name", TEMPLATES)
def test_the_chart_knows_the_nodes_of_the_hybrid_cluster(
    hybrid: JobCluster, installed: Callable[..., list[Any]], name: str
) -> None:
    """The chart's plain values are what `submit` takes, and it refuses the same ones."""
    placement = _placement(name)
    kinds = {
        priority.name: template(name, priorityClassName=priority.name)
        for priority in hybrid.plan.priority_classes
    }
    claims = {claim.name for claim in hybrid.plan.storage.claims}

    assert {kind for kind in kinds if not told(hybrid, name, kinds[kind])} == {
        *placement["priorityClasses"]
    }
    assert {claim for claim in claims if not told(hybrid, name, {"dataPvcName": claim})} == {
        *placement["claims"]
    }
    for share in placement["shares"]:
        gpus = {"nvidia.com/gpu": share["count"] or None}
        most = {"cpu": f"{share['millicpu']}m", "memory": f"{share['memoryMib']}Mi"}
        more = {"cpu": f"{share['millicpu'] + 1}m", "memory": f"{share['memoryMib'] + 1}Mi"}
        whole = resources(gpus, {"cpu": None, "memory": None} | gpus, name)
        assert installed(name, whole) == as_data(
            sent(hybrid, name, whole | {"name": "tune"}).objects
        )
        assert not told(hybrid, name, resources(gpus, gpus | most, name))
        for key in most:
            assert told(hybrid, name, resources(gpus, gpus | most | {key: more[key]}, name))


def test_the_chart_knows_the_labels_and_taints_of_the_hybrid_cluster(hybrid: JobCluster) -> None:
    pools = {tier.node_type: tier.pools for tier in node_tiers(hybrid.plan.all_pools)}
    for placement in VALUES["cluster"]["placements"]:
        (pool,) = pools[placement["nodeType"]]
        taints = sorted(pool.taints, key=lambda taint: taint.key)
        assert placement["labels"] == pool.labels
        assert placement["taints"] == [
            {"key": taint.key, "value": taint.value, "effect": taint.effect} for taint in taints
        ]


def test_the_chart_knows_the_classes_and_the_variables_that_are_refused(hybrid: JobCluster) -> None:
    known = VALUES["cluster"]
    own = {key: value for key, value in VALUES.items() if key != "cluster"}
    bypassed = runtime_environment.BYPASSED
    assert own == yaml.safe_load(SEED.read_text())
    assert known["priorityClasses"] == [
        {"name": priority.name, "value": priority.value, "preempts": priority.preempts}
        for priority in hybrid.plan.priority_classes
    ]
    assert known["refusedVariables"] == [
        {
            "name": f"^({refused.pattern})$",
            "wrong": refused.wrong,
            "todo": refused.todo,
            "allowable": refused.allowable,
        }
        for refused in runtime_environment.REFUSED
    ]
    assert known["bypassesEfa"] == [
        {"name": name, "value": f"^({value})$", "wrong": bypassed.wrong, "todo": bypassed.todo}
        for name, value in runtime_environment.BYPASSES_EFA
    ]


def _placement(name: str) -> Any:
    """Return the nodes of a template."""
    wanted = VALUES["jobTemplates"][name]["nodeSelector"]["node-type"]
    (found,) = (each for each in VALUES["cluster"]["placements"] if each["nodeType"] == wanted)
    return found
