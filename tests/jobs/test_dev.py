"""A person's pod as it is sent: it ends by itself, and waits where its pool is in a queue."""

import ast
import json
from typing import Any

import pytest
import yaml

from tests.support.folders import ROOT
from tests.support.job_rules import findings
from tests.support.jobs import DEV, KUEUE, job_cluster, objects, pod_spec, prepared, refusals
from tests.support.pools import CAPACITY_BLOCK, SPOT, pool_document
from ultrascale.parts.dev.plan import program

GPUS = pool_document(instance_types=["g6e.12xlarge"])
PART: dict[str, Any] = DEV | {"resources": {"gpu": 1}}
CLUSTERS: dict[str, dict[str, Any]] = {
    "kueue": job_cluster(GPUS, scheduling=KUEUE),
    "none": job_cluster(GPUS, scheduling=None),
    "volcano": job_cluster(GPUS),
}
NOTEBOOK: dict[str, Any] = PART | {"pool": "serving", "volumes": []}


LLM: dict[str, Any] = yaml.safe_load((ROOT / "clusters" / "llm-kueue.yaml").read_text())


def options(cluster: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """Return the options of the pod's program, as its container gets them."""
    (container,) = pod_spec(prepared(cluster, PART, **changes))["containers"]
    # Kubernetes reads `$$` as `$`, and would put a variable in the place of `$(NAME)`.
    *command, text = (word.replace("$$", "$") for word in container["command"])
    assert command == ["python3", "-c", program()]
    return json.loads(text)


@pytest.mark.parametrize("engine", CLUSTERS)
def test_a_persons_pod_is_a_job_of_one_pod_on_a_part_of_a_node(engine: str) -> None:
    manifests = prepared(CLUSTERS[engine], PART)
    (job,) = objects(manifests, "Job")
    spec = pod_spec(manifests)
    limits = spec["containers"][0]["resources"]["limits"]
    assert (job["spec"]["completions"], job["spec"]["parallelism"]) == (1, 1)
    assert limits["nvidia.com/gpu"] == "1"
    # A quarter of the node's memory beside a quarter of its GPUs: the rest is for others.
    assert 80 * 1024 < int(limits["memory"].removesuffix("Mi")) < 96 * 1024
    annotations = job["spec"]["template"]["metadata"]["annotations"]
    assert annotations["karpenter.sh/do-not-disrupt"] == "true"
    assert spec.get("schedulerName") == ("volcano" if engine == "volcano" else None)
    assert findings(manifests) == []


def test_jupyterlab_listens_on_the_pods_loopback_alone() -> None:
    ast.parse(program(), feature_version=(3, 9))  # images may have an older Python
    given = options(CLUSTERS["none"], idle_hours=2, port=9999, args=["--LabApp.news_url=None"])
    assert (given["idle_seconds"], given["port"], given["command"]) == (7200, 9999, [])
    assert {"--ServerApp.ip=127.0.0.1", "--ServerApp.port=9999"} <= {*given["jupyter"]}
    assert given["jupyter"][-1] == "--LabApp.news_url=None"
    # Another program gets its own arguments.
    own = options(CLUSTERS["none"], command=["code-server"], args=["--auth=none", "$(HOME)"])
    assert own["command"] == ["code-server", "--auth=none", "$(HOME)"]


def test_files_are_saved_on_the_first_volume_where_they_can_be_renamed() -> None:
    claim = {"namespace": "training", "name": "data", "mount_path": "/bucket"}
    storage = {"buckets": [{"name": "data", "claim": claim}]}
    cluster = job_cluster(GPUS, scheduling=None, storage=storage)
    home = {"claim": "home", "mount_path": "/home/me", "existing": True}
    bucket = {"claim": "data", "mount_path": "/bucket"}
    assert options(cluster, volumes=[bucket, home])["folder"] == "/home/me"
    assert options(cluster, volumes=[bucket])["folder"] is None
    notes = prepared(cluster, PART, volumes=[bucket]).notes
    assert any("lost when it ends" in note for note in notes)


SPOT_GPUS = GPUS | {"purchase": SPOT, "role": "burst", "provisioner": "karpenter"}


@pytest.mark.parametrize(
    ("cluster", "changes", "note"),
    [
        (CLUSTERS["none"], {"resources": {}}, "resources.gpu or resources.neuron leaves the othe"),
        (job_cluster(SPOT_GPUS, scheduling=None), {}, "two minutes' notice"),
        (CLUSTERS["none"], {"idle_hours": 1}, "after 1 hour without"),
        (CLUSTERS["none"], {"idle_hours": 1.5}, "after 1.5 hours without"),
        # On-Demand, p5.48xlarge in us-east-2: $55.04.
        (
            LLM,
            {"pool": "serving-large", "idle_hours": 2, "volumes": []},
            "up to $55.04 an hour until it ends: $110.08",
        ),
    ],
)
def test_what_a_person_may_regret_is_said_before_the_node_is_paid_for(
    cluster: dict[str, Any], changes: dict[str, Any], note: str
) -> None:
    job = PART | changes if "resources" in changes else PART
    notes = prepared(cluster, job, **changes).notes
    assert any(note in each for each in notes), notes


def test_a_node_of_a_block_that_is_paid_for_costs_nothing_more() -> None:
    paid = {
        "provisioner": "karpenter",
        "instance_types": ["p5.48xlarge"],
        "purchase": CAPACITY_BLOCK | {"fee": 26_880},
    }
    notes = prepared(job_cluster(GPUS | paid, scheduling=None), PART).notes
    assert not any("an hour until it ends" in each for each in notes), notes


# --- queues


def test_a_pod_on_nodes_of_no_queue_waits_in_none() -> None:
    manifests = prepared(LLM, NOTEBOOK)
    (job,) = objects(manifests, "Job")

    assert manifests.namespace == "training"
    assert manifests.local_queue is None
    assert "kueue.x-k8s.io/queue-name" not in job["metadata"]["labels"]
    assert findings(manifests) == []


def test_a_pod_on_nodes_of_a_queue_waits_in_it() -> None:
    manifests = prepared(LLM, NOTEBOOK, pool="burst", queue="foundation")

    (job,) = objects(manifests, "Job")
    assert job["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == "foundation"
    assert prepared(CLUSTERS["kueue"], PART).local_queue == "research"


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        (
            {"pool": "burst"},
            "queue: queue_is_named",
        ),
        (
            {"queue": "foundation"},
            "pool: queue_gives_its_nodes",
        ),
        ({"pool": "servin"}, "pool: job_pool_exists"),
        ({"idle_hours": 0}, "idle_hours: form"),
        (
            {"deadline_hours": 3},
            "idle_hours: dev_ends_by_its_deadline",
        ),
        (
            {"port": 80},
            "port: dev_port_needs_no_root",
        ),
    ],
)
def test_a_mistake_of_a_persons_pod_is_named_with_a_way_out(
    changes: dict[str, Any], line: str
) -> None:
    assert refusals(LLM, NOTEBOOK, **changes) == [line]
