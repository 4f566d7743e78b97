"""Secrets, deadline, scratch, annotations, init and patch: on every engine, or refused."""

import signal
import subprocess
import time
from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from tests.support.config_jobs import LUSTRE
from tests.support.job_rules import findings, pod_templates
from tests.support.jobs import (
    BATCH,
    KUEUE,
    SERVICE,
    job_cluster,
    make_job,
    prepared,
    refusals,
    sentences,
)
from tests.support.pools import (
    HYPERPOD_POOL,
    NEURON_POOL,
    SYSTEM_POOL,
    governed_document,
    make_document,
    make_pool,
    pool_document,
)
from ultrascale.documents import look_up
from ultrascale.jobs import JobManifests
from ultrascale.plan.jobs import command
from ultrascale.plan.jobs.scratch import local_gb
from ultrascale.plan.pools.pool import plan_pool

HYPERPOD = make_document(pools=[SYSTEM_POOL, HYPERPOD_POOL])
PLAIN = job_cluster(NEURON_POOL | {"nodes": {"static": 4}}, scheduling=None)
WHOLE = BATCH | {"resources": {"neuron": 16}}
ROLES = {"trainer": {}, "reward": {"command": ["reward"]}}
OPERATED = make_document(
    pools=[SYSTEM_POOL, HYPERPOD_POOL | {"deep_health_checks": True}],
    hyperpod={"training_operator": True},
)
ON_KUEUE = job_cluster(scheduling=KUEUE)
# Each engine: a cluster file, a job of it, and the kind of its workload.
ENGINES: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "Volcano": (job_cluster(), make_job(), "Job"),
    "Volcano, one pod": (job_cluster(), WHOLE, "Job"),
    "Kueue, several nodes": (ON_KUEUE, make_job(), "JobSet"),
    "Kueue, one node": (ON_KUEUE, WHOLE, "Job"),
    "HyperPod": (HYPERPOD, make_job(pool="hp"), "PyTorchJob"),
    "governance": (governed_document(), make_job(pool="hp", team="research"), "PyTorchJob"),
    "HyperPod's training operator": (OPERATED, make_job(pool="hp"), "HyperPodPyTorchJob"),
    "none": (PLAIN, make_job(), "Job"),
    "roles on Volcano": (job_cluster(), make_job(nodes=None, roles=ROLES), "Job"),
    "roles on Kueue": (ON_KUEUE, make_job(nodes=None, roles=ROLES), "JobSet"),
    "array on Volcano": (job_cluster(), WHOLE | {"array": {"size": 4, "parallelism": 2}}, "Job"),
    "service": (job_cluster(), SERVICE | {"resources": {"neuron": 16}}, "Deployment"),
}


def workload(job: JobManifests, kind: str) -> Any:
    (found,) = (dict(each) for each in job.objects if each["kind"] == kind)
    return found


def secrets(job: JobManifests, _: str) -> None:
    for template in pod_templates(job):
        env = template["spec"]["containers"][0]["env"]
        taken = {each["name"]: each["valueFrom"] for each in env if "valueFrom" in each}
        assert taken["HF_TOKEN"] == {"secretKeyRef": {"name": "hub", "key": "HF_TOKEN"}}
    assert job.secrets == {"hub": ("HF_TOKEN", "HF_USER")}


def scratch(job: JobManifests, _: str) -> None:
    for template in pod_templates(job):
        volumes, (container,) = template["spec"]["volumes"], template["spec"]["containers"]
        (name,) = (each["name"] for each in volumes if each.get("emptyDir") == {})
        assert {"name": name, "mountPath": "/scratch"} in container["volumeMounts"]
    assert any("/scratch is local NVMe, " in note for note in job.notes)


def annotations(job: JobManifests, _: str) -> None:
    for template in pod_templates(job):
        assert template["metadata"]["annotations"]["example.com/owner"] == "ml"


def init(job: JobManifests, _: str) -> None:
    for template in pod_templates(job):
        spec = template["spec"]
        (container,), (before,) = spec["containers"], spec["initContainers"]
        assert before["command"] == ["sh", "-c", "cp -r /data $$DEST"]
        for field in ("image", "env", "resources", "volumeMounts", "securityContext"):
            assert before.get(field) == container.get(field), field
        assert before["name"] != container["name"]


def deadline(job: JobManifests, kind: str) -> None:
    found = workload(job, kind)
    if found["apiVersion"].startswith("batch.volcano.sh"):
        for template in pod_templates(job):
            words = template["spec"]["containers"][0]["command"]
            assert words[:3] == ["timeout", "--foreground", "5400s"]
            assert words[3:7] == ["timeout", "--foreground", "--kill-after=110s", "0"]
        assert {"exitCode": 124, "action": "TerminateJob"} in found["spec"]["policies"]
        return
    spec: Any = look_up(found, "spec")
    if kind.endswith("PyTorchJob"):
        spec = spec["runPolicy"]
    if kind == "JobSet":
        first = spec["failurePolicy"]["rules"][0]
        assert first["onJobFailureReasons"] == ["DeadlineExceeded"]
        assert first["action"] == "FailJobSet"
        jobs = [each["template"]["spec"] for each in spec["replicatedJobs"]]
        assert {each["activeDeadlineSeconds"] for each in jobs} == {5400}
        spec = spec["replicatedJobs"][0]["template"]["spec"]
    assert spec["activeDeadlineSeconds"] == 5400
    # Restarts and evictions start that clock anew; Kueue's goes on.
    labels = found["metadata"]["labels"]
    assert ("kueue.x-k8s.io/queue-name" in labels) == (job.local_queue is not None)
    if job.local_queue is not None:
        assert labels["kueue.x-k8s.io/max-exec-time-seconds"] == "5460"


KEYS: dict[str, tuple[Any, Callable[[JobManifests, str], None]]] = {
    "secrets": ({"HF_TOKEN": "hub", "HF_USER": "hub"}, secrets),
    "deadline_hours": (1.5, deadline),
    "scratch": ("/scratch", scratch),
    "annotations": ({"example.com/owner": "ml"}, annotations),
    "init": (["sh", "-c", "cp -r /data $DEST"], init),
}


@pytest.mark.parametrize("engine", [engine for engine in ENGINES if engine != "service"])
def test_pods_of_a_job_that_may_idle_say_so(engine: str) -> None:
    cluster, job, _ = ENGINES[engine]
    templates = pod_templates(prepared(cluster, job, idle="allow"))
    own = [template["metadata"]["labels"].get("ultrascale.dev/idle") for template in templates]
    assert {*own} == {"allow"}


@pytest.mark.parametrize("key", [*KEYS, "patch"])
@pytest.mark.parametrize("engine", ENGINES)
def test_a_key_of_jobs_works_on_every_engine_or_says_why_not(engine: str, key: str) -> None:
    cluster, job, kind = ENGINES[engine]
    if key == "patch":
        patch = {kind: {"metadata": {"annotations": {"example.com/a": "b"}}}}
        sent = prepared(cluster, job, patch=patch)
        assert workload(sent, kind)["metadata"]["annotations"]["example.com/a"] == "b"
        assert any(f"patch of {kind} sets metadata.annotations" in note for note in sent.notes)
        return
    value, expect = KEYS[key]
    if key == "deadline_hours" and engine == "service":
        (line,) = refusals(cluster, job, **{key: value})
        assert "service_has_no_deadline" in line
        return
    sent = prepared(cluster, job, **{key: value})
    expect(sent, kind)
    assert findings(sent) == []


def test_all_keys_together_make_one_job_that_every_engine_takes() -> None:
    stated = {key: value for key, (value, _) in KEYS.items()}

    for cluster, job, kind in ENGINES.values():
        if kind == "Deployment":
            continue
        assert findings(prepared(cluster, job, **stated)) == [], kind


PROGRAM = """
sleep 30 > /dev/null 2>&1 & kid=$!
trap 'echo saved; kill $kid; exit 0' TERM
echo up
wait
"""


def test_a_program_on_volcano_saves_once_at_its_deadline_and_ends_by_a_code_of_its_own() -> None:
    words = command.timed(("bash", "-c", PROGRAM), 1, grace_seconds=5)

    ended = subprocess.run(words, capture_output=True, text=True, check=False)

    assert (ended.returncode, ended.stdout) == (command.DEADLINE_EXIT_CODE, "up\nsaved\n")


def test_a_program_that_has_to_be_killed_at_its_deadline_ends_the_job_as_well() -> None:
    """Any other code than the deadline's starts the job anew, for as long again."""
    words = command.timed(("bash", "-c", "trap '' TERM; exec sleep 30"), 1, grace_seconds=1)

    assert subprocess.run(words, check=False).returncode == command.DEADLINE_EXIT_CODE


def test_a_drain_reaches_a_program_with_a_deadline_once_and_keeps_its_exit_code() -> None:
    words = command.timed(("bash", "-c", PROGRAM), 60, grace_seconds=5)

    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as program:
        assert program.stdout is not None
        assert program.stdout.readline() == "up\n"
        # Each `timeout` ends by itself while it does not yet know the process that it has started.
        time.sleep(0.5)
        program.send_signal(signal.SIGTERM)
        assert program.stdout.read() == "saved\n"

    assert program.returncode == 0


# --- scratch ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("others", "todo"),
    [
        ([], "use a volume instead"),
        ([NEURON_POOL | {"name": "disks"}], "name a pool with NVMe: disks"),
    ],
)
def test_scratch_is_refused_where_it_would_fill_an_ebs_volume(
    others: list[dict[str, Any]], todo: str
) -> None:
    cluster = job_cluster(pool_document(instance_types=["inf2.48xlarge"]), *others)
    (line,) = sentences(cluster, WHOLE, scratch="/scratch", resources={"neuron": 12})
    assert "no local NVMe for pods on nodes of train (inf2.48xlarge)" in line
    assert todo in line
    # Nor does it hide a file system that the job mounts without naming it.
    (line,) = refusals(job_cluster(storage=LUSTRE), make_job(), scratch="/data")
    assert line == "scratch: scratch_is_local"


def test_auto_mode_leaves_disks_unused_that_are_smaller_than_its_volume() -> None:
    pool = plan_pool(make_pool(instance_types=["g6.xlarge"]), kubernetes_version="1.35")
    auto_mode = replace(pool, provisioner="auto-mode")
    large = replace(pool.root_disk, size_gib=500)

    assert [local_gb(each) for each in (pool, auto_mode)] == [250, 250]
    assert local_gb(replace(auto_mode, root_disk=large)) is None


# --- init ---------------------------------------------------------------------------------------


def test_a_failure_before_the_program_is_not_taken_for_its_mistake() -> None:
    """Many tools end with 2, by which a script says that no restart helps."""
    plain = workload(prepared(PLAIN, make_job(), init=["fetch"]), "Job")["spec"]
    jobset = workload(prepared(job_cluster(scheduling=KUEUE), make_job(), init=["fetch"]), "JobSet")

    for job in (plain, jobset["spec"]["replicatedJobs"][0]["template"]["spec"]):
        (codes,) = (each for each in job["podFailurePolicy"]["rules"] if "onExitCodes" in each)
        assert codes["onExitCodes"]["containerName"] == "worker"


# --- patch --------------------------------------------------------------------------------------


def task(name: str = "worker", job: str = "tune", container: str = "worker") -> dict[str, Any]:
    labels = {"ultrascale.dev/job": job}
    pod = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": container}]}}
    return {"Job": {"spec": {"tasks": [{"name": name, "replicas": 2, "template": pod}]}}}


FOUND_BY = "patch_keeps_what_a_job_is_found_by"
BAD_PATCHES: dict[str, tuple[dict[str, Any], str]] = {
    "kind of another engine": ({"JobSet": {"spec": {}}}, "patch_has_its_object"),
    "kind of no job": ({"Pod": {"spec": {}}}, FOUND_BY),
    "name": ({"Job": {"metadata": {"name": "x"}}}, FOUND_BY),
    "namespace": ({"Job": {"metadata": {"namespace": None}}}, FOUND_BY),
    "kind": ({"Job": {"kind": "Pod"}}, FOUND_BY),
    "all labels": ({"Job": {"metadata": {"labels": None}}}, "patch_keeps_names"),
    "pods of another job": (task(job="x"), "patch_keeps_names"),
    "another container": (task(container="x"), "patch_keeps_names"),
}


@pytest.mark.parametrize(("patch", "wrong"), BAD_PATCHES.values(), ids=list(BAD_PATCHES))
def test_a_patch_after_which_nobody_finds_the_job_is_refused(
    patch: dict[str, Any], wrong: str
) -> None:
    lines = refusals(None, make_job(), patch=patch)

    assert lines
    assert all(line.startswith("patch.") for line in lines), lines
    assert lines[0].endswith(f": {wrong}")


def test_a_patch_is_merged_as_rfc_7396_says() -> None:
    volumes = [{"mountPath": "/x", "volumeClaim": {"accessModes": ["ReadWriteMany"]}}]
    spec = {"maxRetry": None, "queue": "other", "plugins": {"env": ["x"]}, "volumes": volumes}
    before, after, renamed = (
        workload(prepared(None, make_job(), patch=each), "Job")["spec"]
        for each in ({}, {"Job": {"spec": spec}}, task("trainer"))
    )
    assert before["maxRetry"] == 11
    assert "maxRetry" not in after
    assert (after["queue"], after["volumes"]) == ("other", volumes)
    assert after["plugins"] == {**before["plugins"], "env": ["x"]}
    assert after["tasks"] == before["tasks"]
    # It may write a list anew.
    assert [each["name"] for each in renamed["tasks"]] == ["trainer"]


@pytest.mark.parametrize(("nodes", "most"), [(2, 500), (2_000, 1_000), (16_000, 1_100)])
def test_nodes_that_wait_for_the_first_one_do_not_overrun_it(nodes: int, most: int) -> None:
    pause = command._pause(nodes)  # pyright: ignore[reportPrivateUsage]
    script = f"for i in {{1..300}}; do echo {pause}; done"
    said = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True).stdout

    mean = sum(map(int, said.split())) / 300
    assert nodes / mean <= most
    assert mean <= 20
