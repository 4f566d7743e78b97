"""Plans the pools of a candidate, in the smallest cluster file around them."""

import re
from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from ultrascale import config, yaml_writer
from ultrascale.catalog import eks
from ultrascale.errors import CatalogError
from ultrascale.frozen import Frozen
from ultrascale.plan.advice.fragment import Entry, document, most_nodes
from ultrascale.plan.advice.model import Question, Reason
from ultrascale.plan.cluster import assemble
from ultrascale.plan.mistakes import all_mistakes
from ultrascale.plan.model import ClusterNeeds
from ultrascale.plan.needs.report import plan_needs
from ultrascale.plan.network.addresses import address_check
from ultrascale.plan.network.demand import demands

# The system pool holds the controllers, which grow with the nodes.
_SYSTEM_TYPES = ("m7g.2xlarge", "m7g.8xlarge", "m8g.24xlarge")
# A VPC has its own range and 49 more, once its quota is raised.
_POD_BLOCKS = (1, 2, 4, 8, 16, 31, 49)
_ADDRESSES_OF_A_BLOCK = 2**16
# Its own addresses and those of a prefix or two.
_ADDRESSES_OF_A_NODE = 2 * eks.ADDRESSES_PER_PREFIX
_POOL = re.compile(r"\bpools\[([^]]+)\]")
_SYSTEM_POOL = ("pools", 0)
_POD_RANGES = ("network", "pod_cidrs")


class Trial(Frozen):
    """Verdict on pools that were tried."""

    refused: tuple[Reason, ...] = ()  # Mistakes that `check` reports; empty where it takes them
    # Their needs, without the system pool's; None where they are refused.
    needs: ClusterNeeds | None = None
    document: Entry | None = None  # The cluster file around them; None where they are refused
    # Warnings of `check` that no filter gives already.
    warnings: tuple[Reason, ...] = ()

    @property
    def reasons_beyond_limits(self) -> tuple[Reason, ...]:
        """Reasons against pools with needs above the limits that AWS publishes."""
        quotas = self.needs.quotas if self.needs is not None else ()
        return tuple(
            Reason(
                code="H9",
                text=f"{need.name} ({need.code}): {need.needed.value:,.0f} needed, and AWS "
                f"publishes {need.most:,} as the most that it grants; {need.advice}",
            )
            for need in quotas
            if need.state == "beyond"
        )

    @property
    def control_plane(self) -> tuple[Reason, ...]:
        """Reasons to raise the control plane's tier above the cluster file's."""
        advice = self.needs.control_plane.advice if self.needs is not None else None
        return (Reason(code="H9", text=f"control plane: {advice}"),) if advice else ()


def attempt(question: Question, pools: Sequence[Entry]) -> Trial:
    """Return the verdict on ``pools`` in the smallest cluster file around them."""
    system, blocks = 0, _blocks_for(pools)
    while True:
        file = document(
            question, pools, system_type=_SYSTEM_TYPES[system], pod_blocks=_POD_BLOCKS[blocks]
        )
        text = yaml_writer.dump(file)
        reading = config.reads(text, source="")
        cluster, mistakes = reading.cluster, reading.in_order(all_mistakes(reading))
        if cluster is None or mistakes:
            of_system_pool = any(mistake.at[:2] == _SYSTEM_POOL for mistake in mistakes)
            of_ranges = any(mistake.at[:2] == _POD_RANGES for mistake in mistakes)
            if of_system_pool and system + 1 < len(_SYSTEM_TYPES):
                system += 1
            elif cluster and of_ranges and blocks + 1 < len(_POD_BLOCKS):
                blocks = _next_blocks(cluster, blocks)
            else:
                return Trial(refused=tuple(_reason(mistake, reading) for mistake in mistakes))
            continue
        try:
            plan = assemble(cluster)
        except CatalogError as error:
            return Trial(refused=(Reason(code="check", text=str(error)),))
        # The needs of the system pool are the cluster's, not the answer's.
        needs = plan_needs(replace(plan, system_pools=()))
        return Trial(needs=needs, document=file, warnings=tuple(_warnings(cluster)))


def _warnings(cluster: config.Cluster) -> Iterator[Reason]:
    for warning in config.remarks(cluster, "warning"):
        if warning.at[0] == "pools" and not _is_said(warning.at):
            line = f"{config.named(cluster, warning.at)}: {warning.text}"
            yield Reason(code="check", text=_POOL.sub(r"\1", line))


def _is_said(at: config.KeyPath) -> bool:
    """Return whether filter H1, H8, H5 or H4 has the warning on the choice already.

    The key for notices of a window's end belongs to the whole file.
    """
    return (
        at[-1] == "purchase"
        or at[-2:] in (("purchase", "ends"), ("purchase", "option"))
        or at[-2] == "instance_types"
    )


def _blocks_for(pools: Sequence[Entry]) -> int:
    """Return the first number of ranges to try: a search from one takes long for many nodes."""
    nodes = sum(most_nodes(pool) for pool in pools)
    enough = (
        number
        for number, count in enumerate(_POD_BLOCKS)
        if count * _ADDRESSES_OF_A_BLOCK >= nodes * _ADDRESSES_OF_A_NODE
    )
    return next(enough, len(_POD_BLOCKS) - 1)


def _next_blocks(cluster: config.Cluster, blocks: int) -> int:
    """Return the place in `_POD_BLOCKS` of the least number of ranges that hold the nodes."""
    network = cluster.network
    check = address_check(network)
    needed = check.enough_blocks([*demands(cluster.pools, network)]) if check else None
    enough = [number for number, count in enumerate(_POD_BLOCKS) if count >= (needed or 0)]
    return max(blocks + 1, enough[0] if enough else len(_POD_BLOCKS) - 1)


def _reason(mistake: config.Mistake, reading: config.Reading) -> Reason:
    """Return a line of `check` as a reason: a network that is too small is filter H9's."""
    code = "H9" if mistake.at[:1] == ("network",) else "check"
    return Reason(code=code, text=mistake.line(reading.document))
