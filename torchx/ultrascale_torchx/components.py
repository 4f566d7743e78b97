"""Common part of the components of `lib/`: a PyTorch job as a description and as a role.

The role carries the description as metadata, from which the scheduler of this package renders the
job. The role's own command is torchrun's, so that the same component runs on a laptop with
`local_cwd`.
"""

import re
import shlex
from collections.abc import Iterator, Mapping
from typing import Literal

from torchx.specs import NULL_RESOURCE, AppDef, Resource, RetryPolicy, Role, macros

from ultrascale import catalog
from ultrascale.documents import Json, JsonObject
from ultrascale.errors import CatalogError
from ultrascale.frozen import Frozen
from ultrascale.plan.jobs.command import RENDEZVOUS_PORT, script_words
from ultrascale_torchx import foreign_scheduler
from ultrascale_torchx.errors import AppError
from ultrascale_torchx.resources import whole_node

METADATA = "ultrascale"
"""Key of a role's metadata that holds the description of its job."""

ROLE = "worker"
_OWN_PROGRAMS = ("ultrascale_bert.", "ultrascale_training.")
_BF16 = "--bf16"
# Stochastic rounding: otherwise a model cast to bf16 would lose small updates.
# Source: https://awsdocs-neuron.readthedocs-hosted.com/en/latest/neuron-runtime/nrt-configurable-parameters.html
_NEURON_BF16 = {"NEURON_RT_STOCHASTIC_ROUNDING_EN": "1"}
_ACCELERATORS = {"neuron": "Neuron devices", "nvidia": "NVIDIA GPUs"}


class Launch(Frozen):
    """Parameters of a component for a PyTorch job."""

    name: str  # Name of the job
    script: str  # Path of the script in the image, or the name of a module
    script_args: str  # Arguments of the script, as on a command line
    image: str  # ``:TAG`` of the run option `image_repo`, or what a job description has
    nnodes: int  # Nodes
    min_nnodes: int  # Fewest nodes with which it goes on; 0: all of them
    nproc_per_node: int  # Processes on a node; 0: one for each GPU or NeuronCore
    instance_type: str  # EC2 instance type of its nodes
    # Whether it trains in bf16: True or False, as a word. TorchX would take any other word for a
    # truth value as False.
    bf16: str
    max_retries: int  # Restarts of the whole job; negative: a default by the number of nodes
    rdzv_backend: str  # Rendezvous of its nodes; empty: as the cluster file says
    env: Mapping[str, str]  # Environment variables
    cacheset: str = ""  # Name under which its compiled graphs are kept; empty: none are kept
    precompile: str = "False"  # Whether it only compiles its graphs: True or False


def ddp(launch: Launch, kind: Literal["neuron", "nvidia"]) -> AppDef:
    """Return the app of a job in which torchrun starts a process for each accelerator.

    Args:
        launch: The job.
        kind: Kind of accelerators of the component.

    Raises:
        AppError: Parameters are wrong, or TorchX's own scheduler for Kubernetes would send the job;
            one line for each.
    """
    args, mistakes = _words(launch.script_args)
    resource, wrong = _resource(launch.instance_type, kind)
    mistakes += [*wrong, *_mistakes(launch, kind), *foreign_scheduler.mistakes()]
    if mistakes:
        raise AppError(mistakes)
    env = dict(launch.env)
    if _is_true(launch.bf16) and _is_own(launch.script):
        args = [*args, *([] if _BF16 in args else [_BF16])]
    elif _is_true(launch.bf16):
        env = {**_NEURON_BF16, **env}
    role = Role(
        name=ROLE,
        image=launch.image,
        entrypoint="bash",
        args=["-c", _local_command(launch, args)],
        env=env,
        num_replicas=launch.nnodes,
        min_replicas=launch.min_nnodes or None,
        max_retries=max(launch.max_retries, 0),
        retry_policy=RetryPolicy.APPLICATION,
        resource=resource,
        port_map={"c10d": RENDEZVOUS_PORT},
        metadata={
            METADATA: {
                "job": _description(launch, args),
                "precompile": _is_true(launch.precompile),
            },
        },
    )
    return AppDef(name=launch.name, roles=[role])


def _words(script_args: str) -> tuple[list[str], list[str]]:
    """Return the words of a command line with backslashes at line ends, and its mistakes."""
    try:
        return shlex.split(re.sub(r"\\\r?\n", " ", script_args)), []
    except ValueError as error:
        return [], [f"script_args: {str(error).lower()}, got {script_args!r}; close it"]


def _mistakes(launch: Launch, kind: str) -> Iterator[str]:
    for key, word in (("bf16", launch.bf16), ("precompile", launch.precompile)):
        if word.lower() not in ("true", "false"):
            yield f"{key}: neither True nor False, got {word!r}; write one of them"
    if _is_true(launch.bf16) and kind == "nvidia" and not _is_own(launch.script):
        yield "bf16: only programs of ours take it; use --script_args"
    if launch.nnodes < 1:
        yield f"nnodes: less than 1, got {launch.nnodes}; ask for 1 or more"


def _is_true(word: str) -> bool:
    return word.lower() == "true"


def _is_own(script: str) -> bool:
    return script.startswith(_OWN_PROGRAMS)


def _resource(name: str, kind: str) -> tuple[Resource, list[str]]:
    """Return the resources of a whole node of an instance type, and the type's mistakes."""
    try:
        found = catalog.lookup(name).accelerator
        if found is not None and found.kind == kind:
            return whole_node(name), []
    except CatalogError as error:
        return NULL_RESOURCE, [f"instance_type: {error}"]
    wrong = f"a type without {_ACCELERATORS[kind]}, got {name!r}"
    return NULL_RESOURCE, [f"instance_type: {wrong}; use the type of one of your pools"]


def _description(launch: Launch, args: list[str]) -> JsonObject:
    job: dict[str, Json] = {
        "nodes": launch.nnodes,
        "role": ROLE,
        "script": launch.script,
        "args": args,
    }
    if launch.min_nnodes:
        job["min_nodes"] = launch.min_nnodes
    if launch.nproc_per_node:
        job["processes_per_node"] = launch.nproc_per_node
    if launch.rdzv_backend:
        job["rendezvous"] = launch.rdzv_backend
    if launch.max_retries >= 0:
        job["restarts"] = {"job": launch.max_retries}
    if launch.cacheset:
        job["compile_cache"] = {"model": launch.cacheset}
    return job


def _local_command(launch: Launch, args: list[str]) -> str:
    """Return torchrun's command with macros for TorchX's own schedulers."""
    nodes = f"{launch.min_nnodes}:{launch.nnodes}" if launch.min_nnodes else str(launch.nnodes)
    words = [f"--nnodes={nodes}", f"--nproc-per-node={launch.nproc_per_node or 'auto'}"]
    words += [*script_words(launch.script), *args]
    escaped = shlex.join(words).replace("$", "$$")
    meeting = "--standalone"
    if launch.nnodes > 1:
        host = f"$${{{macros.rank0_env}:=localhost}}:{RENDEZVOUS_PORT}"
        meeting = f"--rdzv-backend=c10d --rdzv-endpoint={host} --rdzv-id={macros.app_id}"
    return f"exec torchrun {meeting} {escaped}"
