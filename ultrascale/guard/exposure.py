"""Resources whose change lets somebody in, or ends their logs or encryption.

Rights that a role of the cluster gains do not count: they follow from the file's settings.
"""

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from typing import NamedTuple

from msgspec.structs import replace

from ultrascale.documents import Json, JsonObject, look_up, objects, parse_json, sequence, text
from ultrascale.guard.access import widened_entries
from ultrascale.guard.iam import ANYONE, ROLE, Permission, is_same, permissions, permissions_beyond
from ultrascale.guard.in_use import public_ranges
from ultrascale.guard.judging import outside
from ultrascale.guard.model import Change, PropertyChange
from ultrascale.guard.openings import (
    Opening,
    becomes,
    is_no_longer,
    is_unset,
    loses_a_member,
    opening_at,
    opening_text,
)
from ultrascale.guard.replacement import Worlds, change_of, value_at
from ultrascale.guard.templates import Key, World, count, references, shown, text_of

_BALANCER = "AWS::ElasticLoadBalancingV2::LoadBalancer"
_INTERNET = "internet-facing"
# Source: https://www.rfc-editor.org/rfc/rfc6890 (private and shared addresses)
_PRIVATE = ["10.0.0.0/8", "100.64.0.0/10", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7"]
_GROUP = "AWS::EC2::SecurityGroup"
_FLOW_LOG = "AWS::EC2::FlowLog"
_INGRESS = "AWS::EC2::SecurityGroupIngress"
_SOURCES = ("CidrIp", "CidrIpv6", "SourcePrefixListId", "SourceSecurityGroupId")
_LAST_PORT = 65535
_ANY_PROTOCOL = "-1"
# A principal of this product is a reference to a role of the stacks.
_OWN = "AWS <"
_SERVICE = "Service "
_OWN_ACCOUNT = "AWS <AWS::"
# Conditions that hold everybody to one account, as in key policies.
_OF_ACCOUNT = ("aws:principalaccount", "aws:sourceaccount", "kms:calleraccount")


def _public_endpoint(old: JsonObject, new: JsonObject) -> Iterator[str]:
    before, after = public_ranges(old), public_ranges(new)
    if outside(after, before):
        yield opening_text("ranges of the public endpoint", [*before] or None, [*after])


def _network_policies(old: JsonObject, new: JsonObject) -> Iterator[str]:
    """Yield the end of the enforcement of network policies by the VPC CNI."""
    before, after = (
        _read(value_at(side, "ConfigurationValues"), "enableNetworkPolicy") for side in (old, new)
    )
    if is_no_longer("true", "True")(before, after):
        yield opening_text("ConfigurationValues/enableNetworkPolicy", before, after)


def _read(document: Json, key: str) -> Json:
    try:
        return text_of(look_up(parse_json(text_of(document or "{}")), key))
    except json.JSONDecodeError:
        return None


def _policy(path: str, *, of_services: bool = False) -> Opening:
    """Return the opening of a resource policy that allows other accounts more, or denies them less.

    Args:
        path: The policy's path.
        of_services: Whether AWS services may use the resource, as alarms use a topic and its key:
            services then do not count as others.
    """

    def opening(old: JsonObject, new: JsonObject) -> Iterator[str]:
        before, after = ([*permissions(value_at(side, path))] for side in (old, new))
        known = {each.principal for each in before}
        gained = [
            each
            for each in permissions_beyond(after, before)
            if each.effect == "Allow"
            and _is_of_others(each, known)
            and not (of_services and each.principal.startswith(_SERVICE))
        ]
        free = [each for each in permissions_beyond(before, after) if each.effect == "Deny"]
        # In words: two policies that let somebody in are never one decision.
        if gained:
            yield f"let in by {path}: nothing -> {_principals_with_actions(gained)}"
        if free:
            yield f"denied by {path}: {_principals_with_actions(free)} -> nothing"

    return opening


def _is_another(before: Json, after: Json) -> bool:
    return before is not None and not is_same(text_of(before), text_of(after))


def _is_of_others(permission: Permission, known: Collection[str]) -> bool:
    """Return whether somebody besides the cluster's own roles has a permission.

    A service that the policy names already does not count: it acts for one more resource.
    """
    principal = permission.principal
    if principal == ANYONE:
        return not any(
            test.is_positive and test.key in _OF_ACCOUNT for test in permission.condition
        )
    if principal.startswith("AWS "):
        return not principal.startswith(_OWN) or principal.startswith(_OWN_ACCOUNT)
    return not principal.startswith(_SERVICE) or principal not in known


def _principals_with_actions(several: Iterable[Permission]) -> str:
    """Return in words all principals and their actions, the principal `ANYONE` first."""
    actions: dict[str, dict[str, None]] = {}
    for each in several:
        actions.setdefault(each.principal, {})[each.action] = None
    anyone_first = sorted(actions, key=lambda principal: principal != ANYONE)
    return "; ".join(f"{each} ({shown(', '.join(actions[each]))})" for each in anyone_first)


def _switches(path: str, *names: str) -> tuple[Opening, ...]:
    return tuple(opening_at(f"{path}/{name}", is_no_longer("true")) for name in names)


_ENCRYPTION = "BucketEncryption/ServerSideEncryptionConfiguration/*/ServerSideEncryptionByDefault"
_LAUNCHED = "LaunchTemplateData"

# Openings of each type by a change of a resource that stays.
_OPENINGS: Mapping[str, Sequence[Opening]] = {
    "AWS::EC2::LaunchTemplate": (
        opening_at(f"{_LAUNCHED}/MetadataOptions/HttpTokens", is_no_longer("required")),
        opening_at(f"{_LAUNCHED}/BlockDeviceMappings/*/Ebs/KmsKeyId", is_unset),
    ),
    "AWS::EC2::Subnet": (opening_at("MapPublicIpOnLaunch", becomes("true")),),
    "AWS::ECR::RegistryPolicy": (_policy("PolicyText"),),
    "AWS::ECR::Repository": (_policy("RepositoryPolicyText"),),
    "AWS::EKS::Addon": (_network_policies,),
    "AWS::EKS::Cluster": (
        _public_endpoint,
        opening_at("Logging/ClusterLogging/EnabledTypes", loses_a_member),
        opening_at("EncryptionConfig", is_unset),
    ),
    "AWS::ElasticLoadBalancingV2::Listener": (
        opening_at("Protocol", is_no_longer("HTTPS", "TLS")),
        opening_at("Certificates", is_unset),
    ),
    _BALANCER: (opening_at("Scheme", becomes(_INTERNET)),),
    "AWS::KMS::Key": (_policy("KeyPolicy", of_services=True),),
    "AWS::Logs::LogGroup": (opening_at("KmsKeyId", is_unset),),
    "AWS::RDS::DBCluster": (
        opening_at("PubliclyAccessible", becomes("true")),
        opening_at("StorageEncrypted", is_no_longer("true")),
    ),
    "AWS::RDS::DBClusterParameterGroup": (
        opening_at("Parameters/rds.force_ssl", is_no_longer("1")),
    ),
    "AWS::RDS::DBInstance": (
        opening_at("PubliclyAccessible", becomes("true")),
        opening_at("StorageEncrypted", is_no_longer("true")),
    ),
    "AWS::RDS::DBParameterGroup": (opening_at("Parameters/rds.force_ssl", is_no_longer("1")),),
    "AWS::S3::Bucket": (
        *_switches(
            "PublicAccessBlockConfiguration",
            "BlockPublicAcls",
            "BlockPublicPolicy",
            "IgnorePublicAcls",
            "RestrictPublicBuckets",
        ),
        opening_at(f"{_ENCRYPTION}/KMSMasterKeyID", is_unset),
        opening_at(f"{_ENCRYPTION}/SSEAlgorithm", is_unset),
    ),
    "AWS::SNS::Topic": (opening_at("KmsMasterKeyId", is_unset),),
    "AWS::SQS::Queue": (
        opening_at("KmsMasterKeyId", is_unset),
        opening_at("SqsManagedSseEnabled", is_no_longer("true")),
    ),
    ROLE: (opening_at("PermissionsBoundary", _is_another), _policy("AssumeRolePolicyDocument")),
}
OPENING_TYPES = frozenset(_OPENINGS)
"""Types of which a resource that stays may open access by a change."""
# Policies that are resources of their own, with the property that names their subject.
_POLICIES_OF: Mapping[str, str] = {
    "AWS::S3::BucketPolicy": "Bucket",
    "AWS::SNS::TopicPolicy": "Topics",
    "AWS::SQS::QueuePolicy": "Queues",
}
_USED_BY_SERVICES = ("AWS::SNS::TopicPolicy", "AWS::SQS::QueuePolicy")


def with_exposure(changes: Iterable[Change], worlds: Worlds, made: Set[str]) -> Iterator[Change]:
    """Yield ``changes``, each with its openings.

    Args:
        changes: Changes of resources.
        worlds: Both sides.
        made: Namespaces that the change makes: still empty, so that nobody reaches anything there.
    """
    all_changes = {(change.stack, change.logical_id): change for change in changes}
    standing = {*worlds.standing()}
    opened: dict[Key, list[str]] = {}
    for key, change in all_changes.items():
        opened.setdefault(key, []).extend(_openings_of_change(key, change, worlds, standing))
    for key, setting in (*widened_entries(worlds, made), *_widened_groups(worlds)):
        opened.setdefault(key, []).append(setting)
    for key, settings in opened.items():
        change = all_changes.get(key) or change_of(key, worlds.new, "updated")
        yield replace(change, opens=tuple(settings)) if settings else change


def _openings_of_change(
    key: Key, change: Change, worlds: Worlds, standing: set[Key]
) -> Iterator[str]:
    if change.stack not in worlds.old.templates:
        return
    there, stays = (key[1] in side.resources(key[0]) for side in (worlds.old, worlds.new))
    old: JsonObject = worlds.old.properties(key) if there else {}
    new: JsonObject = worlds.new.properties(key) if stays else {}
    if there and stays:
        for opening in _OPENINGS.get(change.type, ()):
            yield from opening(old, new)
    if not there and change.type == _BALANCER:
        yield opening_text("Scheme", None, new.get("Scheme"))
    owner = _POLICIES_OF.get(change.type, "")
    if owner and {each.resource for each in references((old or new).get(owner))} & standing:
        of_services = change.type in _USED_BY_SERVICES
        yield from _policy("PolicyDocument", of_services=of_services)(old, new)
    if change.type == _FLOW_LOG and change.action == "deleted":
        later = worlds.new.resources(change.stack).values()
        if not any(body["Type"] == _FLOW_LOG for body in later):
            yield from _unwatched(old.get("ResourceId"), standing)


def _unwatched(watched: Json, standing: set[Key]) -> Iterator[str]:
    """Yield that nothing logs the flows of what a deleted flow log watched, if that stays."""
    if {reference.resource for reference in references(watched)} & standing:
        yield opening_text(f"flow logs of {shown(watched)}", "kept", None)


def as_decisions(changes: Iterable[Change]) -> Iterator[Change]:
    """Yield ``changes``, with equal openings of many resources merged into one change.

    One key of a cluster file changes all roles, or all log groups: that is one decision.

    Args:
        changes: Changes of resources and of objects.
    """
    all_changes = list(changes)
    alike: dict[tuple[str, str], list[Change]] = {}
    for change in all_changes:
        for setting in change.opens:
            alike.setdefault((change.type, setting), []).append(change)
    shared = {each for each, several in alike.items() if len(several) > 1 and _is_path(each[1])}
    for change in all_changes:
        opens = tuple(each for each in change.opens if (change.type, each) not in shared)
        yield replace(change, opens=opens)
    for kind, setting in (each for each in alike if each in shared):
        path, _, values = setting.partition(": ")
        before, _, after = values.partition(" -> ")
        several = alike[kind, setting]
        name = f"{kind.rpartition('::')[2]}.{path.rpartition('/')[2]}"
        yield Change(
            stack=several[0].stack,
            logical_id=name,
            type=kind,
            name=name,
            action="updated",
            properties=tuple(
                PropertyChange(
                    path=f"{change.ids[-1]}/{path}", old=before, new=after, effect="updates"
                )
                for change in several
            ),
            opens=(setting,),
        )


def _is_path(setting: str) -> bool:
    """Return whether a setting is the path of a property, rather than words about one resource."""
    return " " not in setting.partition(": ")[0]


class _Rule(NamedTuple):
    """Traffic that a security group lets in from one range of addresses."""

    holder: Key  # The resource that has the rule
    protocol: str  # Its protocol; -1: any
    first: int  # Its first port
    last: int  # Its last port
    source: str  # The range


def _widened_groups(worlds: Worlds) -> Iterator[tuple[Key, str]]:
    """Yield the resources whose rules open an earlier security group to more addresses."""
    old, new = _ingress(worlds.old), _ingress(worlds.new)
    made = outside(_vpc_ranges(worlds.new), _vpc_ranges(worlds.old))
    inside = _groups_turned_internal(worlds)
    for group, rules in new.items():
        if not _was_there(group, worlds.old):
            continue
        opened: dict[tuple[Key, str], list[_Rule]] = {}
        for rule in rules:
            known = [
                other.source
                for other in old.get(group, ())
                if _covers_ports(other, rule) or _is_closed(other, rules)
            ]
            own = [*_vpc_ranges(worlds.new)] or _PRIVATE if group in inside else made
            if outside([rule.source], [*known, *own]):
                opened.setdefault((rule.holder, _ports(rule)), []).append(rule)
        for (holder, ports), wider in opened.items():
            before = [
                other.source for other in old.get(group, ()) if _covers_ports(other, wider[0])
            ]
            after = [rule.source for rule in wider]
            kept = [each for each in before if each in {rule.source for rule in rules}]
            yield holder, opening_text(f"sources of {ports}", before or None, [*kept, *after])


def _is_closed(former: _Rule, rules: Iterable[_Rule]) -> bool:
    """Return whether no rule covers the ports of ``former``, as after a listener moved."""
    return not any(_covers_ports(rule, former) for rule in rules)


def _groups_turned_internal(worlds: Worlds) -> set[str]:
    """Return the security groups whose load balancers the change takes off the internet."""
    before, after = (_balancer_schemes(side) for side in (worlds.old, worlds.new))
    return {
        group
        for group, schemes in after.items()
        if schemes == {"internal"} and before.get(group) == {_INTERNET}
    }


def _balancer_schemes(world: World) -> Mapping[str, set[str]]:
    """Return the schemes of the load balancers behind each security group."""
    schemes: dict[str, set[str]] = {}
    for stack in world.templates:
        for logical_id, body in world.resources(stack).items():
            if body["Type"] == _BALANCER:
                values = world.properties((stack, logical_id))
                for group in map(text_of, sequence(values, "SecurityGroups")):
                    schemes.setdefault(group, set()).add(text(values, "Scheme") or _INTERNET)
    return schemes


def _ingress(world: World) -> Mapping[str, Sequence[_Rule]]:
    """Return each security group's ingress rules, without rules between groups of the stacks."""
    rules: dict[str, list[_Rule]] = {}
    for stack in world.templates:
        for logical_id, body in world.resources(stack).items():
            key = (stack, logical_id)
            if body["Type"] == _GROUP:
                values = world.properties(key)
                name = f"<{stack}.{logical_id}.GroupId>"
                stated = objects(values, "SecurityGroupIngress")
            elif body["Type"] == _INGRESS:
                name, stated = (
                    text_of(world.properties(key).get("GroupId")),
                    [world.properties(key)],
                )
            else:
                continue
            rules.setdefault(name, []).extend(rule for each in stated for rule in _rules(each, key))
    return rules


def _rules(stated: JsonObject, holder: Key) -> Iterator[_Rule]:
    protocol = text(stated, "IpProtocol")
    first, last = (count(stated.get(port)) for port in ("FromPort", "ToPort"))
    if protocol == _ANY_PROTOCOL or first is None or last is None:
        first, last = 0, _LAST_PORT
    for path in _SOURCES:
        # A source group of the stacks admits nobody from outside.
        if path in stated and not any(True for _ in references(stated[path])):
            yield _Rule(holder, protocol, first, last, text_of(stated[path]))


def _was_there(group: str, old: World) -> bool:
    stack, _, rest = group.strip("<>").partition(".")
    return not group.startswith("<") or rest.partition(".")[0] in old.resources(stack)


def _covers_ports(other: _Rule, rule: _Rule) -> bool:
    """Return whether ``other`` covers the protocol and ports of ``rule``, whatever its source."""
    same = other.protocol in (_ANY_PROTOCOL, rule.protocol)
    return same and other.first <= rule.first and rule.last <= other.last


def _ports(rule: _Rule) -> str:
    if rule.protocol == _ANY_PROTOCOL:
        return "any traffic"
    ports = f"{rule.first}" if rule.first == rule.last else f"{rule.first} to {rule.last}"
    return f"{rule.protocol} {ports}"


def _vpc_ranges(world: World) -> Iterator[str]:
    for stack in world.templates:
        for logical_id, body in world.resources(stack).items():
            if body["Type"] in ("AWS::EC2::VPC", "AWS::EC2::VPCCidrBlock"):
                yield text_of(world.properties((stack, logical_id)).get("CidrBlock"))
