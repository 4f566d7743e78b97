"""Rights of the processes of jobs: none of root's, and no way to gain any."""

from typing import Any

import pytest

from tests.jobs.test_rendering import KINDS
from tests.support.folders import ROOT
from tests.support.job_rules import pod_templates
from tests.support.jobs import job_cluster, make_job, prepared
from tests.support.pools import NEURON_POOL
from ultrascale.own_images import ends_without_root
from ultrascale.plan.delivery.build_context import SOURCES, is_non_root

BUILT = job_cluster(NEURON_POOL, images={"repositories": ["bert"]})


def contexts(cluster: dict[str, Any], job: dict[str, Any]) -> tuple[Any, list[Any]]:
    """Return what Kubernetes is told of the rights of a job's pod and of its containers."""
    spec = next(pod_templates(prepared(cluster, job)))["spec"]
    containers = [*spec.get("initContainers", ()), *spec["containers"]]
    return spec["securityContext"], [each["securityContext"] for each in containers]


@pytest.mark.parametrize("kind", KINDS)
def test_no_process_has_a_capability_or_calls_that_no_program_needs(kind: str) -> None:
    pod, containers = contexts(*KINDS[kind])

    assert pod["seccompProfile"] == {"type": "RuntimeDefault"}
    for container in containers:
        assert container == {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}


def test_what_runs_before_the_program_has_no_more_rights_than_it() -> None:
    _, containers = contexts(job_cluster(), make_job(init=["fetch"]))

    before, program = containers
    assert before == program


def test_an_image_of_ours_does_not_start_as_root() -> None:
    pod, (container,) = contexts(BUILT, make_job(image="bert"))

    assert container["runAsNonRoot"] is True
    # A container that an operator injects, or that is attached to debug, has a user of its own.
    assert "runAsNonRoot" not in pod


def test_an_image_of_which_nothing_is_known_starts_as_it_likes() -> None:
    """Kubernetes starts none whose user it cannot tell from root."""
    _, (container,) = contexts(job_cluster(), make_job(image="docker.io/example/other:1"))

    assert not container.keys() & {"runAsNonRoot", "runAsUser", "runAsGroup"}


@pytest.mark.parametrize(
    ("stated", "user", "group"), [({"user": 7}, 7, 7), ({"user": 7, "group": 8}, 7, 8)]
)
def test_a_job_runs_as_the_user_that_it_states(
    stated: dict[str, Any], user: int, group: int
) -> None:
    _, (container,) = contexts(job_cluster(), make_job(security=stated))

    found = (container["runAsUser"], container["runAsGroup"], container["runAsNonRoot"])
    assert found == (user, group, True)


def test_an_image_that_needs_some_of_roots_rights_keeps_those_alone() -> None:
    job = make_job(security={"capabilities": ["CHOWN", "SETUID"]})

    _, (container,) = contexts(job_cluster(), job)

    assert container["capabilities"] == {"drop": ["ALL"], "add": ["CHOWN", "SETUID"]}


DOCKERFILES = {
    "a number": ("FROM a\nUSER 10000:10000\n", True),
    "no user": ("FROM a\n", False),
    "root": ("FROM a\nUSER 0\n", False),
    "a name": ("FROM a\nUSER training\n", False),
    "a number, then root": ("FROM a\nUSER 5\nUSER root\n", False),
    "another stage's": ("FROM a AS b\nUSER 5\nFROM c\n", False),
    "a variable": ("FROM a\nUSER $UID\n", False),
}


@pytest.mark.parametrize(("text", "known"), DOCKERFILES.values(), ids=list(DOCKERFILES))
def test_the_user_of_somebodys_own_dockerfile_counts(text: str, known: bool) -> None:
    assert ends_without_root(text) is known


def test_each_image_of_ours_has_a_user_that_kubernetes_can_tell_from_root() -> None:
    assert [name for name in SOURCES if not is_non_root(name)] == []
    assert {folder.name for folder in (ROOT / "images").iterdir() if folder.is_dir()} == {*SOURCES}
