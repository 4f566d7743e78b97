"""Mistakes in what a job runs: its image, program, variables and compiled graphs."""

from typing import Any

import pytest

from tests.support.config_documents import mistakes_in
from tests.support.config_jobs import gpus, trn

BAD: dict[str, tuple[dict[str, Any], str]] = {
    # --- program
    "repository that is not there": (
        trn(image="bret:1") | {"images": {"repositories": ["bert"]}},
        "jobs.tune.image: not one of images.repositories, got 'bret:1'; did you mean bert?; "
        "for another registry write its host too, as docker.io/…",
    ),
    "tag that moves": (
        trn(image="docker.io/a/b:latest"),
        "jobs.tune.image: a tag that moves, got 'docker.io/a/b:latest'; "
        "name a tag that stays: pods of one job could run two images",
    ),
    "image of another registry without a tag": (
        trn(image="docker.io/a/b"),
        "jobs.tune.image: an image without a tag, got 'docker.io/a/b'; "
        "add :TAG, so that every pod and every restart runs the same image",
    ),
    "script beside a command": (
        trn(script="train.py", command=["bash"]),
        "jobs.tune.command: a script for torchrun and a command beside it, got [bash]; "
        "keep script or command",
    ),
    "argument that is true or false": (
        trn(script="train.py", args=[True]),
        "jobs.tune.args[0]: true or false, which programs spell differently, got true; "
        "put it in quotes",
    ),
    "cache of graphs for GPUs": (
        gpus(compile_cache={"model": "bert"}),
        "jobs.tune.compile_cache: compiled graphs are for Neuron devices, which the pool has none "
        "of; leave it out",
    ),
    "cache of graphs around a command": (
        trn(compile_cache={"model": "bert"}, command=["bash"]),
        "jobs.tune.compile_cache: a command starts no torchrun; name a script",
    ),
    "cache of a model with a path's name": (
        trn(compile_cache={"model": "bert/large"}),
        "jobs.tune.compile_cache.model: not a name of a model's cache, got 'bert/large'; "
        "use at most 63 letters, digits, '_' and '-'",
    ),
    # --- environment
    "variable that the Neuron SDK no longer reads": (
        trn(env={"XLA_USE_BF16": "1"}),
        "jobs.tune.env.XLA_USE_BF16: no longer read by the Neuron SDK, got '1'; "
        "cast the model: --bf16",
    ),
    "variable that breaks EFA": (
        gpus(env={"RDMAV_FORK_SAFE": 1}),
        "jobs.tune.env.RDMAV_FORK_SAFE: a variable of verbs libraries that EFA does not use, and "
        "that breaks it, got 1; leave it out",
    ),
    "interfaces without that of Pod Identity": (
        gpus(env={"NCCL_SOCKET_IFNAME": "^lo,docker"}),
        "jobs.tune.env.NCCL_SOCKET_IFNAME: without pod-id-link0, by which NCCL would hang across "
        "nodes, got '^lo,docker'; write ^lo,docker,veth,eni,pod-id-link0, or name it in allow_env",
    ),
    "variable that the plug-in tunes": (
        gpus(env={"NCCL_BUFFSIZE": 8388608}),
        "jobs.tune.env.NCCL_BUFFSIZE: tuned by aws-ofi-nccl, which knows the instance type, "
        "got 8388608; leave it out, or name it in allow_env",
    ),
    "permission for what no job may set": (
        gpus(allow_env=["NCCL_DEBUG"], env={"NCCL_DEBUG": "INFO"}),
        "jobs.tune.allow_env[0]: no variable that a job may set by naming it here, "
        "got 'NCCL_DEBUG'; leave it out here; env says whether it is refused",
    ),
    "permission for what nobody sets": (
        gpus(allow_env=["NCCL_PROTO"]),
        "jobs.tune.allow_env[0]: no variable of env, got 'NCCL_PROTO'; set it there, or leave it "
        "out here",
    ),
    # --- rights
    "capabilities of a user other than root": (
        gpus(security={"user": 1000, "capabilities": ["CHOWN"]}),
        "jobs.tune.security.capabilities: capabilities of a user other than root, who gets none "
        "of them, got [CHOWN]; leave out user, or capabilities",
    ),
    "capability that no namespace takes": (
        gpus(security={"capabilities": ["IPC_LOCK"]}),
        "jobs.tune.security.capabilities[0]: unknown value, got 'IPC_LOCK'; write AUDIT_WRITE, "
        "CHOWN, DAC_OVERRIDE, FOWNER, FSETID, KILL, MKNOD, NET_BIND_SERVICE, SETFCAP, SETGID, "
        "SETPCAP, SETUID or SYS_CHROOT",
    ),
    "group without a user": (
        gpus(security={"group": 1000}),
        "jobs.tune.security.group: a group without a user, got 1000; write user as well",
    ),
    "rank for all processes": (
        gpus(env={"RANK": "0"}),
        "jobs.tune.env.RANK: set by torchrun, differently in each process, got '0'; leave it out",
    ),
    "shared store by which restarts hang": (
        gpus(env={"TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "0"}),
        "jobs.tune.env.TORCH_DISABLE_SHARE_RDZV_TCP_STORE: set for every job, without which "
        "restarts hang, got '0'; leave it out",
    ),
    "variable that every pod has": (
        gpus(env={"POD_IP": "10.0.0.1"}),
        "jobs.tune.env.POD_IP: set for every pod, differently in each, got '10.0.0.1'; "
        "choose another name",
    ),
    "variable that no shell knows": (
        gpus(env={"MY-VAR": "1"}),
        "jobs.tune.env.MY-VAR: not the name of an environment variable, got 'MY-VAR'; "
        "use letters, digits and '_'",
    ),
}


@pytest.mark.parametrize(("document", "line"), BAD.values(), ids=list(BAD))
def test_a_mistake_is_named_with_its_key_its_value_and_a_way_out(
    document: dict[str, Any], line: str
) -> None:
    assert mistakes_in(document) == [line]
