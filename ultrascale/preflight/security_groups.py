"""Rules of security groups: the address ranges that they allow on a port."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from ipaddress import IPv4Network, collapse_addresses
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mypy_boto3_ec2.type_defs import IpPermissionOutputTypeDef as Rule

_TCP, _ALL = "tcp", "-1"


def closed_ranges(
    rules: "Iterable[Rule]",
    *,
    ports: tuple[int, int],
    ranges: Sequence[IPv4Network],
    groups: Collection[str] = (),
) -> tuple[IPv4Network, ...]:
    """Return, for each port, the ranges that the TCP rules of one direction do not allow.

    Several rules may open parts of a range, and some of the ports.

    Args:
        rules: The rules.
        ports: First and last port.
        ranges: Addresses of the other side.
        groups: Security groups of all addresses on the other side; a rule for one of
            them lets all of them through.
    """
    rules = [rule for rule in rules if rule.get("IpProtocol") in (_TCP, _ALL)]
    first, last = ports
    shut: set[IPv4Network] = set()
    for port in range(first, last + 1):
        here = [rule for rule in rules if _has_port(rule, port)]
        named = {pair.get("GroupId") for rule in here for pair in rule.get("UserIdGroupPairs", [])}
        if named & set(groups):
            continue
        opened = [*collapse_addresses(_ranges(here))]
        shut |= {each for each in ranges if not any(each.subnet_of(range_) for range_ in opened)}
    return tuple(each for each in ranges if each in shut)


def prefix_lists(rules: "Iterable[Rule]") -> tuple[str, ...]:
    """Return the prefix lists that rules name; the rules do not contain their addresses."""
    names = (
        each.get("PrefixListId", "") for rule in rules for each in rule.get("PrefixListIds", [])
    )
    return tuple(dict.fromkeys(names))


def _has_port(rule: "Rule", port: int) -> bool:
    if rule.get("IpProtocol") == _ALL:
        return True
    return rule.get("FromPort", -1) <= port <= rule.get("ToPort", -1)


def _ranges(rules: "Iterable[Rule]") -> Iterator[IPv4Network]:
    for rule in rules:
        for each in rule.get("IpRanges", []):
            if cidr := each.get("CidrIp"):
                yield IPv4Network(cidr, strict=False)
