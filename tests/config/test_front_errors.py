"""Mistakes in the front of services."""

from typing import Any

import pytest

from tests.support.config_documents import mistakes_in
from tests.support.pools import make_document

CERTIFICATE = "arn:aws:acm:{}:111122223333:certificate/11111111-2222-4333-8444-555555555501".format
TOKENS = {
    "issuer": "https://login.example.com",
    "audiences": ["models"],
    "jwks_uri": "https://login.example.com/keys",
}


def front(**keys: Any) -> dict[str, Any]:
    """Return a cluster file with a front."""
    return make_document(serving={"front": keys})


INTERNET = {"exposure": "internet", "certificate": CERTIFICATE("us-west-2"), "api_keys": "keys"}
BAD: dict[str, tuple[dict[str, Any], str]] = {
    "prompts in clear text": (
        front(exposure="internet", api_keys="keys", allowed_cidrs=["192.0.2.0/24"]),
        "serving.front.exposure: open to the internet without TLS: keys and prompts could be read "
        "on the way, got 'internet'; add certificate, or write internal",
    ),
    "models for everybody": (
        front(**INTERNET | {"api_keys": None}, allowed_cidrs=["192.0.2.0/24"]),
        "serving.front.exposure: open to the internet without authentication: anybody could use "
        "the models, got 'internet'; add api_keys or jwt, or write internal",
    ),
    "an internet of nobody said which": (
        front(**INTERNET),
        "serving.front.exposure: open to the internet without a list of clients, got 'internet'; "
        "add allowed_cidrs; 0.0.0.0/0 is everybody",
    ),
    "a certificate without a load balancer": (
        front(exposure="cluster", certificate=CERTIFICATE("us-west-2")),
        "serving.front.certificate: a setting of the load balancer, and exposure: cluster has "
        f"none, got '{CERTIFICATE('us-west-2')}'; leave it out, or write exposure: internal",
    ),
    "a certificate of another Region": (
        front(certificate=CERTIFICATE("us-east-1")),
        "serving.front.certificate: in us-east-1, and load balancers take certificates of their "
        f"own Region, got '{CERTIFICATE('us-east-1')}'; request or import it in us-west-2",
    ),
    "an issuer whose tokens name any audience": (
        front(jwt=TOKENS | {"issuer": "https://token.actions.githubusercontent.com/"}),
        "serving.front.jwt.issuer: an issuer at which everybody gets tokens for any audience: no "
        "key narrows them, got 'https://token.actions.githubusercontent.com/'; use an issuer of "
        "your own people, or api_keys",
    ),
    "keys and tokens in one header": (
        front(exposure="cluster", api_keys="keys", jwt=TOKENS),
        "serving.front.api_keys: beside jwt: a client sends one header, a key or a token, "
        "got 'keys'; leave one of them out",
    ),
    "keys over plain HTTP": (
        front(exposure="cluster", jwt=TOKENS | {"jwks_uri": "http://login.example.com/keys"}),
        "serving.front.jwt.jwks_uri: not an https URL, got 'http://login.example.com/keys'; "
        "write it as https://login.example.com/keys",
    ),
    "tokens for anything": (
        front(exposure="cluster", jwt=TOKENS | {"audiences": []}),
        "serving.front.jwt.audiences: missing: any token of the issuer would open the models, also "
        "those that it makes for other applications and people; name the audience (aud) of tokens "
        "that the issuer makes for these models",
    ),
    "an audience that no token has": (
        front(exposure="cluster", jwt=TOKENS | {"audiences": [""]}),
        "serving.front.jwt.audiences[0]: not an audience, got ''; write printable ASCII without "
        "spaces",
    ),
    "a single proxy": (
        front(exposure="cluster", replicas=1),
        "serving.front.replicas: out of range, got 1; write at least 2",
    ),
}


@pytest.mark.parametrize(("document", "line"), BAD.values(), ids=list(BAD))
def test_a_mistake_of_the_front_is_named_with_a_way_out(
    document: dict[str, Any], line: str
) -> None:
    assert mistakes_in(document) == [line]
