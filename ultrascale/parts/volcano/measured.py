"""Volcano's time to place a gang: measurements, and the costs derived from them.

Volcano 1.15.1 tries a gang with a network topology in every HyperNode of a tier that has room for
it, and keeps the best trial. Each trial places each pod. It finds the HyperNode of a candidate node
by a walk through the nodes of the lowest tier, twice for each candidate.

Sources:
    https://github.com/volcano-sh/volcano/blob/v1.15.1/pkg/scheduler/actions/allocate/allocate.go
    https://github.com/volcano-sh/volcano/blob/v1.15.1/pkg/scheduler/util/scheduler_helper.go
"""

from ultrascale.frozen import Frozen

MEASURED_ON = (
    "Volcano 1.15.1 and kube-scheduler 1.36 against a real API server, November 2026: simulated "
    "trn2 nodes, two processors, seconds from the job's creation to its last bound pod"
)
"""Origin of `MEASURED` and of the costs below."""


class Measured(Frozen):
    """One measurement of a gang's placement by topology."""

    nodes: int  # Nodes of the fleet
    full_percent: int  # Share of these nodes that was busy
    gang: int  # Pods of the gang, one a node
    candidates: int  # Nodes that were scored for a pod
    spread_scored: bool  # Whether `podtopologyspread.weight` was Volcano's default
    seconds: float  # Time to the last bound pod
    groups: int | None  # Groups of the lowest layer that the gang used
    fewest_groups: int | None  # Fewest groups that hold the gang; None where it was not noted


def _measured(
    size: tuple[int, int, int],
    scoring: tuple[int, bool],
    seconds: float,
    groups: tuple[int | None, int | None] = (None, None),
) -> Measured:
    nodes, full, gang = size
    candidates, spread = scoring
    return Measured(
        nodes=nodes,
        full_percent=full,
        gang=gang,
        candidates=candidates,
        spread_scored=spread,
        seconds=seconds,
        groups=groups[0],
        fewest_groups=groups[1],
    )


MEASURED = (
    _measured((1_000, 0, 64), (100, True), 2.1, (4, 2)),
    _measured((1_000, 0, 500), (100, True), 9.3, (22, 19)),
    _measured((5_000, 0, 64), (100, True), 7.2, (3, 2)),
    _measured((5_000, 0, 500), (100, True), 70, (22, 16)),
    _measured((5_000, 50, 64), (100, True), 15),
    _measured((20_000, 0, 64), (100, True), 127, (3, 2)),
    _measured((20_000, 0, 64), (100, False), 56),
    _measured((20_000, 0, 500), (10, False), 78, (20, 16)),
    _measured((20_000, 0, 64), (20, False), 16.5, (4, 2)),
    _measured((20_000, 50, 64), (20, False), 20, (8, 3)),
)
"""See `MEASURED_ON`. All pods of a gang were in as few groups of the next layer as possible."""

MOST_NODES = max(run.nodes for run in MEASURED)
MOST_GANG = max(run.gang for run in MEASURED)
"""Largest fleet, and largest gang, with a measured placement by topology."""

UNAWARE_SECONDS = {64: 3.5, 500: 10.0}
"""Seconds for a gang of so many pods without `networkTopology` on 20,000 nodes, with the plugin on:
15 groups of the lowest layer for 64 pods, 43 for 500.
"""

START_SECONDS = 1.0
SECONDS_A_POD = 0.015
"""Least seconds to create and bind a job, and each of its pods."""

_TRIAL_MS = 1.0
_CANDIDATE_MS = 0.01
_WALK_MS = 10e-6
_SPREAD_MS = 1.2e-3


def placement_seconds(*, nodes: int, candidates: int, spread_scored: bool = False) -> float:
    """Return the seconds to place one pod in one trial.

    Fitted to `MEASURED`: each of its figures is met within a factor of one and a half.

    Args:
        nodes: Nodes of the fleet that HyperNodes hold.
        candidates: Nodes that are scored for the pod.
        spread_scored: Whether the spread of pods is scored, which reads every node.
    """
    spread = _SPREAD_MS * nodes if spread_scored else 0
    return (_TRIAL_MS + _CANDIDATE_MS * candidates + _WALK_MS * candidates * nodes + spread) / 1_000


def too_large(nodes: int) -> str:
    """Return why Volcano cannot place gangs of so large a fleet by topology, with the remedy."""
    return (
        f"{nodes:,} nodes, and Volcano was shown to place gangs by topology on no more than "
        f"{MOST_NODES:,} (a gang of 500 in 78 s, its scoring cut down; the time grows with the "
        "square of the nodes): leave it out, and choose the group of a job yourself, by "
        "node_selector: {topology.k8s.aws/network-node-layer-2: nn-...}"
    )
