"""The values of a job's Helm chart, as they were published, become jobs that run."""

import json
import re
from typing import Any

import pytest
import yaml

import ultrascale
from tests.support.folders import ROOT
from tests.support.job_values import ANYWHERE, SEED, Values, resources, sent, template
from tests.support.jobs import HYBRID, IMAGE, container, environment, pod_spec, refusals
from tests.support.models.planned_nodes import cluster_of, tier_of
from tests.support.models.scheduler import Pod, pods_of
from ultrascale import config
from ultrascale.cli import main
from ultrascale.jobs import JobManifests
from ultrascale.jobs.preparation import JobCluster

SCHEMA = json.loads((ROOT / "charts" / "training-job" / "values.schema.json").read_text())


def placed(cluster: JobCluster, *jobs: JobManifests) -> list[str | None]:
    """Return the tier on whose nodes each of one-pod ``jobs`` lands; None for one that waits."""
    scheduler = cluster_of(cluster.plan)
    classes = {each.name: each for each in cluster.plan.priority_classes}
    pods: list[Pod] = []
    for number, job in enumerate(jobs):
        pods += pods_of(f"{job.name}-{number}", job.pods, pod_spec(job), classes)
    scheduler.run(*pods)
    return [tier_of(pod.node) if pod.node is not None else None for pod in pods]


@pytest.mark.parametrize(
    ("name", "kind", "namespace", "node_type", "gpus", "priority"),
    [
        ("production", "PyTorchJob", "hyperpod-ns-production", "hyperpod", "8", "critical"),
        ("development", "Job", "training", "eks-on-demand", "4", "high"),
        ("research", "Job", "training", "eks-spot", "2", "medium"),
    ],
)
def test_each_template_as_published_runs_on_nodes_of_its_kind(
    hybrid: JobCluster,
    name: str,
    kind: str,
    namespace: str,
    node_type: str,
    gpus: str,
    priority: str,
) -> None:
    job = sent(hybrid, name)

    assert (job.objects[-1]["kind"], job.namespace) == (kind, namespace)
    assert placed(hybrid, job) == [node_type]
    assert container(job)["resources"]["limits"]["nvidia.com/gpu"] == gpus
    assert pod_spec(job)["priorityClassName"] == priority


def test_a_template_without_nodes_takes_the_enabled_tiers_in_the_order_of_their_cost(
    hybrid: JobCluster,
) -> None:
    """Production waits for reserved nodes, and never bursts."""
    assert placed(hybrid, *[sent(hybrid)] * 9) == ["hyperpod"] * 8 + [None]
    jobs = [sent(hybrid, "burst", ANYWHERE)] * 25
    assert placed(hybrid, *jobs) == ["hyperpod"] * 8 + ["eks-on-demand"] * 16 + ["eks-spot"]
    values = ANYWHERE | {"nodeSelectors": {"eksDemand": {"enabled": False}}}
    jobs = [sent(hybrid, "burst", values)] * 9
    assert placed(hybrid, *jobs) == ["hyperpod"] * 8 + ["eks-spot"]


def test_a_job_is_what_its_values_say(hybrid: JobCluster) -> None:
    job = sent(hybrid, "development")
    spec: Any = job.objects[-1]["spec"]
    env = environment(job)
    mounts = {each["name"]: each["mountPath"] for each in container(job)["volumeMounts"]}
    claims = {
        each["persistentVolumeClaim"]["claimName"]: mounts[each["name"]]
        for each in pod_spec(job)["volumes"]
        if "persistentVolumeClaim" in each
    }

    assert (spec["backoffLimitPerIndex"], spec["ttlSecondsAfterFinished"]) == (3, 86_400)
    assert container(job)["command"] == ["python", "/workspace/train.py"]
    assert (env["NCCL_DEBUG"], env["MODEL_TYPE"]) == ("INFO", "default")
    assert claims == {"training-data-pvc": "/data", "model-checkpoints-pvc": "/checkpoints"}
    assert container(job)["resources"]["requests"] == {
        "cpu": "16",
        "memory": "32Gi",
        "nvidia.com/gpu": "4",
    }


def test_a_job_without_a_name_is_called_as_its_template(hybrid: JobCluster) -> None:
    for values, name in (({}, "production"), ({"name": "tune"}, "tune")):
        job = sent(hybrid, "production", values)
        assert (job.name, job.local_queue) == (name, "hyperpod-ns-production-localqueue")
        # A toleration of a taint that no node has stays.
        assert pod_spec(job)["tolerations"] == [
            {"key": "dedicated", "operator": "Equal", "value": "hyperpod", "effect": "NoSchedule"}
        ]


def test_what_the_command_line_says_goes_before_the_values(hybrid: JobCluster) -> None:
    job = sent(hybrid, "production", name="late", env={"NCCL_DEBUG": "TRACE"}, args=["--fast"])
    assert (job.name, environment(job)["NCCL_DEBUG"]) == ("late", "TRACE")
    assert container(job)["command"] == ["python", "--fast"]
    job = sent(hybrid, "research", {"image": "docker.io/example/other:2"}, image=None)
    assert container(job)["image"] == "docker.io/example/other:2"


NO_GPU = (
    "CUDA sees no device by that word, and a container sees the GPUs that it asks for without it"
)
NEVER = "PreemptLowerPriority does not count: pods of the cluster's class displace none"
THERE = "a100-80gb on hyperpod, a100-40gb on eks-on-demand and eks-spot"


@pytest.mark.parametrize(
    ("name", "tolerations"),
    [
        ("production", []),
        ("development", ["nvidia.com/gpu=true:NoSchedule is added, as nodes of eks-on-demand"]),
        ("research", ["nvidia.com/gpu=true:NoSchedule is added, as nodes of eks-spot"]),
    ],
)
def test_what_of_the_published_values_does_not_hold_is_said(
    hybrid: JobCluster, name: str, tolerations: list[str]
) -> None:
    notes = [note for note in sent(hybrid, name).notes if _is_of_values(note)]

    assert notes == [
        f"env.CUDA_VISIBLE_DEVICES: 'all' is left out: {NO_GPU}.",
        f"priorityClasses.preemptible.preemptionPolicy: {NEVER}.",
        *(f"jobTemplates.{name}.tolerations: {each} have that taint." for each in tolerations),
    ]
    assert "CUDA_VISIBLE_DEVICES" not in environment(sent(hybrid, name))


def _is_of_values(note: str) -> bool:
    return re.split("[.:]", note)[0] in SCHEMA["properties"]


def test_a_job_file_that_hides_its_gpus_is_refused() -> None:
    job = {"name": "tune", "pool": "hyperpod", "image": IMAGE, "script": "train.py"}

    lines = refusals(HYBRID, job, env={"CUDA_VISIBLE_DEVICES": "all"})

    rules = {line.rpartition(": ")[2] for line in lines}
    assert rules == {"devices_suffice_the_processes", "variables_do_no_harm"}


AT = "jobTemplates.production"
LEFT_OUT = "is left out: a limit would throttle a pod whose node has CPU to spare."
PUT_RIGHT: list[tuple[Values, str]] = [
    (
        {"nodeSelectors": {"hyperpod": {"labels": {"gpu-type": "h100-80gb"}}}},
        "nodeSelectors.hyperpod.labels.gpu-type: 'h100-80gb' is left out, as no node there "
        f"has it; there is {THERE}.",
    ),
    (
        template(nodeSelector={"rack": "7"}),
        f"{AT}.nodeSelector.rack: '7' is left out, as no node there has "
        "it; no pool has such a label.",
    ),
    (
        {"priorityClasses": {"critical": {"value": 5}}},
        "priorityClasses.critical.value: 5 does not count: the cluster's is 1000000.",
    ),
    (
        {"priorityClasses": {"urgent": {"value": 5}}},
        "priorityClasses.urgent: is not made: the classes of the cluster file are.",
    ),
    (
        {"priorityClasses": {"high": {"preemptionPolicy": "Never"}}},
        "priorityClasses.high.preemptionPolicy: Never does not count: pods of the cluster's "
        "class displace those of lower priority.",
    ),
    (
        resources({"nvidia.com/gpu": 8}, {"nvidia.com/gpu": 4}),
        f"{AT}.resources.requests.nvidia.com/gpu: 4 is not its limit, 8, "
        "and Kubernetes gives devices only where both are equal: 8 count.",
    ),
    (
        resources({"memory": "96Gi"}, {}),
        f"{AT}.resources.limits.memory: 96Gi is requested as well: what a "
        "pod may use is kept for it.",
    ),
    (resources({"cpu": 48}, {}), f"{AT}.resources.limits.cpu: 48 {LEFT_OUT}"),
    (resources({"cpu": "32"}, {"cpu": "32"}), f"{AT}.resources.limits.cpu: 32 {LEFT_OUT}"),
]


@pytest.mark.parametrize(("values", "note"), PUT_RIGHT)
def test_what_could_not_work_is_put_right_and_said(
    hybrid: JobCluster, values: Values, note: str
) -> None:
    job = sent(hybrid, "production", values)
    assert note in job.notes
    assert placed(hybrid, job) == ["hyperpod"]


def test_what_the_file_leaves_out_is_neither_said_nor_mounted_nor_asked_for(
    hybrid: JobCluster,
) -> None:
    notes = sent(hybrid, "production", {"args": ["/train.py"]}).notes
    assert not [note for note in notes if _is_of_values(note)]
    assert sent(hybrid, "production", {"dataPvcName": "", "checkpointPvcName": None}).claims == ()
    nothing = {"nvidia.com/gpu": None}
    values = template("development", resources={"limits": nothing, "requests": nothing})
    job = sent(hybrid, "development", values)
    assert container(job)["resources"]["limits"] == {"memory": "32Gi"}


@pytest.mark.parametrize(
    ("limits", "requests", "cpu", "memory"),
    [
        ({"memory": "96Gi"}, {}, "32", "96Gi"),
        ({"cpu": 48}, {}, "32", "64Gi"),
        ({"cpu": "48", "memory": "96Gi"}, {"cpu": None, "memory": None}, "48", "96Gi"),
        ({}, {"cpu": None, "memory": None}, "90", "1023922Mi"),
    ],
)
def test_requests_and_limits_are_what_the_program_can_count_on(
    hybrid: JobCluster, limits: dict[str, Any], requests: dict[str, Any], cpu: str, memory: str
) -> None:
    found = container(sent(hybrid, "production", resources(limits, requests)))["resources"]

    assert (found["requests"]["cpu"], found["requests"]["memory"]) == (cpu, memory)
    assert found["limits"] == {k: v for k, v in found["requests"].items() if k != "cpu"}


def test_a_notebook_and_the_command_line_take_values_and_say_what_does_not_hold(
    hybrid: JobCluster, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    objects = [*sent(hybrid, "research").objects]
    job = ultrascale.submit(HYBRID, "research", values=SEED, image=IMAGE, dry_run=True)
    assert [*job.objects] == objects
    words = ["submit", str(HYBRID), "research", "--values", str(SEED), "--image", IMAGE]
    monkeypatch.setattr("sys.argv", ["ultrascale", *words, "--dry-run"])
    with pytest.raises(SystemExit):
        main()
    told = capsys.readouterr()
    assert list(yaml.safe_load_all(told.out)) == objects
    assert told.err.startswith("# env.CUDA_VISIBLE_DEVICES: 'all' is left out")


def test_what_the_chart_knows_of_a_cluster_is_not_asked_of_the_values(hybrid: JobCluster) -> None:
    chart = ROOT / "charts" / "training-job" / "values.yaml"
    assert sent(hybrid, "research", chart).objects == sent(hybrid, "research").objects
    # The values that others are laid over are the published ones.
    assert config.default_job_values() == yaml.safe_load(SEED.read_text())
