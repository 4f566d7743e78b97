"""The VPC: subnets, routes, NAT, endpoints, prefixes, flow logs; or an existing VPC, by its ids."""

from collections.abc import Iterator, Mapping, Sequence
from ipaddress import IPv4Network

from aws_cdk import ArnFormat, CfnTag, CustomResource, Duration, Stack
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_logs as logs
from constructs import Construct

from ultrascale.plan import names
from ultrascale.plan.model import NetworkPlan, SubnetKind, SubnetPlan
from ultrascale_constructs.acknowledgment import acknowledge, acknowledge_wildcards, shown_account
from ultrascale_constructs.lambda_function import define_function, function_role
from ultrascale_constructs.log_group import define_log_group, log_to_bucket, log_to_group

# --- Subnet CIDR reservations for prefixes, for Regions where CloudFormation cannot create them


# A large VPC has some two hundred ranges, and EC2 reserves a few a second.
_LONGEST_MINUTES = 10


class PrefixReservations(Construct):
    """Defines the reservations of all node subnets, which a function creates and deletes."""

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        parts: Mapping[str, Sequence[IPv4Network]],
        log_retention_days: int,
    ) -> None:
        """Define the reservations, the function and its role.

        Args:
            scope: Parent.
            id: Construct id.
            parts: Ranges to keep for prefixes, by the id of their subnet.
            log_retention_days: How long the function's log is kept, in days.
        """
        super().__init__(scope, id)
        group = define_log_group(self, retention_days=log_retention_days)
        role = self._role(group)
        longest = Duration.minutes(_LONGEST_MINUTES)
        function = define_function(
            self,
            "Function",
            description="Prefix reservations of subnets",
            handler="lambdas.subnet_reservations.handler.on_event",
            role=role,
            group=group,
            timeout=longest,
        )
        CustomResource(
            self,
            "Resource",
            service_token=function.function_arn,
            resource_type="Custom::SubnetPrefixReservations",
            service_timeout=longest,
            properties={
                "Parts": [
                    {"SubnetId": subnet, "Cidr": str(cidr)}
                    for subnet, ranges in parts.items()
                    for cidr in ranges
                ]
            },
        )

    def _role(self, group: logs.LogGroup) -> iam.Role:
        stack = Stack.of(self)
        role = function_role(self, group)
        subnets = stack.format_arn(
            service="ec2",
            resource="subnet",
            resource_name="*",
            arn_format=ArnFormat.SLASH_RESOURCE_NAME,
        )
        for actions, resource in (
            (["ec2:CreateSubnetCidrReservation"], subnets),
            (["ec2:DeleteSubnetCidrReservation", "ec2:GetSubnetCidrReservations"], "*"),
        ):
            role.add_to_policy(iam.PolicyStatement(actions=actions, resources=[resource]))
        shown = f"arn:{stack.partition}:ec2:{stack.region}:{shown_account(stack)}:subnet/*"
        acknowledge_wildcards(
            role,
            {
                "*": "EC2 takes no resource for reading and deleting reservations",
                shown: (
                    "it only keeps parts of subnets for prefixes; a policy with their ids would "
                    "have to be there before subnets change"
                ),
            },
        )
        return role


# --- The VPC: subnets, routes, NAT gateways, endpoints and flow logs; or an existing VPC ----------


_ANYWHERE = "0.0.0.0/0"
_LOAD_BALANCER_TAGS: Mapping[SubnetKind, str] = {
    "public": "kubernetes.io/role/elb",
    "private": "kubernetes.io/role/internal-elb",
}
_NODE_SUBNETS: tuple[SubnetKind, ...] = ("private", "accelerated")


class Network(Construct):
    """Defines the VPC of a `NetworkPlan`, or refers to an existing VPC.

    In an existing VPC it defines only the endpoints of the plan.
    """

    def __init__(
        self, scope: Construct, id: str, *, plan: NetworkPlan, cluster_name: str, region: str
    ) -> None:
        super().__init__(scope, id)
        self._cluster_name = cluster_name
        self._region = region
        self._path = self.node.path
        self._subnets: dict[SubnetPlan, ec2.CfnSubnet] = {}
        self._route_tables: list[str] = []
        reservations: list[Construct] = []
        if plan.existing is not None:
            self.vpc_id = plan.existing.vpc_id  # Id of the VPC
            self._ids = {subnet: subnet.id for subnet in plan.subnets if subnet.id is not None}
        else:
            self.vpc_id = self._define_vpc(plan)
            self._ids = {subnet: resource.ref for subnet, resource in self._subnets.items()}
            reservations += self._reserve(plan)
            self._route(plan)
        # The VPC without its subnets, which are passed to constructs one by one
        self.vpc = ec2.Vpc.from_vpc_attributes(
            self,
            "Vpc",
            vpc_id=self.vpc_id,
            availability_zones=list(plan.zones),
            vpc_cidr_block=str(plan.vpc_cidr),
        )
        if plan.existing is None:
            self._flow_logs(plan)
        self._endpoints(plan, reservations)

    def subnet_ids(self, kind: SubnetKind | None = None, *, zones: Sequence[str] = ()) -> list[str]:
        """Return the ids of the subnets of ``kind`` in ``zones``, by default in all zones."""
        return [
            id
            for subnet, id in self._ids.items()
            if kind in {None, subnet.kind} and (not zones or subnet.zone in zones)
        ]

    def ids_of(self, subnets: Sequence[SubnetPlan]) -> list[str]:
        """Return the ids of ``subnets`` in their order."""
        return [self._ids[subnet] for subnet in subnets]

    def _define_vpc(self, plan: NetworkPlan) -> str:
        vpc = ec2.CfnVPC(
            self,
            "Resource",
            cidr_block=str(plan.vpc_cidr),
            enable_dns_hostnames=True,
            enable_dns_support=True,
            tags=[CfnTag(key="Name", value=self._path)],
        )
        self.vpc_id = vpc.ref
        secondary = [
            ec2.CfnVPCCidrBlock(self, f"Cidr{index}", vpc_id=vpc.ref, cidr_block=str(cidr))
            for index, cidr in enumerate(plan.secondary_cidrs)
        ]
        for subnet in plan.subnets:
            self._subnets[subnet] = self._subnet(subnet, secondary)
        return vpc.ref

    def _subnet(self, plan: SubnetPlan, secondary: Sequence[ec2.CfnVPCCidrBlock]) -> ec2.CfnSubnet:
        earlier = [s for s in self._subnets if (s.kind, s.zone) == (plan.kind, plan.zone)]
        subnet = ec2.CfnSubnet(
            self,
            f"{_pascal(plan.kind)}{_pascal(plan.zone)}{len(earlier) or ''}",
            vpc_id=self.vpc_id,
            cidr_block=str(plan.cidr),
            availability_zone=None if plan.zone_by_id else plan.zone,
            availability_zone_id=plan.zone if plan.zone_by_id else None,
            map_public_ip_on_launch=False,
            tags=self._tags(plan),
        )
        for block in secondary:
            subnet.add_resource_dependency(block)
        return subnet

    def _tags(self, plan: SubnetPlan) -> list[CfnTag]:
        tags = {"Name": f"{self._path}/{plan.kind}-{plan.zone}"}
        if plan.kind in _LOAD_BALANCER_TAGS:
            tags[_LOAD_BALANCER_TAGS[plan.kind]] = "1"
        if plan.kind in _NODE_SUBNETS:
            # Tagged even without NodePools: no subnet changes when a NodePool is added.
            tags[names.DISCOVERY_TAG] = self._cluster_name
            tags[names.SUBNET_KIND_TAG] = plan.kind
        return [CfnTag(key=key, value=value) for key, value in tags.items()]

    def _reserve(self, plan: NetworkPlan) -> Iterator[Construct]:
        """Reserve parts of node subnets for prefixes; yield the reservations of private subnets."""
        if plan.reserves_by_function:
            yield PrefixReservations(
                self,
                "PrefixReservations",
                parts={id: subnet.prefix_reservations for subnet, id in self._ids.items()},
                log_retention_days=plan.log_retention_days,
            )
            return
        for subnet, resource in self._subnets.items():
            for index, part in enumerate(subnet.prefix_reservations):
                reservation = ec2.CfnSubnetCidrReservation(
                    resource,
                    f"Prefixes{index}",
                    subnet_id=self._ids[subnet],
                    cidr=str(part),
                    reservation_type="prefix",
                    tags=self._tags(subnet),
                )
                if subnet.kind == "private":
                    yield reservation

    def _route(self, plan: NetworkPlan) -> None:
        """Route public subnets to the internet, other subnets to the NAT gateway of their zone.

        A closed network has neither route, and a route table for each zone.
        """
        nats: Mapping[str, str] = self._nat_gateways(plan) if plan.egress == "nat" else {}
        for zone in plan.zones:
            inside = [
                other
                for other in plan.subnets
                if other.zone == zone and other.kind in _NODE_SUBNETS
            ]
            table = self._route_table(f"Private{_pascal(zone)}", inside)
            if zone in nats:
                ec2.CfnRoute(
                    table,
                    "Nat",
                    route_table_id=table.ref,
                    destination_cidr_block=_ANYWHERE,
                    nat_gateway_id=nats[zone],
                )
            self._route_tables.append(table.ref)

    def _nat_gateways(self, plan: NetworkPlan) -> Mapping[str, str]:
        """Define a NAT gateway in the public subnet of each zone; return their ids by zone."""
        gateway = ec2.CfnInternetGateway(self, "InternetGateway")
        attachment = ec2.CfnVPCGatewayAttachment(
            self, "InternetGatewayAttachment", vpc_id=self.vpc_id, internet_gateway_id=gateway.ref
        )
        public = self._route_table("Public", plan.of_kind("public"))
        ec2.CfnRoute(
            public,
            "Internet",
            route_table_id=public.ref,
            destination_cidr_block=_ANYWHERE,
            gateway_id=gateway.ref,
        ).add_resource_dependency(attachment)
        nats: dict[str, str] = {}
        for subnet in plan.of_kind("public"):
            address = ec2.CfnEIP(self, f"NatAddress{_pascal(subnet.zone)}", domain="vpc")
            address.add_resource_dependency(attachment)
            nat = ec2.CfnNatGateway(
                self,
                f"Nat{_pascal(subnet.zone)}",
                subnet_id=self._ids[subnet],
                allocation_id=address.attr_allocation_id,
            )
            nats[subnet.zone] = nat.ref
        return nats

    def _route_table(self, id: str, subnets: Sequence[SubnetPlan]) -> ec2.CfnRouteTable:
        name = CfnTag(key="Name", value=f"{self._path}/{id}")
        table = ec2.CfnRouteTable(self, f"{id}Routes", vpc_id=self.vpc_id, tags=[name])
        table_id = table.ref
        for subnet in subnets:
            ec2.CfnSubnetRouteTableAssociation(
                self._subnets[subnet],
                "Routes",
                subnet_id=self._ids[subnet],
                route_table_id=table_id,
            )
        return table

    def _flow_logs(self, plan: NetworkPlan) -> None:
        days = plan.log_retention_days
        if plan.flow_logs == "cloudwatch":
            log_to_group(self, vpc_id=self.vpc_id, region=self._region, retention_days=days)
        elif plan.flow_logs == "s3":
            log_to_bucket(self, vpc_id=self.vpc_id, retention_days=days)
        else:
            reason = "the cluster file says network.flow_logs: none"
            acknowledge(self, {"AwsSolutions::AwsSolutions-VPC7": reason})

    def _endpoints(self, plan: NetworkPlan, reservations: Sequence[Construct]) -> None:
        """Define endpoints of AWS services, so that nodes join and pull from ECR even without NAT.

        The interfaces wait for ``reservations``: an interface takes any address of a subnet, and
        an address within a reserved range costs a prefix.
        """
        for service in plan.gateway_endpoints:
            ec2.CfnVPCEndpoint(
                self,
                _pascal(service),
                vpc_id=self.vpc_id,
                service_name=f"com.amazonaws.{self._region}.{service}",
                vpc_endpoint_type="Gateway",
                route_table_ids=self._route_tables,
            )
        if not plan.interface_endpoints:
            return
        group_id = plan.endpoint_security_group or self._endpoint_group(plan).security_group_id
        first_of_zone = {subnet.zone: subnet for subnet in reversed(plan.of_kind("private"))}
        subnet_ids = [
            self._ids[first_of_zone[zone]] for zone in plan.zones if zone in first_of_zone
        ]
        for service in plan.interface_endpoints:
            endpoint = ec2.CfnVPCEndpoint(
                self,
                f"Endpoint{_pascal(service)}",
                vpc_id=self.vpc_id,
                service_name=f"com.amazonaws.{self._region}.{service}",
                vpc_endpoint_type="Interface",
                private_dns_enabled=True,
                subnet_ids=subnet_ids,
                security_group_ids=[group_id],
            )
            if reservations:
                endpoint.node.add_dependency(*reservations)

    def _endpoint_group(self, plan: NetworkPlan) -> ec2.SecurityGroup:
        group = ec2.SecurityGroup(
            self,
            "EndpointSecurityGroup",
            vpc=self.vpc,
            description="HTTPS from the VPC to interface endpoints",
            allow_all_outbound=False,
        )
        for cidr in (plan.vpc_cidr, *plan.secondary_cidrs):
            group.add_ingress_rule(
                ec2.Peer.ipv4(str(cidr)), ec2.Port.tcp(443), "HTTPS from the VPC"
            )
        return group


def _pascal(name: str) -> str:
    return "".join(part.capitalize() for part in name.replace(".", "-").split("-"))
