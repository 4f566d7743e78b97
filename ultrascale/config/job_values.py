"""The values of the Helm chart `training-job`, as types."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Literal

import pydantic
import yaml
from msgspec.structs import replace
from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field
from pydantic.alias_generators import to_camel

from ultrascale.config._base import Model, Seen, read_as
from ultrascale.config._document import Document, KeyPath, Origin, dump, is_mapping, parse_yaml
from ultrascale.config._document import read as read_yaml
from ultrascale.config._errors import Mistake
from ultrascale.config._form import form_mistakes
from ultrascale.config._values import LabelKey, LabelValue, WrongValueError, matching
from ultrascale.config.jobs import Toleration, Variable
from ultrascale.config.pools import NODE_TYPE
from ultrascale.errors import ConfigError
from ultrascale.frozen import Frozen

# The chart's own: a file of values is laid over them.
_DEFAULTS = Path(__file__).with_name("job_values.yaml")
_TEMPLATES = "jobTemplates"


def _digits(value: object) -> object:
    """Take text for a number, as Kubernetes' quantities are either."""
    return int(value) if isinstance(value, str) and value.isascii() and value.isdigit() else value


def _text(value: object) -> object:
    is_number = isinstance(value, int) and not isinstance(value, bool)
    return str(value) if is_number else value


def _names_nodes(labels: Mapping[str, str]) -> Mapping[str, str]:
    if NODE_TYPE not in labels:
        raise WrongValueError(f"labels without {NODE_TYPE}", f"add {NODE_TYPE}, which names a pool")
    return labels


Devices = Annotated[int, BeforeValidator(_digits), Field(ge=0)]
Cpu = Annotated[
    str,
    BeforeValidator(_text),
    matching("[1-9][0-9]*m?", "not a number of CPUs", 'write "32", or "500m" for half of one'),
]
Memory = Annotated[
    str,
    BeforeValidator(_text),
    matching(
        "[1-9][0-9]*(Ki|Mi|Gi|Ti|k|M|G|T)?",
        "not an amount of memory",
        "write a whole number and a unit, such as 64Gi",
    ),
]


class _Values(Model):
    """Base of the parts of the values, whose keys are written as Kubernetes writes its own."""

    model_config = ConfigDict(alias_generator=to_camel)


class NodeTier(_Values):
    """Nodes that templates may choose.

    Attributes:
        enabled: Whether jobs may run on them.
        labels: Their labels; `node-type` names them.
    """

    enabled: bool = True
    labels: Annotated[Mapping[LabelKey, LabelValue], AfterValidator(_names_nodes)]


class PriorityClassValues(_Values):
    """A PriorityClass as the values say it; those of the cluster file are made, and count.

    Attributes:
        value: Priority of its pods.
        description: What it is for.
        preemption_policy: Whether its pods displace those of lower priority; None leaves it open.
    """

    value: int
    description: str = ""
    preemption_policy: Literal["PreemptLowerPriority", "Never"] | None = None


class ResourceAmounts(Model):
    """Requests or limits of a container; None leaves one out.

    Attributes:
        gpu: NVIDIA GPUs.
        neuron: Neuron devices.
        efa: EFA interfaces.
        cpu: Kubernetes quantity of CPU.
        memory: Kubernetes quantity of memory.
    """

    gpu: Devices | None = Field(default=None, alias="nvidia.com/gpu")
    neuron: Devices | None = Field(default=None, alias="aws.amazon.com/neuron")
    efa: Devices | None = Field(default=None, alias="vpc.amazonaws.com/efa")
    cpu: Cpu | None = None
    memory: Memory | None = None


class ContainerResources(_Values):
    """Resources of a job's container.

    Attributes:
        limits: Most that it may use.
        requests: What is kept for it.
    """

    limits: ResourceAmounts = Field(default_factory=ResourceAmounts)
    requests: ResourceAmounts = Field(default_factory=ResourceAmounts)


class JobTemplate(_Values):
    """A kind of job.

    Attributes:
        priority_class_name: One of the cluster's PriorityClasses.
        node_selector: Labels of its nodes; without any it may run on each enabled tier.
        tolerations: Taints that its pods bear, beside those of its nodes.
        resources: What its container gets.
    """

    priority_class_name: str
    node_selector: Mapping[LabelKey, LabelValue] = Field(default_factory=dict[str, str])
    tolerations: tuple[Toleration, ...] = ()
    resources: ContainerResources = Field(default_factory=ContainerResources)


class JobValues(_Values):
    """The values.

    Attributes:
        template: The template of the job, for Helm; `submit` has an argument of its own.
        name: Name of the job; empty: its template's, or that of Helm's release.
        image: Whole image reference; empty: somebody names it when the job is sent.
        backoff_limit: Restarts of the job before it counts as failed.
        ttl_seconds_after_finished: How long it stays to be looked at once it has ended.
        command: Program.
        args: Its arguments.
        model_type: What the program finds in the variable `MODEL_TYPE`; empty: nothing.
        env: Environment variables.
        allow_env: Those of them that are refused as harmful, and set knowingly.
        data_pvc_name: Claim at `/data`; empty: none.
        checkpoint_pvc_name: Claim at `/checkpoints`; empty: none.
        node_selectors: Tiers of nodes, by name.
        priority_classes: PriorityClasses, by name.
        job_templates: Kinds of job, by name.
        cluster: What the chart knows of the cluster; `submit` knows it from the cluster file.
    """

    template: str = ""
    name: str = ""
    image: str = ""
    backoff_limit: Annotated[int, Field(ge=0)]
    ttl_seconds_after_finished: Annotated[int, Field(ge=0)]
    command: Annotated[tuple[str, ...], Field(min_length=1)]
    args: tuple[str, ...] = ()
    model_type: str = ""
    env: Mapping[Variable, str] = Field(default_factory=dict[str, str])
    allow_env: tuple[Variable, ...] = ()
    data_pvc_name: str = ""
    checkpoint_pvc_name: str = ""
    node_selectors: Mapping[str, NodeTier] = Field(default_factory=dict[str, NodeTier])
    priority_classes: Mapping[str, PriorityClassValues] = Field(
        default_factory=dict[str, PriorityClassValues]
    )
    job_templates: Mapping[str, JobTemplate]
    cluster: Mapping[str, object] = Field(default_factory=dict[str, object])


# What stands for a value that cannot be read: what it leads to is not told.
_UNREAD_VALUES: Mapping[str, object] = {
    "backoffLimit": 0,
    "ttlSecondsAfterFinished": 0,
    "command": ("",),
    "jobTemplates": {},
}
_UNREAD_TEMPLATE: Mapping[str, object] = {"priorityClassName": ""}


class JobValuesReading(Frozen):
    """A file of values as far as it could be read."""

    document: Document  # The values, with the chart's own where the file says nothing
    stated: Mapping[str, object]  # What the file itself says
    values: JobValues  # The values; a neutral one where one cannot be read
    # The template that was asked for; None where there is none of that name.
    template: JobTemplate | None
    mistakes: tuple[Mistake, ...]  # What is wrong with their form
    names: tuple[str, ...]  # Names of the templates

    def states(self, *at: str) -> bool:
        """Return whether the file itself says something at ``at``."""
        found: object = self.stated
        for key in at:
            inner = _mapping(found)
            if key not in inner:
                return False
            found = inner[key]
        return True

    def refusal(self, *mistakes: Mistake) -> ConfigError:
        """Return the error that names each mistake of form, and each of ``mistakes``."""
        document = self.document
        placed = sorted((*self.mistakes, *mistakes), key=lambda m: document.place(m.at))
        return ConfigError(mistake.told(document) for mistake in placed)

    def is_sound(self, *at: str) -> bool:
        """Return whether there is no mistake at ``at`` or within."""
        return not any(mistake.at[: len(at)] == at for mistake in self.mistakes)


def read_job_values(values: Path | Mapping[str, object], template: str) -> JobValuesReading:
    """Read values of the chart, laid over its own as Helm does it: null takes a key away.

    Args:
        values: A file of values, or the values.
        template: Name of the template that is wanted.

    Raises:
        ConfigError: The file cannot be read, or is no YAML mapping.

    Source: https://helm.sh/docs/chart_template_guide/values_files/
    """
    if isinstance(values, Path):
        stated = read_yaml(values, what="values")
    else:
        stated = parse_yaml(dump(values), source="values", own=True)
    whole = _laid_over(default_job_values(), stated.value)
    document = parse_yaml(dump(whole), source=stated.source, own=True)
    document = replace(document, origin=Origin(stated))
    mistakes = _form(document.value)
    chosen = _mapping(document.value.get(_TEMPLATES)).get(template)
    return JobValuesReading(
        document=document,
        stated=stated.value,
        values=read_as(JobValues, _sound(document.value, (), mistakes, _UNREAD_VALUES)),
        template=None
        if not is_mapping(chosen)
        else read_as(
            JobTemplate, _sound(chosen, (_TEMPLATES, template), mistakes, _UNREAD_TEMPLATE)
        ),
        mistakes=mistakes,
        names=tuple(_mapping(whole.get(_TEMPLATES))),
    )


def default_job_values() -> Mapping[str, object]:
    """Return the values that the chart has where nobody says anything else."""
    return _mapping(yaml.safe_load(_DEFAULTS.read_text(encoding="utf-8")))


def _laid_over(below: Mapping[str, object], above: Mapping[str, object]) -> dict[str, object]:
    joined = dict(below)
    for key, value in above.items():
        before = joined.get(key)
        if value is None:
            joined.pop(key, None)
        elif is_mapping(value):
            joined[key] = _laid_over(_mapping(before), value)
        else:
            joined[key] = value
    return joined


def _mapping(value: object) -> Mapping[str, object]:
    """Return ``value``, or nothing where it is no mapping."""
    return value if is_mapping(value) else {}


def _form(document: Mapping[str, object]) -> tuple[Mistake, ...]:
    seen = Seen()
    try:
        read_as(JobValues, document, seen)
    except pydantic.ValidationError as error:
        return tuple(form_mistakes(error, document, seen, laid_over=True))
    return ()


def _sound(
    values: Mapping[str, object],
    at: KeyPath,
    mistakes: Sequence[Mistake],
    unread: Mapping[str, object],
) -> Mapping[str, object]:
    """Return ``values``, which stand at ``at``, without the keys that hold mistakes of form.

    Args:
        values: The mapping.
        at: Keys that lead to it.
        mistakes: Mistakes of form.
        unread: What stands for a value that is needed and cannot be read.
    """
    within = (mistake.at for mistake in mistakes if mistake.at[: len(at)] == at != mistake.at)
    broken = {place[len(at)] for place in within}
    return {**unread, **{key: value for key, value in values.items() if key not in broken}}
