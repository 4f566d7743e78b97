"""Options and arguments of the job commands that hold several values."""

import json
from collections.abc import Iterator
from pathlib import Path

from ultrascale import yaml_reader
from ultrascale.documents import Json, JsonObject, look_up
from ultrascale.errors import ConfigError
from ultrascale.yaml_reader import YamlError


def changes_of(settings: list[str], variables: list[str]) -> JsonObject:
    """Return ``KEY.PATH=VALUE`` and ``K=V`` as keys of a job.

    Raises:
        ConfigError: A setting has another form, or sets a key below another setting's value.
    """
    wrong: list[str] = []
    changes: dict[str, Json] = {}
    for option, form, given in (("--set", "KEY.PATH=VALUE", settings), ("--env", "K=V", variables)):
        for each in given:
            key, equals, value = each.partition("=")
            if not key or not equals:
                wrong.append(f"{option}: not an assignment, got {each!r}; write {form}")
            elif option == "--set":
                wrong += _set_value(changes, key.split("."), _value(value), given=f"--set {each}")
            else:
                wrong += _set_value(changes, ["env", key], value, given=f"--env {each}")
    if wrong:
        raise ConfigError(wrong)
    return changes


def _set_value(
    changes: dict[str, Json], path: list[str], value: Json, *, given: str
) -> Iterator[str]:
    """Set ``value`` at ``path``; yield a mistake if a value on the path is no mapping."""
    *outer, last = path
    inner = changes
    for depth, key in enumerate(outer, start=1):
        found = inner.setdefault(key, {})
        if not isinstance(found, dict):
            said = f"{'.'.join(outer[:depth])} is {json.dumps(found, default=str)} already"
            yield f"{given}: {said}; keep one of both"
            return
        inner = found
    inner[last] = value


def _value(text: str) -> Json:
    """Return a value as if it were read from a YAML file; other text stays text."""
    try:
        return look_up({"value": yaml_reader.load(text)}, "value")
    except YamlError:
        return text


def file_and_job(named: list[str]) -> tuple[Path | None, str | None]:
    """Return the cluster file and the job that the words of `status` name.

    Raises:
        ConfigError: There are too many words.
    """
    match named:
        case []:
            return None, None
        case [one] if one.endswith((".yaml", ".yml")):
            return Path(one), None
        case [one]:
            return None, one
        case [file, job]:
            return Path(file), job
        case _:
            raise ConfigError([f"status: {' '.join(named)}: name a cluster file, a job, or both"])
