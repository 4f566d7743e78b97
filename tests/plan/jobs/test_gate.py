"""Checks of nodes before a job: what they run, where, for how long, and what is refused."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.support.job_rules import findings, pod_templates
from tests.support.jobs import KUEUE, VOLCANO, job_cluster, make_job, prepared, sentences
from tests.support.pools import (
    HYPERPOD_POOL,
    NEURON_POOL,
    ODCR,
    POOL,
    SYSTEM_POOL,
    governed_document,
    make_document,
)
from ultrascale.documents import text
from ultrascale.jobs.manifests import JobManifests
from ultrascale.parts.fabric.facts import DCGM_COMMAND
from ultrascale.parts.fabric.gate import device_verdict

RESERVED = {"role": "reserved", "purchase": ODCR, "nodes": {"static": 8}}
GPUS = POOL | RESERVED
NEURON = NEURON_POOL | RESERVED
BOTH = make_job(nodes=4, preflight=["fabric", "device"])
ENGINES: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "Volcano": (job_cluster(GPUS, scheduling=VOLCANO), BOTH, "Job"),
    "Kueue": (job_cluster(GPUS, scheduling=KUEUE), BOTH, "JobSet"),
    "none": (job_cluster(GPUS, scheduling=None), BOTH, "Job"),
    "HyperPod": (make_document(pools=[SYSTEM_POOL, HYPERPOD_POOL]), BOTH | {"pool": "hp"}, "Job"),
    "HyperPod's governance": (
        governed_document(),
        BOTH | {"pool": "hp", "team": "research"},
        "Job",
    ),
}


def check(name: str, job: JobManifests) -> JobManifests:
    (found,) = [each.job for each in job.checks if each.check == name]
    return found


def variables(job: JobManifests) -> dict[str, Any]:
    (template,) = pod_templates(job)
    return {each["name"]: each for each in template["spec"]["containers"][0]["env"]}


def settings(job: JobManifests) -> dict[str, Any]:
    return json.loads(variables(check("fabric", job))["FABRIC_SETTINGS"]["value"])


@pytest.mark.parametrize("engine", ENGINES)
def test_each_engine_takes_checks_of_the_jobs_own_shape(engine: str) -> None:
    cluster, stated, kind = ENGINES[engine]
    job = prepared(cluster, stated)
    (own,) = pod_templates(job)

    assert [each.check for each in job.checks] == ["device", "fabric"]
    for each in job.checks:
        assert findings(each.job) == []
        assert text(each.job.objects[-1], "kind") == kind
        assert (each.job.pods, each.job.local_queue, each.job.queue) == (
            job.pods,
            job.local_queue,
            job.queue,
        )
        (pods,) = pod_templates(each.job)
        container, main = pods["spec"]["containers"][0], own["spec"]["containers"][0]
        assert container["resources"] == main["resources"]
        assert pods["spec"]["affinity"] == own["spec"]["affinity"]
        node = {"fieldRef": {"fieldPath": "spec.nodeName"}}
        assert variables(each.job)["ULTRASCALE_NODE"]["valueFrom"] == node


def test_a_check_has_nothing_of_the_program_of_its_job() -> None:
    own = {"env": {"A": "1"}, "secrets": {"TOKEN": "hub"}, "init": ["fetch"], "args": ["x"]}
    for each in prepared(job_cluster(GPUS), BOTH | own).checks:
        (pods,) = pod_templates(each.job)
        assert not each.job.secrets
        assert "initContainers" not in pods["spec"]
        assert "A" not in variables(each.job)
    assert prepared(job_cluster(GPUS), make_job(preflight="none")).checks == ()


def test_floors_come_from_published_figures_and_from_the_file() -> None:
    stated = {**VOLCANO, "preflight": {"floors": {"p5.48xlarge": 400}}}
    assert settings(prepared(job_cluster(GPUS), BOTH))["floor"] == 349.6
    assert settings(prepared(job_cluster(GPUS, scheduling=stated), BOTH))["floor"] == 400


def test_neuron_devices_are_measured_by_their_own_tool() -> None:
    job = prepared(job_cluster(NEURON), BOTH)
    said = settings(job)
    # `-c allr` would take the operation for the kind of check.
    words = " ".join(said["command"])
    assert words.endswith("--check all_ones allr --hosts {lead} {peer}")
    assert (said["slots"], said["floor"]) == (32, 37.7)
    (pods,) = pod_templates(check("device", job))
    assert "/dev/neuron" in pods["spec"]["containers"][0]["command"][-1]


DIAGNOSES = {
    "passes": ("echo No error", 0, ""),
    "fails": ("echo Memory: Fail >&2; echo the end; exit 226", 226, "Memory: Fail"),
    # The API server would refuse a status that is no UTF-8.
    "prints what is no text": (r"printf 'Error \377\303 42\n'; exit 1", 1, "Error  42"),
    "is not in the image": ("no-such-program", 127, "found"),
}


@pytest.mark.parametrize("case", DIAGNOSES)
def test_a_diagnosis_leaves_its_verdict_as_the_message_of_its_pod(
    case: str, tmp_path: Path
) -> None:
    test, status, last = DIAGNOSES[case]
    job = prepared(job_cluster(GPUS), BOTH)
    (pods,) = pod_templates(check("device", job))
    *_, shell, option, script = pods["spec"]["containers"][0]["command"]
    message = tmp_path / "termination-log"
    script = script.replace("$$", "$").replace(DCGM_COMMAND, test)

    ended = subprocess.run(
        [shell, option, script.replace("/dev/termination-log", str(message))],
        env={"PATH": os.environ["PATH"], "ULTRASCALE_NODE": "node-1"},
        capture_output=True,
        text=True,
        errors="replace",
        check=True,
        timeout=30,
    )

    # Before it a pod was evicted from the node; what it left is the end of its log.
    evicted = ("node-1", "Error")
    verdict = device_verdict([("node-1", message.read_text(encoding="utf-8")), evicted], 1)
    told = {**verdict.bad, **verdict.undecided}.get("node-1", "")
    assert told.startswith(f"exit status {status}: " if status else "")
    assert told.endswith(last)
    assert ended.stdout.splitlines()[-1].startswith('device-verdict {"node": "node-1"')


@pytest.mark.parametrize(
    ("types", "share", "note"),
    [
        (["p5en.48xlarge"], 0.6, "pairs below 60% of the best one fail"),
        # Nodes of several types are not compared.
        (["p5en.48xlarge", "p5e.48xlarge"], None, "the transport alone is judged"),
    ],
)
def test_without_a_figure_pairs_are_compared_with_the_best_and_the_user_is_told(
    types: list[str], share: float | None, note: str
) -> None:
    one = len(types) == 1
    pool = (GPUS if one else POOL | {"efa": "none"}) | {"instance_types": types}
    job = prepared(job_cluster(pool, scheduling=VOLCANO), make_job(preflight="fabric"))
    said = settings(job)
    assert (said["floor"], said["share"], said["efa"]) == (None, share, one)
    assert any(note in each for each in job.notes)


def test_the_user_is_told_rounds_minutes_and_dollars() -> None:
    told, tries = prepared(job_cluster(GPUS), make_job(preflight="fabric")).notes[-2:]
    assert "at most 3 rounds; pairs below 349.6 GB/s fail; at most 45 minutes of 2 nodes, $" in told
    assert "at most 3 times in all" in tries


def test_a_limit_in_dollars_shortens_the_check() -> None:
    dear = prepared(job_cluster(GPUS), BOTH)
    stated = {**VOLCANO, "preflight": {"max_usd": 75}}
    cheap = prepared(job_cluster(GPUS, scheduling=stated), BOTH)
    held = {each.check: each.seconds for each in cheap.checks}
    assert {each.check: each.seconds for each in dear.checks} == {"device": 1500, "fabric": 2700}
    assert 600 < held["fabric"] == held["device"] < 1500
    # Everything that the nodes are held for counts: pods that meet, rounds, the end.
    said = settings(cheap)
    assert said["join_seconds"] + said["seconds"] + 60 == held["fabric"]


def test_images_can_be_the_users_own() -> None:
    images = {"image": "registry.example.com/tests:1", "device_image": "registry.example.com/d:1"}
    job = prepared(job_cluster(GPUS, scheduling={**VOLCANO, "preflight": images}), BOTH)
    found = [
        next(iter(pod_templates(each.job)))["spec"]["containers"][0]["image"] for each in job.checks
    ]
    assert found == [images["device_image"], images["image"]]


REFUSED: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "one node": (
        job_cluster(GPUS),
        {"nodes": 1, "preflight": "fabric"},
        "job: preflight: fabric measures between nodes, and the job has one node",
    ),
    "a part of a node": (
        job_cluster(GPUS),
        {"resources": {"gpu": 1}, "preflight": "device"},
        "job: preflight: preflight checks whole nodes, but resources takes a part",
    ),
    "no accelerators": (
        job_cluster(GPUS | {"instance_types": ["m7i.8xlarge"]}),
        {"preflight": "device"},
        "job: preflight: preflight checks accelerators, and these nodes have none",
    ),
    "a long name": (
        job_cluster(GPUS),
        {"name": "a" * 36, "preflight": "fabric"},
        "job: preflight: the checks' names would be too long: 43 characters",
    ),
    "Inferentia": (
        job_cluster(NEURON | {"instance_types": ["inf2.48xlarge"]}),
        {"preflight": "fabric"},
        "job: preflight: nccom-test measures between nodes of Trainium, not of inf2.48xlarge",
    ),
    "too few dollars": (
        job_cluster(GPUS, scheduling={**VOLCANO, "preflight": {"max_usd": 5}}),
        {"preflight": "fabric"},
        "job: preflight: scheduling.preflight.max_usd: 5 pays 2 nodes for 2 minutes",
    ),
    "an image without a program for the GPU": (
        job_cluster(GPUS | {"instance_types": ["g7e.48xlarge"]}),
        {"preflight": "fabric"},
        "job: preflight: AWS's image of nccl-tests has no program for NVIDIA RTX PRO 6000",
    ),
    "an image without a program for Arm": (
        job_cluster(GPUS | {"instance_types": ["g5g.16xlarge"]}),
        {"preflight": "fabric"},
        "job: preflight: AWS's image of nccl-tests has no program for NVIDIA T4G",
    ),
    "several roles": (
        job_cluster(GPUS),
        {"nodes": None, "roles": {"trainer": {}, "judge": {}}, "preflight": "device"},
        "job: preflight: a check before the job knows one role alone, and the job has several",
    ),
    "no such check": (job_cluster(GPUS), {"preflight": "fabrik"}, "job: preflight"),
    "one check twice": (
        job_cluster(GPUS),
        {"preflight": ["device", "device"]},
        "job: preflight[1]: listed twice",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_checks_that_cannot_be_made_are_refused(case: str) -> None:
    cluster, changes, told = REFUSED[case]
    lines = sentences(cluster, make_job(**changes))
    assert any(line.startswith(told) for line in lines), lines
