"""Judges of resources that running nodes, pods and people use."""

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from ipaddress import IPv4Network, IPv6Network, collapse_addresses, ip_network

from ultrascale.core.table import all_parts
from ultrascale.documents import Json, JsonObject, mapping, objects, sequence, text
from ultrascale.frozen import Frozen
from ultrascale.guard.model import Action, Change, Harm
from ultrascale.guard.objects import Objects
from ultrascale.guard.replacement import Worlds, value_at, version_numbers
from ultrascale.guard.templates import Key, shown, text_of

GOING: Sequence[Action] = ("deleted", "replaced", "may be replaced")
KEEP_NODES = "keep it until the last node that has it is gone, and name it then"
KEEP_PODS = "keep it until the last pod that uses it has ended, and name it then"


class Context(Frozen, kw_only=False):
    """Both sides of a comparison, and the resources that go."""

    worlds: Worlds  # The templates
    applied: tuple[Objects, Objects]  # The objects in the cluster, of both sides
    gone: frozenset[Key]  # Resources that are deleted
    # Resources that refer to each resource of the old side, its own parts left out.
    users: Mapping[Key, frozenset[Key]]

    def old(self, change: Change) -> JsonObject:
        """Return the properties of a resource before."""
        return self.worlds.old.properties((change.stack, change.logical_id))

    def new(self, change: Change) -> JsonObject:
        """Return the properties of a resource after; none where it is gone."""
        if change.logical_id not in self.worlds.new.resources(change.stack):
            return {}
        return self.worlds.new.properties((change.stack, change.logical_id))

    def goes_with_its_users(self, change: Change) -> bool:
        """Return whether all resources that refer to a resource go as well."""
        users = self.users.get((change.stack, change.logical_id), frozenset[Key]())
        return bool(users) and users <= self.gone


Judge = Callable[[Change, Context], "Harm | None"]


def when_it_goes(verdict: Harm) -> Judge:
    """Return the judge of a resource that is in use while another that refers to it stays."""

    def judge(change: Change, context: Context) -> Harm | None:
        if change.action not in GOING or context.goes_with_its_users(change):
            return None
        return verdict

    return judge


def when_it_loses(verdict: Harm, *paths: str) -> Judge:
    """Return the judge of a resource that must keep its lists' members and its true switches."""

    def judge(change: Change, context: Context) -> Harm | None:
        if change.action not in ("updated", *GOING):
            return None
        old, new = context.old(change), context.new(change)
        lost = [path for path in paths if _is_less(value_at(old, path), value_at(new, path))]
        if change.action != "updated" or not lost:
            return None
        parts = ", ".join(f"{path} from {shown(value_at(old, path))}" for path in lost)
        return Harm(
            verdict=verdict.verdict,
            lost=f"{verdict.lost}: {parts}",
            instead=verdict.instead,
        )

    return judge


def _is_less(old: Json, new: Json) -> bool:
    """Return whether a list has lost a member, or a switch is off."""
    if isinstance(old, list):
        kept = [text_of(member) for member in sequence(new)]
        return any(text_of(member) not in kept for member in old)
    return old == "true" != new


def sides(change: Change, context: Context) -> tuple[JsonObject, JsonObject]:
    """Return the properties of a changed resource before and after."""
    return context.old(change), context.new(change)


def program_stops(what: str) -> Harm:
    """Return the loss when a program in the cluster stops."""
    return Harm(
        verdict="outage",
        lost=f"{what}, and what it does for nodes and jobs that run",
        instead="keep it until nothing needs it, and name it then",
    )


def trusted_services(role: JsonObject) -> set[str]:
    """Return the services that may assume a role."""
    services: set[str] = set()
    for statement in objects(role, "AssumeRolePolicyDocument", "Statement"):
        stated = mapping(statement, "Principal").get("Service")
        services |= {text_of(service) for service in sequence(stated) or (stated or "",)}
    return services


def outside(ranges: Iterable[str], others: Iterable[str]) -> list[str]:
    """Return the address ranges that no union of ``others`` contains.

    A range that only the deployed stack knows is contained in an equal range alone.
    """
    others = [*others]
    networks = [network for other in others if (network := _network(other)) is not None]
    # Two halves are collapsed into the whole: whatever lies in the union lies in one of these.
    union = [
        *collapse_addresses(each for each in networks if isinstance(each, IPv4Network)),
        *collapse_addresses(each for each in networks if isinstance(each, IPv6Network)),
    ]
    return [
        addresses
        for addresses in dict.fromkeys(ranges)
        if addresses not in others
        and not any(_lies_in(_network(addresses), block) for block in union)
    ]


def _network(text: str) -> IPv4Network | IPv6Network | None:
    try:
        return ip_network(text, strict=False)
    except ValueError:
        return None


def _lies_in(network: IPv4Network | IPv6Network | None, block: IPv4Network | IPv6Network) -> bool:
    if isinstance(network, IPv4Network) and isinstance(block, IPv4Network):
        return network.subnet_of(block)
    if isinstance(network, IPv6Network) and isinstance(block, IPv6Network):
        return network.subnet_of(block)
    return False


# --- Helm charts that stacks install --------------------------------------------------------------


def chart_goes(change: Change, context: Context) -> Harm | None:
    """Judge a chart whose release the change uninstalls."""
    if change.action not in GOING:
        return None
    return program_stops(f"Helm's release {text(context.old(change), 'Release')}")


def chart_goes_back(change: Change, context: Context) -> Harm | None:
    """Judge an older minor version of a chart: its CRDs may lack fields of the stored objects."""
    versions = (version_numbers(side.get("Version")) for side in sides(change, context))
    before, after = (numbers[:2] for numbers in versions)
    if change.action != "updated" or not after or after >= before:
        return None
    return Harm(
        verdict="cannot be deployed",
        lost="objects that the newer version wrote: the older definitions of their kinds may "
        "refuse them, and its controllers misread them",
        instead="stay with this version, or go back by the steps of its upgrade guide, and name it",
    )


def chart_changes_definitions(change: Change, context: Context) -> Harm | None:
    """Judge a new version of a chart whose CRDs Helm installs only once.

    Source: https://helm.sh/docs/chart_best_practices/custom_resource_definitions/
    """
    before, after = sides(change, context)
    version = text(after, "Version")
    if change.action != "updated" or text(before, "Repository") not in _charts_that_define_once():
        return None
    if not version or version == text(before, "Version"):
        return None
    return Harm(
        verdict="cannot be deployed",
        lost="fields that the other version reads: Helm leaves the definitions of its kinds as "
        "they are",
        instead="bring them first, `helm show crds "
        f"{text(after, 'Repository')} --version {version} | kubectl apply --server-side "
        "--force-conflicts -f -`, and name it then",
    )


def _charts_that_define_once() -> Set[str]:
    """Return the locations of charts with CRDs in their folder `crds`."""
    charts = (chart for part in all_parts() for chart in part.charts)
    # Karpenter's CRDs are a chart of their own.
    return frozenset(chart.location for chart in charts if chart.defines_once)
