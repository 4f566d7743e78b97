"""Existing file systems: whether the file describes them correctly, and nodes can mount them.

Sources:
    https://docs.aws.amazon.com/fsx/latest/APIReference/API_FileSystem.html
    https://docs.aws.amazon.com/fsx/latest/LustreGuide/limit-access-security-groups.html
    https://docs.aws.amazon.com/fsx/latest/LustreGuide/lustre-client-matrix.html
"""

from collections.abc import Iterator, Sequence
from ipaddress import IPv4Network
from typing import TYPE_CHECKING

from ultrascale.catalog import lustre as fsx
from ultrascale.errors import UnansweredError, unless_gone
from ultrascale.findings import Finding, Issue, State, finding, unknown
from ultrascale.plan.model import ExistingLustrePlan, NetworkPlan
from ultrascale.plan.stacks import stack_of
from ultrascale.preflight.key_state import key_state_issues
from ultrascale.preflight.model import Check, Context
from ultrascale.preflight.network import closed_ranges, prefix_lists

if TYPE_CHECKING:
    from mypy_boto3_ec2.type_defs import IpPermissionOutputTypeDef as Rule
    from mypy_boto3_ec2.type_defs import SecurityGroupTypeDef as Group
    from mypy_boto3_fsx.type_defs import FileSystemTypeDef as FileSystem

_NAME = "existing-file-systems"
_FILE_SYSTEMS, _SUBNETS, _VPCS, _INTERFACES, _GROUPS, _KEY, _CLUSTER = (
    "fsx:DescribeFileSystems",
    "ec2:DescribeSubnets",
    "ec2:DescribeVpcs",
    "ec2:DescribeNetworkInterfaces",
    "ec2:DescribeSecurityGroups",
    "kms:DescribeKey",
    "eks:DescribeCluster",
)
_ABSENT = "FileSystemNotFound"
_NO_CLUSTER = "ResourceNotFoundException"
# A file system is usable after a failed update, but not if it lacks its key or network.
_LIFECYCLES: dict[str, State] = {
    "AVAILABLE": "pass",
    "UPDATING": "pass",
    "CREATING": "warn",
    "MISCONFIGURED": "warn",
}
_STACK_TAG = "tag:aws:cloudformation:stack-name"


def _file_system_findings(context: Context) -> Iterator[Finding]:
    systems = context.plan.storage.existing_lustre
    if not systems:
        return
    vpc_id = _vpc_id(context)
    groups = tuple(_cluster_group(context))
    for plan in systems:
        subject = f"{plan.name} ({plan.file_system_id})"
        if plan.owner not in (None, context.account.id):
            yield finding(_NAME, subject, [_foreign_issue(plan)], fine="")
            continue
        try:
            system = _described_file_system(context, plan)
            wrong = [*_issues(context, plan, system, vpc_id, groups)]
        except UnansweredError as error:
            if error.code != _ABSENT:
                yield unknown(_NAME, subject, error)
                continue
            yield finding(_NAME, subject, [_absent_issue(context, plan)], fine="")
            continue
        yield finding(_NAME, subject, wrong, fine=_pass_evidence(system))


def _described_file_system(context: Context, plan: ExistingLustrePlan) -> "FileSystem":
    client = context.account.client("fsx")
    answer = context.account.ask(client.describe_file_systems, FileSystemIds=[plan.file_system_id])
    (system,) = answer["FileSystems"]
    return system


def _issues(
    context: Context,
    plan: ExistingLustrePlan,
    system: "FileSystem",
    vpc_id: str | None,
    groups: Sequence[str],
) -> Iterator[Issue]:
    yield from description_issues(plan, system)
    yield from _place_issues(context, plan, system, vpc_id)
    yield from _port_issues(context, plan, system, groups)
    if key := system.get("KmsKeyId"):
        yield from _key_issues(context, key)


def _key_issues(context: Context, key: str) -> Iterator[Issue]:
    """Yield the issues of a file system's key: FSx shuts a file system without usable key down."""
    kms = context.account.client("kms")
    try:
        described = context.account.ask(kms.describe_key, KeyId=key)["KeyMetadata"]
    except UnansweredError as error:
        if not error.denied:
            raise
        evidence = f"nobody here may look at its key {key} ({error.reason})"
        fix = "have the key's owner tell whether it is enabled"
        yield Issue(state="warn", evidence=evidence, fix=fix)
        return
    yield from key_state_issues(described)


def description_issues(plan: ExistingLustrePlan, system: "FileSystem") -> Iterator[Issue]:
    """Yield the reasons in FSx's description of a file system why it cannot be mounted.

    Args:
        plan: What the cluster file says of it.
        system: The description.
    """
    kind = system.get("FileSystemType")
    if kind != "LUSTRE":
        evidence = f"FileSystemType is {kind}"
        yield Issue(state="fail", evidence=evidence, fix="name a file system of FSx for Lustre")
        return
    lifecycle = system.get("Lifecycle", "")
    state = _LIFECYCLES.get(lifecycle, "fail")
    if state != "pass":
        details = system.get("FailureDetails", {}).get("Message", "")
        evidence = f"Lifecycle is {lifecycle}{f': {details}' if details else ''}"
        yield Issue(state=state, evidence=evidence, fix="have its owner repair it first")
    configuration = system.get("LustreConfiguration", {})
    stated = (
        ("MountName", configuration.get("MountName"), plan.mount_name, "existing.mount_name"),
        ("DNSName", system.get("DNSName"), plan.dns_name, "region, or the id"),
    )
    for field, value, wanted, key in stated:
        if value is not None and value != wanted:
            evidence = f"{field} is {value}, {wanted} by the file: no pod mounts it"
            yield Issue(state="fail", evidence=evidence, fix=f"correct {key}: {value}")
    version = system.get("FileSystemTypeVersion", "")
    if version in fsx.OLD_VERSIONS:
        yield Issue(
            state=fsx.OLD_VERSIONS[version],
            evidence=f"Lustre {version}: clients of Amazon Linux 2023, Bottlerocket and Auto Mode "
            f"are of {fsx.LUSTRE_VERSION}",
            fix=f"`aws fsx update-file-system --file-system-id {plan.file_system_id} "
            f"--file-system-type-version {fsx.LUSTRE_VERSION}` with all clients unmounted",
        )
    deployment = configuration.get("DeploymentType", "")
    if deployment.startswith("SCRATCH"):
        yield Issue(
            state="warn",
            evidence=f"DeploymentType is {deployment}: it keeps no copies, and the files of a "
            "server that fails are lost",
            fix="keep datasets and checkpoints on a persistent file system or in a bucket",
        )


def _place_issues(
    context: Context, plan: ExistingLustrePlan, system: "FileSystem", vpc_id: str | None
) -> Iterator[Issue]:
    """Yield an issue if a file system is in another VPC or zone than the file says."""
    found = system.get("VpcId", "")
    if vpc_id is None:
        evidence = f"it lies in {found}, and the VPC of the file is not deployed yet"
        fix = f"state the VPC as network.vpc with id: {found}, or make the file system in ours"
        yield Issue(state="fail", evidence=evidence, fix=fix)
    elif found != vpc_id:
        evidence = f"it lies in {found}, the nodes in {vpc_id}"
        fix = f"name a file system of {vpc_id}"
        yield Issue(state="fail", evidence=evidence, fix=fix)
    subnets = context.account.ask(
        context.account.client("ec2").describe_subnets, SubnetIds=system.get("SubnetIds", [])
    )["Subnets"]
    for subnet in subnets:
        zones = (subnet.get("AvailabilityZone", ""), subnet.get("AvailabilityZoneId", ""))
        if plan.zone not in zones:
            evidence = (
                f"it lies in zone {' or '.join(zones)}, by the file in {plan.zone}: each byte "
                "between zones is paid for, and slower"
            )
            yield Issue(state="fail", evidence=evidence, fix=f"correct zone: {zones[0]}")


def _port_issues(
    context: Context, plan: ExistingLustrePlan, system: "FileSystem", groups: Sequence[str]
) -> Iterator[Issue]:
    """Yield an issue for each port that the servers' security group closes to nodes."""
    ec2 = context.account.client("ec2")
    interfaces = context.account.ask(
        ec2.describe_network_interfaces, NetworkInterfaceIds=system.get("NetworkInterfaceIds", [])
    )["NetworkInterfaces"]
    has = {group.get("GroupId", "") for each in interfaces for group in each.get("Groups", [])}
    if plan.security_group not in has:
        told = ", ".join(sorted(has)) or "none"
        evidence = f"its interfaces have {told}, not {plan.security_group}"
        yield Issue(state="fail", evidence=evidence, fix="correct existing.security_group")
        return
    answer = context.account.ask(ec2.describe_security_groups, GroupIds=[plan.security_group])
    for group in answer["SecurityGroups"]:
        yield from group_issues(plan, group, node_ranges(context.plan.network), groups)


def group_issues(
    plan: ExistingLustrePlan,
    group: "Group",
    ranges: Sequence[IPv4Network],
    groups: Sequence[str],
) -> Iterator[Issue]:
    """Yield an issue for each Lustre port that a security group closes, in either direction.

    Args:
        plan: The file system.
        group: The security group of its servers.
        ranges: Subnets of the nodes.
        groups: The cluster's security group, where it is there already.
    """
    sides: tuple[tuple[str, str, Sequence[Rule]], ...] = (
        ("from", "ingress", group.get("IpPermissions", [])),
        ("to", "egress", group.get("IpPermissionsEgress", [])),
    )
    for way, direction, rules in sides:
        shut = [
            (ports, missing)
            for ports in plan.port_ranges
            if (missing := closed_ranges(rules, ports=ports, ranges=ranges, groups=groups))
        ]
        if not shut:
            continue
        lists = prefix_lists(rules)
        words = ", ".join(_ports_text(ports) for ports, _ in shut)
        cidrs = ", ".join(map(str, dict.fromkeys(each for _, some in shut for each in some)))
        doubt = f", unless {', '.join(lists)} holds them" if lists else ""
        commands = (
            f"`aws ec2 authorize-security-group-{direction} --group-id {plan.security_group} "
            f"--protocol tcp --port {_ports_text(ports)} --cidr {cidr}`"
            for ports, some in shut
            for cidr in some
        )
        yield Issue(
            state="warn" if lists else "fail",
            evidence=f"{plan.security_group} does not open TCP {words} {way} {cidrs}{doubt}: "
            "mounts hang",
            fix="have its owner run " + ", ".join(commands),
        )


def node_ranges(network: NetworkPlan) -> tuple[IPv4Network, ...]:
    """Return the address ranges of the nodes' subnets."""
    kinds = ("private", "accelerated")
    subnets = (subnet.cidr for subnet in network.subnets if subnet.kind in kinds)
    return tuple(dict.fromkeys(subnets))


def _ports_text(ports: tuple[int, int]) -> str:
    first, last = ports
    return str(first) if first == last else f"{first}-{last}"


def _vpc_id(context: Context) -> str | None:
    """Return the id of the cluster's VPC; None if our stack has not made it yet."""
    existing = context.plan.network.existing
    if existing is not None:
        return existing.vpc_id
    found = context.account.ask_all(
        context.account.client("ec2").describe_vpcs,
        lambda page: page["Vpcs"],
        Filters=[{"Name": _STACK_TAG, "Values": [stack_of(context.plan.name, "network")]}],
    )
    return next((vpc.get("VpcId") for vpc in found), None)


def _cluster_group(context: Context) -> Iterator[str]:
    """Yield the security group that EKS made for the cluster, if it exists."""
    eks = context.account.client("eks")
    with unless_gone(_NO_CLUSTER):
        answer = context.account.ask(eks.describe_cluster, name=context.plan.name)
        group = answer["cluster"].get("resourcesVpcConfig", {}).get("clusterSecurityGroupId")
        if group is not None:
            yield group


def _foreign_issue(plan: ExistingLustrePlan) -> Issue:
    return Issue(
        state="warn",
        evidence=f"a file system of account {plan.owner}, which shows nobody else its state, zone, "
        "mount name and ports",
        fix=f"have account {plan.owner} compare them: `aws fsx describe-file-systems "
        f"--file-system-ids {plan.file_system_id}`",
    )


def _absent_issue(context: Context, plan: ExistingLustrePlan) -> Issue:
    return Issue(
        state="fail",
        evidence=f"account {context.account.id} has no {plan.file_system_id} in "
        f"{context.plan.region}",
        fix="correct existing.id, or name its account in existing.owner",
    )


def _pass_evidence(system: "FileSystem") -> str:
    configuration = system.get("LustreConfiguration", {})
    return (
        f"{system.get('Lifecycle')}, {configuration.get('DeploymentType')}, Lustre "
        f"{system.get('FileSystemTypeVersion')}, {system.get('StorageCapacity')} GiB; its ports "
        "are open to the nodes"
    )


EXISTING_LUSTRE = Check(
    name=_NAME,
    title="file systems that exist",
    actions=(_FILE_SYSTEMS, _SUBNETS, _VPCS, _INTERFACES, _GROUPS, _KEY, _CLUSTER),
    run=_file_system_findings,
    resources={
        _KEY: "arn:{partition}:kms:{region}:*:key/*",
        _CLUSTER: "arn:{partition}:eks:{region}:{account}:cluster/{cluster}",
    },
)
