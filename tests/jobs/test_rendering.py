"""Objects of a job: valid for every size, name and kind."""

import os
import subprocess
import sys
from typing import Any

import pytest
import yaml

from tests.support.folders import ROOT
from tests.support.job_rules import findings, pod_names, pod_templates, volcano_jobs
from tests.support.jobs import (
    BATCH,
    SERVICE,
    VOLCANO,
    container,
    environment,
    job_cluster,
    make_job,
    objects,
    pod_spec,
    prepared,
)
from tests.support.pools import NEURON_POOL, pool_document

GPUS = pool_document(instance_types=["g6e.12xlarge"])
KUBERNETES = job_cluster(NEURON_POOL | {"nodes": {"static": 4}}, scheduling=None)
PRIORITY = {"priority_classes": {"high": 1000}}
CLAIMS = [
    {"claim": "a.b", "mount_path": "/a", "existing": True},
    {"claim": "a-b", "mount_path": "/b", "existing": True, "read_only": True},
    {"claim": "a-b", "mount_path": "/c", "existing": True},
    {"claim": "x" * 200, "mount_path": "/d", "existing": True},
    {"claim": "x" * 201, "mount_path": "/e", "existing": True},
]
RICH: dict[str, Any] = {
    "volumes": CLAIMS,
    "env": {"A": "$(B)", "LANG": "C", "NCCL_DEBUG": "INFO"},
    "priority": "high",
    "tolerations": [{"key": "spot", "value": "true", "effect": "NoExecute"}, {"key": "a"}],
}
KINDS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "training on Volcano": (job_cluster(), make_job()),
    "training on one node": (job_cluster(), make_job(nodes=1)),
    "training that is elastic": (job_cluster(), make_job(min_nodes=1)),
    "training near each other": (
        job_cluster(scheduling=VOLCANO | {"topology_aware": True}),
        make_job(),
    ),
    "training with everything": (
        job_cluster(scheduling=VOLCANO | PRIORITY),
        make_job(**RICH, restarts={"job": 0}, ttl_seconds_after_finished=0),
    ),
    "training that never restarts": (job_cluster(), make_job(restarts={"job": 0})),
    "training on Kubernetes": (KUBERNETES, make_job()),
    "training on one of Kubernetes' nodes": (KUBERNETES, make_job(nodes=1)),
    "a command on several nodes": (job_cluster(), make_job(script=None, command=["mpirun"])),
    "batch on Volcano": (job_cluster(), BATCH),
    "batch on Kubernetes": (job_cluster(GPUS, scheduling=None), BATCH | {"resources": {"gpu": 1}}),
    "service": (job_cluster(GPUS), SERVICE),
    "service with everything": (
        job_cluster(GPUS, scheduling=PRIORITY),
        SERVICE
        | RICH
        | {"resources": {"gpu": 2}, "health_path": "/health", "allow_from": ["backend", "web"]}
        | {"replicas": 3, "port": 80, "startup_seconds": 7},
    ),
    "service that stops at once": (job_cluster(GPUS), SERVICE | {"grace_period_seconds": 1}),
    "service of the image's own program": (job_cluster(GPUS), SERVICE | {"command": None}),
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_job_is_taken_by_every_minor(kind: str) -> None:
    cluster, job = KINDS[kind]
    sent = prepared(cluster, job)
    assert findings(sent) == []
    assert yaml.safe_load(yaml.safe_dump([*sent.objects])) == [*sent.objects]
    for each in (*sent.objects, *pod_templates(sent)):
        metadata: Any = each["metadata"]
        assert metadata["labels"]["ultrascale.dev/job"] == sent.name
    for template in pod_templates(sent):
        spec, annotations = template["spec"], template["metadata"].get("annotations", {})
        # No pod has more rights than it needs.
        assert spec["automountServiceAccountToken"] is False
        assert not spec.keys() & {"hostNetwork", "hostPID", "hostIPC"}
        assert spec["containers"][0]["securityContext"]["allowPrivilegeEscalation"] is False
        # Nodes are not taken from under what cannot move.
        kept = job.get("kind") != "service"
        evicts = annotations.get("cluster-autoscaler.kubernetes.io/safe-to-evict")
        assert (annotations.get("karpenter.sh/do-not-disrupt") == "true") == kept
        assert (evicts == "false") == kept


def test_a_jobs_own_variable_wins_over_the_librarys() -> None:
    told = environment(prepared(env={"NEURON_RT_EXEC_TIMEOUT": "60"}))
    assert told["NEURON_RT_EXEC_TIMEOUT"] == "60"


def test_claims_of_any_name_are_mounted_each_where_it_belongs() -> None:
    job = prepared(volumes=CLAIMS)
    claims = "persistentVolumeClaim"
    volumes = {
        volume["name"]: volume[claims]["claimName"]
        for volume in pod_spec(job)["volumes"]
        if claims in volume
    }
    mounted = {
        mount["mountPath"]: (volumes[mount["name"]], mount.get("readOnly", False))
        for mount in container(job)["volumeMounts"]
        if mount["name"] in volumes
    }
    assert mounted == {
        each["mount_path"]: (each["claim"], each.get("read_only", False)) for each in CLAIMS
    }


# --- who meets whom -----------------------------------------------------------------------------


def test_pods_without_volcano_have_the_name_that_their_peers_wait_for() -> None:
    job = prepared(KUBERNETES)
    (service,), (indexed,) = objects(job, "Service"), objects(job, "Job")
    template = indexed["spec"]["template"]

    # Kubernetes calls the pod of index 0 JOB-0, in the Service that is its subdomain.
    assert template["spec"]["subdomain"] == service["metadata"]["name"] == "tune"
    assert "--rdzv-endpoint=tune-0.tune:29500" in template["spec"]["containers"][0]["command"][2]
    assert service["spec"]["selector"].items() <= template["metadata"]["labels"].items()
    assert service["spec"]["publishNotReadyAddresses"] is True
    assert indexed["spec"]["completions"] == indexed["spec"]["parallelism"] == 2
    assert indexed["spec"]["completionMode"] == "Indexed"


def test_the_name_that_pods_meet_at_is_one_of_volcanos() -> None:
    (job,) = volcano_jobs(prepared(nodes=2))
    svc = job["spec"]["plugins"]["svc"]

    assert [*pod_names(job)] == ["tune-worker-1"]
    # The first pod is not ready before its peers have reached it.
    assert "--publish-not-ready-addresses=true" in svc
    assert "--disable-network-policy=true" in svc


# --- what every pod has -------------------------------------------------------------------------


# --- services -----------------------------------------------------------------------------------


def test_a_service_is_reached_kept_up_and_watched() -> None:
    job = prepared(*KINDS["service with everything"])
    (deployment,) = objects(job, "Deployment")
    (budget,) = objects(job, "PodDisruptionBudget")
    (service,) = objects(job, "Service")
    (policy,) = objects(job, "NetworkPolicy")
    labels = deployment["spec"]["template"]["metadata"]["labels"]
    (container,) = deployment["spec"]["template"]["spec"]["containers"]

    for selector in (
        deployment["spec"]["selector"]["matchLabels"],
        budget["spec"]["selector"]["matchLabels"],
        service["spec"]["selector"],
        policy["spec"]["podSelector"]["matchLabels"],
    ):
        assert selector.items() <= labels.items()
    assert service["spec"]["ports"][0]["port"] == container["ports"][0]["containerPort"] == 80
    assert budget["spec"]["maxUnavailable"] == 1
    for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
        assert container[probe]["httpGet"] == {"path": "/health", "port": "serve"}
    # It may take 7 seconds to start: one probe each 10.
    assert container["startupProbe"]["failureThreshold"] == 1
    assert "'backend', 'web'" in str(policy["spec"]["ingress"])
    (spread,) = deployment["spec"]["template"]["spec"]["topologySpreadConstraints"]
    assert spread["topologyKey"] == "topology.kubernetes.io/zone"
    assert job.objects[-1] == deployment


def test_a_service_stops_serving_within_its_grace_period() -> None:
    def drain(seconds: int) -> int:
        job = prepared(job_cluster(GPUS), SERVICE | {"grace_period_seconds": seconds})
        return container(job)["lifecycle"]["preStop"]["sleep"]["seconds"]

    assert [drain(seconds) for seconds in (110, 12, 1)] == [10, 6, 1]


def test_a_model_that_is_slow_to_load_is_not_killed_while_it_loads() -> None:
    job = prepared(job_cluster(GPUS), SERVICE | {"startup_seconds": 3600})
    (deployment,) = objects(job, "Deployment")
    probe = container(job)["startupProbe"]
    assert probe["failureThreshold"] * probe["periodSeconds"] == 3600
    # A node is launched, and the image pulled, before that.
    assert deployment["spec"]["progressDeadlineSeconds"] == 3600 + 1800


# --- determinism --------------------------------------------------------------------------------


def test_the_same_file_gives_the_same_bytes_in_every_process() -> None:
    code = (
        "import json; from pathlib import Path; from ultrascale.jobs import prepare;"
        "cluster, job = Path('clusters/trainium-bert.yaml'), Path('jobs/bert-pretrain.yaml');"
        "print(json.dumps(prepare(cluster, job, account='111122223333').objects))"
    )
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", code],
            cwd=ROOT,
            env=os.environ | {"PYTHONHASHSEED": seed},
            stdout=subprocess.PIPE,
        )
        for seed in ("1", "2")
    ]
    outputs = [process.communicate(timeout=60)[0] for process in processes]

    assert outputs[0] == outputs[1] != b""
