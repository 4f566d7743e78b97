"""The front: proxies behind one address, and the models of each service.

Sources:
    https://gateway.envoyproxy.io/docs/
    https://gateway-api.sigs.k8s.io/api-types/httproute/
"""

import math
import re
from collections.abc import Iterator

from ultrascale import config
from ultrascale.catalog import vllm
from ultrascale.errors import CatalogError
from ultrascale.parts.front import envoy_gateway
from ultrascale.parts.front import load_balancer_controller as lbc
from ultrascale.parts.front.model import (
    FrontServicePlan,
    JwtPlan,
    LimitsPlan,
    LoadBalancerControllerPlan,
    LoadBalancerPlan,
    Plan,
)
from ultrascale.parts.front.section import Front, front_of
from ultrascale.plan import names
from ultrascale.plan.jobs.request import JobRequest
from ultrascale.plan.jobs.rules import rule as job_rule
from ultrascale.plan.jobs.vllm import VllmOptions, options_of
from ultrascale.plan.model import ClusterPlan, RoutePlan
from ultrascale.plan.model.network import SubnetKind, SubnetPlan
from ultrascale.plan.namespaces import training_namespaces
from ultrascale.plan.rules import rule

Mistakes = Iterator[config.Mistake]

_MODEL_NAME = re.compile(config.MODEL_NAME_PATTERN)
# One of them leads; the other takes its place while its node is drained.
_CONTROLLERS = 2
_HTTP, _HTTPS = 80, 443
# The proxies wait longer: the side that sends no request meanwhile must be the one that closes.
# Source:
# https://docs.aws.amazon.com/elasticloadbalancing/latest/application/load-balancer-troubleshooting.html
_IDLE_SECONDS = 3600
# Connections that a load balancer keeps for the next request count too, and nothing ends them
# before. EKS gives up after 15 minutes on a node whose pods have not left. Source:
# https://docs.aws.amazon.com/eks/latest/userguide/managed-node-update-behavior.html
_DRAIN_SECONDS = 600
# Threads of a proxy that serve requests; each has the limits of clients for itself.
_WORKERS = 4
# Memory of a proxy beside requests of clients, and the share at which it takes no more requests.
# Source: https://github.com/envoyproxy/gateway/blob/v1.9.0/internal/xds/bootstrap/bootstrap.yaml.tpl
_OWN_MIB, _USED_SHARE = 512, 0.8
_LEAST_MIB = 2048


def plan_front(cluster: config.Cluster, core: ClusterPlan) -> Plan | None:
    """Return the front of ``cluster``; None where the file has none."""
    front = front_of(cluster)
    if front is None:
        return None
    services = services_of_front(cluster)
    return Plan(
        chart=core.chart(envoy_gateway.CHART),
        version=envoy_gateway.VERSION,
        image=core.image(f"{envoy_gateway.IMAGE}:{envoy_gateway.VERSION}"),
        proxy_image=core.image(envoy_gateway.PROXY_IMAGE),
        controller_name=envoy_gateway.CONTROLLER_NAME,
        controller_labels=envoy_gateway.CONTROLLER_LABELS,
        proxy_labels=envoy_gateway.PROXY_LABELS,
        proxy_port=names.FRONT_PORT + envoy_gateway.PRIVILEGED_PORT_OFFSET,
        configuration_port=envoy_gateway.XDS_PORT,
        namespaces=(names.FRONT_NAMESPACE, *sorted({service.namespace for service in services})),
        services=services,
        job_namespaces=training_namespaces(cluster),
        controllers=_CONTROLLERS,
        proxies=front.replicas,
        workers=_WORKERS,
        memory_mib=_memory_mib(front),
        limits=LimitsPlan(**front.limits.model_dump()),
        drain_seconds=_DRAIN_SECONDS,
        api_keys=front.api_keys,
        jwt=None
        if front.jwt is None
        else JwtPlan(
            issuer=front.jwt.issuer, audiences=front.jwt.audiences, jwks_uri=front.jwt.jwks_uri
        ),
        models_by_client={name: tuple(own) for name, own in front.models_by_client.items()} or None,
        load_balancer=None if front.exposure == "cluster" else _load_balancer(front, cluster, core),
    )


def _memory_mib(front: Front) -> int:
    """Return the memory of a proxy that has room for others beside one client at its limits.

    A worker has a second copy of the body that it reads.
    """
    of_client = _WORKERS * (front.limits.in_flight_mib + front.limits.body_mib)
    return max(_LEAST_MIB, math.ceil((_OWN_MIB + of_client) / _USED_SHARE / 256) * 256)


def _load_balancer(front: Front, cluster: config.Cluster, core: ClusterPlan) -> LoadBalancerPlan:
    network, auto_mode = core.network, core.control_plane.auto_mode
    public = front.exposure == "internet"
    kind: SubnetKind = "public" if public else "private"
    # A load balancer takes one subnet in each zone: the first that is large enough.
    candidates = sorted(network.of_kind(kind), key=lambda subnet: not _is_large_enough(subnet))
    subnets = {subnet.zone: subnet for subnet in reversed(candidates)}
    inside = (network.vpc_cidr, *network.secondary_cidrs, *cluster.network.connected_cidrs)
    return LoadBalancerPlan(
        scheme="internet-facing" if public else "internal",
        port=_HTTP if front.certificate is None else _HTTPS,
        certificate=front.certificate,
        cidrs=tuple(str(cidr) for cidr in front.allowed_cidrs or inside),
        subnets=tuple(reversed(subnets.values())),
        idle_seconds=_IDLE_SECONDS,
        binding=lbc.AUTO_MODE_API_VERSION if auto_mode else lbc.API_VERSION,
        controller=None
        if auto_mode
        else LoadBalancerControllerPlan(
            chart=core.chart(lbc.CHART),
            version=lbc.VERSION,
            image=core.image(f"{lbc.IMAGE}:v{lbc.VERSION}"),
            replicas=_CONTROLLERS,
            account=lbc.SERVICE_ACCOUNT,
            describes=lbc.DESCRIBING_ACTIONS,
            registers=lbc.TARGET_ACTIONS,
        ),
    )


def _is_large_enough(subnet: SubnetPlan) -> bool:
    return subnet.cidr.prefixlen <= lbc.SMALLEST_SUBNET_MASK


@rule
def subnets_hold_the_load_balancer(plan: ClusterPlan) -> Mistakes:
    """Yield subnets of the front that are smaller than a load balancer takes."""
    front = plan.part(Plan)
    balancer = None if front is None else front.load_balancer
    for subnet in balancer.subnets if balancer is not None else ():
        if _is_large_enough(subnet):
            continue
        wrong = (
            f"subnet {subnet.cidr} of {subnet.zone} is smaller than a "
            f"load balancer's /{lbc.SMALLEST_SUBNET_MASK}"
        )
        less = "internal" if subnet.kind == "public" else "cluster"
        todo = f"write a larger network.vpc_cidr, or exposure: {less}"
        if subnet.id is not None:
            todo = f"add a larger subnet of {subnet.zone} with this use, or write exposure: {less}"
        yield config.Mistake(("serving", "front", "exposure"), wrong, todo, got="")


def services_of_front(cluster: config.Cluster) -> tuple[FrontServicePlan, ...]:
    """Return the services of the cluster file that have models, in its order.

    Services of teams are refused: task governance makes their namespaces after the front.
    """
    return tuple(
        FrontServicePlan(namespace=job.namespace, name=name, models=models_of(job))
        for name, job in cluster.jobs.items()
        if isinstance(job, config.ServiceJob) and job.team is None and models_of(job)
    )


@job_rule
def models_are_of_the_file(request: JobRequest, job: config.ServiceJob) -> Mistakes:
    """Yield models that the cluster file does not give to this service.

    The API server refuses such a route: it would take requests for the models of others.
    """
    if front_of(request.cluster) is None:
        return
    own = {
        model
        for service in services_of_front(request.cluster)
        if (service.namespace, service.name) == (request.namespace, request.name)
        for model in service.models
    }
    if others := [model for model in models_of(job) if model not in own]:
        wrong = (
            f"not of service {request.name} of namespace {request.namespace} in the cluster file, "
            "and the front serves only models of the file"
        )
        todo = (
            "add the service with its models to jobs of the cluster file, deploy, and submit the "
            "job by name; or write model_names: [] to keep off the front"
        )
        yield config.refuse("model_names", wrong, todo, got=", ".join(others))


def plan_route(
    cluster: config.Cluster, job: config.ServiceJob, *, closed: bool
) -> RoutePlan | None:
    """Return the way from the front to a service; None where no request comes by it.

    Args:
        cluster: The cluster.
        job: The service.
        closed: Whether network policies select the pods of jobs.
    """
    models = models_of(job)
    if front_of(cluster) is None or not models:
        return None
    return RoutePlan(
        models=models,
        gateway=names.FRONT_GATEWAY,
        namespace=names.FRONT_NAMESPACE,
        proxies=envoy_gateway.PROXY_LABELS,
        closed=closed,
    )


def models_of(job: config.ServiceJob) -> tuple[str, ...]:
    """Return the names of models by which requests reach a service."""
    if job.model_names is not None:
        return job.model_names
    return options_of(job).names if config.server_of(job) == "vllm" else ()


@rule
def proxies_have_their_nodes(front: Front, pools: config.Every[config.Pool]) -> Mistakes:
    """Refuse more proxies than system nodes that leave others half of their memory."""
    system = [placed.item for placed in pools.placed if placed.item.role == "system"]
    memory = _memory_mib(front)
    large = [pool for pool in system if _memory_of(pool) >= 2 * memory]
    if not system or not all(pool.nodes.are_counted for pool in large):
        return
    most = sum(pool.nodes.highest * pool.shards for pool in large)
    if front.replicas <= most:
        return
    wrong = f"a proxy needs a system node of its own, and there are at most {most}"
    todo = f"write {most} or fewer, or add nodes to the system pool"
    key, got = "replicas", str(front.replicas)
    if large != system:
        wrong += f" that hold its {memory} MiB twice"
        todo = "write smaller limits, or larger instance_types in the system pool"
        key, got = "limits.in_flight_mib", str(front.limits.in_flight_mib)
    yield config.refuse(key, wrong, todo, got=got)


def _memory_of(pool: config.Pool) -> float:
    """Return the memory in MiB of a pool's smallest nodes; infinite where a type is unknown."""
    try:
        return min(spec.memory_mib for spec in pool.specs)
    except CatalogError:
        return math.inf


@rule
def models_of_clients_are_served(
    front: Front, services: config.Every[config.ServiceJob]
) -> Mistakes:
    """Yield names of models that no service of the file has."""
    known = {model for placed in services.placed for model in models_of(placed.item)}
    for client, models in front.models_by_client.items():
        for number, model in enumerate(models):
            if model not in known:
                at = f"models_by_client.{client}.{number}"
                yield config.refuse(at, "not a model of a service", config.near(model, known))


@rule
def models_are_told_apart(services: config.Readable[config.ServiceJob], front: Front) -> Mistakes:
    """Yield services of the front with the same name of a model.

    The front has one route for each name, whatever namespace a service is in.
    """
    del front  # without one, services with the same models do not meet
    first: dict[str, str] = {}
    for placed in services.placed:
        service = str(placed.at[-1])
        for model in models_of(placed.item):
            if first.setdefault(model, service) != service:
                wrong = f"answers to the model {model}, as service {first[model]} does"
                todo = "give each model its own name: --served-model-name, model_names"
                yield config.Mistake(placed.at, wrong, todo, got="")


@rule
def models_are_served(job: config.ServiceJob) -> Mistakes:
    """Yield names of models that vLLM would answer with 404."""
    if config.server_of(job) != "vllm" or not job.model_names:
        return
    served = options_of(job).names
    for number, name in enumerate(job.model_names):
        if served and name not in served:
            todo = f"name it in --served-model-name; vLLM knows {', '.join(served)}"
            yield config.refuse(f"model_names.{number}", "not a name that vLLM serves", todo)


@rule
def front_reaches_the_server(job: config.ServiceJob, front: Front) -> Mistakes:
    """Yield servers that refuse the front's requests."""
    if not models_of(job):
        return
    options = options_of(job) if config.server_of(job) == "vllm" else VllmOptions()
    way_out = "leave it out, or keep the service from the front: model_names: []"
    if job.team is not None:
        wrong = "a team of task governance, whose namespace the front does not serve"
        yield config.refuse("team", wrong, way_out)
    if front.api_keys is not None or front.jwt is not None:
        wrong = (
            "the server checks a key, and the front removes the keys of clients"
            if front.jwt is None
            else "the server checks a key, and clients of the front send tokens instead"
        )
        for at, key in _own_keys(job, options):
            yield config.refuse(at, wrong, way_out, got=key)
    most, count = envoy_gateway.MATCHES_OF_A_ROUTE, len(models_of(job))
    if count > most:
        wrong = f"more names of models than the {most} that a route of the front holds"
        todo = "write the names that clients of the front need"
        yield config.refuse("model_names", wrong, todo, got=str(count))
    for name in models_of(job):
        if not _MODEL_NAME.fullmatch(name):
            wrong = "a name of a model that the front does not read"
            todo = "use letters, digits and . _ / : @ + - in --served-model-name, or keep the "
            todo += "service from the front: model_names: []"
            yield config.refuse("args", wrong, todo, got=name)


def _own_keys(job: config.ServiceJob, options: VllmOptions) -> Iterator[tuple[str, str]]:
    """Yield where a service sets in vLLM the key that clients are to send."""
    if options.api_key:
        yield "args", "--api-key"
    if config.server_of(job) == "vllm":
        for at, variables in (("env", job.env), ("secrets", job.secrets)):
            if vllm.KEY_VARIABLE in variables:
                yield at, vllm.KEY_VARIABLE
