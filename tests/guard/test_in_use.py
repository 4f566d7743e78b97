"""The change guard tells what running nodes, pods and people use and would lose."""

from collections.abc import Mapping
from typing import Any

from tests.support.cases import for_each
from tests.support.changes import Body, between, body, manifest, node_class, node_pool, of
from tests.support.create_only_schemas import known_types
from ultrascale.catalog.addons import known_addons
from ultrascale.guard.in_use import JUDGED, NOT_IN_USE
from ultrascale.guard.protection import PROTECTED_TYPES

CUT = frozenset({"cuts running nodes off"})
HISTORY = frozenset({"loses history"})
OUTAGE = frozenset({"outage"})
PEOPLE = frozenset({"people lose access"})
ENTRY, ROLE, LOGS = "AWS::EKS::AccessEntry", "AWS::IAM::Role", "AWS::Logs::LogGroup"
ADMIN = "arn:aws:iam::111122223333:role/Admin"
ENDPOINT = "AWS::EC2::VPCEndpoint"


def role(service: str, **properties: Any) -> Body:
    statement = {"Effect": "Allow", "Principal": {"Service": service}, "Action": "sts:AssumeRole"}
    return body(ROLE, {"AssumeRolePolicyDocument": {"Statement": [statement]}, **properties})


def entry(principal: object = ADMIN, policy: str = "ClusterAdmin", **properties: Any) -> Body:
    arn = f"arn:aws:eks::aws:cluster-access-policy/AmazonEKS{policy}Policy"
    scope = properties.pop("scope", {"Type": "cluster"})
    policies = [{"PolicyArn": arn, "AccessScope": scope}]
    return body(ENTRY, {"PrincipalArn": principal, "AccessPolicies": policies, **properties})


def level(name: str, *places: str) -> Body:
    """Return the entry of a level of access, in namespaces, each with its queue, or everywhere."""
    groups = [
        ":".join((f"ultrascale:access:ultrascale-jobs-{name}", *each.split(":"))) for each in places
    ]
    namespaces = [place.partition(":")[0] for place in places]
    scope: Body = {"Type": "namespace", "Namespaces": namespaces} if places else {"Type": "cluster"}
    policy = "View" if name == "view" else "Edit"
    return entry(
        policy=policy,
        scope=scope,
        KubernetesGroups=groups or [f"ultrascale:access:ultrascale-jobs-{name}"],
    )


def addon(name: str) -> Body:
    return body("AWS::EKS::Addon", {"AddonName": name, "ClusterName": "c"})


def daemon(name: str = "d", *, path: str = "", argument: str = "", **fields: Any) -> Body:
    pod: Body = {"containers": [{"name": "a", "image": "a", "args": [argument]}], **fields}
    if path:
        pod["volumes"] = [{"name": "v", "hostPath": {"path": path}}]
    return workload("DaemonSet", name, pod)


def workload(kind: str, name: str, pod: Mapping[str, Any] | None = None) -> Body:
    metadata = {"name": name, "namespace": "kube-system"}
    spec = {"template": {"spec": dict(pod or {})}}
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": metadata, "spec": spec}


def binding(*groups: str) -> Body:
    subjects = [{"kind": "Group", "name": group} for group in groups]
    api = "rbac.authorization.k8s.io/v1"
    return {
        "apiVersion": api,
        "kind": "RoleBinding",
        "metadata": {"name": "b"},
        "subjects": subjects,
    }


GOING: dict[str, tuple[frozenset[str], dict[str, Body]]] = {
    "role of nodes": (CUT, {"A": role("ec2.amazonaws.com")}),
    "role of HyperPod's nodes": (CUT, {"A": role("sagemaker.amazonaws.com")}),
    "role of pods": (CUT, {"A": role("pods.eks.amazonaws.com")}),
    "access entry of nodes": (CUT, {"A": body(ENTRY, {"Type": "EC2_LINUX"})}),
    "instance profile": (CUT, {"A": body("AWS::IAM::InstanceProfile")}),
    "identity of pods": (
        CUT,
        {"A": body("AWS::EKS::PodIdentityAssociation", {"ServiceAccount": "s", "Namespace": "n"})},
    ),
    "endpoint": (CUT, {"A": body(ENDPOINT)}),
    "security group": (CUT, {"A": body("AWS::EC2::SecurityGroup")}),
    "rule of a group": (
        CUT,
        {"A": body("AWS::EC2::SecurityGroupIngress", {"CidrIp": "10.0.0.0/8"})},
    ),
    "way out": (CUT, {"A": body("AWS::EC2::NatGateway")}),
    "cache of images": (CUT, {"A": body("AWS::ECR::PullThroughCacheRule")}),
    "driver of volumes": (CUT, {"A": addon("aws-fsx-csi-driver")}),
    "add-on that nobody knows": (CUT, {"A": addon("another")}),
    "device plugin": (CUT, {"A": manifest(daemon(path="/var/lib/kubelet/device-plugins"))}),
    "program": (OUTAGE, {"A": manifest(workload("Deployment", "scheduler"))}),
    "chart": (OUTAGE, {"A": body("Custom::AWSCDK-EKS-HelmChart", {"Release": "karpenter"})}),
    "link to a bucket": (OUTAGE, {"A": body("AWS::FSx::DataRepositoryAssociation")}),
    "logs": (HISTORY, {"A": body(LOGS, {"LogGroupName": "/aws/containerinsights/c/host"})}),
    "metrics": (HISTORY, {"A": body("AWS::APS::Workspace")}),
    "administrator": (PEOPLE, {"A": entry()}),
    "binding of a group": (PEOPLE, {"A": manifest(binding("team"))}),
}


@for_each(GOING)
def test_what_is_in_use_is_refused_when_it_goes(
    verdict: frozenset[str], resources: dict[str, Body]
) -> None:
    changes = between(resources, {})

    assert changes.verdicts == verdict, changes.resources
    assert all(change.instead for change in changes.protected)


HARMLESS: dict[str, dict[str, Body]] = {
    "role of a function": {"A": role("lambda.amazonaws.com")},
    "add-on that only watches": {"A": addon("eks-node-monitoring-agent")},
    "exporter": {"A": manifest(daemon())},
    "function with its own logs": {
        "F": body("AWS::Lambda::Function", {"LoggingConfig": {"LogGroup": {"Ref": "L"}}}),
        "L": body(LOGS),
    },
    "access of a function": {
        "Role": role("lambda.amazonaws.com"),
        "A": entry({"Fn::GetAtt": ["Role", "Arn"]}, Type="STANDARD"),
    },
    "program that has its identity alone": {
        "A": body("AWS::EKS::PodIdentityAssociation", {"ServiceAccount": "s", "Namespace": "n"}),
        "M": manifest(
            {
                **daemon(),
                "metadata": {"name": "d", "namespace": "n"},
                "spec": {"template": {"spec": {"serviceAccountName": "s"}}},
            }
        ),
    },
}


@for_each(HARMLESS)
def test_what_nobody_uses_goes_without_a_refusal(resources: dict[str, Body]) -> None:
    assert between(resources, {}).verdicts == frozenset()


def test_nodes_whose_class_names_another_role_keep_the_role_that_they_have() -> None:
    def classed(name: str) -> Body:
        return manifest(node_class(role=name), node_pool(budgets=[{"nodes": "0"}]))

    old = {"A": role("ec2.amazonaws.com", RoleName="by-id"), "M": classed("by-id")}

    assert between(old, {"M": classed("by-name")}).verdicts == CUT


def test_a_role_goes_with_the_last_pool_of_its_nodes() -> None:
    group = body("AWS::EKS::Nodegroup", {"NodeRole": {"Fn::GetAtt": ["A", "Arn"]}})

    watch = body("Custom::NodeGroupGuard", {"Keeps": [{"Ref": "A"}], "ServiceToken": "arn:f"})

    changes = between({"A": role("ec2.amazonaws.com"), "G": group, "W": watch}, {"W": watch})

    assert not of(changes, "A").lost


def test_a_security_group_goes_with_the_pool_that_chooses_it() -> None:
    tags = {"ultrascale.dev/pool": "train"}
    group = body(
        "AWS::EC2::SecurityGroup", {"Tags": [{"Key": key, "Value": tags[key]} for key in tags]}
    )
    rule = body("AWS::EC2::SecurityGroupIngress", {"GroupId": {"Ref": "G"}})
    pool = manifest(node_class(securityGroupSelectorTerms=[{"tags": tags}]), node_pool())
    old = {"G": group, "R": rule, "M": pool}

    assert "cuts running nodes off" not in between(old, {}).verdicts
    assert between(old, {"M": pool}).verdicts == CUT


def test_the_cache_of_names_stays_while_nodes_that_ask_it_run() -> None:
    cache = manifest(daemon("cache", argument="-localip=169.254.20.10"))

    def asking(*servers: str) -> Body:
        kubelet = {"clusterDNS": list(servers)}
        return manifest(node_class(kubelet=kubelet), node_pool(budgets=[{"nodes": "0"}]))

    old = {"C": cache, "M": asking("169.254.20.10", "172.20.0.10")}

    changes = between(old, {"M": asking("172.20.0.10")})
    assert changes.verdicts == CUT
    assert "169.254.20.10" in next(iter(changes.protected)).lost
    assert between({"C": cache, "M": asking("172.20.0.10")}, {"M": asking("172.20.0.10")}).is_safe


LESS: dict[str, tuple[frozenset[str], str, Body, Body]] = {
    "zones of an endpoint": (CUT, ENDPOINT, {"SubnetIds": ["a", "b"]}, {"SubnetIds": ["a"]}),
    "names of an endpoint": (CUT, ENDPOINT, {"PrivateDnsEnabled": True}, {}),
    "policies of nodes": (
        CUT,
        ROLE,
        role("ec2.amazonaws.com", ManagedPolicyArns=["a", "b"])["Properties"],
        role("ec2.amazonaws.com", ManagedPolicyArns=["a"])["Properties"],
    ),
    "rules of a group": (
        CUT,
        "AWS::EC2::SecurityGroup",
        {"SecurityGroupIngress": [{"CidrIp": "10.0.0.0/8"}, {"CidrIp": "100.64.0.0/10"}]},
        {"SecurityGroupIngress": [{"CidrIp": "10.0.0.0/8"}]},
    ),
    "identity of an add-on": (
        CUT,
        "AWS::EKS::Addon",
        {"AddonName": "vpc-cni", "PodIdentityAssociations": [{"ServiceAccount": "aws-node"}]},
        {"AddonName": "vpc-cni"},
    ),
    "a taint that evicts": (
        OUTAGE,
        "AWS::EKS::Nodegroup",
        {"Taints": [{"Key": "a", "Effect": "NO_SCHEDULE"}]},
        {"Taints": [{"Key": "a", "Effect": "NO_EXECUTE"}]},
    ),
    "days of logs": (HISTORY, LOGS, {"RetentionInDays": 365}, {"RetentionInDays": 7}),
    "logs without end": (HISTORY, LOGS, {}, {"RetentionInDays": 7}),
    "major version of Aurora": (
        OUTAGE,
        "AWS::RDS::DBCluster",
        {"EngineVersion": "17"},
        {"EngineVersion": "18"},
    ),
    "class of a database": (
        OUTAGE,
        "AWS::RDS::DBInstance",
        {"DBInstanceClass": "db.m7g.large"},
        {"DBInstanceClass": "db.m7g.xlarge"},
    ),
    "weaker policy": (PEOPLE, ENTRY, entry()["Properties"], entry(policy="View")["Properties"]),
    "fewer namespaces": (
        PEOPLE,
        ENTRY,
        entry(scope={"Type": "namespace", "Namespaces": ["a", "b"]})["Properties"],
        entry(scope={"Type": "namespace", "Namespaces": ["a"]})["Properties"],
    ),
    "groups of an entry": (
        PEOPLE,
        ENTRY,
        entry(KubernetesGroups=["a"])["Properties"],
        entry()["Properties"],
    ),
    "public endpoint": (
        PEOPLE,
        "AWS::EKS::Cluster",
        {"ResourcesVpcConfig": {"EndpointPublicAccess": True, "PublicAccessCidrs": ["8.8.8.0/24"]}},
        {"ResourcesVpcConfig": {"EndpointPublicAccess": False}},
    ),
    "ranges of people": (
        PEOPLE,
        "AWS::EKS::Cluster",
        {"ResourcesVpcConfig": {"EndpointPublicAccess": True, "PublicAccessCidrs": ["8.8.8.0/24"]}},
        {"ResourcesVpcConfig": {"EndpointPublicAccess": True, "PublicAccessCidrs": ["8.8.8.0/25"]}},
    ),
}


@for_each(LESS)
def test_an_update_that_takes_something_away_is_refused_and_its_reverse_is_not(
    verdict: frozenset[str], kind: str, more: Body, less: Body
) -> None:
    assert between({"A": body(kind, more)}, {"A": body(kind, less)}).verdicts == verdict
    back = between({"A": body(kind, less)}, {"A": body(kind, more)}).verdicts
    assert back <= OUTAGE | {"cannot be deployed", "exposes"}
    assert ("exposes" in back) >= (verdict == PEOPLE)


def test_people_who_leave_a_binding_lose_their_rights() -> None:
    old, new = manifest(binding("a", "b")), manifest(binding("a"))

    assert between({"M": old}, {"M": new}).verdicts == PEOPLE
    assert between({"M": new}, {"M": old}).verdicts == {"exposes"}


def test_groups_of_functions_pods_and_levels_are_no_people() -> None:
    function = {
        "Role": role("lambda.amazonaws.com"),
        "A": entry({"Fn::GetAtt": ["Role", "Arn"]}, Type="STANDARD", KubernetesGroups=["calendar"]),
        "M": manifest(binding("calendar")),
    }

    assert between(function, {}).is_safe
    # The entries of the roles in a level say who loses what.
    for group in ("system:serviceaccounts:training", f"{LEVELS}-view:a"):
        assert between({"M": manifest(binding(group))}, {}).is_safe


def test_an_administrator_whose_entry_moves_keeps_the_access() -> None:
    stronger = entry(policy="ClusterAdmin")

    assert (
        "people lose access" not in between({"A": entry(policy="View")}, {"B": stronger}).verdicts
    )


LEVELS = "ultrascale:access:ultrascale-jobs"
# By change: what a role had, what it has, and whether that is less.
LEVEL_CHANGES: dict[str, tuple[Body, Body, bool]] = {
    "edits instead of views": (level("view", "a"), level("edit", "a"), False),
    "views instead of edits": (level("edit", "a"), level("view", "a"), True),
    "another namespace": (level("edit", "a"), level("edit", "b"), True),
    "a namespace more": (level("edit", "a"), level("edit", "a", "b"), False),
    "the whole cluster": (level("edit", "a"), level("edit"), False),
    "one namespace of the cluster": (level("edit"), level("edit", "a"), True),
    "any queue": (level("queue", "a:q"), level("edit", "a"), False),
    "one queue": (level("edit", "a"), level("queue", "a:q"), True),
    "another queue": (level("queue", "a:q"), level("queue", "a:r"), True),
    "an administrator": (level("edit", "a"), entry(), False),
}


@for_each(LEVEL_CHANGES)
def test_a_level_of_access_that_gives_less_is_told(before: Body, after: Body, less: bool) -> None:
    there, back = (
        between({"A": one}, {"A": other}).verdicts
        for one, other in ((before, after), (after, before))
    )

    assert ("people lose access" in there) == less
    assert ("exposes" in back) == less


def test_each_type_is_judged_or_said_to_be_in_no_use() -> None:
    known = {*JUDGED, *NOT_IN_USE, *PROTECTED_TYPES}

    assert not JUDGED & NOT_IN_USE, "a type cannot be both"
    unknown = [kind for kind in known_types() if kind not in known]
    assert not unknown, f"ultrascale/guard/in_use.py does not say who uses {', '.join(unknown)}"


def test_add_ons_that_pods_run_by_say_what_for() -> None:
    watching = {name for name, known in known_addons().items() if not known.serves}

    assert watching == {
        "amazon-cloudwatch-observability",
        "amazon-sagemaker-hyperpod-observability",
        "eks-node-monitoring-agent",
        "metrics-server",
    }


NETWORK = (
    *("EIP", "InternetGateway", "Route", "RouteTable", "SecurityGroupEgress"),
    *("SubnetRouteTableAssociation", "VPCCidrBlock", "VPCGatewayAttachment"),
)
IN_USE_BY_TYPE: dict[str, frozenset[str]] = {
    **{f"AWS::EC2::{name}": CUT for name in NETWORK},
    **{
        f"AWS::ElasticLoadBalancingV2::{name}": OUTAGE
        for name in ("Listener", "LoadBalancer", "TargetGroup")
    },
    "AWS::Grafana::Workspace": HISTORY,
    "AWS::SecretsManager::Secret": OUTAGE,
}


@for_each({kind: (kind, verdict) for kind, verdict in IN_USE_BY_TYPE.items()})
def test_ways_of_nodes_and_clients_and_secrets_are_refused_when_they_go(
    kind: str, verdict: frozenset[str]
) -> None:
    assert between({"A": body(kind, {"CidrIp": "10.0.0.0/8"})}, {}).verdicts == verdict


def test_dns_of_a_vpc_stays_while_nodes_run_in_it() -> None:
    kind, names = "AWS::EC2::VPC", {"EnableDnsSupport": True, "EnableDnsHostnames": True}
    for name in names:
        less = names | {name: False}
        assert between({"A": body(kind, names)}, {"A": body(kind, less)}).verdicts == CUT, name
