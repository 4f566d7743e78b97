"""The front: proxies that send requests to the service of their model."""

from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar, Literal

from ultrascale.catalog.endpoints import Feature
from ultrascale.frozen import Frozen
from ultrascale.parts.front import envoy_gateway
from ultrascale.plan.model import (
    ControllerVersion,
    PlannedPart,
    QuotaUse,
    StandingItem,
    SubnetPlan,
    WayIn,
)


class JwtPlan(Frozen):
    """Tokens that clients of the front send."""

    issuer: str  # Their issuer
    audiences: tuple[str, ...]  # Audiences, one of which a token has
    jwks_uri: str  # URL of the issuer's keys


class LoadBalancerPlan(Frozen):
    """The load balancer before the proxies."""

    # Whether it is in the VPC alone or has public addresses.
    scheme: Literal["internal", "internet-facing"]
    port: int  # Port for clients
    certificate: str | None  # ARN of its certificate; None: clients come by HTTP
    cidrs: tuple[str, ...]  # Ranges whose addresses reach it
    subnets: tuple[SubnetPlan, ...]  # Its subnets, one in each zone
    idle_seconds: int  # Longest wait for a byte
    binding: str  # Group and version of the kind that keeps its list of proxies
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
    name: str  # Its name, also of its route and of its Service of Kubernetes
    models: tuple[str, ...]  # Names of its own models


class LimitsPlan(Frozen):
    """Limits of requests."""

    body_mib: int  # Size of the largest request
    in_flight_mib: int  # Size of the requests that a client has under way at a worker
    in_flight: int | None  # Number of these requests; None: any
    requests_per_second: int | None  # Requests of a client at a proxy, by model; None: any


class Plan(PlannedPart):
    """The front of a cluster."""

    renderer: ClassVar[str] = "front"
    installs_charts: ClassVar[bool] = True
    chart: str  # Location of the chart of the controller
    version: str  # Version of the chart
    image: str  # Image of the controller, and of the container that drains a proxy
    proxy_image: str  # Image of the proxies
    controller_name: str  # Name of the controller in a GatewayClass
    controller_labels: Mapping[str, str]  # Labels of its pods
    proxy_labels: Mapping[str, str]  # Labels of the pods of proxies
    proxy_port: int  # Port of a proxy for clients
    configuration_port: int  # Port of the controller for proxies
    namespaces: tuple[str, ...]  # Namespaces whose routes it serves, its own first
    # Services of the cluster file, whose routes alone may be made.
    services: tuple[FrontServicePlan, ...]
    job_namespaces: tuple[str, ...]  # Namespaces of jobs, where people may make routes
    controllers: int  # Pods of the controller
    proxies: int  # Pods of the proxy
    workers: int  # Threads of each proxy that serve requests
    memory_mib: int  # Most memory of each proxy
    limits: LimitsPlan  # Limits of requests
    drain_seconds: int  # Time for the answers of an ending proxy
    api_keys: str | None  # Secret with the clients' keys; None: clients need none
    jwt: JwtPlan | None  # Tokens of clients; None: clients need none
    # Models that each client may use; None: each may use all.
    models_by_client: Mapping[str, tuple[str, ...]] | None
    # The load balancer; None: pods of the cluster alone reach it.
    load_balancer: LoadBalancerPlan | None

    @property
    def knows_clients(self) -> bool:
        """Whether a request has the name of its client."""
        return self.api_keys is not None or self.jwt is not None

    @property
    def _controller(self) -> LoadBalancerControllerPlan | None:
        return None if self.load_balancer is None else self.load_balancer.controller

    @property
    def features(self) -> Sequence[Feature]:
        """Its programs that call AWS from within the VPC."""
        return () if self._controller is None else ("load-balancer-controller",)

    @property
    def pods(self) -> Mapping[str, int]:
        """Pods of its controllers and its proxies."""
        own = {"envoy-gateway": self.controllers, "envoy": self.proxies}
        if self._controller is not None:
            own["aws-load-balancer-controller"] = self._controller.replicas
        return own

    @property
    def quota_uses(self) -> Sequence[QuotaUse]:
        """Uses of quotas by the load balancer.

        At most a hundred proxies are targets; a load balancer has a thousand targets.
        """
        if self.load_balancer is None:
            return ()
        ranges = len(self.load_balancer.cidrs)
        words = f"{ranges} ranges that reach the front"
        return (
            QuotaUse(quota="load-balancers", value=1, formula="that of the front"),
            QuotaUse(quota="target-groups", value=1, formula="the proxies of the front"),
            QuotaUse(quota="security-group-rules", value=ranges, formula=words),
        )

    @property
    def standing(self) -> Iterator[StandingItem]:
        """The load balancer, which has a public address in each of its zones.

        Source: https://aws.amazon.com/elasticloadbalancing/pricing/
        """
        if self.load_balancer is None:
            return
        yield StandingItem(
            name="load balancer of the front",
            service="elasticloadbalancing",
            item="application-load-balancer",
            quantity=1,
            words="1 Application Load Balancer",
        )
        if self.load_balancer.scheme == "internet-facing":
            zones = len(self.load_balancer.subnets)
            yield StandingItem(
                name="public IPv4 addresses of the front",
                service="vpc",
                item="public-ipv4",
                quantity=zones,
                words=f"{zones} addresses of the load balancer, one in each zone",
            )

    @property
    def versions(self) -> Sequence[ControllerVersion]:
        """The controller of the proxies."""
        latest = envoy_gateway.LATEST_KUBERNETES_VERSION
        return (ControllerVersion(name="Envoy Gateway", version=self.version, latest=latest),)

    @property
    def linked_roles(self) -> Sequence[str]:
        """The principal of the role that load balancers need."""
        return () if self.load_balancer is None else ("elasticloadbalancing.amazonaws.com",)

    @property
    def way_in(self) -> WayIn | None:
        """Subnets by which clients of the internet come."""
        balancer = self.load_balancer
        if balancer is None or balancer.scheme != "internet-facing":
            return None
        return WayIn(
            subnets=tuple(subnet.id for subnet in balancer.subnets if subnet.id is not None),
            clients="clients of the front",
            instead="write serving.front.exposure: internal",
        )
