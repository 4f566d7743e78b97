"""Interface endpoints of the VPC: every zone of the file must have the endpoint's service.

A service may lack zones of a Region, and CloudFormation creates no endpoint with a subnet in such a
zone.

Source: https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DescribeVpcEndpointServices.html
"""

from collections.abc import Iterator, Mapping, Set

from ultrascale.account.zones import ACTION as ZONES_ACTION
from ultrascale.account.zones import zones_of
from ultrascale.catalog import regions
from ultrascale.preflight.model import Check, Context, Finding, State

_ACTION = "ec2:DescribeVpcEndpointServices"
_NAME = "endpoints"


def _endpoint_findings(context: Context) -> Iterator[Finding]:
    network, region = context.plan.network, context.plan.region
    services = {f"com.amazonaws.{region}.{name}": name for name in network.interface_endpoints}
    if not services:
        return
    # EC2 refuses a request that names a service which the Region lacks; a filter ignores the name.
    details = context.account.ask_all(
        context.account.client("ec2").describe_vpc_endpoint_services,
        lambda page: page["ServiceDetails"],
        Filters=[{"Name": "service-name", "Values": sorted(services)}],
    )
    there = {
        services[service["ServiceName"]]: frozenset[str](service["AvailabilityZones"])
        for service in details
        if service["ServiceName"] in services
    }
    for name in network.interface_endpoints:
        if name not in there:
            fix = "choose another Region, or list the endpoints to make in network.endpoints.create"
            yield _finding(name, "fail", f"{region} has no endpoint of this service", fix)
    for name, zone in _zone_names(context).items():
        yield _zone_finding(name, zone, there, ours=network.existing is None)


def _zone_names(context: Context) -> Mapping[str, str]:
    """Return the account's names of zones with endpoints; zones that it lacks are left out."""
    wanted = dict.fromkeys(subnet.zone for subnet in context.plan.network.of_kind("private"))
    if not any(map(regions.is_zone_id, wanted)):
        return {name: name for name in wanted}
    known = zones_of(context.account)
    return {name: known[name].name for name in wanted if name in known}


def _zone_finding(name: str, zone: str, there: Mapping[str, Set[str]], *, ours: bool) -> Finding:
    missing = [service for service, offered in there.items() if zone not in offered]
    if not missing:
        return _finding(name, "pass", f"{len(there)} services have endpoints there")
    todo = (
        "leave it out of network.zones"
        if ours
        else "have them made in other zones, and list them in network.endpoints.present"
    )
    fix = f"{todo}: the stack of the network would fail"
    return _finding(name, "fail", f"no endpoint there of {', '.join(missing)}", fix)


def _finding(subject: str, state: State, evidence: str, fix: str | None = None) -> Finding:
    return Finding(check=_NAME, subject=subject, state=state, evidence=evidence, fix=fix)


ENDPOINTS = Check(
    name=_NAME,
    title="AWS has the VPC's interface endpoints in the file's zones",
    actions=(_ACTION, ZONES_ACTION),
    run=_endpoint_findings,
)
