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

from ultrascale.catalog.tables import Row, read_rows
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


class Variable(Row, frozen=True, kw_only=True):
    """An environment variable that every job of a runtime gets."""

    runtime: Runtime
    """Its runtime."""
    name: str
    """Its name."""
    value: str
    """Its value."""
    why: str
    """Its purpose."""
    source: str
    """Page with its documentation."""


def _variables() -> Mapping[Runtime, Mapping[str, Variable]]:
    by_runtime: dict[Runtime, dict[str, Variable]] = {}
    for row in read_rows("runtime_variables.csv", Variable):
        by_runtime.setdefault(row.runtime, {})[row.name] = row
    return MappingProxyType(by_runtime)


VARIABLES = _variables()
"""Variables of jobs by runtime and name."""


class Refusal(Frozen):
    """Reason why a job may not set a variable."""

    wrong: str  # The mistake, in words
    todo: str  # Remedy


class RefusedVariable(Row, frozen=True, kw_only=True):
    """Variables that no job may set."""

    pattern: str
    """Regular expression of their names."""
    wrong: str
    """The mistake, in words."""
    todo: str
    """Remedy."""
    allowable: bool = False
    """Whether a job may set them by naming them in ``allow_env``."""


_LEAVE = "leave it out"
_ALLOW = "or name it in allow_env"
REFUSED = read_rows("refused_variables.csv", RefusedVariable)
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
    refused = next((row for row in REFUSED if re.fullmatch(row.pattern, name)), None)
    return None if refused is None else Refusal(wrong=refused.wrong, todo=refused.todo)


def hides_devices(name: str, value: str) -> bool:
    """Return whether ``value``, meant as all GPUs, hides all of them in the variable ``name``."""
    return name == _VISIBLE_DEVICES and value.strip().lower() == _NO_DEVICES


def bypasses_efa(name: str, value: str) -> bool:
    """Return whether the variable ``name`` makes pods leave their EFA interfaces idle."""
    return any(
        name == variable and re.fullmatch(pattern, value.strip()) is not None
        for variable, pattern in BYPASSES_EFA
    )
