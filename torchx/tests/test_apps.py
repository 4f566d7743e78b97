"""Apps that know nothing of us become the jobs that they mean, or are refused with what to do."""

from pathlib import Path
from typing import Any

import pytest
import yaml

pytest.importorskip("torchx.specs", reason="the extra `torchx` is not installed")

from torchx.specs import (
    AppDef,
    BindMount,
    DeviceMount,
    Resource,
    RetryPolicy,
    VolumeMount,
    macros,
)
from torchx.specs import resource as named

from tests.support import torchx_apps as apps
from tests.support.config_jobs import LUSTRE
from tests.support.folders import ROOT
from tests.support.jobs import container, job_cluster, make_job, pod_spec, prepared
from tests.support.pools import pool_document
from ultrascale_torchx.errors import AppError

DEVICES = "aws.amazon.com/neuron"

# --- what a job says of it ----------------------------------------------------------------------


def test_replicas_are_nodes_that_start_together() -> None:
    job = apps.job_of(apps.make_app(num_replicas=3, max_retries=4), queue="test")
    spec: Any = job.objects[-1]["spec"]

    assert (spec["minAvailable"], spec["tasks"][0]["replicas"], spec["maxRetry"]) == (3, 3, 5)
    assert spec["queue"] == "test"
    assert spec["tasks"][0]["name"] == "trainer"


def test_an_elastic_app_goes_on_with_fewer_nodes() -> None:
    spec: Any = apps.job_of(apps.make_app(num_replicas=4, min_replicas=2)).objects[-1]["spec"]

    assert (spec["minAvailable"], spec["policies"][-1]["action"]) == (2, "RestartPod")


def test_a_pod_gets_what_its_app_asks_for() -> None:
    requests = container(apps.job_of(apps.make_app()))["resources"]["requests"]

    asked = {"cpu": "100", "memory": "400000M", DEVICES: "16", "vpc.amazonaws.com/efa": "8"}
    assert asked.items() <= requests.items()


def test_a_variable_is_set_that_the_command_line_allows() -> None:
    app = apps.make_app(env={"NCCL_BUFFSIZE": "8388608"})

    with pytest.raises(AppError, match="NCCL_BUFFSIZE: tuned by aws-ofi-nccl"):
        apps.job_of(app)
    env = container(apps.job_of(app, allow_env=["NCCL_BUFFSIZE"]))["env"]
    assert {"name": "NCCL_BUFFSIZE", "value": "8388608"} in env


def test_an_app_that_asks_for_devices_alone_gets_the_rest_of_their_nodes() -> None:
    app = apps.make_app(resource=Resource(cpu=0, gpu=0, memMB=0, devices={DEVICES: 16}))
    whole = prepared(apps.CLUSTER, make_job(pool="trn1", image=apps.IMAGE))

    assert container(apps.job_of(app))["resources"] == container(whole)["resources"]


def test_an_app_of_one_pod_without_devices_may_run_beside_controllers() -> None:
    resource = Resource(cpu=1, gpu=0, memMB=1024)
    app = apps.make_app(entrypoint="echo", args=["hi"], num_replicas=1, resource=resource)
    # The option is for training jobs, and may stand in .torchxconfig for all apps.
    job = apps.job_of(app, pool="system", durable=False)

    assert job.kind == "batch"
    assert container(job)["command"] == ["echo", "hi"]
    assert container(job)["resources"]["requests"] == {"cpu": "1", "memory": "1024M"}


def test_an_app_without_devices_takes_none_of_an_accelerated_node() -> None:
    resource = Resource(cpu=8, gpu=0, memMB=1024)
    job = apps.job_of(apps.make_app(num_replicas=1, resource=resource), pool="trn1")

    assert container(job)["resources"]["requests"] == {"cpu": "8", "memory": "1024M"}


def test_claims_of_an_app_take_the_place_of_the_cluster_files() -> None:
    mounts = [
        VolumeMount(src="fsx-claim", dst_path="/fsx"),
        VolumeMount(src="scratch", dst_path="/scratch", read_only=True),
    ]
    job = apps.job_of(apps.make_app(mounts=mounts))
    paths = {each["mountPath"]: each.get("readOnly") for each in container(job)["volumeMounts"]}

    assert job.claims == ("fsx-claim", "scratch")
    assert paths == {"/fsx": None, "/scratch": True, "/dev/shm": None}


def test_a_rendering_says_nothing_that_another_one_would_not() -> None:
    role = apps.make_app().roles[0]
    role.env["TORCHX_INTERNAL_SESSION_ID"] = "of this process"
    env = container(apps.job_of(AppDef(name="tune", roles=[role])))["env"]

    assert "of this process" not in {each.get("value") for each in env}


def test_run_options_say_what_an_app_cannot() -> None:
    app, account = apps.make_app(image="bert-pretrain:1"), "999988887777"
    job = apps.job_of(app, account=account, priority_class="low", queue="test")

    assert container(job)["image"].startswith(f"{account}.dkr.ecr.us-west-2.amazonaws.com/")
    assert (job.priority_class, job.queue, job.namespace) == ("low", "test", "training")


def test_a_namespace_that_nothing_makes_is_refused() -> None:
    with pytest.raises(AppError, match="namespace: not one that the cluster file makes"):
        apps.job_of(apps.make_app(), namespace="default")


def test_mistakes_of_the_cluster_file_are_told(tmp_path: Path) -> None:
    path = tmp_path / "cluster.yaml"
    path.write_text(apps.CLUSTER.read_text().replace("trn1.32xlarge]", "trn1.32xlrge]"))

    with pytest.raises(
        AppError, match=r"cluster\.yaml:23:22: pools\[trn1\]\..+did you mean trn1\.32xlarge"
    ):
        apps.job_of(apps.make_app(), cluster=path)


# --- which nodes --------------------------------------------------------------------------------


def two_pools(folder: Path, *types: list[str]) -> Path:
    pools = [
        pool_document(name=f"pool{number}", instance_types=each, zones=["us-west-2b"])
        for number, each in enumerate(types)
    ]
    path = folder / "cluster.yaml"
    path.write_text(yaml.safe_dump(job_cluster(*pools, storage=LUSTRE)))
    return path


def required(job: Any) -> dict[str, list[str]]:
    affinity = pod_spec(job)["affinity"]["nodeAffinity"]
    (term,) = affinity["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    return {each["key"]: each["values"] for each in term["matchExpressions"]}


def test_the_instance_type_chooses_among_pools(tmp_path: Path) -> None:
    cluster = two_pools(tmp_path, ["trn1.32xlarge"], ["trn1n.32xlarge"])
    app = apps.make_app(resource=apps.trainium(capabilities={apps.NODE: "trn1n.32xlarge"}))

    assert required(apps.job_of(app, cluster=cluster)) == {"ultrascale.dev/pool": ["pool1"]}


def test_a_pool_that_is_named_wins_over_the_instance_type() -> None:
    app = apps.make_app(resource=apps.trainium(capabilities={apps.NODE: "trn1n.32xlarge"}))

    assert required(apps.job_of(app, pool="trn1")) == {"ultrascale.dev/pool": ["trn1"]}


# --- what is refused ----------------------------------------------------------------------------

OLD = {"aws.amazon.com/neurondevice": 16}
UNNAMED = Resource(cpu=1, gpu=0, memMB=1024)
ELSEWHERE = apps.trainium(capabilities={apps.NODE: "p5.48xlarge"})
BUILT_IN = named(h="aws_trn1.32xlarge")
REFUSED: dict[str, tuple[AppDef, list[str]]] = {
    "a role that rank discovery cannot spell": (
        apps.make_app(name="my-role"),
        ["job: role: not a role name that fits into variables' names, got 'my-role'"],
    ),
    "two roles": (
        AppDef(name="tune", roles=apps.make_app().roles + apps.make_app(name="reader").roles),
        ["roles: a job has one, got trainer, reader; launch an app for each"],
    ),
    "a folder of the node": (
        apps.make_app(mounts=[BindMount("/tmp", "/tmp"), DeviceMount("/dev/x", "/dev/x")]),
        ["mounts: a job mounts claims alone", "mounts: a job mounts claims alone"],
    ),
    "a claim that nothing makes": (
        apps.make_app(mounts=[VolumeMount("a", "/dev/shm")]),
        [
            "job: volumes[0].mount_path: the container has something else at this path: devices, "
            "and the memory that processes share, got '/dev/shm'"
        ],
    ),
    "what TorchX calls a trn1.32xlarge": (
        apps.make_app(resource=BUILT_IN),
        ["devices: a name that Neuron's plugin no longer has, got 'aws.amazon.com/neurondevice'"],
    ),
    "more CPU than a kubelet leaves": (
        apps.make_app(resource=apps.trainium(cpu=BUILT_IN.cpu)),
        ["job: resources.cpu: more than a node of trn1 has for its pods, got '128'; ask for"],
    ),
    "a device that nobody has": (
        apps.make_app(resource=apps.trainium(devices={"example.com/tpu": 4})),
        ["devices: not one of aws.amazon.com/neuron, nvidia.com/gpu, vpc.amazonaws.com/efa, got"],
    ),
    "no accelerator and no pool": (
        apps.make_app(resource=UNNAMED),
        ["pool: missing, and the app asks for no accelerator; add -cfg pool=NAME, of system, trn1"],
    ),
    "an instance type of no pool": (
        apps.make_app(resource=ELSEWHERE),
        [
            "instance type: of no pool of",
            "got 'p5.48xlarge'; use one of m7g.2xlarge, trn1.32xlarge",
        ],
    ),
    "pods that restart alone": (
        apps.make_app(retry_policy=RetryPolicy.REPLICA),
        ["retry_policy: pods of a job restart together, unless it goes on with fewer, got REPLICA"],
    ),
    "the index of a pod in a variable": (
        apps.make_app(env={"NODE": macros.replica_id}),
        ["env.NODE: the index of a pod, which only its command can have, got '${replica_id}'"],
    ),
    "more nodes than there are": (
        apps.make_app(num_replicas=9),
        ["job: nodes: more than the 4 nodes of trn1, got 9"],
    ),
    "a name that is none": (apps.make_app(name="a_b"), ["job: role: not a role name"]),
}


@pytest.mark.parametrize(("app", "parts"), REFUSED.values(), ids=list(REFUSED))
def test_what_cannot_run_is_refused_with_all_reasons(app: AppDef, parts: list[str]) -> None:
    told = "\n".join(apps.refusals(app))

    assert told
    for part in parts:
        assert part in told
        told = told.replace(part, "", 1)


def test_an_app_in_a_queue_of_kueue_is_left_to_the_order_of_its_pools() -> None:
    whole = apps.trainium(devices={"nvidia.com/gpu": 8}, capabilities={apps.NODE: "p5en.48xlarge"})
    llm = ROOT / "clusters" / "llm-kueue.yaml"

    job = apps.job_of(apps.make_app(resource=whole), cluster=llm, queue="foundation")

    workload: Any = job.objects[-1]
    assert workload["kind"] == "JobSet"
    assert workload["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == "foundation"
    affinity = pod_spec(job)["affinity"]["nodeAffinity"]
    (term,) = affinity["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    found = {each["key"]: each["values"] for each in term["matchExpressions"]}
    assert found["ultrascale.dev/pool"] == ["burst", "reserved", "spot"]
    assert found[apps.NODE] == ["p5en.48xlarge"]


def test_an_instance_type_of_two_pools_is_refused_until_one_is_named(tmp_path: Path) -> None:
    cluster = two_pools(tmp_path, ["trn1.32xlarge"], ["trn1.32xlarge"])

    with pytest.raises(AppError, match=r"several have trn1\.32xlarge; add -cfg pool=NAME, one of"):
        apps.job_of(apps.make_app(), cluster=cluster)
    assert apps.job_of(apps.make_app(), cluster=cluster, pool="pool1").pods == 2
