"""The Gateway for all models, its proxies, and the policies for its requests.

Sources:
    https://gateway-api.sigs.k8s.io/reference/spec/
    https://gateway.envoyproxy.io/docs/api/extension_types/
"""

import json
from collections.abc import Sequence

from ultrascale.documents import Json, JsonObject
from ultrascale.parts.front.model import Plan
from ultrascale.plan import names
from ultrascale.plan.names import CLOSED_PATHS, FRONT_GATEWAY, FRONT_NAMESPACE, OPENAI_PATHS
from ultrascale_k8s._pods import SYSTEM_CLUSTER_CRITICAL
from ultrascale_k8s.front.openai_api import (
    CLOSED_PATH,
    UNKNOWN_MODEL,
    model_script,
    response_overrides,
)
from ultrascale_k8s.namespaces import ingress_policy, ingress_rule
from ultrascale_k8s.objects import labels

_POLICIES = "gateway.envoyproxy.io/v1alpha1"
_GATEWAY_API = "gateway.networking.k8s.io"
# An answer may take minutes to its first word, and all of it comes at once if it is not streamed.
# The limit is longer than a load balancer waits (3,600 s), which must close the connection first.
_IDLE = "3900s"
# Servers close a connection after 5 s without a request (uvicorn's default, which vLLM keeps). A
# request that is under way then is lost, and must not be sent twice: so proxies close first.
# Source: https://docs.vllm.ai/en/stable/configuration/env_vars/
_SERVER_IDLE = "3s"
# A peer whose node is lost is silent, and so is a model that computes. Firewalls and security
# groups forget silent connections: on Nitro v6 after 350 s.
# Source: https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_ConnectionTrackingConfiguration.html
_KEEPALIVE: Json = {"idleTime": "60s", "interval": "30s", "probes": 3}
_LISTENER = "http"
_UNKNOWN, _CLOSED = "unknown-model", "closed-path"
# Paths of OpenAI's API, and of Anthropic's API, which vLLM answers too.
KEY_HEADERS = ("Authorization", "x-api-key")
_MOST = 100_000
# A load balancer stops sending after two failed checks, 5 s apart.
_LEAST_DRAIN = "20s"
# And it begins to send after two good checks: when the next proxy ends, the successor of the last
# one has requests.
_READY_SECONDS = 30


def front_objects(plan: Plan) -> list[JsonObject]:
    """Return the Gateway and its policies; services bring their own routes."""
    return [
        _gateway_class(plan),
        _proxy(plan),
        _gateway(plan),
        _client_policy(plan),
        _backend_policy(plan),
        _model_policy(plan),
        _security_policy(plan),
        *_fallback_route(),
    ]


def _gateway_class(plan: Plan) -> JsonObject:
    return {
        "apiVersion": f"{_GATEWAY_API}/v1",
        "kind": "GatewayClass",
        "metadata": {"labels": labels(FRONT_GATEWAY), "name": f"ultrascale-{FRONT_GATEWAY}"},
        "spec": {"controllerName": plan.controller_name},
    }


def _gateway(plan: Plan) -> JsonObject:
    return {
        "apiVersion": f"{_GATEWAY_API}/v1",
        "kind": "Gateway",
        "metadata": _metadata(FRONT_GATEWAY),
        "spec": {
            "gatewayClassName": f"ultrascale-{FRONT_GATEWAY}",
            "infrastructure": {
                "parametersRef": {
                    "group": "gateway.envoyproxy.io",
                    "kind": "EnvoyProxy",
                    "name": FRONT_GATEWAY,
                }
            },
            "listeners": [
                {
                    "name": _LISTENER,
                    "protocol": "HTTP",
                    "port": names.FRONT_PORT,
                    "allowedRoutes": {
                        # By default GRPCRoutes and other routes would be allowed too.
                        "kinds": [{"group": _GATEWAY_API, "kind": "HTTPRoute"}],
                        "namespaces": {"from": "Selector", "selector": _route_namespaces(plan)},
                    },
                }
            ],
        },
    }


def _route_namespaces(plan: Plan) -> JsonObject:
    """Return the selector of namespaces whose routes the Gateway accepts."""
    name: Json = {
        "key": "kubernetes.io/metadata.name",
        "operator": "In",
        "values": [*plan.namespaces],
    }
    return {"matchExpressions": [name]}


def _proxy(plan: Plan) -> JsonObject:
    return {
        "apiVersion": _POLICIES,
        "kind": "EnvoyProxy",
        "metadata": _metadata(FRONT_GATEWAY),
        "spec": {
            "concurrency": plan.workers,
            "provider": {
                "type": "Kubernetes",
                "kubernetes": {
                    "envoyDeployment": _deployment(plan),
                    "envoyPDB": {
                        "maxUnavailable": 1,
                        # A proxy that does not serve must not prevent the drain of a node.
                        "patch": {
                            "type": "StrategicMerge",
                            "value": {"spec": {"unhealthyPodEvictionPolicy": "AlwaysAllow"}},
                        },
                    },
                    # A load balancer, if there is one, belongs to our stack.
                    "envoyService": {"name": FRONT_GATEWAY, "type": "ClusterIP"},
                },
            },
            "shutdown": {
                "drainTimeout": f"{plan.drain_seconds}s",
                "minDrainDuration": _LEAST_DRAIN,
            },
        },
    }


def _deployment(plan: Plan) -> JsonObject:
    selector: dict[str, Json] = {"matchLabels": dict(plan.proxy_labels)}
    return {
        "name": FRONT_GATEWAY,
        "replicas": plan.proxies,
        "strategy": {
            "type": "RollingUpdate",
            "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1},
        },
        "pod": {
            "priorityClassName": SYSTEM_CLUSTER_CRITICAL,
            "nodeSelector": {names.ROLE_LABEL: names.SYSTEM_ROLE},
            "tolerations": [{"key": "CriticalAddonsOnly", "operator": "Exists"}],
            "topologySpreadConstraints": [
                {
                    "maxSkew": 1,
                    "topologyKey": key,
                    "whenUnsatisfiable": otherwise,
                    "labelSelector": selector,
                }
                for key, otherwise in (
                    (names.HOSTNAME_LABEL, "DoNotSchedule"),
                    (names.ZONE_LABEL, "ScheduleAnyway"),
                )
            ],
        },
        "container": {
            "image": plan.proxy_image,
            "resources": {
                "requests": {"cpu": "500m", "memory": f"{plan.memory_mib // 2}Mi"},
                "limits": {"memory": f"{plan.memory_mib}Mi"},
            },
        },
        "patch": {
            "type": "StrategicMerge",
            "value": {"spec": {"minReadySeconds": _READY_SECONDS}},
        },
    }


def _client_policy(plan: Plan) -> JsonObject:
    return _policy(
        "ClientTrafficPolicy",
        {
            "connection": {"bufferLimit": f"{plan.limits.body_mib}Mi"},
            "tcpKeepalive": _KEEPALIVE,
            # Services trust this header, so no client may set it.
            "headers": {"earlyRequestHeaders": {"remove": [names.CLIENT_HEADER]}},
            "healthCheck": {"path": names.FRONT_HEALTH_PATH},
            "timeout": {"http": {"idleTimeout": _IDLE, "streamIdleTimeout": _IDLE}},
        },
    )


def _backend_policy(plan: Plan) -> JsonObject:
    rate = plan.limits.requests_per_second
    limited: dict[str, Json] = {} if rate is None else {"rateLimit": rate_limited(rate)}
    return _policy(
        "BackendTrafficPolicy",
        {
            **limited,
            # Durations of answers differ by orders of magnitude: round robin would pile up the long
            # ones.
            "loadBalancer": {"type": "LeastRequest"},
            # Envoy's own limits of 1,024 are meant for requests of milliseconds.
            "circuitBreaker": {
                "maxConnections": _MOST,
                "maxPendingRequests": _MOST,
                "maxParallelRequests": _MOST,
            },
            # A stopping replica takes no new connections, and the model has not seen the request
            # yet.
            "retry": {
                "numRetries": 2,
                "retryOn": {"triggers": ["connect-failure", "refused-stream"]},
            },
            "tcpKeepalive": _KEEPALIVE,
            "timeout": {
                "tcp": {"connectTimeout": "5s"},
                "http": {
                    "requestTimeout": "0s",
                    "streamIdleTimeout": _IDLE,
                    "connectionIdleTimeout": _SERVER_IDLE,
                },
            },
            "responseOverride": response_overrides(plan.limits.body_mib),
        },
    )


def rate_limited(requests_per_second: int) -> Json:
    """Return the limit of each client, by the name that no client may set itself."""
    name: Json = {"name": names.CLIENT_HEADER, "type": "Distinct"}
    rule: Json = {
        "clientSelectors": [{"headers": [name]}],
        "limit": {"requests": requests_per_second, "unit": "Second"},
    }
    return {"local": {"rules": [rule]}}


def _model_policy(plan: Plan) -> JsonObject:
    # By default Envoy Gateway passes clients' tokens on to services.
    models = plan.models_by_client
    script = model_script(
        hides_token=plan.jwt is not None,
        models_by_client=models,
        limits=plan.limits if plan.knows_clients else None,
    )
    made = _policy("EnvoyExtensionPolicy", {"lua": [{"type": "Inline", "inline": script}]})
    # As data: `ultrascale diff` says who may use more.
    rights = json.dumps(models, sort_keys=True)
    metadata = {**_metadata(FRONT_GATEWAY), "annotations": {names.CLIENT_MODELS: rights}}
    return {**made, "metadata": metadata}


def _security_policy(plan: Plan) -> JsonObject:
    """Return the policy by which clients authenticate.

    Without authentication the policy is empty, as no deployment would delete an earlier policy with
    keys or tokens.
    """
    if plan.api_keys is not None:
        return _policy(
            "SecurityPolicy",
            {
                "apiKeyAuth": {
                    "credentialRefs": [{"group": "", "kind": "Secret", "name": plan.api_keys}],
                    "extractFrom": [{"headers": list(KEY_HEADERS)}],
                    "forwardClientIDHeader": names.CLIENT_HEADER,
                    "sanitize": True,
                }
            },
        )
    if plan.jwt is None:
        return _policy("SecurityPolicy", {})
    return _policy(
        "SecurityPolicy",
        {
            "jwt": {
                "providers": [
                    {
                        "name": FRONT_GATEWAY,
                        "issuer": plan.jwt.issuer,
                        "audiences": [*plan.jwt.audiences],
                        "remoteJWKS": {"uri": plan.jwt.jwks_uri},
                        "claimToHeaders": [{"claim": "sub", "header": names.CLIENT_HEADER}],
                    }
                ]
            }
        },
    )


def _fallback_route() -> list[JsonObject]:
    """Return the route of requests that no service's route has, and its answers.

    All requests first match this route: the script runs on a route, and the header that it sets
    makes the proxy choose again. A longer path takes precedence over a service's route.
    """
    name = "unanswered"
    rules: list[Json] = [
        _rule_with_answer([*CLOSED_PATHS, "/"], _CLOSED),
        _rule_with_answer([OPENAI_PATHS], _UNKNOWN),
    ]
    return [
        _direct_response(_UNKNOWN, UNKNOWN_MODEL),
        _direct_response(_CLOSED, CLOSED_PATH),
        {
            "apiVersion": f"{_GATEWAY_API}/v1",
            "kind": "HTTPRoute",
            "metadata": _metadata(name),
            "spec": {
                "parentRefs": [{"name": FRONT_GATEWAY, "sectionName": _LISTENER}],
                "rules": rules,
            },
        },
    ]


def _rule_with_answer(paths: Sequence[str], answer: str) -> Json:
    matches: list[Json] = [{"path": {"type": "PathPrefix", "value": path}} for path in paths]
    reference: Json = {
        "group": "gateway.envoyproxy.io",
        "kind": "HTTPRouteFilter",
        "name": answer,
    }
    return {
        "matches": matches,
        "filters": [{"type": "ExtensionRef", "extensionRef": reference}],
    }


def _direct_response(name: str, text: str) -> JsonObject:
    return {
        "apiVersion": _POLICIES,
        "kind": "HTTPRouteFilter",
        "metadata": _metadata(name),
        "spec": {
            "directResponse": {
                "contentType": "application/json",
                "statusCode": 404,
                "body": {"type": "Inline", "inline": text},
            }
        },
    }


def _policy(kind: str, spec: JsonObject) -> JsonObject:
    target: Json = {"group": _GATEWAY_API, "kind": "Gateway", "name": FRONT_GATEWAY}
    return {
        "apiVersion": _POLICIES,
        "kind": kind,
        "metadata": _metadata(FRONT_GATEWAY),
        "spec": {"targetRefs": [target], **spec},
    }


def _metadata(name: str) -> JsonObject:
    return {"labels": labels(FRONT_GATEWAY), "name": name, "namespace": FRONT_NAMESPACE}


def front_ingress_objects(plan: Plan) -> list[JsonObject]:
    """Return the policies that open the proxies to clients, and their controller to the proxies.

    Nothing else reaches them. All clients are allowed: keys and tokens distinguish clients, and the
    load balancer has addresses that no selector names.
    """
    proxies: JsonObject = {"matchLabels": plan.proxy_labels}
    controller: JsonObject = {"matchLabels": plan.controller_labels}
    of_proxies = ingress_rule([plan.configuration_port], [{"podSelector": proxies}])
    return [
        ingress_policy(
            f"{name}-ingress", FRONT_NAMESPACE, [rule], pods=pods, component=FRONT_GATEWAY
        )
        for name, pods, rule in (
            ("proxies", proxies, ingress_rule([plan.proxy_port])),
            ("controller", controller, of_proxies),
        )
    ]
