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

# The chart's own values, over which a file of values is laid.
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
    """Base of the values' parts, with Kubernetes' spelling of keys."""

    model_config = ConfigDict(alias_generator=to_camel)


class NodeTier(_Values):
    """Nodes that templates may choose."""

    enabled: bool = True  # Whether jobs may run on them
    # Their labels; `node-type` names them.
    labels: Annotated[Mapping[LabelKey, LabelValue], AfterValidator(_names_nodes)]


class PriorityClassValues(_Values):
    """A PriorityClass as the values say it; those of the cluster file are made, and count."""

    value: int  # Priority of its pods
    description: str = ""  # What it is for
    # Whether its pods displace those of lower priority; None leaves it open.
    preemption_policy: Literal["PreemptLowerPriority", "Never"] | None = None


class ResourceAmounts(Model):
    """Requests or limits of a container; None leaves one out."""

    gpu: Devices | None = Field(default=None, alias="nvidia.com/gpu")  # NVIDIA GPUs
    neuron: Devices | None = Field(default=None, alias="aws.amazon.com/neuron")  # Neuron devices
    efa: Devices | None = Field(default=None, alias="vpc.amazonaws.com/efa")  # EFA interfaces
    cpu: Cpu | None = None  # Kubernetes quantity of CPU
    memory: Memory | None = None  # Kubernetes quantity of memory


class ContainerResources(_Values):
    """Resources of a job's container."""

    limits: ResourceAmounts = Field(default_factory=ResourceAmounts)  # Most that it may use
    requests: ResourceAmounts = Field(default_factory=ResourceAmounts)  # What is kept for it


class JobTemplate(_Values):
    """A kind of job."""

    priority_class_name: str  # One of the cluster's PriorityClasses
    # Labels of its nodes; without any it may run on each enabled tier.
    node_selector: Mapping[LabelKey, LabelValue] = Field(default_factory=dict[str, str])
    tolerations: tuple[Toleration, ...] = ()  # Taints that its pods bear, beside those of its nodes
    # What its container gets.
    resources: ContainerResources = Field(default_factory=ContainerResources)


class JobValues(_Values):
    """The values."""

    template: str = ""  # The template of the job, for Helm; `submit` has an argument of its own
    name: str = ""  # Name of the job; empty: its template's, or that of Helm's release
    image: str = ""  # Whole image reference; empty: the sender of the job names it
    backoff_limit: Annotated[int, Field(ge=0)]  # Restarts of the job before it counts as failed
    # How long it stays to be looked at once it has ended.
    ttl_seconds_after_finished: Annotated[int, Field(ge=0)]
    command: Annotated[tuple[str, ...], Field(min_length=1)]  # Program
    args: tuple[str, ...] = ()  # Its arguments
    model_type: str = ""  # What the program finds in the variable `MODEL_TYPE`; empty: nothing
    env: Mapping[Variable, str] = Field(default_factory=dict[str, str])  # Environment variables
    # Those of them that are refused as harmful, and set knowingly.
    allow_env: tuple[Variable, ...] = ()
    data_pvc_name: str = ""  # Claim at `/data`; empty: none
    checkpoint_pvc_name: str = ""  # Claim at `/checkpoints`; empty: none
    # Tiers of nodes, by name.
    node_selectors: Mapping[str, NodeTier] = Field(default_factory=dict[str, NodeTier])
    # PriorityClasses, by name.
    priority_classes: Mapping[str, PriorityClassValues] = Field(
        default_factory=dict[str, PriorityClassValues]
    )
    job_templates: Mapping[str, JobTemplate]  # Kinds of job, by name
    # What the chart knows of the cluster; `submit` knows it from the cluster file.
    cluster: Mapping[str, object] = Field(default_factory=dict[str, object])


# In place of an unreadable value: its consequences are not reported.
_UNREAD_VALUES: Mapping[str, object] = {
    "backoffLimit": 0,
    "ttlSecondsAfterFinished": 0,
    "command": ("",),
    "jobTemplates": {},
}
_UNREAD_TEMPLATE: Mapping[str, object] = {"priorityClassName": ""}


class JobValuesReading(Frozen):
    """A file of values as far as it could be read."""

    document: Document  # The values, with the chart's defaults
    stated: Mapping[str, object]  # The values that the file states
    values: JobValues  # The values; a neutral one where one cannot be read
    # The chosen template; None where there is none of that name.
    template: JobTemplate | None
    mistakes: tuple[Mistake, ...]  # Mistakes of form
    names: tuple[str, ...]  # Names of the templates

    def states(self, *at: str) -> bool:
        """Return whether the file itself states a value at ``at``."""
        value: object = self.stated
        for key in at:
            inner = _mapping(value)
            if key not in inner:
                return False
            value = inner[key]
        return True

    def refusal(self, *mistakes: Mistake) -> ConfigError:
        """Return the error that names each mistake of form, and each of ``mistakes``."""
        document = self.document
        placed = sorted((*self.mistakes, *mistakes), key=lambda m: document.place(m.at))
        return ConfigError(mistake.diagnostic(document) for mistake in placed)

    def is_sound(self, *at: str) -> bool:
        """Return whether there is no mistake at ``at`` or within."""
        return not any(mistake.at[: len(at)] == at for mistake in self.mistakes)


def read_job_values(values: Path | Mapping[str, object], template: str) -> JobValuesReading:
    """Read values, laid over the chart's own as Helm does it: null takes a key away.

    Args:
        values: A file of values, or the values.
        template: Name of the chosen template.

    Raises:
        ConfigError: The file cannot be read, or is no YAML mapping.

    Source: https://helm.sh/docs/chart_template_guide/values_files/
    """
    if isinstance(values, Path):
        stated = read_yaml(values, what="values")
    else:
        stated = parse_yaml(dump(values), source="values", own=True)
    whole = _merged(default_job_values(), stated.value)
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
    """Return the chart's own values."""
    return _mapping(yaml.safe_load(_DEFAULTS.read_text(encoding="utf-8")))


def _merged(below: Mapping[str, object], above: Mapping[str, object]) -> dict[str, object]:
    joined = dict(below)
    for key, value in above.items():
        before = joined.get(key)
        if value is None:
            joined.pop(key, None)
        elif is_mapping(value):
            joined[key] = _merged(_mapping(before), value)
        else:
            joined[key] = value
    return joined


def _mapping(value: object) -> Mapping[str, object]:
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
        unread: Value in place of a required one that cannot be read.
    """
    within = (mistake.at for mistake in mistakes if mistake.at[: len(at)] == at != mistake.at)
    broken = {place[len(at)] for place in within}
    return {**unread, **{key: value for key, value in values.items() if key not in broken}}
