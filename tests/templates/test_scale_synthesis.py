"""The cost of synthesis: it grows with pools and shards, never with nodes."""

from collections import Counter
from collections.abc import Iterator
from functools import cache
from typing import Any, cast

import msgspec
import yaml

from tests.support.folders import ROOT
from tests.support.kubernetes_schemas import PAYLOAD_LIMIT_BYTES, payload_bytes
from ultrascale import config
from ultrascale.plan.cluster import assemble
from ultrascale.plan.model import ClusterPlan
from ultrascale_k8s import Charts, define_charts

ULTRA: dict[str, Any] = yaml.safe_load((ROOT / "clusters" / "ultra-100k.yaml").read_text())


# Fewer shards than in the file: each costs as much as the next.
SHARDS = {"trn2": 2, "p5en": 1, "graviton": 1}
NODES: dict[str, dict[str, int]] = {
    "trn2": {"static": 12_000},
    "p5en": {"static": 2_000},
    "graviton": {"max": 25_940},
}


@cache
def planned(share: int = 1, more_shards: int = 0) -> ClusterPlan:
    """Plan the largest cluster file with a ``share`` of its nodes, and so many shards more."""
    pools = [
        pool | _smaller(pool["name"], share, more_shards) for pool in map(dict, ULTRA["pools"])
    ]
    document = {key: value for key, value in ULTRA.items() if key != "observability"}
    return assemble(config.loads(yaml.safe_dump(document | {"pools": pools}, sort_keys=False)))


def _smaller(name: str, share: int, more_shards: int) -> dict[str, Any]:
    if name not in NODES:
        return {}
    nodes = {key: count // share for key, count in NODES[name].items()}
    return {"nodes": nodes, "shards": SHARDS[name] + (more_shards if name == "trn2" else 0)}


@cache
def charts(share: int = 1, more_shards: int = 0) -> Charts:
    return define_charts(planned(share, more_shards))


def counted(charts: Charts) -> Counter[str]:
    return Counter(
        f"{chart.name}: {manifest['kind']}" for chart in charts.all for manifest in chart.manifests
    )


def test_twice_the_nodes_are_as_many_objects_and_a_shard_more_is_a_chart_more() -> None:
    more = counted(charts(more_shards=1))
    more.subtract(counted(charts()))

    # Both are in the last row of the table.
    assert counted(charts(2)) == counted(charts())
    # Beside its chart it has the rights of its calendar.
    assert {name for name, count in more.items() if count} == {
        *(f"node-pool-trn2-3: {kind}" for kind in ("EC2NodeClass", "NodeOverlay", "NodePool")),
        *(f"block-calendar-trn2-3: {kind}" for kind in ("ClusterRole", "ClusterRoleBinding")),
    }
    # Each fits into one custom resource.
    for name in ("node-pool-trn2-2", "node-pool-p5en", "node-local-dns"):
        (chart,) = (each for each in charts().all if each.name == name)
        assert payload_bytes([*chart.manifests]) < PAYLOAD_LIMIT_BYTES // 10


def test_twice_the_nodes_are_as_much_to_define() -> None:
    """Stacks define what is in the plan, one construct for each of its parts."""

    def parts(value: object) -> Iterator[str]:
        if isinstance(value, msgspec.Struct):
            yield type(value).__name__
            for field in msgspec.structs.fields(value):
                yield from parts(getattr(value, field.name))
        elif isinstance(value, tuple):
            for item in cast("tuple[object, ...]", value):
                yield from parts(item)

    assert Counter(parts(planned(2))) == Counter(parts(planned()))
