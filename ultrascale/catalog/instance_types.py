"""EC2 instance types, each joined from the tables with facts about it.

Each table has one row a type: `instances.csv` (hardware), `instance_sources.csv` (the source of
each hardware cell) and `offers.csv` (where and how the type is sold, and what launches it).
An empty cell means that no source states the fact; `none` is a value that a source states.
"""

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import ClassVar, Generic, Literal, Self, TypeVar, overload

from ultrascale.catalog._near import did_you_mean
from ultrascale.catalog.tables import FOLDER, Source, read_table, sources, sources_of_cell
from ultrascale.errors import CatalogError, UnknownFactError
from ultrascale.frozen import Frozen

# --- Typed attributes for the cells of a table, which raise where no source states a value --------


T = TypeVar("T")


class Fact(Generic[T]):
    """An attribute that returns its value when read, or raises an error if no source states it.

    The cell stays text until it is read, so that importing the catalog parses nothing.
    """

    def __init__(self, parse: Callable[[str], T], *, column: str | None = None) -> None:
        self._parse = parse
        self._column = column
        self._name = ""

    def __set_name__(self, owner: type["Entry"], name: str) -> None:
        self._name = name

    @property
    def column(self) -> str:
        """Column of the attribute."""
        return self._column or self._name

    @overload
    def __get__(self, entry: None, owner: type["Entry"]) -> Self: ...
    @overload
    def __get__(self, entry: "Entry", owner: type["Entry"]) -> T: ...
    def __get__(self, entry: "Entry | None", owner: type["Entry"]) -> Self | T:
        if entry is None:
            return self
        cell = entry.cells[self.column]
        if not cell:
            raise entry.unknown(self._name)
        return self._parse(cell)


class Entry(Frozen, kw_only=False, eq=False):
    """Row of an instance type in the tables, or the columns on its accelerators."""

    instance_type: str  # EC2 name of the type
    cells: Mapping[str, str]  # The row, by column

    @classmethod
    def facts(cls) -> tuple[str, ...]:
        """Return the names of all attributes that may be unknown."""
        return tuple(name for name, value in vars(cls).items() if isinstance(value, Fact))

    def knows(self, name: str) -> bool:
        """Return whether reading the attribute ``name`` gives a value."""
        return bool(self.cells[self._column(name)])

    def sources_of(self, name: str) -> tuple[Source, ...]:
        """Return the sources that agree on the attribute ``name``; empty if it is unknown."""
        return sources_of_cell(self.instance_type, self._column(name))

    def unknown(self, name: str) -> CatalogError:
        """Return the error for reading the unknown attribute ``name``."""
        text = f"{self.instance_type}: {name} is not known; no source states it"
        return UnknownFactError(text, entry=self.instance_type, fact=name)

    def _column(self, name: str) -> str:
        fact: object = vars(type(self)).get(name)
        if not isinstance(fact, Fact):
            raise AttributeError(f"{type(self).__name__} has no fact {name!r}")
        return fact.column

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other.instance_type == self.instance_type

    def __hash__(self) -> int:
        return hash(self.instance_type)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.instance_type!r})"


Architecture = Literal["amd64", "arm64"]
AcceleratorKind = Literal["nvidia", "neuron"]
ResourceName = Literal["nvidia.com/gpu", "aws.amazon.com/neuron"]
Hypervisor = Literal["nitro", "none"]
AmiType = Literal[
    "AL2023_x86_64_STANDARD",
    "AL2023_ARM_64_STANDARD",
    "AL2023_x86_64_NVIDIA",
    "AL2023_ARM_64_NVIDIA",
    "AL2023_x86_64_NEURON",
]

# Source: https://docs.aws.amazon.com/eks/latest/APIReference/API_Nodegroup.html
# EKS has no arm64 image for Neuron.
_AMI_TYPES: Mapping[tuple[Architecture, AcceleratorKind | None], AmiType] = MappingProxyType(
    {
        ("amd64", None): "AL2023_x86_64_STANDARD",
        ("arm64", None): "AL2023_ARM_64_STANDARD",
        ("amd64", "nvidia"): "AL2023_x86_64_NVIDIA",
        ("arm64", "nvidia"): "AL2023_ARM_64_NVIDIA",
        ("amd64", "neuron"): "AL2023_x86_64_NEURON",
    }
)
_AMI_TYPE_SOURCE = "eks-ami-types"

# Source: https://github.com/NVIDIA/k8s-device-plugin and
# https://awsdocs-neuron.readthedocs-hosted.com/en/latest/containers/kubernetes-getting-started.html
_RESOURCE_NAMES: Mapping[AcceleratorKind, ResourceName] = MappingProxyType(
    {"nvidia": "nvidia.com/gpu", "neuron": "aws.amazon.com/neuron"}
)

# Source: https://docs.aws.amazon.com/ec2/latest/instancetypes/instance-type-names.html
_SERIES = re.compile("[a-z]+")
# Prefixes of the names of the series.
_TRAINING_SERIES = ("p", "trn")

_ARCHITECTURES: Mapping[str, Architecture] = {"amd64": "amd64", "arm64": "arm64"}
_KINDS: Mapping[str, AcceleratorKind] = {"nvidia": "nvidia", "neuron": "neuron"}
_HYPERVISORS: Mapping[str, Hypervisor] = {"nitro": "nitro", "none": "none"}
_YES_NO: Mapping[str, bool] = {"yes": True, "no": False}


class NvmeDisks(Frozen):
    """The local NVMe disks of an instance; ``count`` is 0 without disks."""

    count: int  # Number of disks
    gb_each: int  # Size of each, in GB


class UltraServer(Frozen):
    """An UltraServer that may contain instances of a type."""

    name: str  # Its EC2 name, such as ``u-p6e-gb200x72``
    instances: int  # Number of instances it consists of


def _cards(cell: str) -> tuple[int, ...]:
    if cell == "none":
        return ()
    if "-" in cell:
        first, last = cell.split("-")
        return tuple(range(int(first), int(last) + 1))
    return tuple(int(card) for card in cell.split())


def _disks(cell: str) -> NvmeDisks:
    if cell == "none":
        return NvmeDisks(count=0, gb_each=0)
    count, gb_each = cell.split("x")
    return NvmeDisks(count=int(count), gb_each=int(gb_each))


def _ultraservers(cell: str) -> tuple[UltraServer, ...]:
    if cell == "none":
        return ()
    pairs = (word.split("=") for word in cell.split())
    return tuple(UltraServer(name=name, instances=int(count)) for name, count in pairs)


def _names(cell: str) -> frozenset[str]:
    return frozenset() if cell == "none" else frozenset(cell.split())


def _nitro_version(cell: str) -> int:
    return int(cell.removeprefix("v"))


class Accelerator(Entry, kw_only=False, eq=False):
    """The accelerators of an instance type. Reading a fact without a source raises CatalogError."""

    # ``nvidia`` or ``neuron``
    kind = Fact[AcceleratorKind](_KINDS.__getitem__, column="accelerator_kind")
    name = Fact(str, column="accelerator_name")  # Name of the model
    # Number of GPUs or Neuron chips. Unknown for an instance with a part of a GPU, as such a node
    # offers Kubernetes no whole GPU
    count = Fact(int, column="accelerator_count")
    # Memory of all of them together, in MiB
    memory_mib_total = Fact(int, column="accelerator_memory_mib_total")
    neuron_cores_physical = Fact(int)  # NeuronCores of the instance; Neuron only, like the next two
    neuron_lnc_default = Fact(int)  # Physical cores in one logical core by default
    neuron_cores_logical = Fact(int)  # Logical NeuronCores with that default

    @property
    def resource_name(self) -> ResourceName:
        """Extended resource by which pods request the accelerators."""
        return _RESOURCE_NAMES[self.kind]

    def unknown(self, name: str) -> CatalogError:
        """Return the error for reading the unknown attribute ``name``."""
        if name.startswith("neuron_") and self.kind != "neuron":
            text = f"{self.instance_type}: only neuron accelerators have {name}, got {self.kind!r}"
            return CatalogError(text)
        return super().unknown(f"accelerator.{name}")


class InstanceType(Entry, kw_only=False, eq=False):
    """An EC2 instance type. Reading a fact without a source raises CatalogError."""

    # Whether the EC2 SDK knows the type; the others are preview names
    announced = Fact(_YES_NO.__getitem__)
    vcpus = Fact(int)  # Default number of vCPUs
    memory_mib = Fact(int)  # Memory, in MiB
    # Architecture in Kubernetes' words
    architecture = Fact[Architecture](_ARCHITECTURES.__getitem__)
    network_gbps = Fact(float)  # Peak bandwidth, in Gbps
    network_baseline_gbps = Fact(float)  # Sustained bandwidth, in Gbps
    network_cards = Fact(int)  # Number of network cards
    # Indexes of the cards that take an EFA-only interface; empty without EFA
    efa_cards = Fact(_cards)
    max_efa_interfaces = Fact(int)  # Most EFA and EFA-only interfaces it takes
    enis_total = Fact(int)  # Most network interfaces on all cards together
    # Most network interfaces on card 0, the only one that serves pods by default
    enis_card0 = Fact(int)
    ipv4_per_eni = Fact(int)  # IPv4 addresses that one interface holds, its own included
    hypervisor = Fact[Hypervisor](_HYPERVISORS.__getitem__)  # ``nitro``, or ``none`` for bare metal
    prefix_delegation = Fact(_YES_NO.__getitem__)  # Whether its interfaces take /28 prefixes
    max_pods_secondary_ip = Fact(int)  # Pods that get an address without prefixes and without EFA
    # Whether it takes branch interfaces (security groups for pods)
    trunk_eni = Fact(_YES_NO.__getitem__)
    branch_enis = Fact(int)  # Most branch interfaces
    nvme_disks = Fact(_disks)  # Local NVMe disks
    nvme_total_gb = Fact(int)  # Size of all of them together, in GB; 0 without any
    placement_group = Fact(_YES_NO.__getitem__)  # Whether it may be in a cluster placement group
    efa_only = Fact(_YES_NO.__getitem__)  # Whether it takes interfaces of type ``efa-only``
    nitro_version = Fact(_nitro_version)  # Version of its Nitro card
    efa_rdma_read = Fact(_YES_NO.__getitem__)  # Whether EFA reads the memory of a peer
    efa_rdma_write = Fact(_YES_NO.__getitem__)  # Whether EFA writes the memory of a peer
    # UltraServers that have it; empty for a type that is sold alone
    ultraserver = Fact(_ultraservers)
    # Whether Capacity Blocks are sold of it, alone or as an UltraServer
    capacity_block = Fact(_YES_NO.__getitem__)
    capacity_block_quota_code = Fact(str)  # Service quota on concurrent Capacity Blocks
    # Service quota on vCPUs of On-Demand instances and reservations
    on_demand_quota_code = Fact(str)
    spot_quota_code = Fact(str)  # Service quota on vCPUs of Spot instances
    quota_vcpus = Fact(int)  # vCPUs that one instance takes of the two quotas before
    network_layers = Fact(int)  # Layers of EC2's network that the labels of a node name
    # False for types that have EFA and cannot reach FSx for Lustre over it
    efa_lustre_client = Fact(_YES_NO.__getitem__)
    ec2_regions = Fact(_names)  # Regions in which EC2 has an On-Demand price for it
    hyperpod = Fact(_YES_NO.__getitem__)  # Whether HyperPod has it in some Region
    hyperpod_regions = Fact(_names)  # Regions in which HyperPod has it
    # Regions in which the user guide lists Capacity Blocks of it, also in their Local Zones. The
    # list grows: use it for warnings, never to refuse
    capacity_block_regions = Fact(_names)
    training_plan = Fact(_YES_NO.__getitem__)  # Whether SageMaker training plans are sold for it
    # Whether Karpenter and EKS Auto Mode can launch it at all
    karpenter = Fact(_YES_NO.__getitem__)
    # Whether EKS Auto Mode launches it; stated only for accelerated types
    auto_mode = Fact(_YES_NO.__getitem__)

    # Derived facts, and the facts from which they follow.
    _DERIVED: ClassVar[Mapping[str, str]] = MappingProxyType({"ami_type": "architecture"})

    @property
    def family(self) -> str:
        """Part of the name before the dot, such as ``p5en``."""
        return self.instance_type.partition(".")[0]

    @property
    def for_training(self) -> bool:
        """Whether the type belongs to a series for training: P (GPUs) or Trn (Trainium).

        Source: https://docs.aws.amazon.com/ec2/latest/instancetypes/instance-type-names.html
        """
        return self.family.startswith(_TRAINING_SERIES)

    @property
    def lacks_training_plans(self) -> bool:
        """Whether HyperPod has it, and no training plan is sold for it."""
        return self.hyperpod and not self.training_plan

    @property
    def accelerator(self) -> Accelerator | None:
        """Accelerators of the type; None without any."""
        if self.cells["accelerator_kind"] == "none":
            return None
        return Accelerator(self.instance_type, self.cells)

    @property
    def ami_type(self) -> AmiType:
        """The ``amiType`` of EKS managed node groups: Amazon Linux 2023 with the right drivers."""
        kind = self.accelerator.kind if self.accelerator else None
        try:
            return _AMI_TYPES[self.architecture, kind]
        except KeyError:
            message = f"{self.instance_type}: EKS has no AMI for {self.architecture} with {kind}"
            raise CatalogError(message) from None

    @property
    def notes(self) -> str:
        """Remarks on the type; empty for most."""
        return self.cells["notes"]

    def knows(self, name: str) -> bool:
        """Return whether reading the attribute ``name`` gives a value."""
        return super().knows(self._DERIVED.get(name, name))

    def sources_of(self, name: str) -> tuple[Source, ...]:
        """Return the sources that agree on the attribute ``name``; empty if it is unknown."""
        key = _AMI_TYPE_SOURCE if name == "ami_type" else _OFFER_SOURCES.get(name)
        if key is not None:
            return (sources()[key],) if self.knows(name) else ()
        return super().sources_of(name)


# One source states a whole column of `offers.csv`.
_OFFER_SOURCES: Mapping[str, str] = MappingProxyType(
    {
        "ec2_regions": "price-list",
        "hyperpod": "botocore-clusters",
        "hyperpod_regions": "cfn-hyperpod",
        "capacity_block_regions": "UG-capacity-blocks",
        "training_plan": "botocore-plans",
        "karpenter": "eks-ultraservers",
        "auto_mode": "eks-auto-mode",
    }
)


def read_instance_types(folder: Path = FOLDER) -> dict[str, InstanceType]:
    """Return each type of the tables in ``folder``, by its EC2 name."""
    offers = {row["instance_type"]: row for row in read_table("offers.csv", folder)}
    return {
        name: InstanceType(
            name,
            MappingProxyType({**row, **offers[name]}),
        )
        for row in read_table("instances.csv", folder)
        for name in [row["instance_type"]]
    }


_TYPES = read_instance_types()
INSTANCE_TYPES: Mapping[str, InstanceType] = MappingProxyType(_TYPES)
"""Every instance type of the catalog, by its EC2 name."""


def suggest(instance_type: str) -> str:
    """Return the remedy for an unknown type: the nearest type of its series, or how to list types.

    A type of another series is no suggestion: `t3.large` is no misspelt `trn3.48xlarge`.
    """
    letters = _series(instance_type.lower().removeprefix("ml."))
    of_series = (name for name in INSTANCE_TYPES if _series(name) == letters)
    return did_you_mean(instance_type, of_series) or "`ultrascale types` lists the known ones"


def _series(instance_type: str) -> str:
    letters = _SERIES.match(instance_type)
    return letters.group() if letters else ""


def lookup(instance_type: str) -> InstanceType:
    """Return the catalog entry of an EC2 instance type.

    Args:
        instance_type: Its EC2 name, without SageMaker's ``ml.``.

    Raises:
        CatalogError: The catalog has no such type; the message names the nearest one.
    """
    try:
        return INSTANCE_TYPES[instance_type]
    except KeyError:
        message = f"unknown instance type {instance_type!r}; {suggest(instance_type)}"
        raise CatalogError(message) from None
