"""Types of Kubernetes objects with the fields that functions read, only for the type check.

No function imports this module at run time.

Source: https://kubernetes.io/docs/reference/kubernetes-api/
"""

from collections.abc import Mapping
from typing import NotRequired, TypedDict


class Owner(TypedDict):
    """An owner reference."""

    kind: str
    name: str


class Metadata(TypedDict):
    """Metadata of an object."""

    name: str
    uid: str
    namespace: NotRequired[str]
    labels: NotRequired[Mapping[str, str]]
    annotations: NotRequired[Mapping[str, str]]
    deletionTimestamp: NotRequired[str]
    ownerReferences: NotRequired[list[Owner]]


class Resources(TypedDict, total=False):
    """Resources of a container."""

    limits: Mapping[str, str]


class Port(TypedDict):
    """A port of a container."""

    containerPort: int
    name: NotRequired[str]


class Container(TypedDict):
    """A container of a pod."""

    resources: NotRequired[Resources]
    ports: NotRequired[list[Port]]


class Expression(TypedDict):
    """An expression of a node selector term."""

    key: str
    operator: str
    values: list[str]


class SelectorTerm(TypedDict, total=False):
    """A term of a node selector."""

    matchExpressions: list[Expression]


class NodeSelector(TypedDict, total=False):
    """A node selector."""

    nodeSelectorTerms: list[SelectorTerm]


class NodeAffinity(TypedDict, total=False):
    """A pod's affinity to nodes."""

    requiredDuringSchedulingIgnoredDuringExecution: NodeSelector


class Affinity(TypedDict, total=False):
    """A pod's affinity."""

    nodeAffinity: NodeAffinity


class PodTemplate(TypedDict, total=False):
    """Template of pods."""

    metadata: "Metadata"
    spec: "Spec"


class PodSet(TypedDict, total=False):
    """Pods of one kind, of a Workload."""

    count: int
    template: PodTemplate


class NodeTaint(TypedDict):
    """A taint of a node."""

    key: str


class Spec(TypedDict, total=False):
    """Spec of a node, pod, NodePool, Workload, PodGroup or HyperNode."""

    unschedulable: bool
    nodeName: str
    nodeSelector: Mapping[str, str]
    affinity: Affinity
    containers: list[Container]
    initContainers: list[Container]
    replicas: int
    queue: str
    queueName: str
    members: list[Mapping[str, object]]
    podSets: list[PodSet]
    active: bool
    minResources: Mapping[str, str]
    providerID: str
    taints: list[NodeTaint]


class Condition(TypedDict):
    """A condition of a status."""

    type: str
    status: str
    reason: NotRequired[str]


class Status(TypedDict, total=False):
    """Status of a node, pod, NodePool, NodeClaim, Workload or PodGroup."""

    nodes: int
    providerID: str
    phase: str
    podIP: str
    startTime: str
    conditions: list[Condition]
    allocatable: Mapping[str, str]


class Object(TypedDict):
    """A node, pod, NodePool, Workload, PodGroup or HyperNode."""

    metadata: Metadata
    spec: Spec
    status: NotRequired[Status]


ListMetadata = TypedDict("ListMetadata", {"continue": NotRequired[str]})
"""Metadata of a page of a list."""


class Page(TypedDict):
    """A page of a list."""

    items: list[Object]
    metadata: ListMetadata


class Reference(TypedDict):
    """The object that an event is about."""

    apiVersion: str
    kind: str
    name: str
    uid: str
    namespace: NotRequired[str]


class EventMetadata(TypedDict):
    """Metadata of an event."""

    name: str
    namespace: str


class EventSource(TypedDict):
    """The component that reports an event."""

    component: str


class Event(TypedDict):
    """An event."""

    apiVersion: str
    kind: str
    metadata: EventMetadata
    involvedObject: Reference
    type: str
    reason: str
    message: str
    source: EventSource
    firstTimestamp: str
    lastTimestamp: str
    count: int
