"""Rules, in a YAML file, that map a request to a template of the cluster file."""

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from datetime import datetime, timedelta
from importlib import resources
from pathlib import Path
from typing import Annotated

import pydantic
from pydantic import ConfigDict, Field, JsonValue

from ultrascale import yaml_reader
from ultrascale.errors import ConfigError
from ultrascale.yaml_reader import YamlError
from ultrascale_backend.errors import form_mistakes, near
from ultrascale_backend.requests import URGENCIES, JobRequest, Urgency

_Name = Annotated[str, Field(pattern=r"^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$")]
# Keys that only a rule may set: a patch would evade the caller's rights, and a Secret may belong to
# another caller.
_NEVER = ("name", "kind", "namespace", "team", "secrets", "patch")


class Rule(pydantic.BaseModel):
    """A rule that turns matching requests into one template."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    name: _Name  # Its name, recorded with each request that it decides
    types: Annotated[list[str], Field(min_length=1)]  # Types of the requests that the rule matches
    # Urgencies of these requests
    urgencies: Annotated[list[Urgency], Field(min_length=1)] = [*URGENCIES]
    # Most hours to the deadline; None: any deadline, or none
    deadline_within_hours: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    template: str  # An entry of the cluster file's ``jobs``
    # Keys that replace the template's own; mappings are joined key by key
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
    """All rules, in the order in which they are tried."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    job_keys: list[str]  # Keys of a job that clients may state
    rules: Annotated[list[Rule], Field(min_length=1)]  # The rules; the first that fits decides

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
    for number, key in enumerate(rules.job_keys):
        if key in _NEVER:
            yield f"job_keys.{number}: no client may state it, got {key}; leave it out"
        elif key not in job_keys:
            yield f"job_keys.{number}: no key of a job, got {key}; {near(key, job_keys)}"
    counts = Counter(rule.name for rule in rules.rules)
    for number, rule in enumerate(rules.rules):
        if counts[rule.name] > 1:
            yield f"rules.{number}.name: not unique, got {rule.name}; give each its own"
        if rule.template not in templates:
            wrong = f"not one of the cluster file's backend.submits_to, got {rule.template}"
            yield f"rules.{number}.template: {wrong}; {near(rule.template, templates)}"
        if _is_never_tried(rule, rules.rules[:number]):
            yield (
                f"rules.{number}: never asked, since rules before it decide all its requests; "
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
