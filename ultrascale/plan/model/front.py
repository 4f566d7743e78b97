"""The front: proxies that send requests to the service of the model that they name."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from ultrascale.plan.model.network import SubnetPlan


@dataclass(frozen=True, slots=True, kw_only=True)
class JwtPlan:
    """Tokens that clients of the front send.

    Attributes:
        issuer: Their issuer.
        audiences: Audiences of which a token has one.
        jwks_uri: URL of the issuer's keys.
    """

    issuer: str
    audiences: tuple[str, ...]
    jwks_uri: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadBalancerPlan:
    """The load balancer before the proxies.

    Attributes:
        scheme: Whether it is in the VPC alone or has public addresses.
        port: Port that clients come to.
        certificate: ARN of its certificate; None: clients come by HTTP.
        cidrs: Ranges whose addresses reach it.
        subnets: Its subnets, one in each zone.
        idle_seconds: Time that it waits for a byte.
        binding: Group and version of the kind by which its list of proxies is kept.
        controller: Controller that keeps that list; None: EKS Auto Mode does.
    """

    scheme: Literal["internal", "internet-facing"]
    port: int
    certificate: str | None
    cidrs: tuple[str, ...]
    subnets: tuple[SubnetPlan, ...]
    idle_seconds: int
    binding: str
    controller: "LoadBalancerControllerPlan | None"


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadBalancerControllerPlan:
    """AWS Load Balancer Controller, which keeps one target group.

    Attributes:
        chart: Location of the chart.
        version: Version of the chart.
        image: Image of the controller.
        replicas: Its pods, of which one leads.
        account: Name of its service account.
        describes: Actions in AWS that take no resource.
        registers: Actions in AWS on the target group.
    """

    chart: str
    version: str
    image: str
    replicas: int
    account: str
    describes: tuple[str, ...]
    registers: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FrontServicePlan:
    """A service that the front may send requests to.

    Attributes:
        namespace: Its namespace.
        name: Its name, which its route and its Service of Kubernetes have too.
        models: Names of models that are its own.
    """

    namespace: str
    name: str
    models: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FrontPlan:
    """The front of a cluster.

    Attributes:
        chart: Location of the chart of the controller.
        version: Version of the chart.
        image: Image of the controller, and of the container that drains a proxy.
        proxy_image: Image of the proxies.
        controller_name: Name of the controller in a GatewayClass.
        controller_labels: Labels of its pods.
        proxy_labels: Labels of the pods of proxies.
        proxy_port: Port of a proxy that clients come to.
        configuration_port: Port of the controller that proxies come to.
        namespaces: Namespaces whose routes it serves, its own first.
        services: Services of the cluster file, whose routes alone may be made.
        job_namespaces: Namespaces of jobs, where people may make routes.
        controllers: Pods of the controller.
        proxies: Pods of the proxy.
        drain_seconds: Time that answers of a proxy which goes may still take.
        api_keys: Secret with the clients' keys; None: no keys are asked for.
        jwt: Tokens of clients; None: no tokens are asked for.
        load_balancer: The load balancer; None: pods of the cluster alone reach it.
    """

    chart: str
    version: str
    image: str
    proxy_image: str
    controller_name: str
    controller_labels: Mapping[str, str]
    proxy_labels: Mapping[str, str]
    proxy_port: int
    configuration_port: int
    namespaces: tuple[str, ...]
    services: tuple[FrontServicePlan, ...]
    job_namespaces: tuple[str, ...]
    controllers: int
    proxies: int
    drain_seconds: int
    api_keys: str | None
    jwt: JwtPlan | None
    load_balancer: LoadBalancerPlan | None


@dataclass(frozen=True, slots=True, kw_only=True)
class FrontRoutePlan:
    """The way from the front to a service.

    Attributes:
        models: Names of models whose requests it gets.
        gateway: Name of the Gateway.
        namespace: Namespace of the Gateway and its proxies.
        proxies: Labels of the proxies.
        closed: Whether network policies keep other pods of its namespace away.
    """

    models: tuple[str, ...]
    gateway: str
    namespace: str
    proxies: Mapping[str, str]
    closed: bool
