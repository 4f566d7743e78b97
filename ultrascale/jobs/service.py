"""Services: their pods, address, disruption budget, network policy and route.

Sources:
    https://kubernetes.io/docs/concepts/workloads/controllers/deployment/
    https://kubernetes.io/docs/tasks/run-application/configure-pdb/
"""

from collections.abc import Iterator, Mapping

from ultrascale.catalog import leaderworkerset, object_keys
from ultrascale.documents import Json
from ultrascale.jobs.pod_template import metadata, pod_template, queued_metadata, workload_metadata
from ultrascale.plan import names
from ultrascale.plan.model import AutoscalePlan, JobPlan, RoutePlan, ServingPlan, TriggerPlan

# --- LeaderWorkerSets: services whose replicas are groups of pods; the first takes requests -------
# Sources:
#     https://github.com/kubernetes-sigs/lws/blob/v0.10.0/api/leaderworkerset/v1/leaderworkerset_types.go
#     https://github.com/kubernetes-sigs/lws/blob/v0.10.0/pkg/controllers/pod_controller.go


API_VERSION = "leaderworkerset.x-k8s.io/v1"
KIND = "LeaderWorkerSet"


def leader_worker_set(
    plan: JobPlan, serving: ServingPlan, leader: Mapping[str, Json], spread: Mapping[str, Json]
) -> dict[str, Json]:
    """Return the LeaderWorkerSet of a service.

    Args:
        plan: The service.
        serving: Its replicas.
        leader: Fields of the container that takes requests: its port, probes and hook.
        spread: Fields of the pods' spec that spread replicas over zones.
    """
    return {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": workload_metadata(plan),
        "spec": {
            **replicas_of(serving),
            "rolloutStrategy": {
                "type": "RollingUpdate",
                "rollingUpdateConfiguration": {
                    "partition": 0,
                    "maxSurge": 1 if serving.surge else 0,
                    "maxUnavailable": serving.replaced,
                },
            },
            "startupPolicy": "LeaderCreated",
            # Its own Service of the shared kind would have the name of the clients' Service.
            "networkConfig": {"subdomainPolicy": "UniquePerReplica"},
            "leaderWorkerTemplate": {
                "size": serving.nodes,
                # The kubelet counts restarts, keeps last lines and waits longer each time; a group
                # that is made anew loses all of that. A program that ends takes the others along.
                "restartPolicy": "None",
                **_templates(plan, serving, leader, spread),
            },
        },
    }


def _templates(
    plan: JobPlan, serving: ServingPlan, leader: Mapping[str, Json], spread: Mapping[str, Json]
) -> dict[str, Json]:
    """Return the templates of the pods of a replica.

    Kueue takes each template for a kind of pods with a flavor of its own, and places both in one
    domain if they name the same group.

    Source:
    https://kueue.sigs.k8s.io/docs/tasks/run/leaderworkerset/#configure-topology-aware-scheduling
    """
    first = pod_template(plan, container=leader, spec=spread)
    if serving.nodes == 1:
        return {"workerTemplate": first}
    group = {} if plan.topology is None else {object_keys.TOPOLOGY_GROUP: plan.name}
    workers = {name: leader[name] for name in ("lifecycle",) if name in leader}
    return {
        "leaderTemplate": pod_template(
            plan, container=leader, spec=spread, extra_annotations=group
        ),
        "workerTemplate": pod_template(plan, container=workers, extra_annotations=group),
    }


def leader_label() -> dict[str, str]:
    """Return the label of the pods that take requests."""
    return {leaderworkerset.WORKER_LABEL: "0"}


def replicas_of(serving: ServingPlan) -> dict[str, Json]:
    """Return the number of replicas, which an autoscaler sets where they follow the load."""
    return {"replicas": serving.replicas} if serving.autoscale is None else {}


# --- ScaledObject of a service: KEDA reads its metrics, and an autoscaler sets its replicas -------
# KEDA takes the average of the pods that answer, and the autoscaler multiplies the ready pods by
# its ratio to the target: a pod that is too busy to answer counts as the others do, where a sum
# would count it as idle. Of several metrics the one that asks for most replicas decides.
#
# Sources:
#     https://github.com/kedacore/keda/blob/v2.20.2/apis/keda/v1alpha1/scaledobject_types.go
#     https://github.com/kedacore/keda/blob/v2.20.2/pkg/scalers/metrics_api_scaler.go
#     https://kubernetes.io/docs/tasks/run-application/horizontal-pod-autoscale/#configurable-scaling-behavior


_API_VERSION = "keda.sh/v1alpha1"
_METRICS_PATH = "/metrics"
# Reads in a row that fail, one every 15 seconds, before the replicas stay as they are.
_FAILURES = 3
# KEDA's own 3 seconds are less than a busy server takes to answer.
# Source: https://github.com/kedacore/keda/issues/7549
_READ_SECONDS = 15
_PERIOD_SECONDS = 60
# In each period at most: twice as many, or some more of few.
_MORE_PERCENT, _MORE = 100, 4
_FEWER_PERCENT, _FEWER = 10, 1


def scaled_object(
    plan: JobPlan, serving: ServingPlan, autoscale: AutoscalePlan, pods: Mapping[str, Json]
) -> dict[str, Json]:
    """Return the ScaledObject of a service.

    Args:
        plan: The service.
        serving: Its address and probes.
        autoscale: Rules by which its replicas follow the load.
        pods: The object that has the replicas.
    """
    target = {key: pods[key] for key in ("apiVersion", "kind")}
    spec: dict[str, Json] = {
        "scaleTargetRef": {**target, "name": plan.name},
        "minReplicaCount": autoscale.least,
        "maxReplicaCount": autoscale.most,
        "advanced": {
            "horizontalPodAutoscalerConfig": {
                "behavior": {
                    "scaleUp": {
                        "stabilizationWindowSeconds": 0,
                        "selectPolicy": "Max",
                        "policies": [_policy("Percent", _MORE_PERCENT), _policy("Pods", _MORE)],
                    },
                    "scaleDown": {
                        "stabilizationWindowSeconds": autoscale.lull_seconds,
                        "selectPolicy": "Max",
                        "policies": [_policy("Percent", _FEWER_PERCENT), _policy("Pods", _FEWER)],
                    },
                }
            }
        },
        "triggers": [_trigger(plan, serving, trigger) for trigger in autoscale.triggers],
    }
    if autoscale.metric != "cpu":
        spec["fallback"] = {
            "failureThreshold": _FAILURES,
            "replicas": autoscale.least,
            "behavior": "currentReplicasIfHigher",
        }
    return {
        "apiVersion": _API_VERSION,
        "kind": "ScaledObject",
        "metadata": queued_metadata(plan),
        "spec": spec,
    }


def _trigger(plan: JobPlan, serving: ServingPlan, trigger: TriggerPlan) -> dict[str, Json]:
    if trigger.series is None:
        value: Json = {"value": f"{trigger.target:g}", "containerName": plan.container}
        return {"type": "cpu", "metricType": "Utilization", "metadata": value}
    # The port is the pods' own: KEDA takes their addresses from the Service, not its address.
    url = f"http://{plan.name}.{plan.namespace}.svc:{serving.port}{_METRICS_PATH}"
    return {
        "type": "metrics-api",
        "metricType": "Value",
        "metadata": {
            "url": url,
            "format": "prometheus",
            "valueLocation": trigger.series,
            "aggregateFromKubeServiceEndpoints": "true",
            "aggregationType": "average",
            "timeout": f"{_READ_SECONDS}s",
            "targetValue": f"{trigger.target:g}",
        },
    }


def _policy(type: str, value: int) -> dict[str, Json]:
    return {"type": type, "value": value, "periodSeconds": _PERIOD_SECONDS}


# --- Services: their pods, address, disruption budget, network policy and route -------------------


_PROBE_SECONDS = 10
# A server that reads long requests answers nothing else for seconds: it stays in its Service for a
# minute, and alive for five.
_FAILURES_BEFORE_UNREADY, _FAILURES_BEFORE_RESTART = 6, 30
_PROGRESS_SECONDS, _PROGRESS_FAILURES = 30, 10
# Nodes are launched, and images of tens of gigabytes pulled, before a program starts.
_LAUNCH_SECONDS = 1800
_PORT_NAME = names.SERVING_PORT
# Most matches of one rule of an HTTPRoute.
# Source: https://github.com/kubernetes-sigs/gateway-api/blob/v1.6.1/apis/v1/httproute_types.go
_MATCHES_OF_A_RULE = 64
_NAMESPACE = "kubernetes.io/metadata.name"


def service_objects(plan: JobPlan, serving: ServingPlan) -> Iterator[dict[str, Json]]:
    """Yield the objects of a service, which are applied: the maker of its pods comes last.

    Only its autoscaler comes after it.
    """
    yield {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": metadata(plan),
        "spec": {
            "type": "ClusterIP",
            "selector": _servers(plan),
            "ports": [{"name": _PORT_NAME, "port": serving.port, "targetPort": _PORT_NAME}],
        },
    }
    yield {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": metadata(plan),
        "spec": {
            "maxUnavailable": _unavailable_pods(serving),
            "selector": {"matchLabels": _selector(plan)},
            # A pod that does not serve keeps no node from being drained.
            "unhealthyPodEvictionPolicy": "AlwaysAllow",
        },
    }
    yield from _network_policy(plan, serving)
    if serving.route is not None:
        yield route_object(plan, serving, serving.route)
    if plan.controller == "leaderworkerset":
        container = _container(serving)
        pods = leader_worker_set(plan, serving, container, _spread(plan))
    else:
        pods = _deployment(plan, serving)
    yield pods
    if serving.autoscale is not None:
        yield scaled_object(plan, serving, serving.autoscale, pods)


def _deployment(plan: JobPlan, serving: ServingPlan) -> dict[str, Json]:
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": metadata(plan),
        "spec": {
            **replicas_of(serving),
            "selector": {"matchLabels": _selector(plan)},
            "strategy": {
                "type": "RollingUpdate",
                "rollingUpdate": {
                    "maxSurge": 1 if serving.surge else 0,
                    "maxUnavailable": serving.replaced,
                },
            },
            "progressDeadlineSeconds": _LAUNCH_SECONDS + serving.startup_seconds,
            "template": pod_template(plan, container=_container(serving), spec=_spread(plan)),
        },
    }


def _container(serving: ServingPlan) -> dict[str, Json]:
    # The first pod of a replica starts its program, and waits for the nodes of the others.
    launch = _LAUNCH_SECONDS if serving.nodes > 1 else 0
    startup = -(-(launch + serving.startup_seconds) // _PROBE_SECONDS)
    return {
        "ports": [{"name": _PORT_NAME, "containerPort": serving.port}],
        "startupProbe": {**_probe(serving), "failureThreshold": startup},
        "readinessProbe": {**_probe(serving), "failureThreshold": _FAILURES_BEFORE_UNREADY},
        "livenessProbe": _liveness(serving),
        "lifecycle": {"preStop": pre_stop(serving)},
    }


def _liveness(serving: ServingPlan) -> dict[str, Json]:
    """Return the probe whose failure starts a pod anew, and with it all pods of its replica."""
    if not serving.liveness:
        return {**_probe(serving), "failureThreshold": _FAILURES_BEFORE_RESTART}
    return {
        "exec": {"command": list(serving.liveness)},
        "periodSeconds": _PROGRESS_SECONDS,
        "timeoutSeconds": _PROGRESS_SECONDS,
        "failureThreshold": _PROGRESS_FAILURES,
    }


def _spread(plan: JobPlan) -> dict[str, Json]:
    constraint: dict[str, Json] = {
        "maxSkew": 1,
        "topologyKey": names.ZONE_LABEL,
        # A failed zone must not keep a pod from starting elsewhere.
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": _servers(plan)},
    }
    return {"topologySpreadConstraints": [constraint]}


def _unavailable_pods(serving: ServingPlan) -> int:
    """Return the most pods that a drain may take away at the same time.

    With the first pod of a replica all its others are gone, which the budget counts too.
    """
    replicas = serving.max_unavailable
    return replicas if replicas == 1 else replicas * serving.nodes


def pre_stop(serving: ServingPlan) -> dict[str, Json]:
    """Return the hook that a pod runs before SIGTERM, within its grace period."""
    if serving.drain:
        return {"exec": {"command": list(serving.drain)}}
    return {"sleep": {"seconds": serving.drain_seconds}}


def _probe(serving: ServingPlan) -> dict[str, Json]:
    if serving.health_path is None:
        answer: dict[str, Json] = {"tcpSocket": {"port": _PORT_NAME}}
    else:
        answer = {"httpGet": {"path": serving.health_path, "port": _PORT_NAME}}
    return {**answer, "periodSeconds": _PROBE_SECONDS, "timeoutSeconds": _PROBE_SECONDS}


def _network_policy(plan: JobPlan, serving: ServingPlan) -> Iterator[dict[str, Json]]:
    """Yield the policy on a service's clients beside its namespace's policies."""
    if rules := [*_ingress(plan, serving)]:
        yield {
            "apiVersion": "networking.k8s.io/v1",
            "kind": "NetworkPolicy",
            "metadata": metadata(plan),
            "spec": {
                "podSelector": {"matchLabels": _selector(plan)},
                "policyTypes": ["Ingress"],
                "ingress": rules,
            },
        }


def _ingress(plan: JobPlan, serving: ServingPlan) -> Iterator[Json]:
    if clients := [*_clients(serving)]:
        yield {"from": clients, "ports": [{"port": serving.port}]}
    if serving.route is not None and serving.route.closed:
        # The namespace's own policy leaves it out, and pods of one replica meet on any port.
        yield {"from": [{"podSelector": {"matchLabels": _selector(plan)}}]}


def _clients(serving: ServingPlan) -> Iterator[dict[str, Json]]:
    if serving.allow_from:
        names_of = {"key": _NAMESPACE, "operator": "In"}
        allowed: Json = [{**names_of, "values": list(serving.allow_from)}]
        yield {"namespaceSelector": {"matchExpressions": allowed}}
    for reader in serving.autoscale.readers if serving.autoscale is not None else ():
        yield {
            "namespaceSelector": {"matchLabels": {_NAMESPACE: reader.namespace}},
            "podSelector": {"matchLabels": dict(reader.labels)},
        }
    route = serving.route
    if route is not None and route.closed:
        yield {
            "namespaceSelector": {"matchLabels": {_NAMESPACE: route.namespace}},
            "podSelector": {"matchLabels": dict(route.proxies)},
        }
    for pods in serving.measured_from:
        yield {"ipBlock": {"cidr": pods}}


def _servers(plan: JobPlan) -> dict[str, str]:
    leaders = leader_label() if plan.controller == "leaderworkerset" else {}
    return {**_selector(plan), **leaders}


def _selector(plan: JobPlan) -> dict[str, str]:
    """Return the labels by which a Deployment selects: they can never change."""
    return {names.JOB_LABEL: plan.name}


# Sources:
#     https://gateway-api.sigs.k8s.io/api-types/httproute/
#     https://github.com/envoyproxy/gateway/tree/v1.9.0/examples/kubernetes


def route_object(plan: JobPlan, serving: ServingPlan, route: RoutePlan) -> dict[str, Json]:
    """Return the HTTPRoute of a service: Envoy sends its requests to the pods that are ready."""
    return {
        "apiVersion": "gateway.networking.k8s.io/v1",
        "kind": "HTTPRoute",
        "metadata": {
            **queued_metadata(plan),
            # The front lists them.
            "annotations": {names.MODELS_ANNOTATION: " ".join(route.models)},
        },
        "spec": {
            "parentRefs": [{"name": route.gateway, "namespace": route.namespace}],
            "rules": [
                {
                    "matches": [
                        _match(model) for model in route.models[start:][:_MATCHES_OF_A_RULE]
                    ],
                    "backendRefs": [{"name": plan.name, "port": serving.port}],
                }
                for start in range(0, len(route.models), _MATCHES_OF_A_RULE)
            ],
        },
    }


def _match(model: str) -> dict[str, Json]:
    return {
        "path": {"type": "PathPrefix", "value": names.OPENAI_PATHS},
        "headers": [{"type": "Exact", "name": names.MODEL_HEADER, "value": model}],
    }
