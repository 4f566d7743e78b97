"""`jobs`: templates from which jobs are launched."""

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field

from ultrascale.config._base import LabelKey, LabelValue, Model, Quantity


class Toleration(Model):
    """A taint that a job's pods bear, in Kubernetes' own words."""

    key: LabelKey
    operator: Literal["Equal", "Exists"] = "Equal"
    value: LabelValue | None = None
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] | None = None


class Resources(Model):
    """What each pod of a job asks for.

    Attributes:
        gpu: NVIDIA GPUs.
        neuron: Neuron devices.
        efa: EFA interfaces.
        cpu: Kubernetes quantity of CPU.
        memory: Kubernetes quantity of memory.
    """

    gpu: Annotated[int, Field(ge=1)] | None = None
    neuron: Annotated[int, Field(ge=1)] | None = None
    efa: Annotated[int, Field(ge=1)] | None = None
    cpu: Quantity | None = None
    memory: Quantity | None = None


class Job(Model):
    """A job template.

    Attributes:
        priority: One of ``scheduling.priority_classes``.
        node_selector: Labels that its nodes must carry.
        prefer: Values of the label `node-type`, best first; the whole job lands on one of them.
        team: Team of task governance that it belongs to.
        tolerations: Taints that its pods bear.
        resources: What each pod asks for.
    """

    priority: str | None = None
    node_selector: Mapping[LabelKey, LabelValue] = Field(default_factory=dict[str, str])
    prefer: tuple[str, ...] = ()
    team: str | None = None
    tolerations: tuple[Toleration, ...] = ()
    resources: Resources = Resources()
