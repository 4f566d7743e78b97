"""The front: the models of services, and mistakes that only all services show."""

from typing import Any

import pytest

from tests.support.pools import SYSTEM_POOL, make_cluster, make_document
from tests.support.queued_pools import planned
from ultrascale import config
from ultrascale.errors import ConfigError
from ultrascale.parts.front import Plan
from ultrascale.parts.front.plan import models_of, plan_route
from ultrascale.plan import plan_cluster

IMAGE = "docker.io/vllm/vllm-openai:v0.33.0"
FRONT = {"front": {"exposure": "cluster"}}


def service(**keys: Any) -> config.ServiceJob:
    """Return a service of vLLM."""
    job = make_cluster(jobs={"chat": chat(**keys)}).jobs["chat"]
    assert isinstance(job, config.ServiceJob)
    return job


def chat(**keys: Any) -> dict[str, Any]:
    return {
        "kind": "service",
        "pool": "train",
        "image": IMAGE,
        "args": ["--model=/models/chat", "--served-model-name=chat"],
        **keys,
    }


@pytest.mark.parametrize(
    ("keys", "models"),
    [
        ({}, ("chat",)),
        ({"args": ["--model=/models/chat"]}, ("/models/chat",)),
        ({"args": ["--served-model-name", "a", "b", "--port=8000"]}, ("a", "b")),
        ({"model_names": []}, ()),
        ({"image": "docker.io/library/nginx:1", "args": []}, ()),
        ({"image": "docker.io/library/nginx:1", "args": [], "model_names": ["small"]}, ("small",)),
    ],
)
def test_requests_reach_a_service_by_the_names_of_its_models(
    keys: dict[str, Any], models: tuple[str, ...]
) -> None:
    assert models_of(service(**keys)) == models


def test_a_service_has_no_route_where_there_is_no_front() -> None:
    job = service()
    route = plan_route(make_cluster(serving=FRONT), job, closed=True)
    assert route is not None
    assert (route.models, route.namespace) == (("chat",), "envoy-gateway-system")
    assert plan_route(make_cluster(), job, closed=True) is None
    # Two services may have one model then.
    assert planned(make_document(jobs={"chat": chat(), "talk": chat()})).part(Plan) is None


@pytest.mark.parametrize(
    ("jobs", "line"),
    [
        (
            {"chat": chat(), "talk": chat()},
            "jobs.talk: answers to the model chat, as service chat does; give each model its own "
            "name: --served-model-name, model_names",
        ),
        (
            {"chat": chat(model_names=["chut"])},
            "jobs.chat.model_names[0]: not a name that vLLM serves, got 'chut'; name it in "
            "--served-model-name; vLLM knows chat",
        ),
        (
            {"chat": chat(args=["--model=chat", "--api-key=k"])},
            "jobs.chat.args: the server checks a key, and the front removes the keys of clients, "
            "got --api-key; leave it out, or keep the service from the front: model_names: []",
        ),
        (
            {"chat": chat(secrets={"VLLM_API_KEY": "own"})},
            "jobs.chat.secrets: the server checks a key, and the front removes the keys of "
            "clients, got VLLM_API_KEY; leave it out, or keep the service from the front: "
            "model_names: []",
        ),
        (
            {"chat": chat(args=["--model=m", "--served-model-name=My chat"])},
            "jobs.chat.args: a name of a model that the front does not read, got My chat; use "
            "letters, digits and . _ / : @ + - in --served-model-name, or keep the service from "
            "the front: model_names: []",
        ),
        (
            {
                "chat": chat(
                    args=["--model=m", "--served-model-name", *map("m{}".format, range(129))]
                )
            },
            "jobs.chat.model_names: more names of models than the 128 that a route of the front "
            "holds, got 129; write the names that clients of the front need",
        ),
    ],
)
def test_services_that_the_front_cannot_tell_apart_or_reach_are_refused(
    jobs: dict[str, Any], line: str
) -> None:
    serving = {"front": {"exposure": "cluster", "api_keys": "keys"}}
    with pytest.raises(ConfigError) as refused:
        planned(make_document(jobs=jobs, serving=serving))
    assert str(refused.value).splitlines() == [line]


def test_a_server_with_keys_of_its_own_knows_no_token_of_clients() -> None:
    """Clients have one header for the two."""
    tokens = {
        "issuer": "https://login.example.com",
        "audiences": ["models"],
        "jwks_uri": "https://login.example.com/keys",
    }
    jobs = {"chat": chat(args=["--model=chat", "--api-key=k"])}

    with pytest.raises(ConfigError) as refused:
        planned(make_document(jobs=jobs, serving={"front": {"exposure": "cluster", "jwt": tokens}}))

    assert str(refused.value).splitlines() == [
        "jobs.chat.args: the server checks a key, and clients of the front send tokens instead, "
        "got --api-key; leave it out, or keep the service from the front: model_names: []"
    ]


def test_subnets_smaller_than_a_load_balancer_takes_are_refused() -> None:
    """The stack of the front would fail, after the cluster is there."""
    arn = "arn:aws:acm:us-west-2:111122223333:certificate/11111111-2222-4333-8444-555555555501"
    keys = {"exposure": "internet", "certificate": arn, "api_keys": "keys"}
    front = {"front": keys | {"allowed_cidrs": ["192.0.2.0/24"]}}
    network = {"vpc_cidr": "10.0.0.0/20", "zones": ["us-west-2a", "us-west-2b"]}

    with pytest.raises(ConfigError) as refused:
        plan_cluster(make_cluster(pools=[SYSTEM_POOL], network=network, serving=front))

    assert str(refused.value).splitlines()[0] == (
        "serving.front.exposure: subnet 10.0.0.0/28 of us-west-2a is smaller than a load "
        "balancer's /27; write a larger network.vpc_cidr, or exposure: internal"
    )


def test_more_proxies_than_system_nodes_are_refused() -> None:
    with pytest.raises(ConfigError) as error:
        planned(make_document(serving={"front": {"exposure": "cluster", "replicas": 5}}))
    assert (
        "serving.front.replicas: a proxy needs a system node of its own, and there are at "
        "most 4, got 5; write 4 or fewer, or add nodes to the system pool"
    ) in str(error.value)
