"""Notes on an answer: risks before money is spent, and how to get each option."""

import math
from collections.abc import Iterator, Mapping
from datetime import timedelta

from ultrascale import catalog
from ultrascale.catalog import auto_mode, capacity_blocks, matrix, regions, training_plans
from ultrascale.plan.advice.fragment import falls_back, takes_placement_group
from ultrascale.plan.advice.model import Candidate, Code, Judged, Question, Reason, Step
from ultrascale.plan.advice.times import DAY, commitment, may_be_dated, sold_days

Reasons = Iterator[Reason]

_MOST_INSTANCES: Mapping[str, tuple[int, str]] = {
    "capacity-block": (capacity_blocks.MOST_INSTANCES, "blocks"),
    "training-plan": (max(training_plans.SIZES), "training plans"),
}


def warnings_of(question: Question, step: Step, *, first: bool) -> Reasons:
    """Yield the notes on ``step``; ``first`` says that it is the choice."""
    candidate = step.judged.candidate
    for doubt in step.judged.doubts:
        if doubt.code in ("H1", "H2", "H8"):
            live = _live_call(question, step, doubt.code)
            text = f"{doubt.text}, as of a list that may lag; confirm it with a live call: {live}"
            yield Reason(code=doubt.code, text=text)
    yield from _auto_mode_notes(question, candidate)
    yield from _block_notes(question, step)
    yield from _window_notes(question, step)
    if candidate.option == "odcr" and candidate.held is None:
        yield from _reservation_notes(question, candidate, step.nodes)
    if candidate.option == "spot":
        yield from _spot_notes(question, candidate, step.nodes, first=first)
    facts = candidate.facts
    if candidate.option == "on-demand" and facts.is_fixed:
        text = f"{facts.word}'s On-Demand nodes are paid for from the deploy on, with or without"
        text += " work"
        yield Reason(code="cost", text=text)
    if question.placement_group and not takes_placement_group(question, candidate):
        yield from _placement_group_notes(candidate)
    yield from _group_notes(candidate, step.nodes)


def how_to_get(question: Question, judged: Judged, nodes: int) -> Iterator[str]:
    """Yield commands that find or reserve the capacity of a candidate, and whom to ask first."""
    candidate = judged.candidate
    name, zone, region = candidate.instance_types[0], candidate.zones[0], question.region
    if candidate.held is not None:
        yield f"it is there: {candidate.held.name}"
    elif candidate.option in ("capacity-block", "training-plan"):
        # Filter H2 refuses work without an end.
        days = sold_days(candidate.option, question.days or 0)
        zones = "".join(f" --zone {zone}" for zone in question.zones)
        until = f" --until {question.until:%Y-%m-%dT%H:%MZ}" if question.until is not None else ""
        ahead = question.starts > question.at
        starts = f" --starts {question.starts:%Y-%m-%dT%H:%MZ}" if ahead else ""
        yield (
            f"ultrascale capacity --option {candidate.option} --region {region} --type {name} "
            f"--count {nodes} --days {days}{starts}{until}{zones}"
        )
    elif candidate.option == "spot":
        types = " ".join(f"--type {instance_type}" for instance_type in candidate.instance_types)
        yield f"ultrascale capacity --option spot --region {region} {types} --count {nodes}"
    elif candidate.option == "odcr":
        if judged.place.code == "P4":
            yield (
                f"ask your AWS account team for {nodes:,} of {name} in {zone}, and for the rates "
                "of a Savings Plan or a private offer that covers them; then"
            )
        by = "availability-zone-id" if regions.is_zone_id(zone) else "availability-zone"
        dated = (
            f" --delivery-preference incremental --start-date {question.starts:%Y-%m-%dT%H:%M:%SZ}"
            f" --commitment-duration {commitment(question) // timedelta(seconds=1)}"
        )
        yield (
            f"aws ec2 create-capacity-reservation --region {region} --instance-type {name} "
            f"--instance-count {nodes} --{by} {zone} --instance-platform Linux/UNIX "
            "--instance-match-criteria targeted"
            + (dated if may_be_dated(question, candidate, nodes) else "")
        )


def _live_call(question: Question, step: Step, code: Code) -> str:
    """Return the call that shows whether types are sold in a Region; HyperPod has none."""
    if code == "H8":
        return "no API lists HyperPod's types, so look for their quotas in Service Quotas"
    if code == "H2":
        return " ".join(step.get)
    names = ",".join(step.judged.candidate.instance_types)
    return (
        f"aws ec2 describe-instance-type-offerings --region {question.region} --location-type "
        f"availability-zone --filters Name=instance-type,Values={names}"
    )


def _auto_mode_notes(question: Question, candidate: Candidate) -> Reasons:
    days = auto_mode.NODE_DAYS
    longer = question.days is None or question.days > days
    # Filter H5 refuses work that bears no restart.
    if candidate.is_auto_mode and longer and question.tolerance == "checkpoint":
        text = (
            f"EKS Auto Mode replaces each node after {days} days, and the work goes on from its "
            "last checkpoint" + ("; a coupled job stops with the first" if question.coupled else "")
        )
        yield Reason(code="H5", text=text)


def _block_notes(question: Question, step: Step) -> Reasons:
    candidate = step.judged.candidate
    if candidate.option not in _MOST_INSTANCES or candidate.held is not None:
        return
    most, what = _MOST_INSTANCES[candidate.option]
    count = len(step.pools)
    if count > 1:
        text = (
            f"{step.nodes:,} nodes are {count} {what}, of {most} instances at most each: buy all, "
            "or none is of use"
        )
        yield Reason(code="H2", text=text)
    rest = step.nodes % most or most
    if candidate.option == "training-plan" and rest not in training_plans.SIZES:
        sizes = ", ".join(str(size) for size in training_plans.SIZES)
        text = f"AWS's guide names training plans of {sizes} instances: others may not be on offer"
        yield Reason(code="H2", text=text)
    if count > 1 and question.coupled:
        text = (
            f"EFA does not reach from zone to zone, so buy all {what} in one; that they are near "
            "each other in it, AWS does not say"
        )
        yield Reason(code="H10", text=text)


def _window_notes(question: Question, step: Step) -> Reasons:
    candidate, usable = step.judged.candidate, step.usable_hours
    if usable is None or usable.value is None:
        return
    held = candidate.held
    wanted = None if question.days is None else question.days * 24
    if held is not None and (wanted is None or usable.value < wanted):
        text = f"{held.name} is of use for {usable.value:,.1f} hours; the rest is the fallback's"
        yield Reason(code="P1", text=text)
    if held is not None or wanted is None:
        return
    days = sold_days(candidate.option, wanted / 24)
    assert days is not None
    if usable.value < wanted:
        more = sold_days(candidate.option, days + 1)
        longer = f", or take {more} days" if more is not None else ""
        text = (
            f"of {wanted:g} hours {usable.value:,.1f} are of use, as nodes are drained before the "
            f"end: let the work save a checkpoint by then{longer}"
        )
        yield Reason(code="H2", text=text)
    if days * 24 > wanted:
        text = f"sold for {days} days, and paid for as a whole: the work lasts {wanted:g} hours"
        yield Reason(code="H2", text=text)


def _reservation_notes(question: Question, candidate: Candidate, nodes: int) -> Reasons:
    if may_be_dated(question, candidate, nodes):
        days = commitment(question) / DAY
        text = (
            "reserve for the start date, which the API and the console do and CloudFormation does "
            f"not: paid for {days:g} days at least, the term that it commits to; AWS advises to "
            "ask 8 weeks ahead. Deploy its pool once it is active"
        )
        yield Reason(code="H3", text=text)
    elif question.starts > question.at:
        text = (
            "this reservation cannot be dated ahead: it is paid for from the moment it is made, "
            "so make it at the start, and expect it to fail where capacity is short"
        )
        yield Reason(code="H3", text=text)
    if question.workload == "online-inference" and len(question.zones) > 1:
        text = (
            f"all of it is in {candidate.zones[0]}: a service that is to outlive a zone wants a "
            "reservation and a pool in each"
        )
        yield Reason(code="P3", text=text)
    (name,) = candidate.instance_types
    if catalog.lookup(name).for_training:
        text = (
            f"a request for {name} often ends in InsufficientInstanceCapacity: ask your account "
            "team for it before you plan with it"
        )
        yield Reason(code="H3", text=text)


def _spot_notes(question: Question, candidate: Candidate, nodes: int, *, first: bool) -> Reasons:
    if question.coupled and nodes > 1:
        text = "EC2 takes Spot nodes back one by one, and a coupled job stops with the first"
        yield Reason(code="H4", text=text)
    if first and falls_back(question, candidate):
        text = (
            f"nodes.max holds {nodes:,} of Spot and, where Spot is short, {nodes:,} On-Demand: "
            f"work that asks for more than {nodes:,} nodes gets them, at the full price"
        )
        yield Reason(code="P5", text=text)


def _placement_group_notes(candidate: Candidate) -> Reasons:
    if candidate.option == "capacity-block":
        text = "no Capacity Block is in a placement group; its instances are near each other anyway"
    elif not candidate.facts.in_account:
        word = candidate.facts.word
        text = f"{word} places its instances itself, so there is no placement group"
    elif candidate.option == "odcr":
        text = "a placement group takes a reservation only if that was made in it, so there is none"
    else:
        text = "no placement group: it takes types that allow it, of one kind, in one zone"
    yield Reason(code="H7", text=text)


def _group_notes(candidate: Candidate, nodes: int) -> Reasons:
    most = matrix.NODES_PER_MANAGED_NODE_GROUP
    if candidate.is_managed and nodes > most:
        groups = math.ceil(nodes / most)
        text = f"{nodes:,} nodes are {groups} managed node groups of {most} at most: `shards`"
        yield Reason(code="H6", text=text)
