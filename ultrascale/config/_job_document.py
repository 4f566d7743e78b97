"""One job, read against the cluster file of its cluster."""

from collections.abc import Iterator, Mapping
from pathlib import Path

from msgspec import field
from msgspec.structs import replace

from ultrascale.config._document import (
    SUFFIXES,
    Document,
    KeyPath,
    Origin,
    dump,
    is_mapping,
    parse_yaml,
    plain,
)
from ultrascale.config._document import read as read_yaml
from ultrascale.config._errors import Mistake, near
from ultrascale.config._reading import Reading, foreign_kind, read_document
from ultrascale.config.jobs import Job
from ultrascale.config.pools import NODE_TYPE
from ultrascale.config.releases import without_release
from ultrascale.errors import ConfigError
from ultrascale.frozen import Frozen

_JOBS = "jobs"
_NAME = "name"


class TranslatedJob(Frozen):
    """A job that another document than a job file states."""

    keys: Mapping[str, object]  # The job, its name among them
    template: str  # Its name where a team's jobs have names of their own
    document: Document  # The document that states it
    places: Mapping[KeyPath, KeyPath]  # Keys of the document behind the job's keys
    mistakes: tuple[Mistake, ...]  # Mistakes at the document's own keys
    unread: frozenset[str]  # The job's keys that rest on those mistakes
    notes: tuple[str, ...]  # Parts that do not hold in the cluster, each a sentence

    def place(self, at: KeyPath) -> KeyPath:
        """Return the keys of the document behind the job's key ``at``."""
        for length in range(len(at), 0, -1):
            if at[:length] in self.places:
                return (*self.places[at[:length]], *at[length:])
        return at

    def is_known(self, at: KeyPath) -> bool:
        """Return whether a mistake of the document causes one at the job's key ``at``."""
        places = (mistake.at for mistake in self.mistakes)
        return any(place[: len(at)] == at[: len(place)] for place in places)


class JobReading(Frozen):
    """A job as far as it could be read."""

    name: str  # Its name
    job: Job | None  # The job; None where a mistake of form is in the way
    mistakes: tuple[Mistake, ...]  # Mistakes in it, alone and against the cluster file
    document: Document  # Its spelling in its file
    # The key of the template in `jobs`, or in the document behind it; None for a job of its own.
    template: str | None
    translated: TranslatedJob | None = None  # Its translation; None where its file states it
    # Keys that the command replaced after the translation.
    changed: frozenset[str] = field(default_factory=frozenset[str])

    @property
    def is_sound(self) -> bool:
        return not self.mistakes and (self.translated is None or not self.translated.mistakes)

    @property
    def unread(self) -> frozenset[str]:
        """Keys that rest on mistakes in the document behind it."""
        return self.translated.unread - self.changed if self.translated else frozenset()

    @property
    def notes(self) -> tuple[str, ...]:
        return self.translated.notes if self.translated else ()

    def refusal(self, mistakes: tuple[Mistake, ...]) -> ConfigError:
        document = self.document
        if self.translated is not None:
            document = self.translated.document
            mistakes = (
                *self.translated.mistakes,
                *self._at_document_keys(self.translated, mistakes),
            )
        placed = sorted(mistakes, key=lambda mistake: document.place(mistake.at))
        return ConfigError(mistake.diagnostic(document) for mistake in placed)

    def _at_document_keys(
        self, translated: TranslatedJob, mistakes: tuple[Mistake, ...]
    ) -> Iterator[Mistake]:
        """Yield mistakes at the keys of the document, without those that its own mistakes cause."""
        for mistake in mistakes:
            if mistake.at and mistake.at[0] in self.changed:
                got = self.document.spelling(mistake.at) if mistake.got is None else mistake.got
                yield replace(mistake, got=got or "")
                continue
            at = translated.place(mistake.at)
            if not translated.is_known(at):
                yield replace(mistake, at=at)


def read_job(
    cluster: Reading,
    job: str | Path | Mapping[str, object] | TranslatedJob,
    *,
    changes: Mapping[str, object],
    suffix: str = "",
) -> JobReading:
    """Read a job against a cluster file without mistakes.

    Args:
        cluster: The cluster file.
        job: Name of one of its `jobs`, path of a file that holds one job, or the job itself.
        changes: Keys that replace the job's own; mappings are joined key by key.
        suffix: Text behind its name.

    Raises:
        ConfigError: There is no such job, or its file cannot be read.
    """
    source, stated, origin = _stated_job(cluster, job)
    joined = with_changes(_sent_elsewhere(stated, changes), changes)
    name = str(joined.pop(_NAME, "")) + suffix
    whole = {**plain(cluster.document.value), _JOBS: {name: joined}}
    reading = read_document(parse_yaml(dump(whole), source=source, own=True))
    mistakes = tuple(
        replace(mistake, at=mistake.at[2:] or (_NAME,))
        for mistake in reading.mistakes
        if mistake.at[:1] == (_JOBS,)
    )
    template = reading.cluster.jobs.get(name) if reading.cluster is not None else None
    document = parse_yaml(dump({**joined, _NAME: name}), source=source, own=True)
    document = replace(document, origin=origin)
    return JobReading(
        name=name,
        job=template,
        mistakes=mistakes,
        document=document,
        template=_template(cluster, job),
        translated=job if isinstance(job, TranslatedJob) else None,
        changed=frozenset(changes),
    )


def _template(
    cluster: Reading, job: str | Path | Mapping[str, object] | TranslatedJob
) -> str | None:
    if isinstance(job, TranslatedJob):
        return job.template
    named = not isinstance(job, Mapping) and str(job) in _templates(cluster)
    return str(job) if named else None


def _templates(cluster: Reading) -> Mapping[str, object]:
    jobs = cluster.document.value.get(_JOBS)
    return jobs if is_mapping(jobs) else {}


def _stated_job(
    cluster: Reading, job: str | Path | Mapping[str, object] | TranslatedJob
) -> tuple[str, dict[str, object], Origin | None]:
    """Return the job's name in error lines, its keys with its name, and their place."""
    if isinstance(job, TranslatedJob):
        return job.document.source, dict(job.keys), None
    if isinstance(job, Mapping):
        # A program's None leaves a key out.
        return "job", with_changes({}, job), None
    templates = _templates(cluster)
    if str(job) in templates:
        origin = Origin(cluster.document, (_JOBS, str(job)))
        stated = {_NAME: str(job), **plain(templates[str(job)])}
        return cluster.document.source, stated, origin
    path = Path(job)
    if path.suffix not in SUFFIXES and "/" not in str(job):
        todo = f"{near(str(job), list(templates))}; or name a file that ends in .yaml"
        unknown = Mistake((_JOBS,), f"no job {str(job)!r}", todo, got="")
        raise cluster.refusal([unknown])
    document = read_yaml(path, what="job")
    wrong = foreign_kind(document.value)
    if not wrong and "pools" in document.value:
        wrong = "a cluster file, not the file of a job"
    if wrong:
        todo = (
            f"name a job file behind the cluster file, or one of its jobs: {', '.join(templates)}"
        )
        mistake = Mistake((), wrong, todo.removesuffix(", or one of its jobs: "), "", code="file")
        raise ConfigError([mistake.diagnostic(document)])
    return document.source, {_NAME: path.stem, **without_release(document)}, Origin(document)


def _sent_elsewhere(
    stated: Mapping[str, object], changes: Mapping[str, object]
) -> Mapping[str, object]:
    """Return a job without other keys that name its nodes, where ``changes`` choose a pool."""
    if "pool" not in changes:
        return stated
    kept = {key: value for key, value in stated.items() if key != "prefer"}
    selector = kept.get("node_selector")
    if is_mapping(selector):
        kept["node_selector"] = {key: selector[key] for key in selector if key != NODE_TYPE}
    return kept


def with_changes(
    stated: Mapping[str, object], changes: Mapping[str, object], *, keeps_null: bool = False
) -> dict[str, object]:
    """Return a job's keys with ``changes``: mappings are joined, other values replaced.

    None leaves a key out; in a merge patch (``keeps_null``) it says the same of the object.
    """
    keys = dict(stated)
    for key, value in changes.items():
        before, nulls = keys.get(key), keeps_null or key == "patch"
        if is_mapping(value):
            outer: Mapping[str, object] = before if is_mapping(before) else {}
            keys[key] = with_changes(outer, value, keeps_null=nulls)
        elif value is None and not nulls:
            keys.pop(key, None)
        else:
            keys[key] = value
    return keys
