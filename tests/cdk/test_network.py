"""The VPC: where nodes get addresses, and how they reach AWS."""

from collections.abc import Mapping
from typing import Any

import pytest
from aws_cdk.assertions import Match, Template
from msgspec.structs import replace

from tests.support.construct_stacks import REGION, make_stack, resources, the
from tests.support.existing_vpc import GROUP, VPC, existing_document
from tests.support.pools import SYSTEM_POOL, as_json, loads_own, make_cluster
from ultrascale.plan import plan_cluster
from ultrascale.plan.model import NetworkPlan, SubnetKind
from ultrascale_constructs.network import Network

ZONES = ["us-west-2a", "us-west-2b"]
ZONE_IDS = ["usw2-az1", "usw2-az4"]


def plan_of(zones: list[str]) -> NetworkPlan:
    network = {"vpc_cidr": "10.0.0.0/16", "pod_cidrs": ["100.64.0.0/16"], "zones": zones}
    lustre = {"name": "a", "zone": zones[0], "capacity_gib": 1200, "throughput_mbps_per_tib": 250}
    storage = {"lustre": [lustre]}
    cluster = make_cluster(network=network, pools=[SYSTEM_POOL], storage=storage)
    return plan_cluster(cluster).network


PLAN = plan_of(ZONES)
NODES: tuple[SubnetKind, ...] = ("private", "accelerated")


class Synthesized:
    """A network and the resources of its template."""

    def __init__(self, plan: NetworkPlan) -> None:
        stack = make_stack()
        self.network = Network(stack, "Network", plan=plan, cluster_name="research", region=REGION)
        ids: dict[str, list[str]] = {
            kind: [stack.resolve(i)["Ref"] for i in self.network.subnet_ids(kind)]
            for kind in ("public", "private", "control-plane", "accelerated")
        }
        self.in_first_zone = [
            stack.resolve(i)["Ref"]
            for i in self.network.subnet_ids("accelerated", zones=[plan.zones[0]])
        ]
        self.ids: Mapping[str, list[str]] = ids
        self.template = Template.from_stack(stack)
        self.resources: Mapping[str, Any] = self.template.to_json()["Resources"]

    def of_kind(self, kind: str) -> list[Mapping[str, Any]]:
        """Return the properties of the subnets of ``kind``."""
        return [self.resources[name]["Properties"] for name in self.ids[kind]]

    def tags(self, kind: str) -> list[dict[str, str]]:
        """Return the tags of the subnets of ``kind``."""
        return [{t["Key"]: t["Value"] for t in subnet["Tags"]} for subnet in self.of_kind(kind)]

    def route_table(self, subnet: str) -> str | None:
        """Return the route table of a subnet; None where the VPC's main one serves it."""
        for body in resources(self.template, "AWS::EC2::SubnetRouteTableAssociation"):
            if body["Properties"]["SubnetId"] == {"Ref": subnet}:
                return body["Properties"]["RouteTableId"]["Ref"]
        return None

    def routes(self, table: str) -> list[Mapping[str, Any]]:
        """Return the routes of a route table."""
        return [
            body["Properties"]
            for body in resources(self.template, "AWS::EC2::Route")
            if body["Properties"]["RouteTableId"] == {"Ref": table}
        ]

    def endpoints(self, kind: str) -> dict[str, Mapping[str, Any]]:
        """Return the endpoints of ``kind``, by the short name of their service."""
        found = (b["Properties"] for b in resources(self.template, "AWS::EC2::VPCEndpoint"))
        prefix = f"com.amazonaws.{REGION}."
        return {
            properties["ServiceName"].removeprefix(prefix): properties
            for properties in found
            if properties["VpcEndpointType"] == kind
        }


@pytest.fixture(scope="module")
def built() -> Synthesized:
    return Synthesized(PLAN)


class TestSubnets:
    """Subnets of nodes, load balancers and the control plane."""

    def test_ranges_and_zones_are_those_of_the_plan(self, built: Synthesized) -> None:
        vpc = the(built.template, "AWS::EC2::VPC")
        (block,) = built.template.find_resources("AWS::EC2::VPCCidrBlock")

        assert vpc["CidrBlock"] == "10.0.0.0/16"
        # Names resolve inside.
        assert vpc["EnableDnsHostnames"] is vpc["EnableDnsSupport"] is True
        for kind in built.ids:
            expected = [str(subnet.cidr) for subnet in PLAN.subnets if subnet.kind == kind]
            assert [subnet["CidrBlock"] for subnet in built.of_kind(kind)] == expected
            for subnet, zone in zip(built.of_kind(kind), ZONES, strict=True):
                assert subnet["AvailabilityZone"] == zone
                assert "AvailabilityZoneId" not in subnet
                # No subnet hands out public addresses.
                assert subnet["MapPublicIpOnLaunch"] is False
        for name in built.ids["accelerated"]:
            assert block in built.resources[name]["DependsOn"]
        # A pool gets the subnets of its zones alone.
        assert built.in_first_zone == built.ids["accelerated"][:1]

    def test_a_zone_id_is_never_taken_for_a_name(self) -> None:
        by_id = Synthesized(plan_of(ZONE_IDS))

        for subnet, zone in zip(by_id.of_kind("private"), ZONE_IDS, strict=True):
            assert subnet["AvailabilityZoneId"] == zone
            assert "AvailabilityZone" not in subnet

    def test_a_second_range_for_a_zone_is_a_subnet_more(self) -> None:
        network = {
            "vpc_cidr": "10.0.0.0/16",
            "pod_cidrs": {"count": 5, "from": "100.64.0.0/10"},
            "zones": [*ZONES, "us-west-2c"],
        }
        built = Synthesized(plan_cluster(make_cluster(network=network)).network)

        assert len(built.ids["accelerated"]) == len(set(built.ids["accelerated"])) == 7
        assert len(built.in_first_zone) == 3

    @pytest.mark.parametrize(
        ("kind", "roles"),
        [
            ("public", {"kubernetes.io/role/elb"}),
            ("private", {"kubernetes.io/role/internal-elb"}),
            ("control-plane", set[str]()),
            ("accelerated", set[str]()),
        ],
    )
    def test_load_balancers_and_node_classes_find_their_subnets_and_no_others(
        self, built: Synthesized, kind: str, roles: set[str]
    ) -> None:
        """No node is launched where none belongs."""
        discovered = {"karpenter.sh/discovery": "research", "ultrascale.dev/subnet": kind}
        for tags in built.tags(kind):
            assert {key for key in tags if key.startswith("kubernetes.io/role/")} == roles
            found = {key: value for key, value in tags.items() if key in discovered}
            assert found == (discovered if kind in NODES else {})

    @pytest.mark.parametrize("by_function", [False, True], ids=["type", "function"])
    def test_prefixes_have_their_part_of_every_node_subnet_and_endpoints_wait_for_it(
        self, by_function: bool
    ) -> None:
        """CloudFormation cannot make the reservations everywhere; elsewhere a function does."""
        built = Synthesized(replace(PLAN, reserves_by_function=by_function))
        expected: list[dict[str, Any]] = [
            {"SubnetId": {"Ref": name}, "Cidr": str(part)}
            for kind in NODES
            for name, subnet in zip(built.ids[kind], PLAN.of_kind(kind), strict=True)
            for part in subnet.prefix_reservations
        ]
        reservations = built.template.find_resources("AWS::EC2::SubnetCidrReservation")
        functions = built.template.find_resources("Custom::SubnetPrefixReservations")

        parts = [body["Properties"]["Parts"] for body in functions.values()]
        assert parts == ([expected] if by_function else [])
        found = [body["Properties"] for body in reservations.values()]
        assert {each.pop("ReservationType") for each in found} <= {"prefix"}
        places = {(each["SubnetId"]["Ref"], each["Cidr"]) for each in found}
        kept = [] if by_function else expected
        assert places == {(each["SubnetId"]["Ref"], each["Cidr"]) for each in kept}
        assert len(found) == len(kept)
        # They take no address of a part that is being reserved.
        first = {name for name in (functions or reservations)}
        private = (
            first
            if by_function
            else {
                name
                for name, body in reservations.items()
                if body["Properties"]["SubnetId"]["Ref"] in built.ids["private"]
            }
        )
        for body in resources(built.template, "AWS::EC2::VPCEndpoint"):
            if body["Properties"]["VpcEndpointType"] == "Interface":
                assert private
                assert private <= {*body["DependsOn"]}


class TestRoutes:
    """A zone that fails must take no other zone's way out with it."""

    def test_nodes_leave_through_the_gateway_of_their_zone(self, built: Synthesized) -> None:
        gateways = resources(built.template, "AWS::EC2::NatGateway")

        subnets = [gateway["Properties"]["SubnetId"]["Ref"] for gateway in gateways]
        assert subnets == built.ids["public"]
        for kind in NODES:
            for name, public in zip(built.ids[kind], built.ids["public"], strict=True):
                table = built.route_table(name)
                assert table is not None
                (route,) = built.routes(table)
                gateway = built.resources[route["NatGatewayId"]["Ref"]]["Properties"]
                assert gateway["SubnetId"] == {"Ref": public}
                assert "GatewayId" not in route

    def test_public_subnets_alone_reach_the_internet_directly(self, built: Synthesized) -> None:
        (gateway,) = built.template.find_resources("AWS::EC2::InternetGateway")

        direct = {
            body["Properties"]["RouteTableId"]["Ref"]
            for body in resources(built.template, "AWS::EC2::Route")
            if body["Properties"].get("GatewayId") == {"Ref": gateway}
        }
        assert direct == {built.route_table(name) for name in built.ids["public"]}
        # Interfaces of the control plane have no way out.
        assert [built.route_table(name) for name in built.ids["control-plane"]] == [None, None]


class TestEndpoints:
    """Nodes must join, pull and log without the internet."""

    def test_s3_is_reached_from_every_node_subnet_for_free(self, built: Synthesized) -> None:
        nodes = [*built.ids["private"], *built.ids["accelerated"]]
        gateway = built.endpoints("Gateway")["s3"]

        tables = {reference["Ref"] for reference in gateway["RouteTableIds"]}
        assert tables == {built.route_table(name) for name in nodes}

    def test_every_service_of_the_plan_has_an_endpoint_in_every_zone(
        self, built: Synthesized
    ) -> None:
        endpoints = built.endpoints("Interface")

        assert set(endpoints) == set(PLAN.interface_endpoints)
        for endpoint in endpoints.values():
            assert [subnet["Ref"] for subnet in endpoint["SubnetIds"]] == built.ids["private"]
            assert endpoint["PrivateDnsEnabled"] is True

    def test_the_whole_vpc_and_nobody_else_reaches_them(self, built: Synthesized) -> None:
        (group,) = resources(built.template, "AWS::EC2::SecurityGroup")
        rules = group["Properties"]["SecurityGroupIngress"]

        assert {rule["CidrIp"] for rule in rules} == {"10.0.0.0/16", "100.64.0.0/16"}
        assert {(rule["FromPort"], rule["ToPort"]) for rule in rules} == {(443, 443)}


class TestFlowLogs:
    """Without them nobody knows afterwards what went where."""

    @pytest.mark.parametrize("days", [90, 365])
    def test_all_traffic_of_the_vpc_is_logged_as_long_as_planned(self, days: int) -> None:
        built = Synthesized(replace(PLAN, log_retention_days=days))
        names = ("AWS::EC2::VPC", "AWS::Logs::LogGroup", "AWS::IAM::Role")
        vpc, group, role = (id for kind in names for id in built.template.find_resources(kind))

        assert the(built.template, "AWS::EC2::FlowLog") == {
            "ResourceId": {"Ref": vpc},
            "ResourceType": "VPC",
            "TrafficType": "ALL",
            "LogGroupName": {"Ref": group},
            "DeliverLogsPermissionArn": {"Fn::GetAtt": [role, "Arn"]},
        }
        assert the(built.template, "AWS::Logs::LogGroup")["RetentionInDays"] == days
        none = Synthesized(replace(PLAN, flow_logs="none")).template.to_json()["Resources"]
        made = {body["Type"] for body in none.values()}
        assert not {"AWS::EC2::FlowLog", "AWS::IAM::Role"} & made

    def test_no_flow_log_of_another_account_can_have_them_written(self, built: Synthesized) -> None:
        role = the(built.template, "AWS::IAM::Role")
        (statement,) = role["AssumeRolePolicyDocument"]["Statement"]
        write, look = the(built.template, "AWS::IAM::Policy")["PolicyDocument"]["Statement"]

        assert statement["Principal"] == {"Service": "vpc-flow-logs.amazonaws.com"}
        account = {"aws:SourceAccount": {"Ref": "AWS::AccountId"}}
        assert statement["Condition"]["StringEquals"] == account
        assert ":vpc-flow-log/*" in str(statement["Condition"]["ArnLike"]["aws:SourceArn"])
        assert write["Action"] == ["logs:CreateLogStream", "logs:PutLogEvents"]
        assert write["Resource"] != "*"
        assert look["Action"] == ["logs:DescribeLogGroups", "logs:DescribeLogStreams"]

    def test_a_bucket_takes_them_for_less_and_outlives_the_stack(self) -> None:
        built = Synthesized(replace(PLAN, flow_logs="s3"))
        (log,) = resources(built.template, "AWS::EC2::FlowLog")
        (bucket,) = resources(built.template, "AWS::S3::Bucket")
        policy = the(built.template, "AWS::S3::BucketPolicy")["PolicyDocument"]["Statement"]
        services = [each for each in policy if "Service" in each["Principal"]]

        assert log["Properties"]["LogDestinationType"] == "s3"
        assert bucket["DeletionPolicy"].startswith("Retain")
        assert {each["Principal"]["Service"] for each in services} == {
            "delivery.logs.amazonaws.com"
        }
        for each in services:
            account = each["Condition"]["StringEquals"]["aws:SourceAccount"]
            assert account == {"Ref": "AWS::AccountId"}
        built.template.resource_count_is("AWS::Logs::LogGroup", 0)


def test_a_vpc_without_pod_ranges_has_one_range() -> None:
    network = {"vpc_cidr": "10.0.0.0/16", "zones": [*ZONES, "us-west-2c"]}

    built = Synthesized(plan_cluster(make_cluster(network=network)).network)

    built.template.resource_count_is("AWS::EC2::VPCCidrBlock", 0)
    built.template.has_resource_properties(
        "AWS::EC2::VPCEndpoint", {"VpcEndpointType": "Gateway", "SubnetIds": Match.absent()}
    )


class TestEndpointsInAVpcOfOthers:
    """A second endpoint of a service fails the stack, and routes there are not ours."""

    @staticmethod
    def template(**endpoints: Any) -> Template:
        document = existing_document(endpoints=endpoints)
        stack = make_stack()
        plan = plan_cluster(loads_own(as_json(document))).network
        Network(stack, "Network", plan=plan, cluster_name="research", region="us-east-1")
        return Template.from_stack(stack)

    def test_only_those_that_the_file_names_are_made_in_its_subnets(self) -> None:
        built = self.template(create=["sqs", "eks-auth"], present=["s3"], security_group=GROUP)

        made = [body["Properties"] for body in resources(built, "AWS::EC2::VPCEndpoint")]
        assert {each["ServiceName"] for each in made} == {
            "com.amazonaws.us-east-1.sqs",
            "com.amazonaws.us-east-1.eks-auth",
        }
        for each in made:
            assert (each["VpcId"], each["SecurityGroupIds"]) == (VPC, [GROUP])
            assert each["SubnetIds"] == ["subnet-0a1b2c3d4e5f60021", "subnet-0a1b2c3d4e5f60022"]
        assert {body["Type"] for body in built.to_json()["Resources"].values()} == {
            "AWS::EC2::VPCEndpoint"
        }

    def test_without_a_group_of_others_they_get_one_that_lets_every_range_in(self) -> None:
        group = the(self.template(create=["sqs"]), "AWS::EC2::SecurityGroup")

        assert group["VpcId"] == VPC
        ranges = {rule["CidrIp"] for rule in group["SecurityGroupIngress"]}
        assert ranges == {"10.20.0.0/16", "100.64.0.0/16"}
        # By default none is made.
        assert self.template().to_json().get("Resources", {}) == {}
