"""The whole cluster file."""

from collections.abc import Iterator, Mapping
from functools import cache
from types import GenericAlias
from typing import Annotated, Any, Protocol, Self, TypeVar, Union

from pydantic import Field, Tag, create_model, model_validator

from ultrascale.config._base import Section, chosen_by_key
from ultrascale.config._errors import Mistake, Mistakes
from ultrascale.config._parts import Placed, Readable, types_in
from ultrascale.config._rules import rule
from ultrascale.config.facts import Fact, carry
from ultrascale.config.identity import Identity
from ultrascale.config.images import Images
from ultrascale.config.jobs import BatchJob, Job, JobName, TrainingJob
from ultrascale.config.karpenter import Karpenter
from ultrascale.config.kubernetes import Kubernetes
from ultrascale.config.network import AgreedLimits, Network
from ultrascale.config.pools import Pool
from ultrascale.config.scheduling import Queue, Scheduling
from ultrascale.config.services import ServiceJob
from ultrascale.config.serving import Serving
from ultrascale.config.storage import Lustre, Storage
from ultrascale.config.teams import Team
from ultrascale.core.table import all_parts

SectionT = TypeVar("SectionT", bound=Section)


class _Named(Protocol):
    @property
    def name(self) -> str: ...


NamedT = TypeVar("NamedT", bound=_Named)


# `cluster_type` adds the keys of the parts, and the choice among the kinds of jobs.
class Cluster(Identity):
    """One EKS cluster: its network, control plane, pools, storage and schedulers."""

    network: Network
    """Address ranges and zones of the VPC."""

    kubernetes: Kubernetes = Field(default_factory=Kubernetes)
    """The EKS control plane."""

    karpenter: Karpenter | None = None
    """Self-managed Karpenter. Default: not installed."""

    pools: Annotated[tuple[Pool, ...], Field(json_schema_extra={"minItems": 1})]
    """Sets of identical nodes."""

    storage: Storage = Field(default_factory=Storage)
    """File systems and buckets."""

    images: Images = Field(default_factory=Images)
    """Image repositories and registries."""

    scheduling: Scheduling = Field(default_factory=Scheduling)
    """Queueing engine, queues, priorities and rendezvous."""

    jobs: Mapping[JobName, Job] = Field(default_factory=dict[str, Job])
    """Job templates by name; `ultrascale submit FILE NAME` sends one. A submission may add what a
    template leaves out.
    """

    serving: Serving = Field(default_factory=Serving)
    """Controllers and front of all services."""

    agreed_limits: AgreedLimits | None = None
    """Limits that AWS granted above the published ones; `ultrascale plan` compares the cluster with
    them.

    Default: the published limits.
    """

    facts: tuple[Fact, ...] = ()
    """Answers of the account that count in place of the catalog's, each with its day; written by
    `ultrascale preflight FILE --record`. You may delete any.

    Default: none.
    """

    @model_validator(mode="after")
    def _count_with_facts(self) -> Self:
        if self.facts:
            carry(self.facts, self.pools, self.kubernetes)
        return self

    def pool(self, name: str) -> Pool:
        """Return the pool called ``name``.

        Raises:
            KeyError: The cluster has no such pool.
        """
        for pool in self.pools:
            if pool.name == name:
                return pool
        raise KeyError(name)

    def section(self, kind: type[SectionT]) -> SectionT | None:
        """Return the section of a type, of the core or of a part; None where the file has none."""
        return next((section for section in _within(self) if isinstance(section, kind)), None)

    @property
    def sections(self) -> Iterator[Section]:
        """The sections of the file, of the core and of parts."""
        values = (getattr(self, name) for name in type(self).model_fields)
        return (value for value in values if isinstance(value, Section))


@cache
def _names_of_sections(kind: type[Section]) -> tuple[str, ...]:
    """Return the fields that may hold a section."""
    kinds = {name: types_in(info.annotation) for name, info in kind.model_fields.items()}
    return tuple(
        name for name, inner in kinds.items() if any(issubclass(one, Section) for one, _ in inner)
    )


def _within(section: Section) -> Iterator[Section]:
    for name in _names_of_sections(type(section)):
        if isinstance(value := getattr(section, name), Section):
            yield value
            yield from _within(value)


@cache
def cluster_type() -> type[Cluster]:
    """Return the type of a cluster file: the keys of the core, then those of each part."""
    places = {part.place for part in all_parts()} - {""}
    extended = {place: _with_keys_of_parts(_section_at(place), place) for place in places}
    # Any: fields of a model that is created.
    fields: dict[str, Any] = {
        place: (kind, Field(default_factory=kind)) for place, kind in extended.items()
    }
    jobs = Field(default_factory=dict[str, Job])
    fields["jobs"] = (GenericAlias(Mapping, (JobName, stated_job())), jobs)
    return _with_keys_of_parts(Cluster, "", fields)


@cache
def stated_job() -> Any:  # noqa: ANN401 a type that is made
    """Return the type of a job of any kind, told apart by `kind`."""
    kinds = kinds_of_job()
    members = tuple(Annotated[kind, Tag(name)] for name, kind in kinds.items())
    return Annotated[Union[members], chosen_by_key("kind", *kinds)]  # noqa: UP007


@cache
def kinds_of_job() -> Mapping[str, type[Job]]:
    """Return the type of each kind of job, of the core or of a part, with the keys of parts."""
    of_parts = (part.job_kind for part in all_parts() if part.job_kind is not None)
    kinds = (TrainingJob, BatchJob, ServiceJob, *of_parts)
    return {kind.kind_name(): _with_job_keys(kind) for kind in kinds}


def _with_job_keys(kind: type[Job]) -> type[Job]:
    keys = (part.job_keys for part in all_parts())
    kinds = [own for own in keys if own is not None and issubclass(kind, own.__bases__)]
    if not kinds:
        return kind
    made = create_model(kind.__name__, __base__=(kind, *kinds), __doc__=kind.__doc__)
    assert issubclass(made, Job)
    return made


def _section_at(key: str) -> type[Section]:
    kind = Cluster.model_fields[key].annotation
    assert isinstance(kind, type)
    assert issubclass(kind, Section)
    return kind


def _with_keys_of_parts(
    kind: type[SectionT],
    place: str,
    fields: Mapping[str, Any] | None = None,  # Any: fields of a model that is created
) -> type[SectionT]:
    """Return a section with the keys that parts add to it, and with other ``fields``."""
    kinds = (
        part.section
        for part in reversed(all_parts())
        if part.place == place and part.section is not None
    )
    made = create_model(
        kind.__name__, __base__=(*kinds, kind), __doc__=kind.__doc__, **fields or {}
    )
    assert issubclass(made, kind)
    return made


@rule
def names_are_unique(
    pools: Readable[Pool],
    file_systems: Readable[Lustre],
    queues: Readable[Queue],
    teams: Readable[Team],
) -> Mistakes:
    for items in (pools, file_systems, queues, teams):
        yield from repeated_names(items)


def repeated_names(items: Readable[NamedT]) -> Mistakes:
    """Yield the items that have the name of one before them."""
    # A path is rendered for mistakes only: it compares the names of the whole list.
    seen: dict[str, Placed[NamedT]] = {}
    for placed in items.placed:
        name = placed.item.name
        if name in seen:
            wrong = f"{seen[name].path} has this name already"
            yield Mistake((*placed.at, "name"), wrong, "choose another")
        seen.setdefault(name, placed)
