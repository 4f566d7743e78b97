"""Lines of `ultrascale destroy`: the plan of a teardown, and its leftovers."""

from collections.abc import Iterable, Iterator
from itertools import chain

from ultrascale.catalog.prices import SEEN
from ultrascale.teardown import Left, Step, Sweep, Teardown
from ultrascale.teardown.prices import REGION


def plan_lines(teardown: Teardown) -> Iterator[str]:
    """Yield the things that go, step by step with each id, and the things that stay."""
    yield f"cluster {teardown.cluster}, {teardown.region}, account {teardown.account}"
    if not teardown.steps:
        yield "nothing of it is there"
    for number, step in enumerate(teardown.steps, start=1):
        yield f"\n{number}. {step.name}: {step.title}"
        yield from _step_lines(step)
    for name in teardown.absent:
        yield f"\n--delete-storage {name}: nothing of that name is there, or no longer"
    if teardown.kept:
        yield "\nstays:"
        yield from _left_lines(teardown.kept)
        yield from _price_lines(teardown.kept)
    for number, step in enumerate(teardown.steps, start=1):
        if step.stops:
            yield f"\nit will stop at step {number}, {step.name}: {step.stops}"
    yield ""


def _step_lines(step: Step) -> Iterator[str]:
    rounds = f" for each of {len(step.waves)} rounds" if len(step.waves) > 1 else ""
    yield f"   up to {step.minutes} minutes{rounds}"
    for target in chain(*step.waves):
        yield f"   - {target.thing}"
        yield from (f"     - {thing}" for thing in target.things if thing != target.thing)
    if step.stops:
        yield "   it will stop here: see the end"


def sweep_lines(found: Sweep) -> Iterator[str]:
    """Yield the leftovers: orphans, kept things, then requests without an answer."""
    yield ""
    orphans = found.orphans
    kept = [thing for thing in found.left if thing.asked]
    nothing = "found" if found.unknown else "left"
    yield "left, although nobody kept it:" if orphans else f"nothing is {nothing} that nobody kept"
    yield from _left_lines(orphans)
    yield from _price_lines(orphans)
    if kept:
        yield "kept:"
        yield from _left_lines(kept)
        yield from _price_lines(kept)
    if found.unknown:
        yield "could not be asked, so that nobody knows what is left of it:"
        yield from (f"   - {question}" for question in found.unknown)


def _left_lines(left: Iterable[Left]) -> Iterator[str]:
    for thing in left:
        price = thing.price or ("price unknown" if thing.paid else "free")
        yield f"   - {thing.thing}: {thing.why}; {price}"
        yield f"     to remove it: {thing.command}"


def _price_lines(left: Iterable[Left]) -> Iterator[str]:
    """Yield the known hourly price of all leftovers together, and the date of the prices."""
    things = tuple(left)
    hourly = sum(thing.usd_per_hour for thing in things)
    unknown = sum(thing.paid and not thing.usd_per_hour for thing in things)
    if hourly:
        more = f"; {unknown} more that are paid for are not in it" if unknown else ""
        yield (
            f"   together at least ${hourly:,.3f} per hour, at prices of {SEEN:%Y-%m-%d} "
            f"and, of other things than instances, of {REGION}{more}"
        )
