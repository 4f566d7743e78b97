"""Rights of the processes of jobs: none of root's, and no way to gain any."""

from typing import Any

import pytest

from tests.jobs.test_rendering import KINDS
from tests.support.cases import for_each
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
    # An image that needs some of root's rights keeps those alone, and so before the program.
    own = {"security": {"capabilities": ["CHOWN", "SETUID"]}, "init": ["fetch"]}
    _, (before, program) = contexts(job_cluster(), make_job(**own))
    assert before == program
    assert program["capabilities"] == {"drop": ["ALL"], "add": ["CHOWN", "SETUID"]}


def test_an_image_of_ours_does_not_start_as_root() -> None:
    pod, (container,) = contexts(BUILT, make_job(image="bert"))
    assert container["runAsNonRoot"] is True
    # A container that an operator injects, or that is attached to debug, has a user of its own.
    assert "runAsNonRoot" not in pod
    # Kubernetes starts none whose user it cannot tell from root.
    _, (unknown,) = contexts(job_cluster(), make_job(image="docker.io/example/other:1"))
    assert not unknown.keys() & {"runAsNonRoot", "runAsUser", "runAsGroup"}


@pytest.mark.parametrize(
    ("stated", "user", "group"), [({"user": 7}, 7, 7), ({"user": 7, "group": 8}, 7, 8)]
)
def test_a_job_runs_as_the_user_that_it_states(
    stated: dict[str, Any], user: int, group: int
) -> None:
    _, (container,) = contexts(job_cluster(), make_job(security=stated))

    found = (container["runAsUser"], container["runAsGroup"], container["runAsNonRoot"])
    assert found == (user, group, True)


# A number; no user, root, a name, root after a number, another stage's, and a variable.
DOCKERFILES = {
    "FROM a\nUSER 10000:10000\n": True,
    "FROM a\n": False,
    "FROM a\nUSER 0\n": False,
    "FROM a\nUSER training\n": False,
    "FROM a\nUSER 5\nUSER root\n": False,
    "FROM a AS b\nUSER 5\nFROM c\n": False,
    "FROM a\nUSER $UID\n": False,
}


@for_each([*DOCKERFILES.items()])
def test_the_user_of_somebodys_own_dockerfile_counts(text: str, known: bool) -> None:
    assert ends_without_root(text) is known


def test_each_image_of_ours_has_a_user_that_kubernetes_can_tell_from_root() -> None:
    assert [name for name in SOURCES if not is_non_root(name)] == []
    assert {folder.name for folder in (ROOT / "images").iterdir() if folder.is_dir()} == {*SOURCES}
