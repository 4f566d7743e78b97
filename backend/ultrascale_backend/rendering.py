"""Manifests of a request, rendered by the rules and the cluster file."""

import json
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from importlib import resources
from pathlib import Path
from typing import Annotated
from uuid import UUID

import pydantic
from pydantic import ConfigDict, Field, JsonValue

from ultrascale import config, yaml_reader
from ultrascale.cluster_api.objects import INDEXED_JOB
from ultrascale.core.engine import engine_of
from ultrascale.documents import Json, JsonObject, mapping, number
from ultrascale.errors import ConfigError
from ultrascale.jobs.manifests import JobManifests
from ultrascale.jobs.preparation import JobCluster, prepare, read_cluster
from ultrascale.parts.backend import Backend
from ultrascale.plan.jobs.controllers import controllers_of_jobs
from ultrascale.yaml_reader import YamlError
from ultrascale_backend.callers import Submission
from ultrascale_backend.errors import BadRequestError, form_mistakes, near
from ultrascale_backend.objects import job_name, labelled, workloads
from ultrascale_backend.records import NewRecord
from ultrascale_backend.requests import URGENCIES, Asked, JobRequest, Urgency, deadline_mistakes

# --- Rules, in a YAML file, that map a request to a template of the cluster file ------------------


_Name = Annotated[str, Field(pattern=r"^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$")]
# Keys that only a rule may set: a patch would evade the caller's rights, and a Secret may belong to
# another caller.
_NEVER = ("name", "kind", "namespace", "team", "secrets", "patch")


class Rule(pydantic.BaseModel):
    """A rule that turns matching requests into one template.

    Attributes:
        name: Its name, recorded with each request that it decides.
        types: Types of the requests that the rule matches.
        urgencies: Urgencies of these requests.
        deadline_within_hours: Most hours to the deadline; None: any deadline, or none.
        template: An entry of the cluster file's ``jobs``.
        changes: Keys that replace the template's own; mappings are joined key by key.
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    name: _Name
    types: Annotated[list[str], Field(min_length=1)]
    urgencies: Annotated[list[Urgency], Field(min_length=1)] = [*URGENCIES]
    deadline_within_hours: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    template: str
    changes: dict[str, JsonValue] = {}

    def fits(self, asked: JobRequest, now: datetime) -> bool:
        """Return whether the rule matches a request that comes at ``now``."""
        if asked.type not in self.types or asked.urgency not in self.urgencies:
            return False
        if self.deadline_within_hours is None:
            return True
        near_end = now + timedelta(hours=self.deadline_within_hours)
        return asked.deadline is not None and asked.deadline <= near_end

    def covers(self, kind: str, urgency: str) -> bool:
        """Return whether the rule matches all requests of a type and urgency, with any deadline."""
        matches = kind in self.types and urgency in self.urgencies
        return matches and self.deadline_within_hours is None


class Rules(pydantic.BaseModel):
    """All rules, in the order in which they are tried.

    Attributes:
        job_keys: Keys of a job that clients may state.
        rules: The rules; the first that fits decides.
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    job_keys: list[str]
    rules: Annotated[list[Rule], Field(min_length=1)]

    @property
    def types(self) -> Collection[str]:
        """Types of requests that any rule names."""
        return dict.fromkeys(each for rule in self.rules for each in rule.types)

    def choose(self, asked: JobRequest, now: datetime) -> Rule | None:
        """Return the rule that decides a request; None if no rule knows the type."""
        return next((rule for rule in self.rules if rule.fits(asked, now)), None)


def read_rules(path: Path | None) -> tuple[str, Rules]:
    """Read the rules at ``path``, by default those that ship with this package.

    Returns:
        Name of the file for error lines, and the rules.

    Raises:
        ConfigError: The file cannot be read, or has mistakes of form; one line for each.
    """
    source = "the default rules" if path is None else str(path)
    try:
        if path is None:
            data = (resources.files("ultrascale_backend") / "default_rules.yaml").read_bytes()
        else:
            data = yaml_reader.read_bytes(path, what="rules")
        found = yaml_reader.load(data)
    except YamlError as error:
        raise ConfigError(f"{source}: cannot be read: {line}" for line in error.lines) from error
    except (OSError, ValueError) as error:
        raise ConfigError([f"{source}: cannot be read: {' '.join(str(error).split())}"]) from error
    try:
        return source, Rules.model_validate(found)
    except pydantic.ValidationError as error:
        raise ConfigError(f"{source}: {line}" for line in form_mistakes(error)) from None


def rule_mistakes(
    rules: Rules, *, job_keys: Collection[str], templates: Collection[str]
) -> Iterator[str]:
    """Yield the mistakes in rules for a cluster file.

    Args:
        rules: The rules.
        job_keys: Keys that a job may have.
        templates: Templates that the backend may submit.
    """
    for index, key in enumerate(rules.job_keys):
        if key in _NEVER:
            yield f"job_keys.{index}: no client may state it, got {key}; leave it out"
        elif key not in job_keys:
            yield f"job_keys.{index}: no key of a job, got {key}; {near(key, job_keys)}"
    counts = Counter(rule.name for rule in rules.rules)
    for index, rule in enumerate(rules.rules):
        if counts[rule.name] > 1:
            yield f"rules.{index}.name: not unique, got {rule.name}; give each its own"
        if rule.template not in templates:
            wrong = f"not one of the cluster file's backend.submits_to, got {rule.template}"
            yield f"rules.{index}.template: {wrong}; {near(rule.template, templates)}"
        if _is_never_tried(rule, rules.rules[:index]):
            yield (
                f"rules.{index}: never asked, since rules before it decide all its requests; "
                "move it up, or leave it out"
            )
    yield from _gap_mistakes(rules)


def _is_never_tried(rule: Rule, before: Sequence[Rule]) -> bool:
    return all(
        any(each.covers(kind, urgency) for each in before)
        for kind in rule.types
        for urgency in rule.urgencies
    )


def _gap_mistakes(rules: Rules) -> Iterator[str]:
    for kind in rules.types:
        open_ = [
            urgency
            for urgency in URGENCIES
            if not any(rule.covers(kind, urgency) for rule in rules.rules)
        ]
        if open_:
            yield (
                f"rules: requests of type {kind} and urgency {' or '.join(open_)} without a near "
                "deadline become no template; end with a rule for them that has no deadline"
            )


# --- Manifests of a request, rendered by the rules and the cluster file ---------------------------


_KINDS = (config.kinds_of_job()[name] for name in ("training", "batch"))
_JOB_KEYS = frozenset(key for kind in _KINDS for key in kind.model_fields)
# Trial values for keys that a template leaves to requests, to render it once at the start.
_PROBE = {"image": "registry.example/probe:1", "script": "/probe.py", "command": ["probe"]}
_PROBE_ID = UUID(int=0)
# Seconds. A job that is deleted before a crashed submission is repeated would run twice.
_SHORTEST_TTL = 3600


@dataclass(frozen=True, slots=True, kw_only=True)
class Renderer:
    """Renderer of jobs by the rules and a cluster file."""

    cluster: JobCluster  # The file
    rules: Rules  # The rules that choose a template for a request
    account: str | None  # AWS account of the registry, if the file does not state it
    # Namespaces and kinds of the objects that make the pods of its jobs
    followed: frozenset[tuple[str, str]]

    def render(
        self, request_id: UUID, asked: Asked, now: datetime, *, owner: str
    ) -> tuple[NewRecord, Submission]:
        """Return the record of a request that comes at ``now``, and its job's rights properties.

        Raises:
            BadRequestError: The request does not fit the rules or the cluster; one line for each
                mistake.
        """
        body = asked.body
        mistakes = [*deadline_mistakes(body, now), *self._key_mistakes(body)]
        rule = self.rules.choose(body, now)
        if rule is None:
            todo = near(body.type, self.rules.types)
            raise BadRequestError([f"type: unknown, got {body.type!r}; {todo}", *mistakes])
        allowed = {key: value for key, value in body.job.items() if key in self.rules.job_keys}
        try:
            manifests = _prepare(
                self.cluster, rule, request_id, allowed, account=self.account, now=now
            )
        except ConfigError as error:
            raise BadRequestError([*mistakes, *_job_lines(error)]) from None
        mistakes += (f"job: {line}" for line in _preflight_mistakes(self.cluster, rule, allowed))
        if mistakes:
            raise BadRequestError(mistakes)
        template = self.cluster.cluster.jobs[rule.template]
        submission = Submission(
            template=rule.template,
            kind=str(rule.changes.get("kind", template.kind_name())),
            priority=manifests.priority_class,
        )
        return _record(request_id, asked, rule, manifests, owner=owner), submission

    def _key_mistakes(self, body: JobRequest) -> Iterator[str]:
        for key in body.job:
            if key not in self.rules.job_keys:
                todo = near(key, self.rules.job_keys)
                yield f"job: {key}: not a key that requests may state; {todo}"


def open_renderer(cluster_file: Path, rules_file: Path | None, *, account: str | None) -> Renderer:
    """Return the renderer for a cluster file and its rules.

    Raises:
        ConfigError: A file has mistakes, or the files do not fit each other; one line for each.
    """
    cluster = read_cluster(cluster_file)
    source, rules = read_rules(rules_file)
    backend = cluster.cluster.section(Backend)
    templates = backend.submits_to if backend is not None else ()
    mistakes = [*rule_mistakes(rules, job_keys=_JOB_KEYS, templates=templates)]
    if backend is None:
        mistakes = [f"{cluster_file}: backend: missing; add it, with submits_to", *mistakes]
    followed: set[tuple[str, str]] = set()
    for position, rule in enumerate(rules.rules):
        if rule.template not in templates:
            continue
        try:
            mistakes += (
                f"rules.{position}: {line}" for line in _preflight_mistakes(cluster, rule, {})
            )
            manifests = _probe(cluster, rule, account)
        except ConfigError as error:
            mistakes += [f"rules.{position}: {line}" for line in _job_lines(error)]
        else:
            mistakes += [f"rules.{position}: {line}" for line in _ttl_mistakes(manifests)]
            kinds = {kind for kind, _ in workloads(manifests.objects)}
            resources = {kind.resource for kind in kinds} | _other_kinds(cluster)
            followed |= {(manifests.namespace, resource) for resource in resources}
    if mistakes:
        raise ConfigError(dict.fromkeys(f"{source}: {mistake}" for mistake in mistakes))
    return Renderer(cluster=cluster, rules=rules, account=account, followed=frozenset(followed))


def _other_kinds(cluster: JobCluster) -> frozenset[str]:
    """Return further kinds that templates' jobs may have: requests may set nodes and array."""
    if not engine_of(cluster.cluster.scheduling).queues_jobs:
        return frozenset()
    controllers = controllers_of_jobs(cluster.cluster)
    named = {".".join(reversed(each.resource)) for each in controllers if each.resource is not None}
    return frozenset({*named, INDEXED_JOB.resource})


def _probe(cluster: JobCluster, rule: Rule, account: str | None) -> JobManifests:
    """Render a rule's template with trial values for open keys, in order to find its mistakes."""
    template = cluster.cluster.jobs[rule.template]
    stated = template.model_fields_set | rule.changes.keys()
    runs = {"script", "command"} & stated
    wanted = (
        {"image"}
        if runs
        else {"image", "script" if template.kind_name() == "training" else "command"}
    )
    probe = {key: _PROBE[key] for key in wanted - stated}
    return _prepare(cluster, rule, _PROBE_ID, probe, account=account, now=None)


def _prepare(
    cluster: JobCluster,
    rule: Rule,
    request_id: UUID,
    job: JsonObject,
    *,
    account: str | None,
    now: datetime | None,
) -> JobManifests:
    # Names of requests are too long for jobs with checks of nodes: see `_preflight_mistakes`.
    unchecked: JsonObject = {"preflight": "none"} if _has_checks(cluster, rule, job) else {}
    changes = mapping(config.with_changes(rule.changes, job))
    return prepare(
        cluster,
        rule.template,
        changes={**changes, **unchecked, "name": job_name(request_id)},
        account=account,
        now=now,
    )


def _job_lines(error: ConfigError) -> Iterator[str]:
    """Yield the mistakes of a job, with ``job`` in place of the template's key."""
    for told in error.diagnostics:
        jobs, _, rest = told.key.partition(".")
        is_of_job = jobs == "jobs" and bool(rest)
        key = rest.partition(".")[2]
        yield (
            ": ".join(part for part in ("job", key, told.text) if part) if is_of_job else str(told)
        )


def _ttl_mistakes(manifests: JobManifests) -> Iterator[str]:
    """Yield reasons why the backend cannot submit jobs of a template exactly once."""
    for _, found in workloads(manifests.objects):
        # A PyTorchJob states the time in its run policy.
        policy = mapping(found, "spec", "runPolicy") or mapping(found, "spec")
        ttl = number(policy, "ttlSecondsAfterFinished", default=_SHORTEST_TTL)
        if ttl < _SHORTEST_TTL:
            yield (
                "ttl_seconds_after_finished: too short to tell a job that has ended from one that "
                f"was never made, got {ttl}; write at least {_SHORTEST_TTL}"
            )


def _has_checks(cluster: JobCluster, rule: Rule, job: JsonObject) -> bool:
    template = cluster.cluster.jobs[rule.template]
    default: Json = list(template.preflight) if isinstance(template, config.TrainingJob) else []
    changes = mapping(config.with_changes(rule.changes, job))
    return changes.get("preflight", default) not in (None, "none", [])


def _preflight_mistakes(cluster: JobCluster, rule: Rule, job: JsonObject) -> Iterator[str]:
    """Yield a mistake if the job has checks of nodes, which the backend cannot run."""
    if _has_checks(cluster, rule, job):
        yield (
            "preflight: checks that take minutes and cordon nodes, which the backend may not; add "
            "changes: {preflight: none} to the rule, and run `ultrascale fabric` on the pool"
        )


def _record(
    request_id: UUID, asked: Asked, rule: Rule, manifests: JobManifests, *, owner: str
) -> NewRecord:
    making = workloads(manifests.objects)
    return NewRecord(
        id=request_id,
        owner=owner,
        key=asked.key,
        fingerprint=asked.fingerprint,
        type=asked.body.type,
        urgency=asked.body.urgency,
        deadline=asked.body.deadline,
        rule=rule.name,
        template=rule.template,
        namespace=manifests.namespace,
        job_name=manifests.name,
        kind=making[0][0].resource,
        workloads=len(making),
        objects=json.dumps(labelled(manifests.objects, request_id, owner)),
        notes=[*manifests.notes],
    )
