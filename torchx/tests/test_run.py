"""The `torchx` command line sends what ours sends, and tells all mistakes at once."""

import re
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

pytest.importorskip("torchx.specs", reason="the extra `torchx` is not installed")

from torchx.schedulers import get_scheduler_factories
from torchx.schedulers.kubernetes_scheduler import KubernetesScheduler

from tests.support.crd_schemas import CrdSet
from tests.support.folders import ROOT
from tests.support.torchx_runs import ECR_REPO, environment, objects, request, run, torchx
from ultrascale.jobs import JobManifests, prepare
from ultrascale.jobs.manifests import as_yaml
from ultrascale_k8s.volcano.chart import crds
from ultrascale_torchx.scheduler import UltrascaleScheduler

CLUSTER = ROOT / "clusters" / "trainium-bert.yaml"
PAGE = (ROOT / "docs" / "torchx.md").read_text()
COMPONENT = "lib/trn_dist_ddp.py:generateAppDef"
DATA = "/data/bert_pretrain_wikicorpus_tokenized_hdf5_seqlen128"
FSX = {"claimName": "fsx-claim"}
# The job of the tutorial, as `ultrascale submit` takes it.
JOB: dict[str, Any] = {
    "name": "berttrain",
    "pool": "trn1",
    "nodes": 2,
    "processes_per_node": 32,
    "queue": "test",
    "image": f"{ECR_REPO}:bert_pretrain",
    "script": "dp_bert_large_hf_pretrain_hdf5.py",
    "args": [
        *("--batch_size", 16, "--grad_accum_usteps", 32),
        *("--data_dir", DATA, "--output_dir", "/data/output"),
    ],
    "env": {
        "NEURON_RT_STOCHASTIC_ROUNDING_EN": "1",
        "TORCHX_JOB_ID": "ultrascale://torchx/berttrain",
    },
    "compile_cache": {"model": "bert-large"},
}


def submitted(**changes: Any) -> JobManifests:
    return prepare(CLUSTER, JOB | changes)


def words(**changes: str) -> list[str]:
    """Return the component and its parameters that make `JOB`; an empty one is left out."""
    given = {
        "name": "berttrain",
        "script": str(JOB["script"]),
        "image": ":bert_pretrain",
        "script_args": " ".join(str(each) for each in JOB["args"]),
        "nnodes": "2",
        "nproc_per_node": "32",
        "bf16": "True",
        "cacheset": "bert-large",
    }
    stated = {key: value for key, value in (given | changes).items() if value}
    return [COMPONENT, *(word for key, value in stated.items() for word in (f"--{key}", value))]


@pytest.fixture(scope="module")
def tutorial(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Output of the page's command, run in a shell."""
    (typed,) = re.findall(r"```sh\n(export .+?)```", PAGE, re.DOTALL)
    folder = tmp_path_factory.mktemp("tutorial")
    return request(run(["bash", "-euc", typed], environment(folder)))


def test_the_tutorials_command_prints_what_submit_would_print(tutorial: str) -> None:
    assert tutorial == f"{as_yaml(submitted().objects)}\n"


def test_the_tutorials_job_would_run(tutorial: str) -> None:
    (job,) = yaml.safe_load_all(tutorial)
    spec = job["spec"]
    (task,) = spec["tasks"]
    pod = task["template"]["spec"]
    (container,) = pod["containers"]
    devices = {"aws.amazon.com/neuron": "16", "vpc.amazonaws.com/efa": "8"}

    assert job["metadata"]["namespace"] == "training"
    assert spec["queue"] == "test"
    assert (spec["minAvailable"], task["replicas"]) == (2, 2)
    assert {each["key"] for each in pod["tolerations"]} == {"aws.amazon.com/neuron"}
    assert devices.items() <= container["resources"]["limits"].items()
    (volume,) = [
        each["name"] for each in pod["volumes"] if each.get("persistentVolumeClaim") == FSX
    ]
    assert {"name": volume, "mountPath": "/data"} in container["volumeMounts"]
    assert "--rdzv-backend=static" in container["command"][2]
    assert not any("XLA" in each["name"] for each in container["env"])


def test_the_tutorials_job_is_one_that_volcano_takes(tutorial: str) -> None:
    volcano = CrdSet.from_documents(crds())

    assert [volcano.validate(each) for each in yaml.safe_load_all(tutorial)] == [[]]


SAME: dict[str, list[str]] = {
    "with what .torchxconfig says": ["--", *words()[1:]],
    "with options of its own": [
        *("-cfg", f"cluster={CLUSTER},queue=test,image_repo={ECR_REPO}", *words()),
    ],
}


@pytest.mark.parametrize("typed", SAME.values(), ids=list(SAME))
def test_other_ways_to_type_it_give_the_same_job(tmp_path: Path, typed: list[str]) -> None:
    process = torchx("run", "--dryrun", *typed, folder=tmp_path)

    assert objects(process) == [*submitted().objects]


def test_awss_own_command_says_in_one_line_what_to_leave_out(tmp_path: Path) -> None:
    """It names TorchX's scheduler, and a folder of which that one would build an image here."""
    typed = """torchx run \\
    -s kubernetes --workspace="file:///$PWD/docker" \\
    -cfg queue=test,image_repo=$ECR_REPO \\
    lib/trn1_dist_ddp.py:generateAppDef \\
    --name berttrain \\
    --script_args "--batch_size 16 --grad_accum_usteps 32 \\
        --data_dir /data/bert_pretrain_wikicorpus_tokenized_hdf5_seqlen128 \\
        --output_dir /data/output" \\
    --nnodes 2 \\
    --nproc_per_node 32 \\
    --image $ECR_REPO:bert_pretrain \\
    --script dp_bert_large_hf_pretrain_hdf5.py \\
    --bf16 True \\
    --cacheset bert-large"""

    process = run(["bash", "-c", typed], environment(tmp_path, ECR_REPO=ECR_REPO))

    assert process.returncode == 1
    assert "Traceback" not in process.stderr
    (line,) = [line for line in process.stderr.splitlines() if "scheduler:" in line]
    assert f"write -s ultrascale, and leave out --workspace=file:///{ROOT}/docker" in line


COMMANDS = {
    "status": ["status", "ultrascale://torchx/training:tune"],
    "list": ["list", "-s", "ultrascale"],
    "log": ["log", "ultrascale://torchx/training:tune/worker/0"],
    "cancel": ["cancel", "ultrascale://torchx/training:tune"],
}


@pytest.mark.parametrize("typed", COMMANDS.values(), ids=list(COMMANDS))
def test_a_command_without_a_kubeconfig_says_one_line(tmp_path: Path, typed: list[str]) -> None:
    process = torchx(*typed, folder=tmp_path)

    assert process.returncode == 1
    told = [line for line in process.stderr.splitlines() if "INFO" not in line]
    assert told == [
        f"no cluster is known: {tmp_path}/.kube/config does not exist; write it by "
        "`aws eks update-kubeconfig --name CLUSTER --region REGION`, or name one by "
        "`kubeconfig` in .torchxconfig"
    ]


def test_every_mistake_is_told_at_once_and_without_a_trace(tmp_path: Path) -> None:
    typed = ["-cfg", "queue=tets,priority_class=highest", *words(nnodes="5", env="XLA_USE_BF16=1")]
    lines = [
        "job: queue: not one of scheduling.queues, got 'tets'; did you mean test?",
        "job: priority: not one of scheduling.priority_classes, got 'highest'",
        "job: nodes: more than the 4 nodes of trn1, got 5; ask for at most 4",
        "job: env.XLA_USE_BF16: no longer read by the Neuron SDK",
    ]

    process = torchx("run", "--dryrun", *typed, folder=tmp_path)

    assert process.returncode == 1
    assert "Traceback" not in process.stderr
    assert [line for line in lines if line not in process.stderr] == []


def test_a_workspace_is_not_left_out_of_the_image_in_silence(tmp_path: Path) -> None:
    process = torchx("run", "--dryrun", "--workspace=file:///docker", *words(), folder=tmp_path)

    assert process.returncode == 1
    assert "leave out --workspace=file:///docker: " in process.stderr


@pytest.mark.parametrize("repository", ["", None], ids=["empty", "not set"])
def test_an_image_without_its_registry_is_refused_until_the_account_is_known(
    tmp_path: Path, repository: str | None
) -> None:
    # As the tutorial types it: --image $ECR_REPO:bert_pretrain
    process = torchx("run", "--dryrun", *words(), folder=tmp_path, repository=repository)

    assert process.returncode == 1
    assert "ECR_REPO is not set" in process.stderr
    assert "export ECR_REPO=REGISTRY/REPOSITORY" in process.stderr


def test_torchx_keeps_its_own_schedulers_and_components(tmp_path: Path) -> None:
    shutil.copy(ROOT / ".torchxconfig", tmp_path)
    typed = ["run", "-s", "local_cwd", "--workspace=", "utils.echo", "--msg", "still here"]

    process = torchx(*typed, folder=tmp_path, cwd=tmp_path)

    assert process.returncode == 0
    assert "still here" in process.stdout + process.stderr


def test_torchxs_own_scheduler_for_kubernetes_stays_torchxs() -> None:
    factories = get_scheduler_factories()

    assert isinstance(factories["kubernetes"]("torchx"), KubernetesScheduler)
    assert isinstance(factories["ultrascale"]("torchx"), UltrascaleScheduler)
