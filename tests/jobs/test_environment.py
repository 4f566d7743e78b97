"""Variables of a job's libraries: as today's PyTorch, NCCL, EFA and Neuron ask."""

import importlib
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.support.job_rules import pod_templates
from tests.support.jobs import (
    SERVICE,
    VOLCANO,
    environment,
    job_cluster,
    make_job,
    objects,
    prepared,
)
from tests.support.pools import HYPERPOD_POOL, POOL, SYSTEM_POOL, make_document
from tests.support.queued_pools import queued_document
from ultrascale.catalog import runtime_environment
from ultrascale.plan.jobs.programs import program

GPUS = job_cluster(POOL)
AUTO_MODE = make_document(
    pools=[SYSTEM_POOL, {**POOL, "provisioner": "auto-mode", "nodes": {"max": 4}}],
    scheduling=VOLCANO,
)
HYPERPOD = make_document(pools=[SYSTEM_POOL, HYPERPOD_POOL])
HUGE_PAGES = "FI_EFA_USE_HUGE_PAGE"


def test_a_process_ends_after_a_failed_collective_as_torch_does_by_default() -> None:
    """Torchrun itself sets a way that waits for NCCL, and hangs."""
    trained, served = environment(prepared(GPUS)), environment(prepared(GPUS, SERVICE))
    assert trained["TORCH_NCCL_ASYNC_ERROR_HANDLING"] == "3"
    # The trace of a hang covers a step of a large model; of its older name each process warns.
    assert int(trained["TORCH_FR_BUFFER_SIZE"]) == 20_000
    assert "TORCH_NCCL_TRACE_BUFFER_SIZE" not in trained
    # vLLM's own pool of memory does not work with expandable segments.
    assert trained["PYTORCH_CUDA_ALLOC_CONF"] == "expandable_segments:True"
    assert not {name for name in served if "ALLOC_CONF" in name or name.startswith("TORCH_")}
    assert served["NCCL_DEBUG"] == "WARN"


def test_roles_can_give_each_other_tensors_of_a_gpu() -> None:
    """With expandable segments torch asks for a call that a container has only with SYS_PTRACE."""
    # A role may set a variable that its job allows.
    roles = {"actor": {"env": {"NCCL_PROTO": "simple"}}, "learner": {}}
    job = make_job(nodes=None, roles=roles, allow_env=["NCCL_PROTO"])
    (sent,) = objects(prepared(GPUS, job), "Job")
    assert "NCCL_DEBUG" in str(sent)
    assert "NCCL_PROTO" in str(sent)
    assert "ALLOC_CONF" not in str(sent)


@pytest.mark.parametrize(
    ("cluster", "job", "value"),
    [
        (GPUS, make_job(), None),
        (AUTO_MODE, make_job(), "0"),
        (HYPERPOD, make_job(pool="hp"), "0"),
        (GPUS, make_job(resources={"efa": 0}), None),
        # As the job says.
        (AUTO_MODE, make_job(env={HUGE_PAGES: "1"}), "1"),
    ],
)
def test_efa_takes_no_huge_pages_where_its_pod_has_none(
    cluster: dict[str, Any], job: dict[str, Any], value: str | None
) -> None:
    """The first touch of one would end the process."""
    assert environment(prepared(cluster, job)).get(HUGE_PAGES) == value


def test_a_variable_that_is_allowed_knowingly_is_set() -> None:
    env = {"NCCL_BUFFSIZE": "8388608", "NCCL_PROTO": "simple", "NCCL_SOCKET_IFNAME": "^lo"}
    env |= {"FI_PROVIDER": "tcp"}
    found = environment(prepared(GPUS, make_job(env=env, allow_env=[*env])))
    assert env.items() <= found.items()


@pytest.mark.parametrize(
    ("resources", "seen"),
    [({"gpu": 0, "cpu": 4, "memory": "16Gi"}, "void"), ({"gpu": 1}, None), ({}, None)],
    ids=["none", "one", "all"],
)
def test_a_pod_sees_no_gpu_that_another_pod_has(
    resources: dict[str, Any], seen: str | None
) -> None:
    """CUDA images ask the runtime for all GPUs; the device plugin names those of a pod."""
    job = {"name": "tune", "kind": "batch", "pool": "train", "image": "docker.io/example/train:1"}
    job |= {"command": ["python3"], "resources": resources}
    assert environment(prepared(GPUS, job)).get("NVIDIA_VISIBLE_DEVICES") == seen


@pytest.mark.parametrize(
    ("name", "value", "allows"),
    [
        ("NCCL_SOCKET_IFNAME", "eth0", True),
        ("NCCL_SOCKET_IFNAME", "eth", True),
        ("NCCL_SOCKET_IFNAME", "=eth0", True),
        ("NCCL_SOCKET_IFNAME", "lo,eth0", True),
        ("NCCL_SOCKET_IFNAME", "^lo,docker,veth,eni,pod-id-link0", True),
        ("NCCL_SOCKET_IFNAME", "^=eth,pod-id-link0", True),
        ("NCCL_SOCKET_IFNAME", "=eth", False),
        ("NCCL_SOCKET_IFNAME", "lo", False),
        ("NCCL_SOCKET_IFNAME", "ens5,enp", False),
        ("NCCL_SOCKET_IFNAME", "^=eth0,pod-id-link0", False),
        ("NCCL_SOCKET_IFNAME", "^lo,e,pod-id-link0", False),
        ("CCOM_SOCKET_IFNAME", "ens", False),
        ("GLOO_SOCKET_IFNAME", "eth0", True),
        ("GLOO_SOCKET_IFNAME", "eth", False),
    ],
)
def test_a_list_of_interfaces_keeps_that_of_the_pod(name: str, value: str, allows: bool) -> None:
    """Without it no process reaches another one, on nodes that are paid for."""
    assert (runtime_environment.why_not(name, value) is None) == allows


@pytest.mark.parametrize(
    ("value", "refused"),
    [
        ("/opt/lib:$LD_LIBRARY_PATH", True),
        ("${LD_LIBRARY_PATH}:/opt/lib", True),
        ("$(LD_LIBRARY_PATH)", True),
        ("/opt/lib", False),
        ('{"$schema": 1}', False),
        ("^foo$", False),
        ("cost: $5", False),
    ],
)
def test_a_variable_that_nobody_expands_reaches_no_paid_node(value: str, refused: bool) -> None:
    assert (runtime_environment.why_not("LD_LIBRARY_PATH", value) is not None) == refused
    job = make_job(env={"LD_LIBRARY_PATH": value}, allow_env=["LD_LIBRARY_PATH"] if refused else [])
    assert environment(prepared(GPUS, job))["LD_LIBRARY_PATH"].replace("$$", "$") == value


@pytest.mark.parametrize(
    ("name", "value", "seen"),
    [
        ("CUDA_VISIBLE_DEVICES", "0,1,2", 3),
        ("CUDA_VISIBLE_DEVICES", "GPU-8932f937, 1", 2),
        # CUDA stops at the first word that is none.
        ("CUDA_VISIBLE_DEVICES", "0,-1,2,3", 1),
        ("CUDA_VISIBLE_DEVICES", "", 0),
        ("NEURON_RT_VISIBLE_CORES", "0-3,8", 5),
        ("NEURON_RT_NUM_CORES", "2", 2),
        ("NEURON_RT_NUM_CORES", "many", None),
        ("NCCL_DEBUG", "0,1", None),
    ],
)
def test_devices_of_a_list_are_counted_as_its_runtime_counts(
    name: str, value: str, seen: int | None
) -> None:
    assert runtime_environment.visible_devices(name, value) == seen


def _library(folder: Path, name: str, mark: bytes) -> None:
    """Make a library that loads: one of Python's own, with ``mark`` behind it."""
    own = Path(importlib.import_module("_ctypes").__file__ or "")
    folder.mkdir(exist_ok=True)
    (folder / name).write_bytes(own.read_bytes() + mark)


@pytest.mark.parametrize(
    ("name", "mark", "status"),
    [
        (None, b"", 2),
        ("libnccl-net.so", b"NET/OFI Initializing", 0),
        ("libnccl-net-ofi.so", b"NET/OFI Initializing", 0),
        # HPC-X's, which knows InfiniBand alone, is in NVIDIA's images.
        ("libnccl-net.so", b"NET/IB plugin", 2),
        ("libnccl-net-own.so", b"NET/OFI", 2),
    ],
    ids=["none", "linked", "by its name", "of others", "another name"],
)
def test_a_pod_without_the_plugin_for_efa_ends_at_once(
    tmp_path: Path, name: str | None, mark: bytes, status: int
) -> None:
    """NCCL falls back to TCP without a word, many times slower, and the nodes are paid for."""
    if name is not None:
        _library(tmp_path / "lib", name, mark)
    env = {"LD_LIBRARY_PATH": str(tmp_path / "lib")}
    words = [sys.executable, "-c", program("efa_plugin")]

    ended = subprocess.run(words, env=env, capture_output=True, text=True, check=False)

    assert (ended.returncode, "aws-ofi-nccl" in ended.stderr) == (status, status == 2)


@pytest.mark.parametrize(
    ("job", "looks"),
    [
        (make_job(nodes=2), True),
        (make_job(nodes=1), False),
        (make_job(nodes=2, resources={"efa": 0}), False),
        (make_job(nodes=2, env={"NCCL_NET": "Socket"}, allow_env=["NCCL_NET"]), False),
    ],
    ids=["two nodes", "one node", "without EFA", "TCP is meant"],
)
def test_pods_that_meet_over_efa_look_for_its_plugin(job: dict[str, Any], looks: bool) -> None:
    (sent,) = objects(prepared(GPUS, job), "Job")
    assert ("NET/OFI" in str(sent)) is looks


def _without_script(**keys: Any) -> dict[str, Any]:
    return make_job(script=None, command=["./train", "a b"], args=["$(HOME)"], nodes=2) | keys


def _shim(words: Sequence[str], folder: Path) -> Sequence[str]:
    """Return a pod's command as the runtime gets it, with a program that shows its arguments."""
    (folder / "train").write_text('#!/bin/sh\necho "ran $*"\nexit "${STATUS:-0}"\n')
    (folder / "train").chmod(0o755)
    return [word.replace("$$", "$").replace("./train", str(folder / "train")) for word in words]


@pytest.mark.parametrize("kind", ["indexed", "jobset", "volcano", "pytorch"])
def test_a_command_over_efa_ends_at_once_where_its_image_has_no_plugin(
    tmp_path: Path, kind: str
) -> None:
    """Its program would train over TCP, on nodes with EFA that are paid for."""
    clusters = {"indexed": job_cluster(POOL), "volcano": GPUS, "pytorch": HYPERPOD}
    clusters["indexed"] = make_document(pools=[SYSTEM_POOL, POOL | {"nodes": {"static": 2}}])
    clusters["jobset"] = queued_document({"name": "research", "prefer": ["reserved"]})
    job = _without_script(**({"pool": "reserved", "queue": "research"} if kind == "jobset" else {}))
    if kind == "pytorch":
        job |= {"pool": HYPERPOD_POOL["name"]}
    sent = prepared(clusters[kind], job)
    (pod,) = {str(each): each for each in pod_templates(sent)}.values()
    words = _shim(pod["spec"]["containers"][0]["command"], tmp_path)
    _library(tmp_path / "lib", "libnccl-net.so", b"NET/OFI")
    env = {"PATH": os.environ["PATH"], "LD_LIBRARY_PATH": str(tmp_path / "lib"), "STATUS": "2"}

    with_plugin = subprocess.run(words, env=env, capture_output=True, text=True, check=False)
    without = subprocess.run(
        words, env=env | {"LD_LIBRARY_PATH": ""}, capture_output=True, text=True, check=False
    )

    # The exit code of the program is its own affair.
    assert (with_plugin.returncode, with_plugin.stdout) == (2, "ran a b $(HOME)\n")
    assert (without.returncode, without.stdout) == (78, "")
    assert "aws-ofi-nccl" in without.stderr
    ends = {"indexed": "FailJob", "jobset": "FailJobSet", "volcano": "TerminateJob", "pytorch": ""}
    assert ends[kind] in str(sent.objects)
    assert ("78" in re.findall(r"(?:values': \[|exitCode': )(\d+)", str(sent.objects))) is (
        kind != "pytorch"
    )


def test_an_image_without_python_starts_its_command_unlooked_at(tmp_path: Path) -> None:
    (sent,) = objects(prepared(GPUS, _without_script()), "Job")
    command = sent["spec"]["tasks"][0]["template"]["spec"]["containers"][0]["command"]
    (tmp_path / "sh").symlink_to("/bin/sh")

    words = ["/bin/sh", *_shim(command, tmp_path)[1:]]
    ended = subprocess.run(
        words, env={"PATH": str(tmp_path)}, capture_output=True, text=True, check=False
    )

    assert (ended.returncode, ended.stdout) == (0, "ran a b $(HOME)\n")
    assert "python3" in ended.stderr


def test_sigterm_reaches_the_command_behind_the_look(tmp_path: Path) -> None:
    (sent,) = objects(prepared(GPUS, _without_script()), "Job")
    command = sent["spec"]["tasks"][0]["template"]["spec"]["containers"][0]["command"]
    words = [*_shim(command, tmp_path)]
    (tmp_path / "train").write_text(
        "#!/bin/sh\ntrap 'echo saved; exit 0' TERM\necho up\nwhile :; do sleep 0.1; done\n"
    )
    _library(tmp_path / "lib", "libnccl-net.so", b"NET/OFI")
    env = {"PATH": os.environ["PATH"], "LD_LIBRARY_PATH": str(tmp_path / "lib")}
    with subprocess.Popen(words, env=env, stdout=subprocess.PIPE, text=True) as pod:
        assert pod.stdout is not None
        assert pod.stdout.readline() == "up\n"
        pod.terminate()
        assert (pod.communicate(timeout=20)[0], pod.returncode) == ("saved\n", 0)


@pytest.mark.parametrize("check", ["fabric", "device"])
def test_a_check_of_nodes_judges_no_plugin_and_says_whose_image_it_is(check: str) -> None:
    job = prepared(GPUS, make_job(nodes=2, preflight=[check]))
    (made,) = job.checks

    assert "NET/OFI" not in str(made.job.objects)
    assert ("says nothing of the job's own image" in made.note) is (check == "fabric")
