"""Mistakes in the roles of a job, each with its key, its value and a way out."""

from typing import Any

from tests.support.config_documents import mistakes_in
from tests.support.config_jobs import VOLCANO
from tests.support.pools import POOL, SYSTEM_POOL, make_document, pool_document

SPARE = pool_document(name="spare", instance_types=["g6e.12xlarge"])


def roles(scheduling: dict[str, Any] | None = None, **roles: Any) -> dict[str, Any]:
    """Return a cluster file with a job of a trainer and of ``roles``; a key `job` bends the job."""
    stated = {"pool": "train", **roles.pop("job", {})}
    job = {key: value for key, value in stated.items() if value is not None}
    job["roles"] = {"trainer": {"nodes": 2, "script": "rl.train"}, **roles}
    return make_document(
        pools=[SYSTEM_POOL, POOL, SPARE], scheduling=scheduling or VOLCANO, jobs={"tune": job}
    )


ROLLOUT: dict[str, Any] = {"pool": "spare", "command": ["rollout"]}


def test_what_roles_have_of_the_job_is_refused_once() -> None:
    document = roles(first=ROLLOUT, second=ROLLOUT, job={"resources": {"gpu": 16}})

    assert [line for line in mistakes_in(document) if "resources.gpu" in line] == [
        "jobs.tune.resources.gpu: job_fits_its_nodes",
        "jobs.tune.resources.gpu: role_fits_its_pool",
    ]
