"""Mistakes in the replicas and queues of services."""

from typing import Any

import pytest

from tests.support.config_documents import mistakes_in
from tests.support.jobs import KUEUE, VOLCANO
from tests.support.pools import make_document
from ultrascale import config
from ultrascale.config.services import ServiceJob


def service(
    scheduling: dict[str, Any] | None = None, serving: dict[str, Any] | None = None, **keys: Any
) -> dict[str, Any]:
    """Return a cluster file with one service."""
    given = {"scheduling": scheduling, "serving": serving}
    parts = {key: value for key, value in given.items() if value is not None}
    common = {"kind": "service", "pool": "train", "server": "vllm"}
    return make_document(jobs={"chat": common | keys}, **parts)


SHAPE = {"weights_gb": 16, "layers": 32, "heads": 32, "kv_heads": 8, "head_width": 128}


def model(**figures: Any) -> dict[str, Any]:
    """Return a cluster file with a service of one model, whose figures may be wrong."""
    return service(model={**SHAPE, **figures})


SCALED = {"metric": "waiting", "target": 5, "max": 4}
BAD: dict[str, tuple[dict[str, Any], str]] = {
    "a fixed number beside one that changes": (
        service(replicas=2, autoscale=SCALED),
        "jobs.chat.replicas: a fixed number of replicas beside autoscale, which changes it, got 2; "
        "leave it out, or leave out autoscale",
    ),
    "no replica at night": (
        service(autoscale=SCALED | {"min": 0}),
        "jobs.chat.autoscale.min: out of range, got 0; write at least 1",
    ),
    "more at least than at most": (
        service(autoscale=SCALED | {"min": 5}),
        "jobs.chat.autoscale.max: less than min, which is 5, got 4; write at least as much",
    ),
    "a metric that no server has": (
        service(autoscale=SCALED | {"metric": "wating"}),
        "jobs.chat.autoscale.metric: unknown value, got 'wating'; did you mean waiting?",
    ),
    "a target that no load meets": (
        service(autoscale=SCALED | {"target": 0}),
        "jobs.chat.autoscale.target: out of range, got 0; write more than 0",
    ),
    "a metric that this server does not have": (
        service(autoscale=SCALED, server="other"),
        "jobs.chat.autoscale.metric: a metric of vLLM, and the image is not known as vLLM's, got "
        "waiting; use metric: cpu, or set server: vllm where the program has vLLM's metrics",
    ),
    "a part of a percent": (
        service(autoscale={"metric": "cpu", "target": 70.5, "max": 4}, server="other"),
        "jobs.chat.autoscale.target: no whole percent of CPU, got 70.5; "
        "write a whole number, such as 70",
    ),
    "a queue of Volcano": (
        service(VOLCANO | {"queues": [{"name": "a"}]}, queue="a"),
        "jobs.chat.queue: a queue of Volcano, which admits no service, got 'a'; "
        "leave it out, or set scheduling.queueing: kueue",
    ),
    "a queue that is not there": (
        service(KUEUE | {"queues": [{"name": "research"}]}, queue="reserch"),
        "jobs.chat.queue: not one of scheduling.queues, got 'reserch'; did you mean research?",
    ),
    "replicas that nobody scales": (
        service(autoscale=SCALED, serving={"controllers": []}),
        "jobs.chat.autoscale: needs keda, which serving.controllers leaves out; "
        "add keda there, or leave out serving.controllers or autoscale",
    ),
    "a replica of several pods that nobody makes": (
        service(nodes=2, serving={"controllers": ["keda"]}),
        "jobs.chat.nodes: needs leader-worker-set, which serving.controllers leaves out; "
        "add leader-worker-set there, or leave out serving.controllers or nodes",
    ),
    "a queued service that nobody makes": (
        service(
            KUEUE | {"queues": [{"name": "research"}]},
            queue="research",
            serving={"controllers": []},
        ),
        "jobs.chat.queue: needs leader-worker-set, which serving.controllers leaves out; "
        "add leader-worker-set there, or leave out serving.controllers or queue",
    ),
    "a model that is spelt otherwise": (
        service(model="Llama-3.1-8b"),
        "jobs.chat.model: not a model whose figures are known, got 'Llama-3.1-8b'; did you mean "
        "Llama-3.1-8B?; of others `ultrascale models FILE BUCKET/PREFIX` prints the figures",
    ),
    "a model that nobody knows": (
        service(model={"name": "Llama-3.1-8b"}),
        "jobs.chat.model.name: not a model whose figures are known, got 'Llama-3.1-8b'; did you "
        "mean Llama-3.1-8B?; of others `ultrascale models FILE BUCKET/PREFIX` prints the figures",
    ),
    "a model without the size of its weights": (
        service(model={key: value for key, value in SHAPE.items() if key != "weights_gb"}),
        "jobs.chat.model.weights_gb: missing; add it from its config.json, or name a known model",
    ),
    "heads that do not share": (
        model(kv_heads=12),
        "jobs.chat.model.kv_heads: not a divisor of the 32 query heads, got 12; "
        "write num_key_value_heads of its config.json",
    ),
    "attention in more layers than there are": (
        model(attention_layers=33),
        "jobs.chat.model.attention_layers: more than the 32 layers, got 33; write less",
    ),
    "windows in more layers than have attention": (
        model(attention_layers=8, windowed_layers=9, window=128),
        "jobs.chat.model.windowed_layers: more than the 8 layers with attention, got 9; write less",
    ),
    "layers with a window of no size": (
        model(windowed_layers=8),
        "jobs.chat.model.window: missing beside windowed_layers; add it",
    ),
    "a window of no layer": (
        model(window=128),
        "jobs.chat.model.windowed_layers: missing beside window; add it",
    ),
}


@pytest.mark.parametrize(("document", "line"), BAD.values(), ids=list(BAD))
def test_a_mistake_of_a_service_is_named_with_a_way_out(
    document: dict[str, Any], line: str
) -> None:
    assert mistakes_in(document) == [line]


@pytest.mark.parametrize(
    ("image", "server", "expected"),
    [
        ("public.ecr.aws/deep-learning-containers/vllm:server-cuda-v2.3", None, "vllm"),
        ("docker.io/vllm/vllm-openai:v0.33.0", None, "vllm"),
        ("docker.io/example/answers:1", None, "other"),
        ("docker.io/example/answers:1", "vllm", "vllm"),
        ("docker.io/vllm/vllm-openai:v0.33.0", "other", "other"),
        (None, None, "other"),
    ],
)
def test_a_server_is_known_by_its_image_unless_it_is_named(
    image: str | None, server: config.Server | None, expected: str
) -> None:
    assert config.server_of(ServiceJob(image=image, server=server)) == expected
