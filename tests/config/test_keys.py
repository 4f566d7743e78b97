"""No key of the cluster file is without effect: a setting that does nothing is a broken promise."""

from functools import cache
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

from tests.support.cases import for_each
from tests.support.cluster_keys import CASES, DOCUMENTS, OTHER_VALUES, Keys, changed
from tests.support.pools import as_json, loads_own
from ultrascale.errors import ConfigError
from ultrascale.jobs import prepare
from ultrascale.plan import plan_cluster

# What a job is sent with that its template leaves open.
IMAGE = "docker.io/example/train:1"
UNBUILT = {"tokenizer": "tokenizer:1"}
# Keys of jobs that nothing is sent by, and that `plan` reckons with.
PLANNED = {"tokens_per_second"}
PROGRAMS = {"command", "script", "roles", "args", "recipe"}


def outcome(document: dict[str, Any], job: str | None = None) -> object:
    """Return the plan of a cluster file, or what ``job`` of it becomes; or the mistakes."""
    text = as_json(document)
    try:
        if job is None:
            return plan_cluster(loads_own(text))
        with NamedTemporaryFile("w", suffix=".yaml") as file:
            file.write(text)
            file.flush()
            changes = _sent(document["jobs"].get(job, {}))
            return prepare(Path(file.name), job, changes=changes, account="111122223333")
    except ConfigError as error:
        return tuple(each.keyed for each in error.diagnostics)


def _sent(template: dict[str, Any]) -> dict[str, Any]:
    image = template.get("image", IMAGE)
    program = {} if PROGRAMS & {*template} else {"command": ["train"]}
    return program if "roles" in template else {"image": UNBUILT.get(image, image), **program}


@cache
def whole(name: str, job: str | None) -> object:
    return outcome(DOCUMENTS[name], job)


@for_each({f"{name}:{'.'.join(map(str, path))}": (name, path) for name, path in CASES})
def test_a_key_that_is_taken_away_or_changed_is_missed(name: str, path: Keys) -> None:
    document = DOCUMENTS[name]
    is_sent = path[0] == "jobs" and path[-1] not in PLANNED
    job = str(path[1]) if is_sent and len(path) > 1 else None
    given = whole(name, job)
    assert not isinstance(given, tuple)

    without = outcome(changed(document, path), job)

    if without == given:
        others = [value for keys, value in OTHER_VALUES.items() if path[-len(keys) :] == keys]
        assert others, "the key has no effect"
        assert all(outcome(changed(document, path, value), job) != given for value in others)
