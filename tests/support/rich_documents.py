"""A cluster file with each section, and changes of any of its values."""

import copy
from typing import Any, cast

from hypothesis import strategies as st

from tests.support.pools import (
    CAPACITY_BLOCK,
    GOVERNED_POOL,
    GOVERNED_ZONES,
    SYSTEM_POOL,
    governed_document,
    pool_document,
)

VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-1, 70_000) | st.just(10**25),
    st.floats(allow_nan=True),
    st.text(st.characters(codec="utf-8", exclude_categories=["Cs", "Cc"]), max_size=8),
    st.datetimes(),
    st.sampled_from(
        ("trn2.48xlarge", "p6e-gb300.36xlarge", "karpenter", "hyperpod", "auto-mode", "none")
    ),
    st.sampled_from(("0.0.0.0/0", "us-west-2b", "capacity-block", "spot", "all", "1.36", "system")),
    st.lists(st.integers() | st.text(max_size=3), max_size=2),
    st.dictionaries(
        st.sampled_from(["name", "option", "static", "max", "from", "zones"]) | st.integers(),
        st.integers(0, 3) | st.text(max_size=3),
        max_size=2,
    ),
)
RICH = governed_document(
    account="111122223333",
    network={
        "vpc_cidr": "10.0.0.0/16",
        "zones": GOVERNED_ZONES,
        "pod_cidrs": {"count": 2, "from": "100.64.0.0/10"},
    },
    pools=[
        SYSTEM_POOL,
        pool_document(
            purchase=CAPACITY_BLOCK, labels={"team": "a"}, shards=1, zones=["us-east-1b"]
        ),
        GOVERNED_POOL,
    ],
    storage={
        "buckets": ["data"],
        "lustre": [
            {
                "name": "scratch",
                "zone": "us-east-1b",
                "capacity_gib": 19200,
                "throughput_mbps_per_tib": 250,
                "efa": True,
                "s3": {"bucket": "data", "import": ["new"]},
            }
        ],
    },
    jobs={"tune": {"prefer": ["train"], "resources": {"gpu": 8}}},
    scheduling={"rendezvous": {"backend": "etcd", "replicas": 3}},
    observability={"alarms": {"email": "ana@example.com"}},
)


def places(value: object, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the key path of every value in ``value``."""
    return [at, *(place for key, inner in items(value) for place in places(inner, (*at, key)))]


def items(value: object) -> list[tuple[Any, object]]:
    if isinstance(value, dict):
        return list(cast("dict[str, object]", value).items())
    return list(enumerate(cast("list[object]", value))) if isinstance(value, list) else []


def replaced(value: Any, at: tuple[Any, ...], new: object) -> object:
    """Return ``value`` with ``new`` at ``at``."""
    if not at:
        return new
    changed = copy.copy(value)
    changed[at[0]] = replaced(value[at[0]], at[1:], new)
    return changed
