"""The front: proxies that send requests to the service of the model that they name."""

from collections.abc import Mapping
from typing import Literal

from ultrascale.frozen import Frozen
from ultrascale.plan.model.network import SubnetPlan


class JwtPlan(Frozen):
    """Tokens that clients of the front send."""

    issuer: str  # Their issuer
    audiences: tuple[str, ...]  # Audiences of which a token has one
    jwks_uri: str  # URL of the issuer's keys


class LoadBalancerPlan(Frozen):
    """The load balancer before the proxies."""

    # Whether it is in the VPC alone or has public addresses.
    scheme: Literal["internal", "internet-facing"]
    port: int  # Port that clients come to
    certificate: str | None  # ARN of its certificate; None: clients come by HTTP
    cidrs: tuple[str, ...]  # Ranges whose addresses reach it
    subnets: tuple[SubnetPlan, ...]  # Its subnets, one in each zone
    idle_seconds: int  # Time that it waits for a byte
    binding: str  # Group and version of the kind by which its list of proxies is kept
    # Controller that keeps that list; None: EKS Auto Mode does.
    controller: "LoadBalancerControllerPlan | None"


class LoadBalancerControllerPlan(Frozen):
    """AWS Load Balancer Controller, which keeps one target group."""

    chart: str  # Location of the chart
    version: str  # Version of the chart
    image: str  # Image of the controller
    replicas: int  # Its pods, of which one leads
    account: str  # Name of its service account
    describes: tuple[str, ...]  # Actions in AWS that take no resource
    registers: tuple[str, ...]  # Actions in AWS on the target group


class FrontServicePlan(Frozen):
    """A service that the front may send requests to."""

    namespace: str  # Its namespace
    name: str  # Its name, which its route and its Service of Kubernetes have too
    models: tuple[str, ...]  # Names of models that are its own


class FrontPlan(Frozen):
    """The front of a cluster."""

    chart: str  # Location of the chart of the controller
    version: str  # Version of the chart
    image: str  # Image of the controller, and of the container that drains a proxy
    proxy_image: str  # Image of the proxies
    controller_name: str  # Name of the controller in a GatewayClass
    controller_labels: Mapping[str, str]  # Labels of its pods
    proxy_labels: Mapping[str, str]  # Labels of the pods of proxies
    proxy_port: int  # Port of a proxy that clients come to
    configuration_port: int  # Port of the controller that proxies come to
    namespaces: tuple[str, ...]  # Namespaces whose routes it serves, its own first
    # Services of the cluster file, whose routes alone may be made.
    services: tuple[FrontServicePlan, ...]
    job_namespaces: tuple[str, ...]  # Namespaces of jobs, where people may make routes
    controllers: int  # Pods of the controller
    proxies: int  # Pods of the proxy
    drain_seconds: int  # Time that answers of a proxy which goes may still take
    api_keys: str | None  # Secret with the clients' keys; None: no keys are asked for
    jwt: JwtPlan | None  # Tokens of clients; None: no tokens are asked for
    # The load balancer; None: pods of the cluster alone reach it.
    load_balancer: LoadBalancerPlan | None


class FrontRoutePlan(Frozen):
    """The way from the front to a service."""

    models: tuple[str, ...]  # Names of models whose requests it gets
    gateway: str  # Name of the Gateway
    namespace: str  # Namespace of the Gateway and its proxies
    proxies: Mapping[str, str]  # Labels of the proxies
    closed: bool  # Whether network policies keep other pods of its namespace away
