"""`serving.front`: one address for requests to all models."""

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field

from ultrascale.catalog.vpc import not_on_the_internet
from ultrascale.config import (
    MODEL_NAME_PATTERN,
    Cluster,
    Identity,
    Mistakes,
    Network,
    Section,
    note,
    refuse,
    rule,
    whole_internet,
)
from ultrascale.config._values import (
    Audience,
    Distinct,
    Network4,
    SubdomainName,
    WrongValueError,
    in_schema,
    matching,
)
from ultrascale.config.identity import ACCOUNT_ID

# Issuers of tokens at which everybody gets one for any audience, each with its source: tokens name
# their audience, and it keeps nobody out.
_ANY_AUDIENCE: Mapping[str, str] = MappingProxyType(
    {
        # The issuer of everybody with a service account there.
        "https://accounts.google.com": "https://docs.cloud.google.com/iam/docs/reference/credentials/rest/v1/projects.serviceAccounts/generateIdToken",
        "https://gitlab.com": "https://docs.gitlab.com/ci/secrets/id_token_authentication/",
        "https://token.actions.githubusercontent.com": "https://docs.github.com/en/actions/reference/security/oidc",
    }
)

# The last part of a name is no number, as WHATWG's URL standard says of hosts.
_ENDS_AS_ADDRESS = re.compile(r"(?:^|\.)(?:[0-9]+|0[xX][0-9a-fA-F]*)\.?$")
# Names of the metadata service and of the proxy itself.
_NO_ISSUERS = frozenset({"localhost", "instance-data", "instance-data.ec2.internal"})

Exposure = Literal["cluster", "internal", "internet"]

# Source: https://docs.aws.amazon.com/acm/latest/userguide/acm-concepts.html
CertificateArn = Annotated[
    str,
    matching(
        rf"arn:aws[a-z-]*:acm:[a-z0-9-]+:{ACCOUNT_ID}:certificate/[0-9a-f-]{{36}}",
        "not the ARN of a certificate of ACM",
        "write it as arn:aws:acm:REGION:ACCOUNT:certificate/ID",
    ),
]


def _https_url(value: str) -> str:
    try:
        url = urlsplit(value)
        host = url.hostname
    except ValueError:
        url, host = urlsplit(""), None
    if url.scheme != "https" or not host or not value.isascii() or " " in value:
        raise WrongValueError("not an https URL", "write it as https://login.example.com/keys")
    # Clients of URLs read `0xa9.16689662` as an address, too.
    if "@" in url.netloc or ":" in host or _ENDS_AS_ADDRESS.search(host):
        raise WrongValueError(
            "a URL of an address, or with a user",
            "write the name of the issuer's host, as https://login.example.com/keys",
        )
    if host in _NO_ISSUERS or host.endswith(".localhost"):
        raise WrongValueError("a URL of the machine that asks", "write the issuer's own host")
    return value


HttpsUrl = Annotated[str, AfterValidator(_https_url), in_schema(pattern=r"^https://[!-~]+$")]


# Names that stand in the script of the proxies as they are.
ClientName = Annotated[
    str,
    matching(
        r"[A-Za-z0-9][A-Za-z0-9._:@|/+=-]{0,252}",
        "not a name of a client",
        "use letters, digits and . _ : @ | / + = -",
    ),
]
ModelName = Annotated[
    str,
    matching(MODEL_NAME_PATTERN, "not a name of a model", "use the name that clients send"),
]


class FrontJwt(Section):
    """Tokens of an OpenID Connect issuer."""

    issuer: HttpsUrl
    """Issuer, as tokens have it in `iss`."""

    audiences: Annotated[Distinct[Audience], in_schema(minItems=1)] = ()
    """Audiences (`aud`) of the models: a token must have one of them.

    Default: required.
    """

    jwks_uri: HttpsUrl
    """URL of the issuer's keys, which the proxies ask for."""


class Limits(Section):
    """Limits of requests; those above them are answered with 413 or 429."""

    body_mib: Annotated[int, Field(ge=1, le=512)] = 32
    """Size of the largest request."""

    in_flight_mib: Annotated[int, Field(ge=1, le=4096)] = 128
    """Size of the requests that a client of `api_keys` or `jwt` has under way at each of the 4
    workers of a proxy. The memory of proxies follows from it.
    """

    in_flight: Annotated[int, Field(ge=1, le=100_000)] | None = None
    """Number of these requests. Default: any."""

    requests_per_second: Annotated[int, Field(ge=1, le=1_000_000)] | None = None
    """Requests of each client for each model, at each proxy. Default: any."""


class Front(Section):
    """Proxies that send each request to the service of the model that it names."""

    exposure: Exposure = "internal"
    """Clients: pods of the cluster alone, the VPC and what is connected to it by an internal load
    balancer, or the internet.
    """

    certificate: CertificateArn | None = None
    """ARN of the certificate of ACM of its address; clients then come by HTTPS, at port 443.

    Default: HTTP at port 80.
    """

    allowed_cidrs: Distinct[Network4] = ()
    """Ranges whose addresses reach its load balancer.

    Default: those of the VPC and `network.connected_cidrs`; required with `internet`.
    """

    api_keys: SubdomainName | None = None
    """Secret of namespace `envoy-gateway-system` with a key for each client, under the client's
    name. Clients send it as `Authorization: Bearer KEY`, or as `x-api-key: KEY`.

    Default: no keys are asked for.
    """

    jwt: FrontJwt | None = None
    """Issuer of tokens, which clients send as `Authorization: Bearer TOKEN`.

    Default: no tokens are asked for.
    """

    # An empty one would open all models to each, as none does.
    models_by_client: Mapping[ClientName, Distinct[ModelName]] = Field(
        min_length=1, default_factory=dict[str, tuple[str, ...]]
    )
    """Names of models that each client may use, by the client's name in the Secret of `api_keys` or
    `sub` of its token; other clients may use none.

    Default: each client may use all models.
    """

    limits: Limits = Field(default_factory=Limits)
    """Limits of each client, so that others keep their share of the proxies."""

    replicas: Annotated[int, Field(ge=2, le=100)] = 2
    """Number of proxies, on nodes of their own."""


class FileKeys(Section):
    """Keys of `serving` beside the core's keys."""

    front: Front | None = None
    """One address for OpenAI-style requests, which names the model in each. Default: none; each
    service has an address of its own in the cluster.
    """


def front_of(cluster: Cluster) -> Front | None:
    """Return the front of a cluster file; None without one."""
    section = cluster.section(FileKeys)
    return None if section is None else section.front


@rule
def internet_is_guarded(front: Front) -> Mistakes:
    if front.exposure != "internet":
        return
    if front.certificate is None:
        wrong = "open to the internet without TLS: keys and prompts could be read on the way"
        yield refuse("exposure", wrong, "add certificate, or write internal")
    if front.api_keys is None and front.jwt is None:
        wrong = "open to the internet without authentication: anybody could use the models"
        yield refuse("exposure", wrong, "add api_keys or jwt, or write internal")
    if not front.allowed_cidrs:
        wrong = "open to the internet without a list of clients"
        yield refuse("exposure", wrong, "add allowed_cidrs, the networks of your clients")


@rule
def front_is_for_some(front: Front) -> Mistakes:
    """Yield ranges that let everybody in, alone or together, or nobody."""
    ranges = front.allowed_cidrs
    yield from whole_internet("allowed_cidrs", ranges, "the models")
    if front.exposure == "internet" and ranges and all(map(not_on_the_internet, ranges)):
        wrong = "private ranges alone, from which nobody reaches a load balancer of the internet"
        yield refuse("allowed_cidrs", wrong, "name public ranges, or write internal", got="")


@rule
def tokens_have_an_audience(front: Front) -> Mistakes:
    if front.jwt is not None and not front.jwt.audiences:
        wrong = (
            "missing: tokens of the issuer for other applications and people would open the models "
            "too"
        )
        todo = "name the audience (aud) of tokens that the issuer makes for these models"
        yield refuse("jwt.audiences", wrong, todo, got="")


@rule
def issuer_is_not_for_everybody(front: Front) -> Mistakes:
    if front.jwt is not None and front.jwt.issuer.lower().rstrip("/") in _ANY_AUDIENCE:
        wrong = "an issuer that gives everybody tokens for any audience, so everybody gets in"
        yield refuse("jwt.issuer", wrong, "use your own issuer, or api_keys")


@rule
def cluster_front_has_no_load_balancer(front: Front) -> Mistakes:
    if front.exposure == "cluster":
        for key in ("certificate", "allowed_cidrs"):
            if key in front.model_fields_set:
                wrong = "exposure: cluster has no load balancer, which this key sets up"
                yield refuse(key, wrong, "leave it out, or write exposure: internal")


@rule
def front_authenticates_one_way(front: Front) -> Mistakes:
    if front.api_keys is not None and front.jwt is not None:
        wrong = "beside jwt: a client sends one header, a key or a token"
        yield refuse("api_keys", wrong, "keep api_keys or jwt")


@rule
def clients_have_names(front: Front) -> Mistakes:
    if front.api_keys is not None or front.jwt is not None:
        return
    of_clients = {"in_flight", "in_flight_mib", "requests_per_second"}
    stated = [f"limits.{key}" for key in sorted(front.limits.model_fields_set & of_clients)]
    for key in [*(["models_by_client"] if front.models_by_client else []), *stated]:
        wrong = "no keys or tokens are asked for, so that nobody knows a client's name"
        yield refuse(key, wrong, "add api_keys or jwt", got="")


@rule
def largest_request_passes(front: Front) -> Mistakes:
    limits = front.limits
    if limits.in_flight_mib < limits.body_mib:
        wrong = f"less than the {limits.body_mib} MiB of body_mib, so that no client sends that"
        yield refuse("limits.in_flight_mib", wrong, "raise it, or lower limits.body_mib")


@rule
def certificate_is_of_the_region(front: Front, identity: Identity) -> Mistakes:
    if front.certificate is None:
        return
    region, account = front.certificate.split(":")[3:5]
    if region != identity.region:
        wrong = f"in {region}, and load balancers take certificates of their own Region"
        yield refuse("certificate", wrong, f"request or import it in {identity.region}")
    if identity.account is not None and account != identity.account:
        wrong = f"of account {account}, and load balancers take certificates of their own account"
        yield refuse("certificate", wrong, f"request or import it in {identity.account}")


@rule
def front_has_its_subnets(front: Front, network: Network) -> Mistakes:
    if front.exposure == "internet" and network.egress == "none":
        wrong = "network.egress: none closes the VPC to the internet"
        yield refuse("exposure", wrong, "write internal")
        return
    if network.vpc is None or front.exposure == "cluster":
        return
    use = "public" if front.exposure == "internet" else "nodes"
    zones = {subnet.zone for subnet in network.subnets if use in subnet.use}
    # Source: https://docs.aws.amazon.com/elasticloadbalancing/latest/application/application-load-balancers.html
    if len(zones) < 2:
        wrong = f"a load balancer needs subnets of use: {use} in two zones"
        todo = f"add use: {use} to a subnet in each of two zones, or write exposure: cluster"
        yield refuse("exposure", wrong, todo)


@rule(severity="warning")
def keys_of_the_issuer_are_out_of_reach(front: Front, network: Network) -> Mistakes:
    if front.jwt is not None and network.egress == "none":
        host = urlsplit(front.jwt.jwks_uri).hostname
        wrong = f"the front asks {host} for keys, which network.egress: none cannot reach"
        yield note("jwt.jwks_uri", f"{wrong}; name a host that the VPC reaches, or use api_keys")
