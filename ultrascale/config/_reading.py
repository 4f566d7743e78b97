"""Cluster files, read and judged as far as they can be read."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

import pydantic
from msgspec import field
from msgspec.structs import replace

from ultrascale.config._base import Seen, read_as
from ultrascale.config._document import Document, is_mapping, named
from ultrascale.config._errors import Mistake
from ultrascale.config._form import broken_places, empty_keys, form_mistakes, keys_of
from ultrascale.config._parts import Parts, parts_of, parts_seen
from ultrascale.config._rules import Rules, rule
from ultrascale.config.cluster import Cluster, cluster_type
from ultrascale.config.facts import Fact, carry
from ultrascale.config.identity import Identity
from ultrascale.config.kubernetes import Kubernetes
from ultrascale.config.pools import Pool
from ultrascale.config.releases import wrong_release
from ultrascale.errors import ConfigError, Severity
from ultrascale.frozen import Frozen
from ultrascale.own_images import NO_IMAGES, OwnImages


class Reading(Frozen):
    """A cluster file as far as it could be read."""

    document: Document  # The file
    # The cluster that it describes; None where a mistake of form is in the way.
    cluster: Cluster | None
    parts: Parts  # Every part that could be read
    mistakes: tuple[Mistake, ...] = ()  # Mistakes in the file itself
    # Folders beside the file that images are built from.
    own_images: OwnImages = field(default_factory=lambda: NO_IMAGES)
    records: tuple[Frozen, ...] = ()  # Records of parts beside the file

    def judge(self, rules: Rules) -> Iterator[Mistake]:
        return rules.judge(self.parts)

    def refusal(self, mistakes: Iterable[Mistake]) -> ConfigError:
        placed = self.in_order(mistakes)
        return ConfigError(mistake.diagnostic(self.document) for mistake in placed)

    def in_order(self, mistakes: Iterable[Mistake]) -> Sequence[Mistake]:
        return sorted(mistakes, key=lambda mistake: self.document.place(mistake.at))


def read_document(document: Document) -> Reading:
    """Return what could be read of ``document``, with every mistake in it.

    Raises:
        ConfigError: Another release of this product has to read it, or another program.
    """
    if (other := wrong_release(document.value) or _other_kind(document)) is not None:
        raise ConfigError([other.diagnostic(document)])
    seen = Seen()
    try:
        cluster = read_as(cluster_type(), document.value, seen)
    except pydantic.ValidationError as error:
        mistakes = [*form_mistakes(error, document.value, seen)]
        broken = broken_places(error, document.value)
        models = [*seen.models.values()]
        pools = [model for model in models if isinstance(model, Pool)]
        kubernetes = next((one for one in models if isinstance(one, Kubernetes)), Kubernetes())
        carry([model for model in models if isinstance(model, Fact)], pools, kubernetes)
        parts = parts_seen(
            cluster_type(), document.value, seen, broken, outer=_identity(document.value)
        )
        empty = empty_keys(document.value, seen, broken)
        return Reading(
            document=document,
            cluster=None,
            parts=parts,
            mistakes=(*mistakes, *empty, *rule.judge(parts, document)),
        )
    reading = reading_of_cluster(cluster, document)
    if empty := [*empty_keys(document.value, seen)]:
        places = {mistake.at for mistake in empty}
        others = (mistake for mistake in reading.mistakes if mistake.at not in places)
        return replace(reading, mistakes=(*empty, *others))
    return reading


# A job file has one of them, and a cluster file none.
_OF_JOBS = frozenset({"pool", "prefer", "image", "script", "command", "recipe", "model", "array"})


def _other_kind(document: Document) -> Mistake | None:
    """Return the mistake of a document that is no cluster file at all."""
    wrong, todo = foreign_kind(document.value), "begin a cluster file by `ultrascale init`"
    if not wrong and not {"pools", "network", "kubernetes"} & document.value.keys():
        job = _OF_JOBS & document.value.keys()
        wrong = "the file of a job, not of a cluster" if job else ""
        todo = "name the cluster file first, as in `ultrascale submit CLUSTER.yaml JOB.yaml`"
    return Mistake((), wrong, todo, got="", code="file") if wrong else None


def foreign_kind(value: Mapping[str, object]) -> str:
    """Return the kind of another program's document; empty for a document of this product."""
    version, kind = value.get("apiVersion"), value.get("kind")
    if isinstance(version, str) and isinstance(kind, str):
        return "a file of eksctl" if version.startswith("eksctl.io/") else f"a {kind} of Kubernetes"
    return "a template of CloudFormation" if is_mapping(value.get("Resources")) else ""


def _identity(document: Mapping[str, object]) -> Identity | None:
    """Return the keys at the top of a file whose sections hold mistakes of form."""
    own = {key: document[key] for key in keys_of(Identity) if key in document}
    try:
        return read_as(Identity, own)
    except pydantic.ValidationError:
        return None


def reading_of_cluster(cluster: Cluster, document: Document) -> Reading:
    parts = parts_of(cluster)
    mistakes = tuple(rule.judge(parts, document))
    return Reading(document=document, cluster=cluster, parts=parts, mistakes=mistakes)


def warnings(cluster: Cluster) -> tuple[str, ...]:
    mistakes = remarks(cluster, "warning")
    return tuple(f"{named(cluster, mistake.at)}: {mistake.text}" for mistake in mistakes)


def remarks(cluster: Cluster, severity: Severity) -> Sequence[Mistake]:
    return in_order_of_keys(rule.judge(parts_of(cluster), severity=severity))


def in_order_of_keys(mistakes: Iterable[Mistake]) -> Sequence[Mistake]:
    """Return ``mistakes`` in the order of the cluster file's keys, and of a list's items."""
    order = ("", *keys_of(cluster_type()))
    return sorted(
        mistakes,
        key=lambda mistake: (
            order.index(str(mistake.at[0] if mistake.at else "")),
            *mistake.at[1:2],
        ),
    )


def check(reading: Reading) -> Cluster:
    """Return the cluster that was read.

    Raises:
        ConfigError: The file has mistakes; one line for each, in the order of the file.
    """
    if reading.mistakes or reading.cluster is None:
        raise reading.refusal(reading.mistakes)
    return reading.cluster
