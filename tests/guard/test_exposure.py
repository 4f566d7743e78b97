"""The change guard tells what a change opens, and is silent where it closes."""

import json
from typing import Any

import pytest

from tests.support.cases import for_each
from tests.support.changes import REGION, STACK, Body, between, body, manifest, of, template
from ultrascale.errors import QuestionError
from ultrascale.guard import Change, Changes, compare
from ultrascale.guard.exposed_objects import OPENING_KINDS
from ultrascale.guard.exposure import OPENING_TYPES
from ultrascale.plan import names

EXPOSES = "exposes"
EVERYBODY = {"AWS": "*"}
OTHER = {"AWS": "arn:aws:iam::999900001111:root"}
AUDIT = {"ClusterLogging": {"EnabledTypes": [{"Type": "api"}, {"Type": "audit"}]}}
KEY = "arn:aws:kms:us-east-1:444455556666:key/1"


def cluster(*ranges: str, public: bool = True) -> Body:
    return {"ResourcesVpcConfig": {"EndpointPublicAccess": public, "PublicAccessCidrs": [*ranges]}}


def policy(*statements: Body, path: str = "PolicyDocument", **properties: Any) -> Body:
    return {path: {"Statement": [*statements]}, **properties}


def allow(principal: Any, **statement: Any) -> Body:
    return {"Effect": "Allow", "Principal": principal, "Action": "sts:AssumeRole", **statement}


def trust(*principals: Any, **statement: Any) -> Body:
    statements = (allow(each, **statement) for each in principals)
    return policy(*statements, path="AssumeRolePolicyDocument")


def ingress(*ranges: str, port: int = 443) -> Body:
    ports = {"IpProtocol": "tcp", "FromPort": port, "ToPort": port}
    return {"SecurityGroupIngress": [{"CidrIp": each, **ports} for each in ranges]}


def encrypted(key: str | None) -> Body:
    by_default = {"SSEAlgorithm": "aws:kms", "KMSMasterKeyID": key}
    if key is None:
        by_default = {"SSEAlgorithm": "AES256"}
    rules = [{"ServerSideEncryptionByDefault": by_default}]
    return {"BucketEncryption": {"ServerSideEncryptionConfiguration": rules}}


SERVICE = {"Service": "pods.eks.amazonaws.com"}
EVENTS = {"Service": "events.amazonaws.com"}
TLS_ALONE = {
    "Effect": "Deny",
    "Principal": "*",
    "Action": "s3:*",
    "Resource": "*",
    "Condition": {"Bool": {"aws:SecureTransport": "false"}},
}
VOLUMES = {"BlockDeviceMappings": [{"Ebs": {"Encrypted": True, "KmsKeyId": KEY}}]}
# By change: type, properties that are closed, and that are open.
OPENED: dict[str, tuple[str, Body, Body]] = {
    "public endpoint": ("AWS::EKS::Cluster", cluster(public=False), cluster("203.0.113.0/24")),
    "wider ranges": ("AWS::EKS::Cluster", cluster("203.0.113.0/25"), cluster("203.0.113.0/24")),
    "the internet in halves": (
        "AWS::EKS::Cluster",
        cluster("203.0.113.0/24", "203.0.112.0/24"),
        cluster("0.0.0.0/1", "128.0.0.0/1"),
    ),
    "no list of ranges": ("AWS::EKS::Cluster", cluster("203.0.113.0/24"), cluster()),
    "audit log": (
        "AWS::EKS::Cluster",
        {"Logging": AUDIT},
        {"Logging": {"ClusterLogging": {"EnabledTypes": [{"Type": "api"}]}}},
    ),
    "all logs": ("AWS::EKS::Cluster", {"Logging": AUDIT}, {}),
    "encryption of secrets": ("AWS::EKS::Cluster", {"EncryptionConfig": [{"Resources": []}]}, {}),
    "network policies": (
        "AWS::EKS::Addon",
        {"AddonName": "vpc-cni", "ConfigurationValues": '{"enableNetworkPolicy": "true"}'},
        {"AddonName": "vpc-cni", "ConfigurationValues": '{"enableNetworkPolicy": "false"}'},
    ),
    "another service": ("AWS::IAM::Role", trust(SERVICE), trust(SERVICE, EVENTS)),
    "another principal": ("AWS::IAM::Role", trust(SERVICE), trust(SERVICE, OTHER)),
    "any identity of a provider": (
        "AWS::IAM::Role",
        trust({"Federated": "idp"}, Condition={"StringEquals": {"sub": "a"}}),
        trust({"Federated": "idp"}),
    ),
    "public objects": (
        "AWS::S3::Bucket",
        {"PublicAccessBlockConfiguration": {"BlockPublicPolicy": True}},
        {"PublicAccessBlockConfiguration": {"BlockPublicPolicy": False}},
    ),
    "key of a bucket": ("AWS::S3::Bucket", encrypted(KEY), encrypted(None)),
    "key of a log group": ("AWS::Logs::LogGroup", {"KmsKeyId": KEY}, {}),
    "key of volumes": (
        "AWS::EC2::LaunchTemplate",
        {"LaunchTemplateData": VOLUMES},
        {"LaunchTemplateData": {"BlockDeviceMappings": [{"Ebs": {"Encrypted": True}}]}},
    ),
    "a disk without a key": (
        "AWS::EC2::LaunchTemplate",
        {"LaunchTemplateData": VOLUMES},
        {"LaunchTemplateData": {"BlockDeviceMappings": [*VOLUMES["BlockDeviceMappings"], {}]}},
    ),
    "metadata without a token": (
        "AWS::EC2::LaunchTemplate",
        {"LaunchTemplateData": {"MetadataOptions": {"HttpTokens": "required"}}},
        {"LaunchTemplateData": {"MetadataOptions": {"HttpTokens": "optional"}}},
    ),
    "policy of a key": (
        "AWS::KMS::Key",
        policy(path="KeyPolicy"),
        policy(allow(OTHER, Action="kms:*"), path="KeyPolicy"),
    ),
    "a load balancer of the internet": (
        "AWS::ElasticLoadBalancingV2::LoadBalancer",
        {"Scheme": "internal"},
        {"Scheme": "internet-facing"},
    ),
    "TLS of a listener": (
        "AWS::ElasticLoadBalancingV2::Listener",
        {"Protocol": "TLS", "Certificates": [{"CertificateArn": "a"}]},
        {"Protocol": "TCP"},
    ),
    "ranges of a group": ("AWS::EC2::SecurityGroup", ingress("10.0.0.0/8"), ingress("0.0.0.0/0")),
    "a port of a group": (
        "AWS::EC2::SecurityGroup",
        ingress("10.0.0.0/8"),
        {
            "SecurityGroupIngress": [
                *ingress("10.0.0.0/8")["SecurityGroupIngress"],
                *ingress("10.0.0.0/8", port=22)["SecurityGroupIngress"],
            ]
        },
    ),
    "addresses of the internet": ("AWS::EC2::Subnet", {}, {"MapPublicIpOnLaunch": True}),
    "policy of a registry": (
        "AWS::ECR::RegistryPolicy",
        policy(path="PolicyText"),
        policy(allow(OTHER, Action="ecr:*"), path="PolicyText"),
    ),
    "policy of a registry as text": (
        "AWS::ECR::RegistryPolicy",
        {"PolicyText": json.dumps({"Statement": []})},
        {"PolicyText": json.dumps({"Statement": allow(OTHER, Action="ecr:*")})},
    ),
    "everybody but an account": (
        "AWS::KMS::Key",
        policy(path="KeyPolicy"),
        policy(
            allow(EVERYBODY, Condition={"StringNotEquals": {"aws:SourceAccount": "1"}}),
            path="KeyPolicy",
        ),
    ),
    "policy of a repository": (
        "AWS::ECR::Repository",
        policy(path="RepositoryPolicyText"),
        policy(allow(OTHER, Action="ecr:*"), path="RepositoryPolicyText"),
    ),
    "key of a topic": ("AWS::SNS::Topic", {"KmsMasterKeyId": KEY}, {}),
    "key of a queue": ("AWS::SQS::Queue", {"KmsMasterKeyId": KEY}, {}),
    "encryption of a queue": (
        "AWS::SQS::Queue",
        {"SqsManagedSseEnabled": True},
        {"SqsManagedSseEnabled": False},
    ),
    "cluster of databases of the internet": (
        "AWS::RDS::DBCluster",
        {},
        {"PubliclyAccessible": True},
    ),
    "instance without TLS": (
        "AWS::RDS::DBParameterGroup",
        {"Parameters": {"rds.force_ssl": "1"}},
        {"Parameters": {}},
    ),
    "database of the internet": ("AWS::RDS::DBInstance", {}, {"PubliclyAccessible": True}),
    "database without TLS": (
        "AWS::RDS::DBClusterParameterGroup",
        {"Parameters": {"rds.force_ssl": "1"}},
        {"Parameters": {"rds.force_ssl": "0"}},
    ),
}


def changed(kind: str, old: Body, new: Body) -> Changes:
    return between({"A": body(kind, old)}, {"A": body(kind, new)})


@for_each(OPENED)
def test_a_resource_that_opens_is_told_with_its_setting_before_and_after(
    kind: str, closed: Body, opened: Body
) -> None:
    changes = changed(kind, closed, opened)

    assert EXPOSES in changes.verdicts
    assert all(" -> " in setting for setting in of(changes, "A").opens)
    assert EXPOSES not in changes.permit("A").verdicts
    assert EXPOSES not in changed(kind, opened, closed).verdicts


def test_each_type_and_kind_of_the_tables_is_tried() -> None:
    assert {kind for kind, *_ in OPENED.values()} >= OPENING_TYPES
    assert {closed["kind"] for closed, _ in OPENED_OBJECTS.values()} >= OPENING_KINDS


SILENT: dict[str, tuple[str, Body, Body]] = {
    "the same ranges in parts": (
        "AWS::EKS::Cluster",
        cluster("203.0.112.0/23"),
        cluster("203.0.112.0/24", "203.0.113.0/24"),
    ),
    "a service that acts for another resource": (
        "AWS::IAM::Role",
        trust(SERVICE, Condition={"StringEquals": {"aws:SourceArn": "a"}}),
        trust(SERVICE, Condition={"StringEquals": {"aws:SourceArn": "b"}}),
    ),
    "the number of the account": (
        "AWS::KMS::Key",
        policy(
            allow({"AWS": {"Fn::Sub": "arn:aws:iam::${AWS::AccountId}:root"}}, Action="kms:*"),
            path="KeyPolicy",
        ),
        policy(allow({"AWS": "arn:aws:iam::111122223333:root"}, Action="kms:*"), path="KeyPolicy"),
    ),
    "everybody of the account, by a service": (
        "AWS::KMS::Key",
        policy(path="KeyPolicy"),
        policy(
            allow(EVERYBODY, Condition={"StringEquals": {"kms:CallerAccount": "1"}}),
            path="KeyPolicy",
        ),
    ),
    "a service that uses a key": (
        "AWS::KMS::Key",
        policy(path="KeyPolicy"),
        policy(allow(EVENTS, Action="kms:Decrypt"), path="KeyPolicy"),
    ),
    "another key of a bucket": ("AWS::S3::Bucket", encrypted(KEY), encrypted(f"{KEY}2")),
    "rights of a role": (
        "AWS::IAM::Role",
        trust(SERVICE),
        {**trust(SERVICE), "Policies": [policy({"Action": "s3:*", "Resource": "*"})]},
    ),
}


@for_each(SILENT)
def test_what_lets_nobody_in_passes(kind: str, old: Body, new: Body) -> None:
    assert EXPOSES not in changed(kind, old, new).verdicts
    assert EXPOSES not in changed(kind, new, old).verdicts


def test_a_policy_of_a_bucket_that_stays_opens_it_by_going() -> None:
    old = {
        "B": body("AWS::S3::Bucket"),
        "P": body("AWS::S3::BucketPolicy", policy(TLS_ALONE, Bucket={"Ref": "B"})),
    }

    assert EXPOSES in between(old, {"B": old["B"]}).verdicts
    assert EXPOSES not in between(old, {}).verdicts
    assert EXPOSES not in between({"B": old["B"]}, old).verdicts


def test_services_may_send_to_topics_and_queues_but_not_read_buckets() -> None:
    for kind, owner in (("SNS::Topic", "Topics"), ("SQS::Queue", "Queues"), ("S3::Bucket", "")):
        owned: Body = {owner: [{"Ref": "B"}]} if owner else {"Bucket": {"Ref": "B"}}
        old, new = (
            {
                "B": body(f"AWS::{kind}"),
                "P": body(f"AWS::{kind}Policy", policy(*statements) | owned),
            }
            for statements in ([], [allow(EVENTS, Action="a:b")])
        )
        assert (EXPOSES in between(old, new).verdicts) == (not owner), kind


def test_flow_logs_of_a_network_that_stays_are_missed() -> None:
    old = {"V": body("AWS::EC2::VPC"), "L": body("AWS::EC2::FlowLog", {"ResourceId": {"Ref": "V"}})}

    assert EXPOSES in between(old, {"V": old["V"]}).verdicts
    assert EXPOSES not in between(old, {"V": old["V"], "M": old["L"]}).verdicts


def rule(source: Body, group: Any = "sg-1") -> Body:
    ports = {"IpProtocol": "tcp", "FromPort": 443, "ToPort": 443}
    return body("AWS::EC2::SecurityGroupIngress", {"GroupId": group, **ports, **source})


def test_a_rule_of_its_own_opens_the_group_that_it_names() -> None:
    inside, half = rule({"CidrIp": "10.0.0.0/9"}), rule({"CidrIp": "10.128.0.0/9"})
    whole = rule({"CidrIp": "10.0.0.0/8"})

    assert EXPOSES in between({"A": inside}, {"A": inside, "B": half}).verdicts
    assert EXPOSES not in between({"A": inside, "B": half}, {"A": whole}).verdicts
    assert EXPOSES in between({}, {"A": rule({"SourceSecurityGroupId": "sg-2"})}).verdicts
    own = {"G": body("AWS::EC2::SecurityGroup")}
    of_own = rule({"SourceSecurityGroupId": {"Fn::GetAtt": ["G", "GroupId"]}})
    assert EXPOSES not in between(own, {**own, "A": of_own}).verdicts


def test_a_listener_that_moves_to_another_port_opens_none() -> None:
    ports = (ingress("10.0.0.0/8", port=port) for port in (80, 443))

    assert EXPOSES not in changed("AWS::EC2::SecurityGroup", *ports).verdicts


def test_the_network_itself_is_no_opening_where_the_internet_loses_the_load_balancer() -> None:
    def front(scheme: str, *ranges: str, made: bool = True) -> dict[str, Body]:
        groups = [{"Fn::GetAtt": ["G", "GroupId"]}]
        network = {"V": body("AWS::EC2::VPC", {"CidrBlock": "10.0.0.0/16"})} if made else {}
        return {
            **network,
            "G": body("AWS::EC2::SecurityGroup", ingress(*ranges)),
            "L": body(
                "AWS::ElasticLoadBalancingV2::LoadBalancer",
                {"Scheme": scheme, "SecurityGroups": groups},
            ),
        }

    internet, internal = "internet-facing", "internal"
    office, own, other = "203.0.113.0/24", "10.0.0.0/16", "10.9.0.0/16"

    for made in (True, False):
        old = front(internet, office, made=made)
        assert EXPOSES not in between(old, front(internal, own, made=made)).verdicts
        assert EXPOSES in between(old, front(internet, own, made=made)).verdicts
        assert (EXPOSES in between(old, front(internal, other, made=made)).verdicts) == made
        assert EXPOSES in between(old, front(internal, "0.0.0.0/0", made=made)).verdicts


def test_ranges_that_the_network_gets_by_the_change_are_its_own() -> None:
    def network(*ranges: str) -> dict[str, Body]:
        blocks = {
            f"V{index}": body("AWS::EC2::VPCCidrBlock", {"CidrBlock": each})
            for index, each in enumerate(ranges)
        }
        return {**blocks, "G": body("AWS::EC2::SecurityGroup", ingress(*ranges))}

    old, new = network("10.0.0.0/16"), network("10.0.0.0/16", "100.64.0.0/16")

    assert EXPOSES not in between(old, new).verdicts


def test_a_disk_without_a_key_is_told_in_words() -> None:
    kind, closed, opened = OPENED["key of volumes"]

    assert of(changed(kind, closed, opened), "A").opens == (
        f"LaunchTemplateData/BlockDeviceMappings/*/Ebs/KmsKeyId: [{KEY}] -> [nothing]",
    )


BOUNDARY = "arn:aws:iam::111122223333:policy/boundary"


def test_the_boundary_of_all_roles_is_one_decision() -> None:
    bound = body("AWS::IAM::Role", {"PermissionsBoundary": BOUNDARY})
    free = body("AWS::IAM::Role")
    setting = f"PermissionsBoundary: {BOUNDARY} -> nothing"

    changes = between({"A": bound, "B": bound}, {"A": free, "B": free})

    (change,) = changes.protected
    assert isinstance(change, Change)
    assert (change.ids[-1], change.opens) == (f"{STACK}/Role.PermissionsBoundary", (setting,))
    assert [each.path for each in change.properties] == [
        f"{STACK}/A/PermissionsBoundary",
        f"{STACK}/B/PermissionsBoundary",
    ]
    assert changes.permit("Role.PermissionsBoundary").is_safe
    assert of(between({"A": bound}, {"A": free}), "A").opens == (setting,)
    assert between({"A": free}, {"A": bound}).is_safe


def test_all_whom_a_policy_lets_in_are_told_and_everybody_first() -> None:
    roles = [f"arn:aws:iam::999900001111:role/{'long-' * 20}{end}" for end in "ab"]
    actions = [f"kms:Action{number}" for number in range(40)]
    old, new = (
        policy(path="KeyPolicy"),
        policy(*(allow({"AWS": each}, Action=actions) for each in (*roles, "*")), path="KeyPolicy"),
    )

    (setting,) = of(changed("AWS::KMS::Key", old, new), "A").opens

    assert setting.startswith("let in by KeyPolicy: nothing -> AWS * (kms:Action0, ")
    assert all(f"AWS {each} (" in setting for each in roles)
    assert len(setting) < 700


def test_roles_that_let_others_in_are_named_one_by_one() -> None:
    roles = [f"arn:aws:iam::999900001111:role/{'long-' * 20}{end}" for end in "ab"]
    old = dict.fromkeys("AB", body("AWS::IAM::Role", trust(SERVICE)))
    new = {
        id: body("AWS::IAM::Role", trust(SERVICE, {"AWS": each}))
        for id, each in zip("AB", roles, strict=True)
    }

    changes = between(old, new)

    assert [each.ids[-1] for each in changes.protected] == [f"{STACK}/A", f"{STACK}/B"]
    assert changes.permit("A").verdicts == {EXPOSES}


def test_a_load_balancer_before_what_only_pods_reached_opens_it() -> None:
    balancer = body("AWS::ElasticLoadBalancingV2::LoadBalancer", {"Scheme": "internal"})
    front = {"F": body("AWS::S3::Bucket")}

    assert of(between(front, {**front, "A": balancer}), "A").opens == (
        "Scheme: nothing -> internal",
    )
    assert EXPOSES not in between({**front, "A": balancer}, front).verdicts


def test_a_new_stack_exposes_nothing() -> None:
    stacks = {STACK: template({"A": body("AWS::EC2::SecurityGroup", ingress("0.0.0.0/0"))})}

    assert compare({}, stacks, region=REGION).is_safe


def test_rights_in_a_namespace_that_the_change_makes_open_nothing() -> None:
    def world(*namespaces: str) -> dict[str, Body]:
        groups = [f"ultrascale:access:ultrascale-jobs-edit:{each}" for each in namespaces]
        scope = {"Type": "namespace", "Namespaces": [*namespaces]}
        entry = {
            "PrincipalArn": "arn:aws:iam::111122223333:role/A",
            "KubernetesGroups": ["ultrascale:access", *groups],
            "AccessPolicies": [{"PolicyArn": "arn:x/AmazonEKSEditPolicy", "AccessScope": scope}],
        }
        return {"A": body("AWS::EKS::AccessEntry", entry)}

    def entry_of(*namespaces: str) -> Body:
        return manifest(*(thing("Namespace", name=each) for each in namespaces))

    old, new = world("a"), world("a", "b")

    assert between({**old, "N": entry_of("a")}, {**new, "N": entry_of("a", "b")}).is_safe
    assert (
        EXPOSES
        in between({**old, "N": entry_of("a", "b")}, {**new, "N": entry_of("a", "b")}).verdicts
    )
    assert (
        EXPOSES in between({"N": entry_of("a")}, {**world("b"), "N": entry_of("a", "b")}).verdicts
    )


def test_people_who_get_the_first_entries_of_a_cluster_are_told() -> None:
    entry = body("AWS::EKS::AccessEntry", {"PrincipalArn": "arn:aws:iam::111122223333:role/A"})
    half = {"c-cluster": template({"C": body("AWS::EKS::Cluster")})}
    whole = {**half, "c-platform": template({})}
    people = {
        **whole,
        "c-access": template({"A": entry}),
        "c-backend": template({"B": manifest(binding("a"))}),
    }

    assert [each.ids[-1] for each in compare(whole, people, region=REGION).protected] == [
        "c-access/A",
        "c-backend/o",
    ]
    # A first deployment that stopped half-way.
    assert compare(half, people, region=REGION).is_safe
    assert compare({}, people, region=REGION).is_safe


# --- objects -------------------------------------------------------------------------------------


def thing(
    kind: str, spec: Any = None, *, name: str = "o", namespace: str = "", **more: Any
) -> Body:
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    metadata |= more.pop("metadata", {})
    return {"kind": kind, "metadata": metadata, **({"spec": spec} if spec else {}), **more}


def clients(**models: list[str]) -> Body:
    return {"annotations": {names.CLIENT_MODELS: json.dumps(models)}}


def jwt(*audiences: str, issuer: str = "https://login.example.com/") -> Body:
    provider = {"name": "front", "issuer": issuer, "remoteJWKS": {"uri": f"{issuer}keys"}}
    return {"jwt": {"providers": [provider | ({"audiences": [*audiences]} if audiences else {})]}}


def keys(*names: str) -> Body:
    return {"apiKeyAuth": {"credentialRefs": [{"kind": "Secret", "name": name} for name in names]}}


def binding(*groups: str, kind: str = "ClusterRoleBinding", subject: str = "Group") -> Body:
    subjects = [{"kind": subject, "name": group} for group in groups]
    return thing(kind, subjects=subjects, roleRef={"kind": "ClusterRole", "name": "r"})


def listener(protocol: str, routes: str) -> Body:
    allowed = {"namespaces": {"from": routes}}
    return {"listeners": [{"name": "a", "protocol": protocol, "allowedRoutes": allowed}]}


def envoy(service: str) -> Body:
    return {"provider": {"kubernetes": {"envoyService": {"type": service}}}}


def labelled(level: str) -> Body:
    return thing("Namespace", metadata={"labels": {"pod-security.kubernetes.io/enforce": level}})


def rights(*verbs: str, group: str = "") -> Body:
    rules = [{"apiGroups": [group], "resources": ["pods"], "verbs": [*verbs]}]
    return thing("ClusterRole", name="r", rules=rules)


def service(**spec: Any) -> Body:
    return thing("Service", spec)


def block(cidr: str, *left_out: str) -> Body:
    return {"ipBlock": {"cidr": cidr} | ({"except": [*left_out]} if left_out else {})}


OPENED_OBJECTS: dict[str, tuple[Body, Body]] = {
    "keys of the front": (thing("SecurityPolicy", keys("a")), thing("SecurityPolicy", {"x": 1})),
    "tokens of the front": (thing("SecurityPolicy", jwt("a")), thing("SecurityPolicy", {"x": 1})),
    "an audience more": (thing("SecurityPolicy", jwt("a")), thing("SecurityPolicy", jwt("a", "b"))),
    "any audience": (thing("SecurityPolicy", jwt("a")), thing("SecurityPolicy", jwt())),
    "the metadata of nodes": (
        thing("NetworkPolicy", {"egress": [{"to": [block("0.0.0.0/0", "169.254.169.254/32")]}]}),
        thing("NetworkPolicy", {"egress": [{}]}),
    ),
    "keys of others as well": (
        thing("SecurityPolicy", keys("a")),
        thing("SecurityPolicy", keys("a", "b")),
    ),
    "a model more for a client": (
        thing("EnvoyExtensionPolicy", metadata=clients(ana=["chat"])),
        thing("EnvoyExtensionPolicy", metadata=clients(ana=["chat", "code"])),
    ),
    "all models for each client": (
        thing("EnvoyExtensionPolicy", metadata=clients(ana=["chat"])),
        thing("EnvoyExtensionPolicy"),
    ),
    "headers that say who a client is": (
        thing("ClientTrafficPolicy", {"headers": {"earlyRequestHeaders": {"remove": ["x"]}}}),
        thing("ClientTrafficPolicy", {"headers": {"earlyRequestHeaders": {"remove": []}}}),
    ),
    "TLS of the gateway": (
        thing("Gateway", listener("HTTPS", "Same")),
        thing("Gateway", listener("HTTP", "Same")),
    ),
    "routes of all namespaces": (
        thing("Gateway", listener("HTTP", "Selector")),
        thing("Gateway", listener("HTTP", "All")),
    ),
    "a load balancer": (service(type="ClusterIP"), service(type="LoadBalancer")),
    "ranges of a load balancer": (
        service(loadBalancerSourceRanges=["10.0.0.0/8"]),
        service(loadBalancerSourceRanges=["10.0.0.0/8", "0.0.0.0/0"]),
    ),
    "any pod": (labelled("restricted"), labelled("privileged")),
    "service of the proxies": (
        thing("EnvoyProxy", envoy("ClusterIP")),
        thing("EnvoyProxy", envoy("LoadBalancer")),
    ),
    "key of disks": (
        thing("EC2NodeClass", {"blockDeviceMappings": [{"ebs": {"kmsKeyID": KEY}}]}),
        thing("EC2NodeClass", {"blockDeviceMappings": [{"ebs": {}}]}),
    ),
    "metadata of nodes without a token": (
        thing("EC2NodeClass", {"metadataOptions": {"httpTokens": "required"}}),
        thing("EC2NodeClass", {"metadataOptions": {"httpTokens": "optional"}}),
    ),
    "nodes with addresses of the internet": (
        thing("EC2NodeClass", {"associatePublicIPAddress": False}),
        thing("EC2NodeClass", {"associatePublicIPAddress": True}),
    ),
    "key of Auto Mode's disks": (
        thing("NodeClass", {"ephemeralStorage": {"kmsKeyID": KEY}}),
        thing("NodeClass", {"ephemeralStorage": {"iops": 1}}),
    ),
    "people": (binding("a"), binding("a", "b")),
    "people of a namespace": (
        binding("a", kind="RoleBinding"),
        binding("a", "b", kind="RoleBinding"),
    ),
    "errors of an admission policy": (
        thing("ValidatingAdmissionPolicy", {"failurePolicy": "Fail"}),
        thing("ValidatingAdmissionPolicy", {"failurePolicy": "Ignore"}),
    ),
    "an admission policy that only warns": (
        thing("ValidatingAdmissionPolicyBinding", {"validationActions": ["Deny"]}),
        thing("ValidatingAdmissionPolicyBinding", {"validationActions": ["Warn"]}),
    ),
    "enforcement of network policies": (
        thing("ConfigMap", data={"enable-network-policy-controller": "true"}),
        thing("ConfigMap", data={"enable-network-policy-controller": "false"}),
    ),
}


def applied(*objects: Body) -> dict[str, Body]:
    return {"M": manifest(*objects)}


@for_each(OPENED_OBJECTS)
def test_an_object_that_opens_is_told_and_one_that_closes_is_not(
    closed: Body, opened: Body
) -> None:
    changes = between(applied(closed), applied(opened))

    assert EXPOSES in changes.verdicts
    assert EXPOSES not in between(applied(opened), applied(closed)).verdicts


def test_people_of_a_role_that_allows_more_are_told() -> None:
    def world(people: Body, role: Body) -> dict[str, Body]:
        return applied(people, role)

    reads, writes = rights("get"), rights("get", "create")
    people, pods = binding("a"), binding("a", subject="ServiceAccount")

    assert between(world(people, reads), world(people, writes)).verdicts == {EXPOSES}
    assert between(world(people, writes), world(people, reads)).is_safe
    assert between(world(people, rights("*")), world(people, writes)).is_safe
    assert between(world(pods, reads), world(pods, writes)).is_safe


def test_a_namespace_of_jobs_and_its_own_programs_are_no_opening() -> None:
    own = [
        thing("Namespace", name="n"),
        thing("ServiceAccount", name="s", namespace="n"),
        binding("s", kind="RoleBinding", subject="ServiceAccount"),
        thing("NetworkPolicy", {"podSelector": {}, "ingress": [{}]}, namespace="n"),
    ]

    assert between(applied(), applied(*own)).is_safe


def network(ingress: list[Body] | None = None, *, selector: Body | None = None, name: str) -> Body:
    spec: Body = {"podSelector": selector or {}, "policyTypes": ["Ingress"]}
    return thing(
        "NetworkPolicy", spec | ({"ingress": ingress} if ingress else {}), name=name, namespace="n"
    )


def peers(*several: Body) -> list[Body]:
    return [{"from": [*several]}]


def at_port(number: int) -> list[Body]:
    return [{**peers(block("10.0.0.0/8"))[0], "ports": [{"port": number}]}]


NAMESPACE = thing("Namespace", name="n")
DENIED = network(name="deny")
SAME = peers({"podSelector": {}})
ETCD = {"matchLabels": {"app": "etcd"}}
ALL = block("0.0.0.0/0")
PODS = {"metadata": {"labels": {"app": "etcd", "tier": "x"}}}
WORKLOAD = thing("Deployment", {"template": PODS}, name="w", namespace="n")
NETWORKS: dict[str, tuple[list[Body], list[Body], bool]] = {
    "no default any more": ([DENIED], [network(name="deny", selector=ETCD)], True),
    "a peer more": (
        [DENIED, network(SAME, name="allow")],
        [DENIED, network(peers({"podSelector": {}}, {"namespaceSelector": {}}), name="allow")],
        True,
    ),
    "anybody": ([DENIED, network(SAME, name="allow")], [DENIED, network([{}], name="allow")], True),
    "a wider block": (
        [DENIED, network(peers(block("10.0.0.0/16")), name="allow")],
        [DENIED, network(peers(block("10.0.0.0/8")), name="allow")],
        True,
    ),
    "a new way from everywhere": ([DENIED], [DENIED, network([{}], name="allow")], True),
    "a new program": ([DENIED], [DENIED, network([{}], name="allow", selector=ETCD)], False),
    "policies for pods that were open": ([], [network(SAME, name="allow")], False),
    "a port alone": (
        [DENIED, network([{}], name="allow")],
        [DENIED, network([{"ports": [{"port": 1}]}], name="allow")],
        False,
    ),
    "a selector that grows": (
        [DENIED, network(peers(ALL), name="allow", selector=ETCD)],
        [DENIED, network(peers(ALL), name="allow")],
        True,
    ),
    "a selector of other pods": (
        [DENIED, network(peers(ALL), name="allow", selector=ETCD)],
        [DENIED, network(peers(ALL), name="allow", selector={"matchLabels": {"app": "b"}})],
        True,
    ),
    "a selector without an exception": (
        [DENIED, network(SAME, name="allow", selector=ETCD)],
        [DENIED, network(SAME, name="allow")],
        False,
    ),
    "a selector that shrinks": (
        [DENIED, network(peers(ALL), name="allow")],
        [DENIED, network(peers(ALL), name="allow", selector=ETCD)],
        False,
    ),
    "a new way to pods that a policy isolated": (
        [network(name="a", selector=ETCD)],
        [network(name="a", selector=ETCD), network([{}], name="b", selector=ETCD)],
        True,
    ),
    "a new way to pods that were there": (
        [DENIED, WORKLOAD],
        [DENIED, WORKLOAD, network([{}], name="b", selector=ETCD)],
        True,
    ),
    "an exception less": (
        [DENIED, network(peers(block("10.0.0.0/8", "10.1.0.0/16")), name="a")],
        [DENIED, network(peers(block("10.0.0.0/8")), name="a")],
        True,
    ),
    "a part without the exception": (
        [DENIED, network(peers(block("10.0.0.0/8", "10.1.0.0/16")), name="a")],
        [DENIED, network(peers(block("10.2.0.0/16")), name="a")],
        False,
    ),
    "what was the exception": (
        [DENIED, network(peers(block("10.0.0.0/8", "10.1.0.0/16")), name="a")],
        [DENIED, network(peers(block("10.1.0.0/17")), name="a")],
        True,
    ),
    "another port in place of one": (
        [DENIED, network(at_port(80), name="a")],
        [DENIED, network(at_port(443), name="a")],
        False,
    ),
    "another port beside one": (
        [DENIED, network(at_port(80), name="a")],
        [DENIED, network([*at_port(80), *at_port(443)], name="a")],
        True,
    ),
    "a policy beside another": (
        [DENIED, network(SAME, name="b")],
        [network(SAME, name="b")],
        False,
    ),
}


@for_each(NETWORKS)
def test_network_policies_are_judged_by_all_of_a_namespace(
    old: list[Body], new: list[Body], opens: bool
) -> None:
    changes = between(applied(NAMESPACE, *old), applied(NAMESPACE, *new))

    assert (EXPOSES in changes.verdicts) == opens


# Names of changes above after which somebody no longer reaches pods that were there.
CUT_OFF = {
    "a part without the exception",
    "a port alone",
    "a selector of other pods",
    "a selector that shrinks",
    "policies for pods that were open",
    "what was the exception",
}


def of_namespace(name: str) -> Body:
    return {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": name}}}


def ports(first: int, last: int) -> list[Body]:
    return [{**peers(ALL)[0], "ports": [{"port": first, "endPort": last}]}]


HALVES = peers(block("10.0.0.0/17"), block("10.0.128.0/17"))
NARROWER: dict[str, tuple[list[Body], list[Body], bool]] = {
    "a peer less": (peers({"podSelector": {}}, of_namespace("m")), SAME, True),
    "no peer left": (SAME, [], True),
    "peers in place of anybody": ([{}], SAME, True),
    "a narrower block": (peers(block("10.0.0.0/8")), peers(block("10.0.0.0/16")), True),
    "an exception more": (peers(ALL), peers(block("0.0.0.0/0", "10.0.0.0/8")), True),
    "the same in halves": (peers(block("10.0.0.0/16")), HALVES, False),
    "a port less": ([*at_port(80), *at_port(443)], at_port(443), True),
    "fewer ports": (ports(8000, 9000), ports(8000, 8500), True),
    "one port of several": (ports(8000, 9000), ports(8000, 8000), True),
    "more ports": (ports(8000, 8500), ports(8000, 9000), False),
    "a port within the range": (at_port(80), ports(80, 90), False),
    "another port": (at_port(80), at_port(443), False),
    "a peer that leaves the cluster": (
        peers({"podSelector": {}}, of_namespace("left")),
        SAME,
        False,
    ),
}


@for_each(NARROWER)
def test_a_network_policy_that_lets_fewer_in_cuts_running_pods_off(
    old: list[Body], new: list[Body], cuts: bool
) -> None:
    stay = [NAMESPACE, DENIED, thing("Namespace", name="m")]
    left = thing("Namespace", name="left")
    before = applied(*stay, left, network(old, name="allow"))
    changes = between(before, applied(*stay, network(new, name="allow")))

    assert ("cuts running pods off" in changes.verdicts) == cuts
    # Whoever is let in by another policy stays.
    kept = [*stay, network(old, name="other")]
    changes = between(
        applied(*kept, network(old, name="allow")), applied(*kept, network(new, name="allow"))
    )
    assert "cuts running pods off" not in changes.verdicts


def test_pods_without_the_label_of_an_exception_keep_who_reaches_them() -> None:
    """The front of models closes the pods of services that are submitted after it."""
    routed = {"matchExpressions": [{"key": "front", "operator": "DoesNotExist"}]}
    old, new = (network(SAME, name="allow", selector=each) for each in (None, routed))

    assert between(applied(NAMESPACE, DENIED, old), applied(NAMESPACE, DENIED, new)).is_safe


@pytest.mark.parametrize("name", list(NETWORKS))
def test_changes_of_network_policies_tell_whom_they_cut_off(name: str) -> None:
    old, new, _ = NETWORKS[name]
    changes = between(applied(NAMESPACE, *old), applied(NAMESPACE, *new))

    assert ("cuts running pods off" in changes.verdicts) == (name in CUT_OFF)


def test_ports_of_a_network_policy_are_told() -> None:
    old, new = ([*at_port(80)], [*at_port(80), *at_port(443)])
    changes = between(*(applied(NAMESPACE, DENIED, network(each, name="a")) for each in (old, new)))

    assert [each.opens for each in changes.resources if each.opens] == [
        (
            "who reaches its pods: [10.0.0.0/8 at TCP 80] -> "
            "[10.0.0.0/8 at TCP 80, 10.0.0.0/8 at TCP 443]",
        )
    ]


def test_pods_that_a_network_policy_selects_as_well_are_told() -> None:
    changes = between(
        *(
            applied(NAMESPACE, DENIED, network(peers(ALL), name="a", selector=each))
            for each in (ETCD, None)
        )
    )

    assert [each.opens for each in changes.resources if each.opens] == [
        ("pods that 0.0.0.0/0 may reach: {matchLabels: {app: etcd}} -> all of the namespace",)
    ]


def test_a_policy_that_goes_opens_the_pods_that_it_alone_selected() -> None:
    old = {"N": manifest(NAMESPACE), "P": manifest(DENIED)}

    assert between(old, {"N": old["N"]}).verdicts == {EXPOSES}
    assert EXPOSES not in between(old, {}).verdicts


def admission(expression: str) -> list[Body]:
    condition = [{"name": "a", "expression": expression}]
    return [
        thing("ValidatingAdmissionPolicy", {"matchConditions": condition}, name="p"),
        thing("ValidatingAdmissionPolicyBinding", {"policyName": "p"}, name="p"),
    ]


def test_an_admission_policy_may_go_with_the_people_whom_it_held() -> None:
    queue = 'groups.exists(group, group.startsWith("ultrascale:access:ultrascale-jobs-queue:"))'
    held = binding("ultrascale:access:ultrascale-jobs-queue:n:q")
    of_all, of_queues = manifest(*admission("true")), manifest(*admission(queue))

    assert between({"P": of_all}, {}).verdicts == {EXPOSES}
    assert between({"P": of_queues}, {}).is_safe
    assert between({"P": of_queues, "M": manifest(held)}, {"M": manifest(held)}).verdicts == {
        EXPOSES
    }


def test_keys_that_tokens_replace_are_told_with_the_tokens_and_the_reverse() -> None:
    issuer = "https://login.example.com/"
    said = [
        "apiKeyAuth: Secret a",
        f"jwt: issuer {issuer}, audiences [models], keys of {issuer}keys",
    ]
    specs = [keys("a"), jwt("models")]

    def settings(old: Body, new: Body) -> tuple[str, ...]:
        changes = between(*(applied(thing("SecurityPolicy", each)) for each in (old, new)))
        (change,) = (each for each in changes.resources if each.opens)
        return change.opens

    for had, has in ((0, 1), (1, 0)):
        assert settings(specs[had], specs[has]) == (f"spec/{said[had]} -> spec/{said[has]}",)
    assert settings(specs[0], {"x": 1}) == ("spec/apiKeyAuth: Secret a -> nothing",)
    assert settings(specs[0], keys("a", "b")) == (
        "spec/apiKeyAuth: Secret a -> Secret a, Secret b",
    )


def test_a_binding_that_some_leave_and_others_join_is_permitted_by_one_name() -> None:
    def world(*people: str) -> dict[str, Body]:
        joined = binding(*people, kind="RoleBinding")
        return applied({**joined, "metadata": {"name": "b", "namespace": "t"}})

    changes = between(world("a"), world("c"))

    (change,) = changes.protected
    assert change.ids[-1] == f"{STACK}/t/b"
    assert changes.verdicts == {EXPOSES, "people lose access"}
    assert changes.permit(f"{STACK}/t/b").is_safe
    # As before objects had their namespace in their name; pipelines may state it.
    assert changes.permit("b").is_safe
    assert changes.permit(f"{STACK}/b").is_safe


def test_objects_of_one_name_in_two_namespaces_are_permitted_one_by_one() -> None:
    def world(**specs: Body) -> dict[str, Body]:
        return applied(*(thing("SecurityPolicy", specs[name], namespace=name) for name in specs))

    changes = between(world(a=keys("a"), b=keys("b")), world(a={"x": 1}, b={"x": 1}))

    assert changes.permit(f"{STACK}/a/o").verdicts == {EXPOSES}
    assert changes.permit("a/o", "b/o").is_safe
    with pytest.raises(QuestionError, match="M is the name of several"):
        changes.permit("M")
