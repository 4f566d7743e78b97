"""Jobs of Ray: what the API server, KubeRay and Kueue refuse is not sent, and nothing opens it."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.crd_schemas import CrdSet
from tests.support.folders import DATA, ROOT
from tests.support.jobs import IMAGE, job_cluster, prepared
from tests.support.kubernetes_schemas import MINORS, validate_core
from tests.support.pools import pool_document
from ultrascale.cluster_api.objects import Kind
from ultrascale.jobs.pods import by_rank, place_of, read_pod
from ultrascale.jobs.workloads import read_workload
from ultrascale.parts.ray import facts

Thing = dict[str, Any]
LINES = (DATA / "ray_crds.jsonl").read_text().splitlines()
CRDS = CrdSet.from_documents(map(json.loads, LINES))
RAY_JOB = Kind("ray.io/v1", "RayJob", "rayjobs")
CPU = {"gpu": 0, "cpu": 8, "memory": "32Gi"}
SCHEDULING: dict[str, Thing] = {
    "none": {"queueing": "none"},
    "kueue": {"queueing": "kueue", "queues": [{"name": "a", "topology": True}]},
    "volcano": {"queueing": "volcano", "queues": [{"name": "a"}, {"name": "b"}]},
}
POOL = pool_document(name="train", instance_types=["p5en.48xlarge"], nodes={"static": 64})
ALIGN: Thing = {
    "name": "align",
    "kind": "ray",
    "ray_version": "2.60.0",
    "image": IMAGE,
    "durable": False,
    "command": ["python3", "-m", "align", "--say=a b; $(id)"],
    "roles": {"head": {"pool": "train"}, "workers": {"pool": "train", "nodes": 2}},
}


def sent(engine: str, job: Thing = ALIGN) -> tuple[Thing, ...]:
    cluster = job_cluster(POOL, scheduling=SCHEDULING[engine])
    named = {} if engine == "none" else {"queue": "a"}
    return tuple(json.loads(json.dumps(each)) for each in prepared(cluster, job | named).objects)


def groups(job: Thing) -> list[Thing]:
    cluster = job["spec"]["rayClusterSpec"]
    return [cluster["headGroupSpec"], *cluster["workerGroupSpecs"]]


def refused(job: Thing) -> list[str]:
    """Return why KubeRay 1.7.0 (validation.go) or Kueue 0.19.2 (rayjob_webhook.go) refuse it."""
    spec = job["spec"]
    cluster = spec["rayClusterSpec"]
    head, *workers = groups(job)
    version = tuple(map(int, cluster["rayVersion"].split(".")))
    suspended = spec.get("suspend") and not spec["shutdownAfterJobFinishes"]
    sidecar = spec["submissionMode"] == "SidecarMode"
    policy = head["template"]["spec"].get("restartPolicy", "Never")
    found = {
        "suspended without a shutdown": suspended,
        "no shutdown in a queue": not spec["shutdownAfterJobFinishes"],
        "a selector": "clusterSelector" in spec,
        "autoscaling": cluster.get("enableInTreeAutoscaling"),
        "a submitter of its own": sidecar and {"submitterPodTemplate", "submitterConfig"} & {*spec},
        "a head that restarts": sidecar and policy != "Never",
        "no token": cluster["authOptions"]["mode"] == "token" and version < (2, 52),
        "no positive time": min(spec.get(k, 1) for k in spec if k.endswith("DeadlineSeconds")) <= 0
        if any(k.endswith("DeadlineSeconds") for k in spec)
        else False,
        "a long name": len(job["metadata"]["name"]) > 47 or job["metadata"]["name"][0].isdigit(),
        "counts": any({"minReplicas", "maxReplicas"} - {*each} for each in workers),
        "a group called head": any(each["groupName"] == "head" for each in workers),
        "too many kinds of pods": len(workers) + 1 > 18,
    }
    return [why for why, holds in found.items() if holds]


@settings(max_examples=25, deadline=None)
@given(
    st.sampled_from([*SCHEDULING]),
    st.dictionaries(st.from_regex(r"[a-z][a-z0-9]{0,6}", fullmatch=True), st.integers(1, 9)),
    st.integers(0, 4),
    st.none() | st.floats(0.01, 500),
)
def test_a_job_of_ray_that_check_takes_is_taken_by_its_controllers(
    engine: str, workers: dict[str, int], restarts: int, hours: float | None
) -> None:
    roles = {name: {"pool": "train", "nodes": nodes} for name, nodes in [*workers.items()][:6]}
    roles = {name: role for name, role in roles.items() if name not in ("head", "headgroup")}
    job = ALIGN | {"restarts": {"job": restarts}, "roles": roles | {"head": {"pool": "train"}}}
    policy, found = sent(engine, job | ({"deadline_hours": hours} if hours else {}))

    assert CRDS.validate(found) == []
    stored = dict(CRDS.stored(found))
    # The only defaults that the API server adds.
    for group in groups(stored)[1:]:
        assert (group.pop("numOfHosts"), group.pop("priority")) == (1, 0)
    assert stored == found
    assert refused(found) == []
    for minor in MINORS:
        assert validate_core(policy, minor) == []
        for each in groups(found):
            pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "it"}}
            pod["spec"] = each["template"]["spec"]
            assert validate_core(pod, minor) == []
    assert [each.get("replicas", 1) for each in groups(found)] == [
        1,
        *(role["nodes"] for role in roles.values()),
    ]
    assert found["spec"]["backoffLimit"] == restarts
    assert ("activeDeadlineSeconds" in found["spec"]) == (hours is not None)


@pytest.mark.parametrize("engine", SCHEDULING)
def test_nobody_else_runs_code_in_a_job_of_ray(engine: str) -> None:
    """Upstream's samples have no token; AWS's are privileged, on the network of the host."""
    policy, found = sent(engine)
    own = {"matchLabels": {"ultrascale.dev/job": "align"}}
    assert policy["spec"]["podSelector"] == own
    assert policy["spec"]["ingress"] == [{"from": [{"podSelector": own}]}]
    assert found["spec"]["rayClusterSpec"]["authOptions"] == {"mode": "token"}
    text = json.dumps(found)
    assert not [each for each in ("privileged", "hostNetwork", "hostPath") if each in text]
    assert found["spec"]["rayClusterSpec"]["headGroupSpec"]["rayStartParams"] == {}


def test_its_pods_are_those_of_a_jobset_but_for_what_ray_needs() -> None:
    of_ray = groups(sent("kueue")[-1])
    changes = {"kind": None, "ray_version": None, "script": "t.py", "command": None}
    job = {key: value for key, value in (ALIGN | changes).items() if value is not None}
    (jobset,) = sent("kueue", job)
    roles = {each["name"]: each for each in jobset["spec"]["replicatedJobs"]}
    for group, name in zip(of_ray, ("head", "workers"), strict=True):
        # A quarter of the memory, of which the head has less.
        del group["template"]["spec"]["volumes"][0]["emptyDir"]["sizeLimit"]
        del roles[name]["template"]["spec"]["template"]["spec"]["volumes"][0]["emptyDir"][
            "sizeLimit"
        ]
        (own,) = group["template"]["spec"].pop("containers")
        theirs = roles[name]["template"]["spec"]["template"]["spec"]
        (other,) = theirs.pop("containers")
        assert group["template"]["spec"] == theirs
        # The operator adds a container to the head, and writes the command of all.
        if name == "head":
            requests, limits = own["resources"]["requests"], own["resources"]["limits"]
            room = other["resources"]["requests"]
            assert int(room["memory"][:-2]) - int(requests["memory"][:-2]) == 1024
            assert float(room["cpu"]) - float(requests["cpu"]) >= 0.5
            assert limits["memory"] == requests["memory"]
            own["resources"] = other["resources"]
        env = {each["name"]: each for each in own.pop("env")}
        of_jobset = {each["name"]: each for each in other.pop("env")}
        assert own == {key: value for key, value in other.items() if key != "command"}
        differing = {
            key for key in env.keys() | of_jobset.keys() if env.get(key) != of_jobset.get(key)
        }
        assert differing == {
            "RAY_USAGE_STATS_ENABLED",
            *("ROLE", "ROLE_INDEX", "HEAD_HOSTS", "WORKERS_HOSTS"),
            *("JOBSET_UID", "ATTEMPT"),
            *(("ULTRASCALE_RANK_ZERO_HOST",) if "ULTRASCALE_RANK_ZERO_HOST" in of_jobset else ()),
        }


def test_the_release_of_a_built_image_is_that_of_its_pin() -> None:
    pins = (ROOT / "images/posttrain/requirements.txt").read_text()
    assert f"\nray=={facts.OF_BUILDS['posttrain']} " in pins


def test_volcano_gets_the_queue_the_priority_and_no_deadline_of_the_wait() -> None:
    job = ALIGN | {
        "priority": "high",
        "roles": ALIGN["roles"] | {"head": {"pool": "train", "resources": CPU}},
    }
    found = sent("volcano", job)[-1]
    assert found["metadata"]["labels"]["volcano.sh/queue-name"] == "a"
    assert found["metadata"]["labels"]["ray.io/priority-class-name"] == "high"
    assert "preRunningDeadlineSeconds" not in found["spec"]


def test_kueue_places_the_workers_alone_by_the_network() -> None:
    found = sent("kueue")[-1]
    assert found["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == "a"
    keys = [{*each["template"]["metadata"]["annotations"]} for each in groups(found)]
    placed = ["kueue.x-k8s.io/podset-preferred-topology" in each for each in keys]
    assert placed == [False, True]


# --- State ----------------------------------------------------------------------------------------


def job_in_state(**status: Any) -> Thing:
    found = sent("none", ALIGN | {"restarts": {"job": 2}})[-1]
    return found | {"status": status}


STATES: list[tuple[Thing, str, str | None, bool, int]] = [
    ({}, "Pending", None, False, 0),
    ({"jobDeploymentStatus": "Initializing"}, "Pending", None, False, 0),
    ({"jobDeploymentStatus": "Suspended"}, "Suspended", None, False, 0),
    ({"jobDeploymentStatus": "Running", "jobStatus": "RUNNING"}, "Running", None, True, 0),
    ({"jobDeploymentStatus": "Retrying", "failed": 1}, "Retrying", None, False, 1),
    (
        {"jobDeploymentStatus": "Complete", "jobStatus": "SUCCEEDED", "failed": 1},
        "Completed",
        "succeeded",
        True,
        1,
    ),
    ({"jobDeploymentStatus": "Complete", "jobStatus": "STOPPED"}, "Failed", "failed", False, 0),
    ({"jobDeploymentStatus": "Failed", "failed": 3}, "Failed", "failed", False, 2),
    ({"jobDeploymentStatus": "ValidationFailed"}, "Failed", "failed", False, 0),
]


@pytest.mark.parametrize(("status", "phase", "result", "up", "retries"), STATES)
def test_status_is_that_of_the_entry_point(
    status: Thing, phase: str, result: str | None, up: bool, retries: int
) -> None:
    found = read_workload(RAY_JOB, job_in_state(**status))
    assert (found.phase, found.result, found.up, found.retries) == (phase, result, up, retries)
    assert (found.wanted, found.most_retries) == (3, 2)


def test_a_failure_tells_its_reason_and_a_retry_when_it_began() -> None:
    why = {"reason": "AppFailed", "message": "Job entrypoint command failed with exit code 3"}
    ended = read_workload(RAY_JOB, job_in_state(jobDeploymentStatus="Failed", **why))
    assert ended.reason == "AppFailed: Job entrypoint command failed with exit code 3"
    again = {"failed": 1, "startTime": "2026-11-30T03:00:00Z"}
    retried = read_workload(RAY_JOB, job_in_state(jobDeploymentStatus="Running", **again))
    assert "2026-11-30T03:00:00Z" in retried.reason


def pod(group: str, index: int, *containers: str) -> Thing:
    """Return a pod as KubeRay labels it; the head's number is ours."""
    labels = {
        "ray.io/is-ray-node": "yes",
        "ray.io/group": group,
        "ray.io/worker-group-replica-index": str(index),
        "ray.io/originated-from-cr-name": "align",
    }
    named = [{"name": name} for name in containers]
    return {
        "metadata": {"name": f"{group}-{index}", "labels": labels},
        "spec": {"containers": named},
    }


def test_logs_are_of_the_entry_point_first_and_then_of_workers_in_their_order() -> None:
    made = [(RAY_JOB, job_in_state())]
    pods = [
        pod("workers", 1, "workers"),
        pod("headgroup", 0, "head", "ray-job-submitter"),
        pod("workers", 0, "workers"),
    ]
    read = by_rank(map(read_pod, pods), made)
    assert [each.name for each in read] == ["headgroup-0", "workers-0", "workers-1"]
    assert [each.container for each in read] == ["ray-job-submitter", "workers", "workers"]
    for index, each in enumerate(read):
        labels = next(p for p in pods if p["metadata"]["name"] == each.name)["metadata"]["labels"]
        assert place_of(index, made).items() <= labels.items()
