"""Admission policies by which requests for a service's models reach only that service.

Users who send jobs to a namespace also send the routes of its services, and the proxies follow all
routes. So a route may only have the form that `submit` sends: it sends requests for a service's
models in the cluster file to the service of the same name, and does not affect other requests.

Sources:
    https://github.com/envoyproxy/gateway/blob/v1.9.0/internal/gatewayapi/sort.go
    https://gateway-api.sigs.k8s.io/reference/spec/#httproutespec
    https://kubernetes.io/docs/reference/using-api/cel/
"""

import json
from collections.abc import Iterator, Mapping
from types import MappingProxyType

from ultrascale.documents import JsonObject
from ultrascale.parts.front.model import Plan
from ultrascale.plan.names import (
    FRONT_GATEWAY,
    FRONT_NAMESPACE,
    MODEL_HEADER,
    MODELS_ANNOTATION,
    OPENAI_PATHS,
)
from ultrascale_k8s._admission import Kinds, binding, policy

_GATEWAY_API = "gateway.networking.k8s.io"
_ROUTES = Kinds(group=_GATEWAY_API, version="v1", resources=("httproutes",))
# All kinds, even kinds of later releases: they attach to Gateways and routes, or are Gateways. A
# GatewayClass has no namespace: Envoy Gateway puts a finalizer on ours, and others have their own.
_OTHERS = tuple(
    Kinds(group=group, version="*", resources=("*",), namespaced=True)
    for group in (_GATEWAY_API, "gateway.networking.x-k8s.io", "gateway.envoyproxy.io")
)
_SERVICES = Kinds(group="", version="v1", resources=("services",))
_SUBMIT = "send the service by `ultrascale submit`, which makes its route"
# Conditions of CEL on a match of a route and on what it refers to. `dyn` keeps the type check of
# the API server from `namespace`, a reserved word of CEL.
_OWN_MODEL = (
    "has(match.headers) && match.headers.size() == 1 && has(match.headers[0].type) && "
    f'match.headers[0].type == "Exact" && match.headers[0].name == "{MODEL_HEADER}" && '
    "match.headers[0].value in variables.models"
)
_OWN_PATH = (
    'has(match.path) && has(match.path.type) && match.path.type == "PathPrefix" && '
    f'has(match.path.value) && match.path.value == "{OPENAI_PATHS}"'
)
_FRONT = (
    f'ref.name == "{FRONT_GATEWAY}" && has(dyn(ref).namespace) && '
    f'dyn(ref).namespace == "{FRONT_NAMESPACE}" && '
    f'(!has(ref.group) || ref.group == "{_GATEWAY_API}") && '
    '(!has(ref.kind) || ref.kind == "Gateway")'
)
_OWN_SERVICE = (
    "ref.name == variables.name && "
    "(!has(dyn(ref).namespace) || dyn(ref).namespace == request.namespace) && "
    '(!has(ref.group) || ref.group == "") && (!has(ref.kind) || ref.kind == "Service")'
)


def front_route_objects(plan: Plan) -> Iterator[JsonObject]:
    """Yield the policies, and their bindings in the namespaces of jobs."""
    yield from _policy(
        plan,
        "ultrascale-front-routes",
        (_ROUTES,),
        validations=_route_rules(),
        variables={
            # If the API server is to generate the name, it is still missing.
            "name": 'has(object.metadata.name) ? object.metadata.name : ""',
            "service": 'request.namespace + "/" + variables.name',
            "services": _models_by_service(plan),
            "models": "variables.service in variables.services ? "
            "variables.services[variables.service] : []",
        },
    )
    yield from _policy(
        plan,
        "ultrascale-front-others",
        _OTHERS,
        conditions={"is-no-http-route": 'request.resource.resource != "httproutes"'},
        validations=(
            (
                "false",
                "namespaces of jobs have no kinds of the Gateway API and of Envoy Gateway but "
                "HTTPRoutes of services: any other could change the requests of others; keep "
                "it in a namespace where no jobs run",
            ),
        ),
    )
    yield from _policy(
        plan,
        "ultrascale-front-addresses",
        (_SERVICES,),
        validations=(
            (
                "!has(object.spec.externalIPs) || object.spec.externalIPs.size() == 0",
                "externalIPs take what nodes send to these addresses, requests of the front "
                "for the models of others too: leave them out",
            ),
        ),
    )


def _policy(
    plan: Plan,
    name: str,
    kinds: tuple[Kinds, ...],
    *,
    validations: tuple[tuple[str, str], ...],
    conditions: Mapping[str, str] = MappingProxyType({}),
    variables: Mapping[str, str] = MappingProxyType({}),
) -> list[JsonObject]:
    judges = policy(
        name,
        component=FRONT_GATEWAY,
        kinds=kinds,
        operations=("CREATE", "UPDATE"),
        conditions=conditions,
        validations=validations,
        reason="Forbidden",
        variables=variables,
    )
    return [judges, binding(name, component=FRONT_GATEWAY, namespaces=plan.job_namespaces)]


def _models_by_service(plan: Plan) -> str:
    """Return a CEL map: the models of each service, by the service's namespace and name."""
    return json.dumps(
        {f"{each.namespace}/{each.name}": [*each.models] for each in plan.services}, sort_keys=True
    )


def _route_rules() -> tuple[tuple[str, str], ...]:
    """Return the conditions of a service's route, each with its error message."""
    listed = f'object.metadata.annotations["{MODELS_ANNOTATION}"]'
    return (
        (
            _all_matches(_OWN_MODEL),
            f"each match of a route has one header, {MODEL_HEADER}, with a model that the cluster "
            "file gives to the service of the route's name in this namespace: add the model there "
            f"and deploy, then {_SUBMIT}",
        ),
        (
            _all_matches(_OWN_PATH),
            f"each match of a route has the path {OPENAI_PATHS} as a prefix: another one opens "
            f"paths of a server that the front closes; {_SUBMIT}",
        ),
        (
            "!has(object.spec.hostnames) || object.spec.hostnames.size() == 0",
            "a route of the front has no hostnames: it would take the requests to this host from "
            f"all other services; {_SUBMIT}",
        ),
        (
            f"!has(object.spec.parentRefs) || object.spec.parentRefs.all(ref, {_FRONT})",
            f"routes of this namespace belong to Gateway {FRONT_GATEWAY} of namespace "
            f"{FRONT_NAMESPACE} alone; {_SUBMIT}",
        ),
        (
            f"has(object.spec.rules) && object.spec.rules.all(rule, {_none_or_all(_OWN_SERVICE)})",
            "a route leads to the Service of its own name and namespace, and to nothing else; "
            f"{_SUBMIT}",
        ),
        (
            "has(object.spec.rules) && object.spec.rules.all(rule, !has(rule.filters) && "
            f"({_none_or_all('!has(ref.filters)')}))",
            "a route of the front has no filters: they send requests elsewhere, or change them; "
            f"{_SUBMIT}",
        ),
        (
            f"!has(object.metadata.annotations) || "
            f'!("{MODELS_ANNOTATION}" in object.metadata.annotations) || '
            f'{listed}.split(" ").all(model, model in variables.models)',
            f"the annotation {MODELS_ANNOTATION} lists models that the cluster file does not give "
            f"to the service of the route's name in this namespace; {_SUBMIT}",
        ),
    )


def _all_matches(condition: str) -> str:
    """Return a CEL expression: true if all matches of a route keep a condition.

    A rule without matches applies to every request.
    """
    return (
        "has(object.spec.rules) && object.spec.rules.all(rule, has(rule.matches) && "
        f"rule.matches.size() > 0 && rule.matches.all(match, {condition}))"
    )


def _none_or_all(condition: str) -> str:
    return f"!has(rule.backendRefs) || rule.backendRefs.all(ref, {condition})"
