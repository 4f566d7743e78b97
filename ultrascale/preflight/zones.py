"""Zones of the cluster file: the account has them, and subnets are allowed in them.

Source: https://docs.aws.amazon.com/eks/latest/userguide/network-reqs.html (zones without EKS
control planes)
"""

from collections.abc import Iterator

from ultrascale.account.zones import ACTION, Zones, zones_of
from ultrascale.catalog import regions
from ultrascale.preflight.model import Check, Context, Finding, State

_NAME = "zones"
_ZONE = "availability-zone"


def _zone_findings(context: Context) -> Iterator[Finding]:
    zones, network = zones_of(context.account), context.plan.network
    for name in dict.fromkeys(subnet.zone for subnet in network.subnets):
        controls = any(subnet.zone == name for subnet in network.of_kind("control-plane"))
        yield zone_finding(name, zones, context.plan.region, controls=controls)


def zone_finding(name: str, zones: Zones, region: str, *, controls: bool = True) -> Finding:
    """Return the finding whether a zone allows subnets, including the control plane's.

    Args:
        name: Name or id of the zone in the cluster file.
        zones: Zones of the account, by name and by id.
        region: The Region.
        controls: Whether the control plane has a subnet there.
    """
    zone = zones.get(name)
    if zone is None:
        there = sorted({str(other) for other in zones.values() if other.kind == _ZONE})
        fix = f"name a zone of this account: {', '.join(there)}"
        return _finding(name, "fail", f"the account has no zone {name} in {region}", fix)
    if controls and (zone.id in regions.ZONES_WITHOUT_CONTROL_PLANE or zone.kind != _ZONE):
        why = "EKS takes no subnet of it for a control plane"
        fix = "put no control-plane subnet there; each of network.zones gets one"
        return _finding(name, "fail", f"{zone}, of kind {zone.kind}: {why}", fix)
    if not zone.opted_in:
        command = (
            f"aws ec2 modify-availability-zone-group --group-name {zone.group} "
            f"--opt-in-status opted-in --region {region}"
        )
        return _finding(name, "fail", f"the account has not opted in to {zone}", f"`{command}`")
    if zone.state != "available":
        fix = "read the AWS Health dashboard before you deploy there"
        return _finding(name, "warn", f"{zone} is {zone.state}", fix)
    return _finding(name, "pass", str(zone))


def _finding(name: str, state: State, evidence: str, fix: str | None = None) -> Finding:
    return Finding(check=_NAME, subject=name, state=state, evidence=evidence, fix=fix)


ZONES = Check(
    name=_NAME, title="the account has the file's zones", actions=(ACTION,), run=_zone_findings
)
