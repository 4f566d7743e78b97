"""Environment variables of the libraries in a job's container: set by default, or refused.

Only variables are set that a job needs and that its libraries cannot derive themselves: with
libfabric 1.18 and aws-ofi-nccl 1.7 or newer, NCCL over EFA needs no variable at all.

Source: https://github.com/aws/aws-ofi-nccl/blob/master/doc/efa-env-var.md
"""

import re
from collections.abc import Mapping
from itertools import takewhile
from types import MappingProxyType
from typing import Literal

from ultrascale.frozen import Frozen

Runtime = Literal[
    "any",
    "torch",
    "neuron",
    "neuron-efa",
    "neuron-vllm",
    "nvidia",
    "nvidia-torch",
    "nvidia-allocator",
    "efa-small-pages",
    "no-gpu",
]


COMPILED_GRAPHS = "NEURON_COMPILED_ARTIFACTS"
"""Variable with the folder where vLLM on Neuron reads compiled graphs, or else writes them."""


class Variable(Frozen):
    """An environment variable that every job of a runtime gets."""

    value: str  # Its value
    why: str  # Its purpose
    source: str  # Page with its documentation


_NEURON = (
    "https://awsdocs-neuron.readthedocs-hosted.com/en/latest/neuron-runtime/"
    "nrt-configurable-parameters.html"
)
_NEURON_EFA = (
    "https://awsdocs-neuron.readthedocs-hosted.com/en/latest/setup/setup-troubleshooting.html"
)
_NEURON_VLLM = (
    "https://awsdocs-neuron.readthedocs-hosted.com/en/latest/libraries/nxd-inference/"
    "developer_guides/vllm-user-guide-v1.html"
)
_VLLM_NEURON = (
    "https://github.com/aws-neuron/aws-neuron-sdk/blob/81ce03ae/vllm-neuron/docs/tutorials/"
    "tutorial-llama3-70b.md"
)
_NCCL = "https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html"
# TorchTitan's own figure: `Comm.trace_buf_size`.
_TORCHTITAN = "https://github.com/pytorch/torchtitan/blob/v0.3.0/torchtitan/config/configs.py"
_OFI_NCCL = "https://github.com/aws/aws-ofi-nccl/blob/master/doc/efa-env-var.md"
_TORCH_NCCL = "https://docs.pytorch.org/docs/stable/torch_nccl_environment_variables.html"

VARIABLES: Mapping[Runtime, Mapping[str, Variable]] = MappingProxyType(
    {
        "any": {
            # vLLM sends the model's architecture and the devices to its makers every ten minutes,
            # and huggingface_hub sends its users' calls.
            "DO_NOT_TRACK": Variable(
                value="1",
                why="libraries report their use to nobody",
                source="https://docs.vllm.ai/en/latest/usage/usage_stats/",
            ),
        },
        "torch": {
            # With a shared store the agents keep their first store, and restarted workers meet
            # at the addresses of their predecessors: the job hangs.
            "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": Variable(
                value="1",
                why="workers that are restarted on several nodes find each other",
                source="https://github.com/pytorch/pytorch/issues/135712",
            ),
            "PYTHONUNBUFFERED": Variable(
                value="1",
                why="what a worker prints is in the logs when it is killed",
                source="https://docs.python.org/3/using/cmdline.html#envvar-PYTHONUNBUFFERED",
            ),
        },
        "neuron": {
            "CCOM_SOCKET_IFNAME": Variable(
                value="eth0", why="collectives meet on the pod's own interface", source=_NEURON_EFA
            ),
            "NCCL_SOCKET_IFNAME": Variable(
                value="eth0",
                why="the library below them reads this one",
                source="https://github.com/ray-project/ray/issues/65070",
            ),
            "NEURON_RT_EXEC_TIMEOUT": Variable(
                value="600",
                why="the first steps, which load graphs, are no hang",
                source=_NEURON,
            ),
            "MALLOC_ARENA_MAX": Variable(
                value="64",
                why="the processes of a node leave each other host memory",
                source="https://github.com/aws-neuron/aws-neuron-samples",
            ),
        },
        "neuron-efa": {
            "FI_PROVIDER": Variable(
                value="efa", why="libfabric takes EFA and nothing else", source=_NEURON_EFA
            ),
            "FI_EFA_USE_DEVICE_RDMA": Variable(
                value="1", why="devices write to each other's memory", source=_NEURON_EFA
            ),
        },
        "neuron-vllm": {
            COMPILED_GRAPHS: Variable(
                value="/tmp/neuron-compiled-artifacts",
                why="graphs would be compiled into the folder of the model, which is read-only",
                source=_NEURON_VLLM,
            ),
            # AWS's pages have two variables for the same time.
            **dict.fromkeys(
                ("VLLM_NEURON_COMPILATION_TIMEOUT", "NEURON_LIBTORCH_COMPILATION_TIMEOUT"),
                Variable(
                    value="3600",
                    why="graphs of large models take longer than its 600 s",
                    source=_VLLM_NEURON,
                ),
            ),
            "VLLM_EXECUTE_MODEL_TIMEOUT_SECONDS": Variable(
                value="1200", why="first steps wait for their graphs", source=_VLLM_NEURON
            ),
        },
        "nvidia": {
            "NCCL_DEBUG": Variable(value="WARN", why="NCCL says what goes wrong", source=_NCCL),
            # EKS Pod Identity has a link-local interface, which reaches no other node.
            # Source: https://github.com/aws-samples/aws-do-eks/pull/54
            "NCCL_SOCKET_IFNAME": Variable(
                value="^lo,docker,veth,eni,pod-id-link0",
                why="NCCL meets on the pod's own interface",
                source=_NCCL,
            ),
        },
        "nvidia-torch": {
            # torchrun sets 1 for its workers by default.
            # Source: https://github.com/pytorch/pytorch/blob/v2.13.0/torch/distributed/elastic/
            #     agent/server/local_elastic_agent.py
            "TORCH_NCCL_ASYNC_ERROR_HANDLING": Variable(
                value="3",
                why="a process ends after a failed collective without waiting for NCCL to abort, "
                "which hangs while a peer is gone; torch's own default",
                source=_TORCH_NCCL,
            ),
            "TORCH_NCCL_DUMP_ON_TIMEOUT": Variable(
                value="1",
                why="a hang leaves a trace of who waited for whom; older releases do not by "
                "themselves",
                source=_TORCH_NCCL,
            ),
            # The default, 2000, is less than one step of a large model: each layer gathers and
            # reduces in each micro-batch. Each process would warn of the older name,
            # TORCH_NCCL_TRACE_BUFFER_SIZE.
            "TORCH_FR_BUFFER_SIZE": Variable(
                value="20000",
                why="the trace reaches back over the last steps",
                source=_TORCHTITAN,
            ),
        },
        # Not where vLLM runs: its own pool of memory does not work with it, and its releases before
        # May 2026 refuse to start. Nor where processes give each other tensors of a GPU: without
        # fabric handles torch takes them by pidfd_getfd, which needs SYS_PTRACE in a container.
        # Source: https://github.com/vllm-project/vllm/pull/40812,
        #     https://github.com/pytorch/pytorch/issues/165685
        "nvidia-allocator": {
            "PYTORCH_CUDA_ALLOC_CONF": Variable(
                value="expandable_segments:True",
                why="memory that is free in pieces can be used",
                source="https://docs.pytorch.org/docs/stable/notes/cuda.html",
            ),
        },
        "no-gpu": {
            # Images of CUDA say `all`: the runtime of containers then gives each GPU of the node to
            # a pod that asked for none, and another job's memory is gone.
            "NVIDIA_VISIBLE_DEVICES": Variable(
                value="void",
                why="a pod that asks for no GPU sees none of a node that others share",
                source="https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/"
                "docker-specialized.html",
            ),
        },
        "efa-small-pages": {
            # The provider takes its buffers from huge pages. A container that asks for none has a
            # limit of 0 of them, which ends it with SIGBUS at the first touch.
            # Source: https://docs.kernel.org/admin-guide/cgroup-v2.html#hugetlb,
            #     https://github.com/libhugetlbfs/libhugetlbfs/issues/61
            "FI_EFA_USE_HUGE_PAGE": Variable(
                value="0",
                why="EFA uses pages of 4 KiB where the pod has no huge pages, as on EKS Auto Mode",
                source=_OFI_NCCL,
            ),
        },
    }
)


class Refusal(Frozen):
    """Reason why a job may not set a variable."""

    wrong: str  # The mistake, in words
    todo: str  # Remedy


class RefusedVariable(Frozen):
    """Variables that no job may set."""

    pattern: str  # Regular expression of their names
    why: Refusal  # Reason and remedy
    allowable: bool = False  # Whether a job may set them by naming them in ``allow_env``


_LEAVE = "leave it out"
_GONE = "no longer read by the Neuron SDK"
_ALLOW = "or name it in allow_env"
REFUSED: tuple[RefusedVariable, ...] = (
    # Source: https://awsdocs-neuron.readthedocs-hosted.com/en/latest/release-notes/
    RefusedVariable(
        pattern="XLA_USE_BF16|XLA_DOWNCAST_BF16",
        why=Refusal(wrong=_GONE, todo="cast the model: --bf16"),
    ),
    RefusedVariable(
        pattern="NEURON_RT_ASYNC_EXEC_MAX_INFLIGHT_REQUESTS",
        why=Refusal(wrong=_GONE, todo=_LEAVE),
    ),
    RefusedVariable(
        pattern="RDMAV_.*",
        why=Refusal(
            wrong="EFA does not use this variable of verbs libraries, and breaks with it",
            todo=_LEAVE,
        ),
    ),
    RefusedVariable(
        pattern="NCCL_PROTO|NCCL_BUFFSIZE|NCCL_MIN_N?CHANNELS",
        why=Refusal(
            wrong="tuned by aws-ofi-nccl, which knows the instance type", todo=f"{_LEAVE}, {_ALLOW}"
        ),
        allowable=True,
    ),
    # The pod's own value would win over that of the device plugin.
    RefusedVariable(
        pattern="NVIDIA_VISIBLE_DEVICES",
        why=Refusal(
            wrong="set by Kubernetes to the GPUs that a pod asks for: it would see others' as well",
            todo=f"{_LEAVE}, and ask for GPUs in resources",
        ),
    ),
    # torchrun sets these for each process.
    RefusedVariable(
        pattern="RANK|LOCAL_RANK|WORLD_SIZE|MASTER_ADDR|MASTER_PORT|GROUP_RANK",
        why=Refusal(wrong="torchrun sets its own value in each process", todo=_LEAVE),
    ),
    RefusedVariable(
        pattern="FIRST_INDEX|VC_TASK_INDEX|JOB_COMPLETION_INDEX|POD_IP|POD_GROUP|JOBSET_UID|"
        "ATTEMPT|RANK_ZERO_HOST",
        why=Refusal(wrong="every pod gets a value of its own", todo="choose another name"),
    ),
    RefusedVariable(
        pattern="ULTRASCALE_(OUTPUT|BUCKET|NODE|POD|RESTART_BUDGET)",
        why=Refusal(wrong="set for every training job", todo="write output, or restarts.budget"),
    ),
    RefusedVariable(
        pattern="TORCH_DISABLE_SHARE_RDZV_TCP_STORE",
        why=Refusal(
            wrong="ultrascale sets it for every job: restarts hang without it", todo=_LEAVE
        ),
    ),
)
"""Variables that no job may set, with reason and remedy."""

# `FI_PROVIDER` is a list of providers, or after ^ a list of excluded providers.
# Source: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html,
#     https://ofiwg.github.io/libfabric/v2.1.0/man/fabric.7.html
BYPASSES_EFA: tuple[tuple[str, str], ...] = (
    ("FI_PROVIDER", r"(?i)((tcp|udp|sockets|net|shm|ofi_rxm|ofi_rxd)[,;]?)+|\^(.*,)?efa(,.*)?"),
    ("NCCL_NET", "(?i)socket|ib"),
    ("NCCL_NET_PLUGIN", "(?i)none"),
)
"""Variables and patterns of their values that send traffic over TCP despite EFA interfaces."""
BYPASSED = Refusal(
    wrong="leaves the EFA interfaces of the pods idle: traffic would go over TCP",
    todo=_LEAVE,
)

# Source: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html,
#     https://github.com/ofiwg/libfabric/blob/v2.1.0/man/fi_efa.7.md
_SLOWER: tuple[tuple[str, str, str], ...] = (
    ("NCCL_P2P_DISABLE", "[1-9].*", "GPUs of a node would exchange through its memory"),
    ("NCCL_P2P_LEVEL", "(?i)loc|0", "GPUs of a node would exchange through its memory"),
    (
        "FI_EFA_USE_DEVICE_RDMA",
        "(?i)0|n.*|f.*|off",
        "devices of nodes would exchange through the nodes' memory",
    ),
)

# CUDA takes indexes and UUIDs up to the first word that is neither.
# Source: https://docs.nvidia.com/cuda/cuda-programming-guide/05-appendices/environment-variables.html
_VISIBLE_DEVICES, _NO_DEVICES = "CUDA_VISIBLE_DEVICES", "all"
_DEVICE = re.compile(r"[0-9]+|(?:GPU|MIG)-.+")
_SPAN = re.compile(r"([0-9]+)(?:-([0-9]+))?")
_INTERFACES = "NCCL_SOCKET_IFNAME"
_POD_IDENTITY_LINK = "pod-id-link0"
# The VPC CNI gives a pod this interface, beside `lo`.
_POD_INTERFACE = "eth0"
_INTERFACE_LISTS = (_INTERFACES, "CCOM_SOCKET_IFNAME", "GLOO_SOCKET_IFNAME")
# A shell would put another variable's value here; Kubernetes' own form, `$(NAME)`, is escaped.
_REFERENCE = re.compile(r"\$(?:[A-Z_][A-Z0-9_]+|\{[A-Z_][A-Z0-9_]+\}|\([A-Z_][A-Z0-9_]+\))")


# The value of a variable in a Secret cannot be checked before it breaks a job.
_SETTINGS = re.compile(r"(NCCL|OFI_NCCL|FI|NEURON|CUDA|CCOM|RDMAV|TORCH_NCCL|TORCH_ELASTIC)_.*")
_NO_SECRET = Refusal(
    wrong="this setting of NCCL, EFA, torch or a device's runtime cannot be checked in a secret",
    todo="write it under env",
)


def why_not(name: str, value: str) -> Refusal | None:
    """Return why a job may not set the variable ``name`` to ``value``; None if it may."""
    if (why := _why_never(name)) is not None:
        return why
    if hides_devices(name, value):
        wrong = "by that word CUDA sees no device, and the job would run on CPUs"
        return Refusal(wrong=wrong, todo="leave it out: a container sees the GPUs it asks for")
    if (reference := _REFERENCE.search(value)) is not None:
        wrong = f"nobody expands {reference[0]}: the program would get it as it stands"
        todo = f"write the whole value, set it in the image, {_ALLOW}"
        return Refusal(wrong=wrong, todo=todo)
    if (slower := _why_slower(name, value)) is not None:
        wrong = f"{slower}: slower, beside NVLink and RDMA many times"
        return Refusal(wrong=wrong, todo=f"{_LEAVE}, {_ALLOW}")
    if name in _INTERFACE_LISTS and not _allows_the_pod(name, value):
        wrong = f"leaves no interface of a pod, which has {_POD_INTERFACE} alone"
        return Refusal(wrong=wrong, todo=f"leave it out, or write {_POD_INTERFACE}, {_ALLOW}")
    if name == _INTERFACES and value.startswith("^") and _POD_IDENTITY_LINK not in value.split(","):
        wrong = f"lets NCCL use {_POD_IDENTITY_LINK}, where it hangs across nodes"
        todo = f"write {VARIABLES['nvidia'][_INTERFACES].value}, {_ALLOW}"
        return Refusal(wrong=wrong, todo=todo)
    return None


def is_allowable(name: str, value: str = "") -> bool:
    """Return whether a job may set a variable to ``value`` after naming it in ``allow_env``."""
    by_value = {*_INTERFACE_LISTS, *(variable for variable, _ in BYPASSES_EFA)}
    refers = _REFERENCE.search(value) is not None and _why_never(name) is None
    return (
        name in by_value
        or refers
        or _why_slower(name, value) is not None
        or any(refused.allowable and re.fullmatch(refused.pattern, name) for refused in REFUSED)
    )


def _allows_the_pod(name: str, value: str) -> bool:
    """Return whether a list of interfaces admits that of a pod.

    NCCL's are beginnings of names, whole names after ``=``, and excluded ones after ``^``; gloo's
    are whole names.

    Sources:
        https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html#nccl-socket-ifname
        https://docs.pytorch.org/docs/stable/distributed.html#choosing-the-network-interface-to-use
    """
    excludes = value.startswith("^")
    text = value.removeprefix("^")
    whole = text.startswith("=") or name.startswith("GLOO")
    words = [word.strip() for word in text.removeprefix("=").split(",")]
    named = any(
        word == _POD_INTERFACE if whole else _POD_INTERFACE.startswith(word)
        for word in words
        if word
    )
    return named is not excludes


def visible_devices(name: str, value: str) -> int | None:
    """Return the number of devices that a list of them leaves to a pod; None if it is no list."""
    words = [word.strip() for word in value.split(",")]
    if name == _VISIBLE_DEVICES:
        return len([*takewhile(_DEVICE.fullmatch, words)])
    if name == "NEURON_RT_NUM_CORES" and value.strip().isdigit():
        return int(value)
    spans = [_SPAN.fullmatch(word) for word in words]
    if name != "NEURON_RT_VISIBLE_CORES" or not all(spans):
        return None
    return sum(int(span[2] or span[1]) - int(span[1]) + 1 for span in spans if span)


def why_no_secret(name: str) -> Refusal | None:
    """Return why a job may not take the variable ``name`` from a Secret; None if it may."""
    if (why := _why_never(name)) is not None:
        return why
    ours = any(name in variables for variables in VARIABLES.values())
    return _NO_SECRET if ours or _SETTINGS.fullmatch(name) else None


def _why_slower(name: str, value: str) -> str | None:
    """Return how ``value`` of the variable ``name`` makes devices slow; None if it does not."""
    wrongs = (
        wrong
        for variable, pattern, wrong in _SLOWER
        if name == variable and re.fullmatch(pattern, value.strip())
    )
    return next(wrongs, None)


def _why_never(name: str) -> Refusal | None:
    """Return why no job may set the variable ``name`` to any value."""
    return next((each.why for each in REFUSED if re.fullmatch(each.pattern, name)), None)


def hides_devices(name: str, value: str) -> bool:
    """Return whether ``value``, meant as all GPUs, hides all of them in the variable ``name``."""
    return name == _VISIBLE_DEVICES and value.strip().lower() == _NO_DEVICES


def bypasses_efa(name: str, value: str) -> bool:
    """Return whether the variable ``name`` makes pods leave their EFA interfaces idle."""
    return any(
        name == variable and re.fullmatch(pattern, value.strip()) is not None
        for variable, pattern in BYPASSES_EFA
    )
