"""Mistakes in the roles of a job, each with its key, its value and a way out."""

from typing import Any

import pytest

from tests.support.config_documents import GOVERNANCE, mistakes_in
from tests.support.config_jobs import VOLCANO
from tests.support.pools import POOL, SYSTEM_POOL, make_document, pool_document

KUEUE = {"queueing": "kueue"}
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
AT = "jobs.tune.roles"
BAD: dict[str, tuple[dict[str, Any], str]] = {
    "no engine": (
        roles({"queueing": "none"}),
        f"{AT}: several roles where nothing starts pods of several kinds together; "
        "set scheduling.queueing: kueue, or volcano",
    ),
    "operators of HyperPod": (
        roles({"queueing": "none"}) | {"hyperpod": GOVERNANCE},
        f"{AT}: several roles on HyperPod, whose operators start pods of one kind; "
        "send a job for each role, or use a cluster with scheduling.queueing: kueue",
    ),
    "more roles than a Workload has": (
        roles(KUEUE, **{f"r{number}": ROLLOUT for number in range(18)}),
        f"{AT}: 19 roles, and Kueue admits at most 18 kinds of pods as one; unite some",
    ),
    "nodes of the job": (
        roles(job={"nodes": 2}),
        "jobs.tune.nodes: nodes of a job whose roles have their own, got 2; leave it out",
    ),
    "role of the job": (
        roles(job={"role": "student"}),
        "jobs.tune.role: a role beside roles, got 'student'; leave it out",
    ),
    "fewer nodes": (
        roles(job={"min_nodes": 1}),
        "jobs.tune.min_nodes: fewer nodes of a job of several roles: nothing says which may miss "
        "some, got 1; write when_lost: restart-role in roles that may",
    ),
    "fewer nodes, and more than its roles have": (
        roles(job={"min_nodes": 3}),
        "jobs.tune.min_nodes: fewer nodes of a job of several roles: nothing says which may miss "
        "some, got 3; write when_lost: restart-role in roles that may",
    ),
    "tiers": (
        roles(job={"pool": None, "prefer": ["train", "spare"]}),
        "jobs.tune.prefer: an order of preference for several roles, each of which has its own "
        "pool, got [train, spare]; write pool in each role",
    ),
    "compiled graphs": (
        roles(job={"compile_cache": {"model": "bert"}}),
        "jobs.tune.compile_cache: compiled graphs of several roles, which no run with "
        "--precompile makes; leave it out",
    ),
    "two programs": (
        roles(rollout=ROLLOUT | {"script": "rollout.py"}),
        f"{AT}.rollout.command: a script for torchrun and a command beside it, got [rollout]; "
        "keep script or command",
    ),
    "no such pool": (
        roles(rollout=ROLLOUT | {"pool": "spar"}),
        f"{AT}.rollout.pool: not one of pools, got 'spar'; did you mean spare?",
    ),
    "nodes named twice": (
        roles(rollout=ROLLOUT, job={"pool": None, "node_selector": {"node-type": "spare"}}),
        f"{AT}.rollout.pool: a pool beside the node-type of all roles, got 'spare'; "
        "keep pool, or node_selector of the job",
    ),
    "nodes of controllers": (
        roles(rollout=ROLLOUT | {"pool": "system"}),
        f"{AT}.rollout.pool: the nodes of controllers and add-ons, got 'system'; "
        "choose a pool of another role",
    ),
    "more GPUs than a node of its pool has": (
        roles(rollout=ROLLOUT | {"resources": {"gpu": 8}}),
        f"{AT}.rollout.resources.gpu: more than a node of spare has: 4, got 8; "
        "ask for less, or choose another pool",
    ),
    "GPUs that the job says for a role of another pool": (
        roles(rollout=ROLLOUT, job={"resources": {"gpu": 8}}),
        "jobs.tune.resources.gpu: more than a node of spare has: 4, got 8; "
        "ask for less, or choose another pool",
    ),
    "image of nobody": (
        roles(rollout=ROLLOUT | {"image": "rollout:1"}),
        f"{AT}.rollout.image: not one of images.repositories, got 'rollout:1'; there is none; "
        "for another registry write its host too, as docker.io/…",
    ),
    "variable that breaks NCCL": (
        roles(rollout=ROLLOUT | {"env": {"RDMAV_FORK_SAFE": "1"}}),
        f"{AT}.rollout.env.RDMAV_FORK_SAFE: a variable of verbs libraries that EFA does not use, "
        "and that breaks it, got '1'; leave it out",
    ),
    "hosts of a role": (
        roles(rollout=ROLLOUT | {"env": {"TRAINER_HOSTS": "a"}}),
        f"{AT}.rollout.env.TRAINER_HOSTS: set for every pod of a job with roles, got 'a'; "
        "choose another name",
    ),
    "name of the role": (
        roles(job={"env": {"ROLE": "a"}}),
        "jobs.tune.env.ROLE: set for every pod of a job with roles, got 'a'; choose another name",
    ),
    "hosts of a role from a Secret": (
        roles(job={"secrets": {"TRAINER_HOSTS": "a"}}),
        "jobs.tune.secrets.TRAINER_HOSTS: set for every pod of a job with roles, got 'a'; "
        "choose another name",
    ),
}


@pytest.mark.parametrize(("document", "line"), BAD.values(), ids=BAD)
def test_a_mistake_in_roles_names_its_key(document: dict[str, Any], line: str) -> None:
    assert line in mistakes_in(document)


def test_what_roles_have_of_the_job_is_refused_once() -> None:
    document = roles(first=ROLLOUT, second=ROLLOUT, job={"resources": {"gpu": 16}})

    found = [line for line in mistakes_in(document) if "resources.gpu" in line]

    assert len(found) == 2, found
    assert all(line.startswith("jobs.tune.resources.gpu: more than a node") for line in found)


def test_an_empty_key_of_a_role_is_as_good_as_none() -> None:
    assert mistakes_in(roles(rollout=ROLLOUT | {"resources": None, "image": None})) == []
