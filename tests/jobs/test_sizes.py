"""A job of any size and any name keeps to the limits of Kubernetes, Volcano and the kernel."""

import json
import subprocess
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.job_rules import findings, volcano_jobs
from tests.support.jobs import (
    VOLCANO,
    job_cluster,
    large_cluster,
    make_job,
    objects,
    prepared,
    refusals,
    sentences,
)
from tests.support.pools import NEURON_POOL
from ultrascale.jobs import JobManifests
from ultrascale.parts.volcano.engine import Division, divide

LARGE = large_cluster(scheduling=VOLCANO | {"topology_aware": True})


def indexes(parts: Iterator[Mapping[str, Any]]) -> Iterator[int]:
    """Yield the index of every pod, as its shell sums it up."""
    for job in parts:
        for task in job["spec"]["tasks"]:
            env = task["template"]["spec"]["containers"][0]["env"]
            (first,) = (int(each["value"]) for each in env if each["name"] == "FIRST_INDEX")
            yield from range(first, first + task["replicas"])


SIZES = [2500, 2501, 10_000, 10_001, 20_000]


@pytest.fixture(scope="module")
def large() -> Mapping[int, JobManifests]:
    return {nodes: prepared(LARGE, nodes=nodes) for nodes in SIZES}


each_size = pytest.mark.parametrize("nodes", SIZES)


@each_size
def test_pods_of_a_job_of_any_size_have_each_an_index(
    large: Mapping[int, JobManifests], nodes: int
) -> None:
    job = large[nodes]

    assert findings(job, "1.35") == []
    assert [*indexes(iter(volcano_jobs(job)))] == [*range(nodes)]
    assert len(volcano_jobs(job)) == -(-nodes // 10_000)
    assert job.pods == nodes
    for part in volcano_jobs(job):
        tasks = part["spec"]["tasks"]
        assert max(task["replicas"] for task in tasks) <= 2500
        assert part["spec"]["minAvailable"] == sum(task["replicas"] for task in tasks)


@each_size
def test_pods_of_a_large_job_meet_behind_one_service_and_carry_no_list_of_hosts(
    large: Mapping[int, JobManifests], nodes: int
) -> None:
    job = large[nodes]
    services = objects(job, "Service")
    plugins = [part["spec"]["plugins"].keys() for part in volcano_jobs(job)]
    if nodes <= 2500:
        (note,) = job.notes
        assert note.startswith("It is sent without networkTopology")
        assert (services, plugins) == ([], [{"env", "svc"}])
        return
    (service,) = services
    spec = service["spec"]
    assert job.objects[0] == service
    assert plugins == [{"env"}] * len(plugins)
    assert service["metadata"]["name"] == "tune"
    assert (spec["clusterIP"], spec["publishNotReadyAddresses"]) == ("None", True)
    behind = [
        (task["name"], task["replicas"])
        for part in volcano_jobs(job)
        for task in part["spec"]["tasks"]
        if spec["selector"].items() <= task["template"]["metadata"]["labels"].items()
    ]
    assert behind == [("worker0", 1)]
    assert job.notes[0] == (
        f"The names of {nodes} pods are more than Volcano can write into each of them, so they "
        "meet at the first one through a Service, without a list of hosts."
    )
    divided = (
        "Divided into 2 Volcano jobs of at most 10000 pods: each starts all of its own pods "
        "together, and those that are there wait for the others."
    )
    found = [note for note in job.notes if note.startswith("Divided")]
    assert found == ([divided] if nodes > 10_000 else [])


def test_an_object_does_not_grow_with_the_number_of_nodes(
    large: Mapping[int, JobManifests],
) -> None:
    small = len(json.dumps(prepared(LARGE, nodes=8).objects))
    sizes = [len(json.dumps(large[nodes].objects[-1])) for nodes in (2501, 10_000)]
    assert len(json.dumps(large[2500].objects)) - small < 100
    assert max(sizes) < 5 * small


def test_a_long_name_costs_the_list_of_hosts_earlier() -> None:
    """The kernel starts no program with a variable of 128 KiB."""
    for nodes, services in ((1200, 0), (1400, 1)):
        job = prepared(large_cluster(), make_job(name="n" * 40, role="r" * 13, nodes=nodes))
        assert len(objects(job, "Service")) == services
        assert findings(job, "1.35") == []


def test_a_hundred_thousand_pods_are_divided_into_legal_parts() -> None:
    division = divide(name="n" * 40, role="r" * 13, pods=100_000, min_available=100_000)

    starts = [(task.first, task.pods) for part in division.parts for task in part.tasks]
    assert [start for start, _ in starts] == [
        sum(pods for _, pods in starts[:number]) for number in range(len(starts))
    ]
    assert sum(pods for _, pods in starts) == 100_000
    assert len(division.parts) == 10
    assert sum(task.rank_zero for part in division.parts for task in part.tasks) == 1
    assert longest_pod(division) <= 63


@settings(deadline=None)
@given(
    name=st.from_regex(r"[a-z]([-a-z0-9]{0,38}[a-z0-9])?", fullmatch=True),
    role=st.from_regex(r"[a-z][a-z0-9]{0,12}", fullmatch=True),
    pods=st.integers(1, 100_000),
)
def test_every_pod_of_every_job_has_a_host_name(name: str, role: str, pods: int) -> None:
    """Neuron's runtime and DNS take 63 characters, and Volcano's webhook no pod with more."""
    division = divide(name=name, role=role, pods=pods, min_available=pods)

    assert longest_pod(division) <= 63
    assert len({part.name for part in division.parts}) == len(division.parts)
    assert sum(task.pods for part in division.parts for task in part.tasks) == pods


def longest_pod(division: Division) -> int:
    return max(
        len(f"{part.name}-{task.name}-{task.pods - 1}")
        for part in division.parts
        for task in part.tasks
    )


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    name=st.from_regex(r"[a-z]([-a-z0-9]{0,38}[a-z0-9])?", fullmatch=True),
    gang=st.booleans(),
    nodes=st.sampled_from([1, 2, 4]),
)
def test_a_job_of_any_name_is_taken(name: str, gang: bool, nodes: int) -> None:
    cluster = job_cluster(
        NEURON_POOL | {"nodes": {"static": 4}}, scheduling=VOLCANO if gang else None
    )

    job = prepared(cluster, make_job(name=name, nodes=nodes))

    assert findings(job, "1.35") == []
    if not gang:
        assert len(f"{name}-{nodes - 1}") <= 63


def test_a_job_of_more_than_a_mebibyte_is_refused() -> None:
    (line,) = sentences(args=["x" * 100_000] * 11)
    assert line == (
        "job: a job of 1.1 MiB, more than Kubernetes takes of one object; "
        "move long arguments and variables into a file on a volume"
    )
    # Tasks that repeat a long pod are refused together.
    assert not refusals(args=["x" * 100_000] * 3)
    (line,) = sentences(large_cluster(), nodes=10_000, args=["x" * 100_000] * 3)
    assert "a job of 1.5 MiB" in line


@pytest.mark.parametrize(
    ("key", "changes"),
    [
        ("args[1]", {"args": ["a", "x" * 131_072]}),
        ("command[0]", {"command": ["x" * 131_072], "script": None}),
        ("env.LONG", {"env": {"LONG": "x" * 131_067}}),
    ],
)
def test_a_word_that_no_program_can_be_given_is_refused(key: str, changes: dict[str, Any]) -> None:
    """Each pod would end with "Argument list too long", and the gang restart for nothing."""
    assert refusals(job=make_job(**changes)) == [f"{key}: words_are_short"]
    assert not refusals(args=["x" * 131_071])
    # So says the kernel.
    subprocess.run(["true", "x" * 131_071], check=True)
    with pytest.raises(OSError, match="Argument list too long"):
        subprocess.run(["true", "x" * 131_072], check=True)
