"""`grpo` of two roles as three processes, which find each other by the names that they are given.

Commands, ports and variables are those of the rendered pods. TRL's server starts a double of vLLM:
its answers are the toy's, and weights reach it without NCCL, which needs GPUs.
"""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from statistics import fmean
from typing import Any

import rollout_double
import toys
import worlds

from tests.plan.jobs.test_posttraining import cluster, method
from tests.support.etcd_server import free_ports
from tests.support.job_containers import Image, moved, running
from tests.support.jobs import objects, prepared

STEPS = 80
PROGRAM = "ultrascale_training.posttrain"
TRAINER, ROLLOUT = "tune-trainer-0-{}.tune", "tune-rollout-0-0.tune"
# The cluster's DNS: a process that listens everywhere listens at the address of its pod.
RESOLVER = """
import json, os, socket
known = json.loads(os.environ["CLUSTER_DNS"])
ask, bind = socket.getaddrinfo, socket.socket.bind
socket.getaddrinfo = lambda host, *rest, **more: ask(known.get(host, host), *rest, **more)
def bound(self, at):
    everywhere = self.family == socket.AF_INET and at[0] in ("", "0.0.0.0")
    return bind(self, (os.environ["POD_IP"], at[1]) if everywhere else at)
socket.socket.bind = bound
"""


def containers(model: Path, data: Path, output: Path, group: int) -> Mapping[str, dict[str, Any]]:
    """Return the rendered containers of the two roles."""
    words = [
        *(f"--model_name_or_path={model}", f"--dataset_name={data}", f"--output_dir={output}"),
        *("--reward_funcs=toys.reward", "--learning_rate=1e-3", "--num_generations=8"),
        *("--per_device_train_batch_size=8", "--max_completion_length=5", f"--max_steps={STEPS}"),
        *("--logging_steps=1", "--save_steps=1000", "--seed=3", "--report_to=none"),
        f"--vllm_group_port={group}",
        *("--use_cpu=True", "--bf16=False", "--disable_tqdm=True"),
    ]
    role = {"pool": "train", "resources": {"efa": 0}}
    roles = {"trainer": {**role, "nodes": 2, "args": words}, "rollout": {**role, "nodes": 1}}
    job = method("grpo", [], model=None, roles=roles, processes_per_node=1)
    (jobset,) = objects(prepared(cluster(), job), "JobSet")
    return {
        part["name"]: part["template"]["spec"]["template"]["spec"]["containers"][0]
        for part in jobset["spec"]["replicatedJobs"]
    }


def variables(container: Mapping[str, Any], index: int, address: str) -> Mapping[str, str]:
    """Return the variables of a pod, as Kubernetes would fill them in."""
    filled = {"ROLE_INDEX": str(index), "POD_IP": address}
    stated = {each["name"]: each.get("value", "x") for each in container["env"]}
    return {**stated, **filled, "JOB_COMPLETION_INDEX": str(index)}


def test_two_trainers_and_a_server_find_each_other_and_the_reward_rises(
    model: Path, tmp_path: Path
) -> None:
    data, output = toys.write(tmp_path / "data", toys.prompts(500)), tmp_path / "out"
    meeting, group = free_ports(2)
    rendered = containers(model, data, output, group)
    rollout_double.install(tmp_path)
    (tmp_path / "sitecustomize.py").write_text(RESOLVER)
    # Loopback addresses of this run alone, on which the rendered ports are free.
    net = f"127.{1 + os.getpid() // 250 % 250}.{1 + os.getpid() % 250}"
    pods = {TRAINER.format(0): f"{net}.2", TRAINER.format(1): f"{net}.3", ROLLOUT: f"{net}.4"}
    common = {
        **{name: os.environ[name] for name in ("HF_HUB_OFFLINE", "OMP_NUM_THREADS")},
        "CLUSTER_DNS": json.dumps(pods),
        "PATH": f"{tmp_path}:{Path(sys.executable).parent}:{os.environ['PATH']}",
        "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path]),
    }
    image = Image(tmp_path)
    with ExitStack() as stack:

        def start(role: str, index: int, name: str) -> subprocess.Popen[str]:
            command = rendered[role]["command"]
            if role == "trainer":
                command = moved(command, TRAINER.format(0), 29500, meeting)
                command = [word.replace(PROGRAM, "rollout_double") for word in command]
            env = {**variables(rendered[role], index, pods[name]), **common}
            return stack.enter_context(running(command, image, env))

        server = start("rollout", 0, ROLLOUT)
        trainers = [start("trainer", index, TRAINER.format(index)) for index in (1, 0)]
        # Both are read at once: a full pipe stops its writer.
        with ThreadPoolExecutor() as readers:
            told = [*readers.map(lambda trainer: trainer.communicate(timeout=200)[0], trainers)]
        assert [trainer.returncode for trainer in trainers] == [0, 0], "".join(told)[-5000:]
        assert server.poll() is None
    rewards = [*worlds.figures(output, "reward").values()]
    print(
        f"reward by the server's answers: {fmean(rewards[:4]):.2f}, then {fmean(rewards[-5:]):.2f}"
    )
    assert fmean(rewards[:4]) < 0.5
    # The server's own weights never change: it has those of the trainers.
    assert fmean(rewards[-5:]) > 0.9
