"""Reads one job against the cluster file that it is to run in."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

import yaml

from ultrascale.config._check import read_document
from ultrascale.config._document import Document, parse_yaml
from ultrascale.config._document import read as read_yaml
from ultrascale.config._errors import Mistake, near
from ultrascale.config._reading import Reading
from ultrascale.config.jobs import AnyJob, BatchJob, ServiceJob, TrainingJob
from ultrascale.errors import ConfigError

_JOBS = "jobs"
_NAME = "name"
_FILES = (".yaml", ".yml")


@dataclass(frozen=True, slots=True, kw_only=True)
class JobReading:
    """A job as far as it could be read.

    Attributes:
        name: Its name.
        job: The job; None where a mistake of form is in the way.
        mistakes: What is wrong with it in itself and against the cluster file.
        document: How its file spells it.
        template: The one of the cluster file's `jobs` that it is; None where it is none.
    """

    name: str
    job: AnyJob | None
    mistakes: tuple[Mistake, ...]
    document: Document
    template: str | None

    def refusal(self, mistakes: tuple[Mistake, ...]) -> ConfigError:
        """Return the error that names each of ``mistakes`` once, in the order of the keys."""
        placed = sorted(mistakes, key=lambda mistake: self.document.place(mistake.at))
        return ConfigError(dict.fromkeys(mistake.line(self.document) for mistake in placed))


def read_job(
    cluster: Reading,
    job: str | Path | Mapping[str, object],
    *,
    changes: Mapping[str, object],
    suffix: str = "",
) -> JobReading:
    """Read a job against a cluster file without mistakes.

    Args:
        cluster: The cluster file.
        job: Name of one of its `jobs`, path of a file that holds one job, or the job itself.
        changes: Keys that replace the job's own; mappings are joined key by key.
        suffix: What its name is made longer by.

    Raises:
        ConfigError: There is no such job, or its file cannot be read.
    """
    source, stated = _found(cluster, job)
    joined = _joined(stated, changes)
    name = str(joined.pop(_NAME, "")) + suffix
    whole = {**_plain(cluster.document.value), _JOBS: {name: joined}}
    reading = read_document(parse_yaml(_dump(whole), source=source))
    mistakes = tuple(
        replace(mistake, at=mistake.at[2:] or (_NAME,))
        for mistake in reading.mistakes
        if mistake.at[:1] == (_JOBS,)
    )
    found = reading.cluster.jobs.get(name) if reading.cluster is not None else None
    if not isinstance(found, TrainingJob | BatchJob | ServiceJob):
        found = None
    document = parse_yaml(_dump({**joined, _NAME: name}), source=source)
    template = str(job) if _is_template(cluster, job) else None
    return JobReading(name=name, job=found, mistakes=mistakes, document=document, template=template)


def _is_template(cluster: Reading, job: str | Path | Mapping[str, object]) -> bool:
    return not isinstance(job, Mapping) and str(job) in _templates(cluster)


def _templates(cluster: Reading) -> Mapping[str, object]:
    return cast("Mapping[str, object]", cluster.document.value.get(_JOBS) or {})


def _found(
    cluster: Reading, job: str | Path | Mapping[str, object]
) -> tuple[str, dict[str, object]]:
    """Return what error lines call the job, and its keys, its name among them."""
    if isinstance(job, Mapping):
        return "job", {str(key): value for key, value in job.items()}
    templates = _templates(cluster)
    if str(job) in templates:
        source = f"{cluster.document.source}: {_JOBS}.{job}"
        return source, {_NAME: str(job), **_plain(templates[str(job)])}
    path = Path(job)
    if path.suffix not in _FILES and "/" not in str(job):
        todo = near(str(job), list(templates))
        line = f"{cluster.document.source}: {_JOBS}: no job {str(job)!r}; {todo}"
        raise ConfigError([f"{line}; or name a file that ends in .yaml"])
    document = read_yaml(path, what="job")
    return document.source, {_NAME: path.stem, **_plain(document.value)}


def _joined(stated: Mapping[str, object], changes: Mapping[str, object]) -> dict[str, object]:
    joined = dict(stated)
    for key, value in changes.items():
        before = joined.get(key)
        if isinstance(value, Mapping) and isinstance(before, Mapping):
            inner = cast("Mapping[str, object]", value)
            joined[key] = _joined(cast("Mapping[str, object]", before), inner)
        else:
            joined[key] = value
    return joined


def _plain(value: object) -> dict[str, object]:
    return {str(k): _listed(v) for k, v in cast("Mapping[object, object]", value).items()}


def _listed(value: object) -> object:
    """Return ``value`` with lists where documents have tuples: YAML has no other."""
    if isinstance(value, Mapping):
        return _plain(cast("Mapping[object, object]", value))
    if isinstance(value, tuple | list):
        return [_listed(item) for item in cast("list[object]", value)]
    return value


def _dump(value: Mapping[str, object]) -> str:
    return yaml.safe_dump(_listed(value), sort_keys=False, allow_unicode=True)
