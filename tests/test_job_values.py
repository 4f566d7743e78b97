"""The values of a job's Helm chart, as they were published, become jobs that run."""

import itertools
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

import ultrascale
from tests.assembly import ROOT
from tests.job_values import SEED, Values, resources, sent, template, told
from tests.jobs import HYBRID, IMAGE, container, environment, pod_spec, refusals
from tests.planned_nodes import cluster_of, tier_of
from tests.scheduler import Pod, pods_of
from ultrascale import config
from ultrascale.cli import main
from ultrascale.errors import ConfigError
from ultrascale.jobs import JobManifests
from ultrascale.jobs.preparation import JobCluster, read_cluster

SCHEMA = json.loads((ROOT / "charts" / "training-job" / "values.schema.json").read_text())
ANYWHERE: dict[str, Any] = {
    "jobTemplates": {
        "burst": {
            "priorityClassName": "low",
            "resources": {
                "limits": {"nvidia.com/gpu": 8},
                "requests": {"cpu": "32", "memory": "64Gi"},
            },
        }
    }
}


@pytest.fixture(scope="module")
def hybrid() -> JobCluster:
    return read_cluster(HYBRID)


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


def test_a_toleration_of_a_taint_that_no_node_has_stays(hybrid: JobCluster) -> None:
    assert pod_spec(sent(hybrid))["tolerations"] == [
        {"key": "dedicated", "operator": "Equal", "value": "hyperpod", "effect": "NoSchedule"}
    ]


def test_production_waits_for_reserved_nodes_and_never_bursts(hybrid: JobCluster) -> None:
    assert placed(hybrid, *[sent(hybrid)] * 9) == ["hyperpod"] * 8 + [None]


def test_a_template_without_nodes_takes_the_tiers_in_the_order_of_their_cost(
    hybrid: JobCluster,
) -> None:
    jobs = [sent(hybrid, "burst", ANYWHERE)] * 25

    assert placed(hybrid, *jobs) == ["hyperpod"] * 8 + ["eks-on-demand"] * 16 + ["eks-spot"]


def test_a_disabled_tier_is_no_place_to_burst_to(hybrid: JobCluster) -> None:
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


@pytest.mark.parametrize(
    ("values", "name"), [({}, "production"), ({"name": "tune"}, "tune")], ids=["template", "own"]
)
def test_a_job_without_a_name_is_called_as_its_template(
    hybrid: JobCluster, values: Values, name: str
) -> None:
    assert sent(hybrid, "production", values).name == name


def test_a_jobs_own_name_does_not_take_it_out_of_its_team(hybrid: JobCluster) -> None:
    job = sent(hybrid, "production", {"name": "tune"})

    assert job.local_queue == "hyperpod-ns-production-localqueue"


def test_nothing_that_the_values_leave_out_is_mounted(hybrid: JobCluster) -> None:
    values = {"dataPvcName": "", "checkpointPvcName": None}

    assert sent(hybrid, "production", values).claims == ()


def test_what_the_command_line_says_goes_before_the_values(hybrid: JobCluster) -> None:
    job = sent(hybrid, "production", name="late", env={"NCCL_DEBUG": "TRACE"}, args=["--fast"])

    assert job.name == "late"
    assert environment(job)["NCCL_DEBUG"] == "TRACE"
    assert container(job)["command"] == ["python", "--fast"]


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

    (line,) = refusals(HYBRID, job, env={"CUDA_VISIBLE_DEVICES": "all"})

    assert "by that word CUDA sees no device, and the job would run on CPUs" in line


@pytest.mark.parametrize(
    ("values", "note"),
    [
        pytest.param(
            {"nodeSelectors": {"hyperpod": {"labels": {"gpu-type": "h100-80gb"}}}},
            "nodeSelectors.hyperpod.labels.gpu-type: 'h100-80gb' is left out, as no node there "
            f"has it; there is {THERE}.",
            id="a GPU that no pool has",
        ),
        pytest.param(
            template(nodeSelector={"rack": "7"}),
            "jobTemplates.production.nodeSelector.rack: '7' is left out, as no node there has "
            "it; no pool has such a label.",
            id="a label that nobody sets",
        ),
        pytest.param(
            {"priorityClasses": {"critical": {"value": 5}}},
            "priorityClasses.critical.value: 5 does not count: the cluster's is 1000000.",
            id="another value",
        ),
        pytest.param(
            {"priorityClasses": {"urgent": {"value": 5}}},
            "priorityClasses.urgent: is not made: the classes of the cluster file are.",
            id="a class of the values alone",
        ),
        pytest.param(
            {"priorityClasses": {"high": {"preemptionPolicy": "Never"}}},
            "priorityClasses.high.preemptionPolicy: Never does not count: pods of the cluster's "
            "class displace those of lower priority.",
            id="a class that displaces nobody",
        ),
        pytest.param(
            resources({"nvidia.com/gpu": 8}, {"nvidia.com/gpu": 4}),
            "jobTemplates.production.resources.requests.nvidia.com/gpu: 4 is not its limit, 8, "
            "and Kubernetes gives devices only where both are equal: 8 count.",
            id="fewer GPUs than the limit",
        ),
        pytest.param(
            resources({"memory": "96Gi"}, {}),
            "jobTemplates.production.resources.limits.memory: 96Gi is requested as well: what a "
            "pod may use is kept for it.",
            id="a larger limit of memory",
        ),
        pytest.param(
            resources({"cpu": 48}, {}),
            "jobTemplates.production.resources.limits.cpu: 48 is left out: a limit would throttle "
            "a pod whose node has CPU to spare.",
            id="a limit of CPU",
        ),
    ],
)
def test_what_could_not_work_is_put_right_and_said(
    hybrid: JobCluster, values: Values, note: str
) -> None:
    job = sent(hybrid, "production", values)

    assert note in job.notes
    assert placed(hybrid, job) == ["hyperpod"]


def test_nothing_is_said_of_what_the_file_leaves_out(hybrid: JobCluster) -> None:
    notes = sent(hybrid, "production", {"args": ["/train.py"]}).notes

    assert not [note for note in notes if _is_of_values(note)]


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


def test_a_job_that_asks_for_no_gpu_gets_none(hybrid: JobCluster) -> None:
    values = resources({"nvidia.com/gpu": None}, {"nvidia.com/gpu": None})

    job = sent(hybrid, "production", values)

    assert container(job)["resources"]["limits"] == {"memory": "64Gi"}


NOWHERE = "jobTemplates.production.nodeSelector"


@pytest.mark.parametrize(
    ("values", "name", "line"),
    [
        ({}, "produktion", "jobTemplates: no template 'produktion'; did you mean production?"),
        ({"comand": ["x"]}, "production", "comand: unknown key 'comand'; did you mean command?"),
        (
            {"nodeSelectors": {"hyperpod": {"enabled": False}}},
            "production",
            f"{NOWHERE}: nodes of a tier that is disabled, got {{node-type: hyperpod}}; set "
            "nodeSelectors.hyperpod.enabled: true",
        ),
        (
            template(nodeSelector={"node-type": "hyperpods"}),
            "production",
            f"{NOWHERE}.node-type: the node-type of no pool, got 'hyperpods'; did you mean "
            "hyperpod?",
        ),
        (
            template(nodeSelector={"node-type": None, "gpu-type": "h100"}),
            "production",
            f"{NOWHERE}: no enabled tier has such nodes, got {{gpu-type: h100}}; name the "
            "node-type of a tier of nodeSelectors",
        ),
        (
            {"dataPvcName": "training-data"},
            "production",
            "dataPvcName: no claim that the cluster file makes in namespace "
            "hyperpod-ns-production, got 'training-data'; did you mean training-data-pvc?",
        ),
        (
            template(priorityClassName="urgent"),
            "production",
            "jobTemplates.production.priorityClassName: not one of scheduling.priority_classes, "
            "got 'urgent'; known: critical, high, low, medium, preemptible",
        ),
        (
            template(priorityClassName="low"),
            "production",
            "jobTemplates.production.priorityClassName: not above that of elastic, 400000, which "
            "no quota holds back, got low, 400000; use a higher one",
        ),
        (
            ANYWHERE | template("burst", priorityClassName="critical"),
            "burst",
            "jobTemplates.burst.priorityClassName: not below that of production, 1000000: task "
            "governance cannot hold this job back, got critical, 1000000; use high, medium, low, "
            "preemptible",
        ),
        (
            resources({"nvidia.com/gpu": 3}, {"nvidia.com/gpu": 3}),
            "production",
            "jobTemplates.production.resources.limits.nvidia.com/gpu: no even share of the 8 of a "
            "node: the rest would fit nobody, got 3; ask for 1, 2, 4, 8",
        ),
        (
            resources({"nvidia.com/gpu": 4}, {"nvidia.com/gpu": 8}),
            "production",
            "jobTemplates.production.resources.requests.nvidia.com/gpu: more than its limit, 4, "
            "got 8; raise the limit",
        ),
        (
            resources({}, {"memory": "2Ti"}),
            "production",
            "jobTemplates.production.resources.requests.memory: more than a node of hyperpod has "
            "for its pods, got '2Ti'; ask for at most 1023922Mi",
        ),
        (
            {"env": {"RANK": "0"}},
            "production",
            "env.RANK: set by torchrun, differently in each process, got '0'; leave it out",
        ),
        ({"name": "Tune"}, "production", "name: not a DNS label of at most 40 characters"),
        (
            {"backoffLimit": -1},
            "production",
            "backoffLimit: out of range, got -1; write at least 0",
        ),
        ({"command": None}, "production", "command: missing; add it"),
        (
            {"jobTemplates": {"production": ["x"]}},
            "production",
            "jobTemplates.production: not a mapping, got [x]; write it as key: value",
        ),
    ],
)
def test_a_mistake_is_told_at_the_key_of_the_values(
    hybrid: JobCluster, values: Values, name: str, line: str
) -> None:
    (found,) = told(hybrid, name, values)

    assert found.startswith(line)


def test_all_mistakes_of_form_and_of_meaning_are_told_at_once(hybrid: JobCluster) -> None:
    values = {
        "env": {"A": 1},
        "dataPvcName": "data",
        "modelTyp": "x",
        "nodeSelectors": {"eksSpot": {"labels": "none"}},
        **resources({"nvidia.com/gpu": "many"}, {}),
    }

    lines = told(hybrid, "production", values, image=None)
    keys = [line.partition(": ")[0] for line in lines]

    assert keys == [
        "image",
        "env.A",
        "dataPvcName",
        "nodeSelectors.eksSpot.labels",
        "jobTemplates.production.resources.limits.nvidia.com/gpu",
        "modelTyp",
    ]


def test_a_mistake_in_an_option_is_not_blamed_on_the_values(hybrid: JobCluster) -> None:
    (line,) = told(hybrid, "production", priority="urgent")

    assert line.startswith("priority: not one of scheduling.priority_classes, got 'urgent'")


def test_an_image_is_named_somewhere() -> None:
    with pytest.raises(ConfigError, match="image: missing; add REPOSITORY:TAG, or --image"):
        ultrascale.submit(HYBRID, "production", values=str(SEED), dry_run=True)


def test_a_notebook_submits_values(hybrid: JobCluster) -> None:
    job = ultrascale.submit(HYBRID, "research", values=SEED, image=IMAGE, dry_run=True)

    assert job.objects == sent(hybrid, "research").objects


def test_the_command_line_takes_values_and_says_what_does_not_hold(
    hybrid: JobCluster, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["submit", str(HYBRID), "research", "--values", str(SEED), "--image", IMAGE]
    monkeypatch.setattr("sys.argv", ["ultrascale", *words, "--dry-run"])
    with pytest.raises(SystemExit):
        main()
    told = capsys.readouterr()

    assert list(yaml.safe_load_all(told.out)) == [*sent(hybrid, "research").objects]
    assert told.err.startswith("# env.CUDA_VISIBLE_DEVICES: 'all' is left out")


def test_values_may_name_the_image(hybrid: JobCluster) -> None:
    job = sent(hybrid, "research", {"image": "docker.io/example/other:2"}, image=None)

    assert container(job)["image"] == "docker.io/example/other:2"


def test_what_the_chart_knows_of_a_cluster_is_not_asked_of_the_values(hybrid: JobCluster) -> None:
    chart = ROOT / "charts" / "training-job" / "values.yaml"

    assert sent(hybrid, "research", chart).objects == sent(hybrid, "research").objects


def test_the_values_that_others_are_laid_over_are_the_published_ones() -> None:
    assert config.default_job_values() == yaml.safe_load(SEED.read_text())


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (("name",), "Tune"),
        (("backoffLimit",), "3"),
        (("command",), []),
        (("command",), "python"),
        (("args",), [1]),
        (("env",), {"A B": "x"}),
        (("env",), {"A": True}),
        (("nodeSelectors",), {"own": {"labels": {"gpu-type": "x"}}}),
        (("priorityClasses",), {"own": {"value": "high"}}),
        (("priorityClasses",), {"own": {"value": 1, "preemptionPolicy": "Always"}}),
        (("jobTemplates", "own"), {}),
        (("jobTemplates", "own"), {"priorityClassName": "low", "nodeSelector": {"a b": "x"}}),
        (("jobTemplates", "own"), {"priorityClassName": "low", "tolerations": [{"value": "x"}]}),
        (("jobTemplates", "own"), {"priorityClassName": "low", "resources": {"limit": {}}}),
        *(
            (
                ("jobTemplates", "own"),
                {"priorityClassName": "low", "resources": {"requests": {name: amount}}},
            )
            for name, amount in itertools.chain(
                itertools.product(("cpu", "memory"), ("0", "0.5", "1e3", -1, True, "64 Gi")),
                itertools.product(("nvidia.com/gpu",), ("all", -1, 0.5)),
                [("gpu", 1), ("hugepages-2Mi", "1Gi")],
            )
        ),
    ],
)
def test_helm_refuses_the_form_that_submit_refuses(
    hybrid: JobCluster, key: tuple[str, ...], value: object
) -> None:
    changed: dict[str, Any] = yaml.safe_load(SEED.read_text())
    assert not _refused(changed)
    inner = changed
    for part in key[:-1]:
        inner = inner[part]
    inner[key[-1]] = value

    assert _refused(changed)
    assert [line for line in told(hybrid, "production", changed) if line.startswith(".".join(key))]


def _refused(values: Mapping[str, Any]) -> bool:
    known: dict[str, Any] = {"cluster": {"name": "x", "tiers": [], "placements": []}}
    return not jsonschema.Draft7Validator(SCHEMA).is_valid({**values, **known})


def test_a_file_that_is_not_there_is_told(hybrid: JobCluster, tmp_path: Path) -> None:
    (line,) = told(hybrid, "production", tmp_path / "none.yaml")

    assert line == "no such file; name a values file"
