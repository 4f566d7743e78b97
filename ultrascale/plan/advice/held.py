"""Held capacity: paid for already, in the user's words."""

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta

from ultrascale import catalog
from ultrascale.catalog.matrix import PurchaseOption
from ultrascale.plan import capacity
from ultrascale.plan.advice.model import Held, Question
from ultrascale.plan.advice.times import DAY, Wrong, read_time

FORM = "id=cr-…,type=p5.48xlarge,zone=us-west-2b,count=16,starts=TIME,ends=TIME"
"""Syntax of the option. The ARN of a training plan is an id as well; an ODCR needs no times.

A reservation that ends all the same says ``option=odcr``, or it is taken for a Capacity Block.
"""

_OPTION = "held"
_NEEDED = ("id", "type", "zone", "count")
_TIMES = ("starts", "ends")
_KINDS: tuple[PurchaseOption, ...] = ("odcr", "capacity-block")
_RESERVATION = re.compile(r"cr-(?:[0-9a-f]{8}|[0-9a-f]{17})")
_PLAN = re.compile(
    r"arn:aws[a-z-]*:sagemaker:[a-z0-9-]+:[0-9]{12}:training-plan/[A-Za-z0-9-]{1,64}"
)


def read_held(given: Sequence[str], wrong: Wrong) -> Iterator[Held]:
    """Yield held capacity; ``wrong`` notes unreadable text."""
    seen: set[str] = set()
    for text in given:
        pairs = (part.partition("=") for part in text.split(",") if part)
        fields = {key: value for key, _, value in pairs}
        held = _read(text, fields, wrong)
        if held is not None and held.name in seen:
            wrong(_OPTION, "one reservation twice", held.name, "say each once")
        elif held is not None:
            seen.add(held.name)
            yield held


def _read(text: str, fields: Mapping[str, str], wrong: Wrong) -> Held | None:
    unknown = sorted(fields.keys() - {*_NEEDED, *_TIMES, "option"})
    missing = [key for key in _NEEDED if not fields.get(key)]
    if unknown or missing:
        what = f"no {', '.join(missing)}" if missing else f"unknown key {', '.join(unknown)}"
        wrong(_OPTION, what, text, f"write {FORM}")
        return None
    name, count, kind = fields["id"], fields["count"], fields["type"].removeprefix("ml.")
    if kind not in catalog.INSTANCE_TYPES:
        wrong(_OPTION, "an unknown instance type", kind, catalog.suggest(kind))
        return None
    starts, ends = (read_time(_OPTION, fields.get(key), wrong) for key in _TIMES)
    if not re.fullmatch(r"[1-9][0-9]{0,5}", count):
        wrong(_OPTION, "no number of instances", count, "write count=16")
        return None
    option = _option(name, fields.get("option"), ends)
    if option is None:
        todo = "write the id of a reservation, cr-…, or the ARN of a training plan"
        wrong(_OPTION, "neither a reservation nor a training plan", name, todo)
        return None
    if option != "odcr" and (starts is None or ends is None or starts >= ends):
        wrong(_OPTION, "no window", text, "write starts=TIME,ends=TIME as the purchase says")
        return None
    return Held(
        option=option,
        name=name,
        instance_type=kind,
        zone=fields["zone"],
        count=int(count),
        starts=starts,
        ends=ends,
    )


def _option(name: str, said: str | None, ends: datetime | None) -> PurchaseOption | None:
    if _PLAN.fullmatch(name) and said in (None, "training-plan"):
        return "training-plan"
    if not _RESERVATION.fullmatch(name):
        return None
    if said is None:
        return "odcr" if ends is None else "capacity-block"
    return next((kind for kind in _KINDS if kind == said), None)


def usable_until(held: Held) -> datetime | None:
    """Return when the nodes of held capacity are drained; None where it does not end."""
    starts, ends = held.starts, held.ends
    if starts is None or ends is None or held.option == "odcr":
        return ends
    if held.option == "training-plan":
        return capacity.training_plan_window(starts, ends).usable_until
    return capacity.block_window((held.instance_type,), starts, ends).usable_until


def lost_time(question: Question, held: Held) -> timedelta:
    """Return the part of held capacity that is over when the work starts."""
    starts = held.starts
    return max(question.starts - starts, timedelta(0)) if starts is not None else timedelta(0)


def lasts(question: Question, held: Held) -> bool:
    """Return whether held capacity lasts as long as the work runs."""
    if held.ends is None:
        return True
    begins = question.starts if held.starts is None else max(held.starts, question.starts)
    return question.days is not None and held.ends - begins >= question.days * DAY
