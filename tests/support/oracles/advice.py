"""A second statement of the adviser's rules, from AWS's pages, to compare answers with.

Nothing of the adviser's own filters and ranks is used here: what they get wrong shows.
"""

from collections.abc import Iterator
from datetime import timedelta
from itertools import product

from msgspec.structs import replace

from ultrascale.catalog import matrix, regions
from ultrascale.catalog.provisioners import PROVISIONERS, Provisioner
from ultrascale.plan.advice import Candidate, Question

# Of the types and Regions that the tests ask for.
_UNKNOWN_HARDWARE = {"p6e-gb200.36xlarge", "trn3.48xlarge"}
_WITHOUT_EFA = {"g6.xlarge", "c7i.8xlarge", "m7g.8xlarge", "inf2.48xlarge"}
_NO_HYPERPOD = {"trn3.48xlarge", "c7i.8xlarge"}
_ON_ARM = {"m7g.8xlarge"}
_BLOCKS = {"p5.48xlarge", "p5.4xlarge", "p5e.48xlarge", "trn1.32xlarge", "trn2.3xlarge"}
_PLANS = _BLOCKS - {"trn2.3xlarge"}
_BLOCK_REGIONS = {"us-west-2", "us-east-1"}
_HYPERPOD_REGIONS = {"us-west-2", "us-east-1"}
_WINDOWS = ("capacity-block", "training-plan")
_LAUNCHED = ("on-demand", "spot")


def ways(ask: Question) -> Iterator[Candidate]:
    """Yield every way to have the nodes."""
    for held, by in product(ask.held, PROVISIONERS):
        way = _way(held.option, by, (held.instance_type,), (held.zone,))
        yield replace(way, held=held)
    for option, by in product(matrix.PURCHASE_OPTIONS, PROVISIONERS):
        for name in ask.instance_types:
            yield _way(option, by, (name,), ask.zones[:1])
        if option in _LAUNCHED and len({_hardware(name) for name in ask.instance_types}) == 1:
            yield _way(option, by, ask.instance_types, ask.zones)


def _way(
    option: matrix.PurchaseOption,
    provisioner: Provisioner,
    types: tuple[str, ...],
    zones: tuple[str, ...],
) -> Candidate:
    return Candidate(option=option, provisioner=provisioner, instance_types=types, zones=zones)


def allowed(ask: Question, way: Candidate) -> bool:
    """Return whether no filter speaks against a way."""
    return (
        _HELD[way.held is not None](ask, way)
        and not _UNKNOWN_HARDWARE & {*way.instance_types}
        and _option_allowed(ask, way)
        and _provisioner_allowed(ask, way)
        and _coupling_allowed(ask, way)
    )


def place(ask: Question, way: Candidate) -> tuple[bool, int]:
    """Return what a way is sorted by: whether a list lacks it, then the order of preference."""
    return _unlisted(ask, way), 1 if way.held is not None else _place(ask, way)


def _place(ask: Question, way: Candidate) -> int:
    scarce = way.instance_types[0].startswith(("p", "trn"))
    signed = ask.commitment != "none"
    year = signed if ask.days is None else ask.days >= 365
    worth = ask.utilisation >= 0.28
    later = ask.starts > ask.at
    if way.option in _WINDOWS:
        return 8 if ask.tolerance == "stateless" else 2
    if way.option == "spot":
        flexible = len(ask.instance_types) > 1 or len(ask.zones) > 1
        return 5 if flexible and not (ask.coupled and ask.nodes > 8) else 7
    if way.option == "on-demand":
        return 6
    if scarce:
        return 4 if year and worth else 3 if ask.workload == "online-inference" else 8
    dated = later and ask.tolerance != "stateless"
    steady = ask.days is None and signed and worth
    return 3 if ask.workload == "online-inference" or dated or steady else 8


def _held_fits(ask: Question, way: Candidate) -> bool:
    held = way.held
    assert held is not None
    drained = held.ends and held.ends - timedelta(minutes=40)
    return (
        held.instance_type in ask.instance_types
        and held.zone in ask.zones
        and (drained is None or drained > ask.starts)
        and not (ask.coupled and held.count < ask.nodes)
    )


def _bought_fits(ask: Question, way: Candidate) -> bool:
    if way.option not in _WINDOWS:
        return True
    (name,) = way.instance_types
    sold = name in (_BLOCKS if way.option == "capacity-block" else _PLANS)
    few = ask.nodes <= 256 or way.option == "training-plan"
    ends = ask.days is not None and ask.days <= 182
    return sold and few and ends and ask.starts - ask.at <= timedelta(weeks=8)


_HELD = {True: _held_fits, False: _bought_fits}


def _option_allowed(ask: Question, way: Candidate) -> bool:
    if way.option == "spot":
        groups = way.provisioner in ("managed-node-group", "self-managed")
        return ask.tolerance != "none" and not (groups and len(way.instance_types) < 3)
    return True


def _provisioner_allowed(ask: Question, way: Candidate) -> bool:
    on_hyperpod = way.provisioner == "hyperpod"
    if on_hyperpod != (way.option == "training-plan") and way.option != "on-demand":
        return False
    if on_hyperpod:
        known = not _NO_HYPERPOD & {*way.instance_types} and ask.region in _HYPERPOD_REGIONS
        return ask.kubernetes_version != "1.36" and known and ask.image != "bottlerocket"
    if way.provisioner == "auto-mode":
        restarts = ask.tolerance != "none" or (ask.days is not None and ask.days <= 21)
        return restarts and ask.image != "al2023"
    return ask.image != "bottlerocket"


def _coupling_allowed(ask: Question, way: Candidate) -> bool:
    spread = len(way.instance_types) > 1 or len(way.zones) > 1
    return not ask.coupled or not (spread or _WITHOUT_EFA & {*way.instance_types})


def _unlisted(ask: Question, way: Candidate) -> bool:
    if way.held is not None:
        return False
    if way.option == "capacity-block":
        only_elsewhere = way.instance_types == ("trn2.3xlarge",)
        return ask.region not in _BLOCK_REGIONS or only_elsewhere
    hyperpod = way.provisioner == "hyperpod"
    return any(
        regions.offered(name, ask.region, by="sagemaker" if hyperpod else "ec2") is False
        or regions.listed_nowhere(name, by="sagemaker" if hyperpod else "ec2")
        for name in way.instance_types
    )


def _hardware(name: str) -> tuple[str, bool]:
    neuron = name.startswith(("trn", "inf"))
    kind = "neuron" if neuron else "nvidia" if name[0] in "pg" else "none"
    return kind, name in _ON_ARM
