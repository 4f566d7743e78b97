"""Lines and JSON of the changes that a deployment makes."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from ultrascale.frozen import to_document
from ultrascale.guard.model import Action, Change, Changes, PropertyChange, RolledPool, Verdict

_MOST_NAMES = 4
_MOST_PROPERTIES = 5
_MOST_REASONS = 1
_WORST_FIRST: Sequence[Action] = (
    "replaced",
    "deleted",
    "may be replaced",
    "loses protection",
    "kept",
    "updated",
)
_TITLES: Mapping[Action, str] = {
    "replaced": "Replaced, and not protected:",
    "may be replaced": "May be replaced, and not protected:",
    "deleted": "Deleted, and not protected:",
    "kept": "Kept, outside of their stacks, which no command of the CDK's removes any more:",
}


def text_lines(changes: Changes) -> Iterator[str]:
    """Yield the lines about changes, the worst first."""
    yield from _refused_lines(changes)
    yield from _stuck_lines(changes.resources)
    yield from _permitted_lines(changes)
    yield from _nodes([pool for pool in changes.pools if not pool.lost])
    yield from _other_changes(changes)
    if changes.verdicts:
        yield f"Verdict: {', '.join(sorted(changes.verdicts))}"
    yield _verdict(changes)


def _refused_lines(changes: Changes) -> Iterator[str]:
    refused = [change for change in _sorted_changes(changes.resources) if change.protected]
    pools = [pool for pool in changes.pools if pool.protected]
    losing = [change for change in refused if change.lost]
    if losing or pools:
        yield "Protected, and refused:"
    yield from _groups(losing)
    for pool in pools:
        yield from _pool_lines(pool)
    opening = [change for change in refused if not change.lost]
    if opening:
        yield "Opening something, and refused:"
    yield from _groups(opening)


def _stuck_lines(changes: Iterable[Change]) -> Iterator[str]:
    stuck = [
        change for change in changes if change.fails and not change.protected and not change.named
    ]
    if stuck:
        yield "CloudFormation could not do this, and would roll back:"
    for change in stuck:
        yield from _resource(change)


def _permitted_lines(changes: Changes) -> Iterator[str]:
    permitted = [change for change in (*changes.resources, *changes.pools) if change.named]
    if permitted:
        yield "Permitted by --replace:"
    for change in permitted:
        yield from _resource(change) if isinstance(change, Change) else _pool_lines(change)


def as_document(changes: Changes) -> Mapping[str, object]:
    """Return the changes as `diff --json` prints them."""
    return {
        "safe": changes.is_safe,
        "verdicts": sorted(changes.verdicts),
        "protected": [change.ids[-1] for change in changes.protected],
        **to_document(changes),
        "resources": [
            {**to_document(change), "verdict": _verdict_of(change)} for change in changes.resources
        ],
    }


def _verdict_of(change: Change) -> Verdict | None:
    """Return the worst verdict on a change, permitted or not; None without a verdict."""
    if change.lost:
        return change.verdict
    if change.fails:
        return "cannot be deployed"
    return "exposes" if change.opens else None


def _sorted_changes(changes: Iterable[Change]) -> Sequence[Change]:
    """Return changes sorted by their action, causes before their effects."""
    order = (*_WORST_FIRST, "added")
    return sorted(changes, key=lambda change: (order.index(change.action), _is_caused(change)))


def _is_caused(change: Change) -> bool:
    return all(part.why for part in change.properties) and bool(change.properties)


def _resource(change: Change) -> Iterator[str]:
    yield f"  {change.action}: {change.type} {change.name} ({change.stack}/{change.logical_id})"
    telling = [part for part in change.properties if part.effect != "updates"] or change.properties
    for part in telling[:_MOST_PROPERTIES]:
        yield f"      {_property(part)}"
    if len(telling) > _MOST_PROPERTIES:
        yield f"      and {len(telling) - _MOST_PROPERTIES} more, which --json has"
    if change.lost:
        yield f"      {_loss_word(change)}: {change.lost}"
    yield from (f"      exposes: {setting}" for setting in change.opens)
    if change.fails:
        yield f"      fails: {change.fails}"
    if change.instead:
        yield f"      instead: {change.instead}"
    if change.protected:
        yield f"      to go on: --replace {change.ids[-1]}"


def _loss_word(change: Change) -> str:
    """Return the verdict on a loss; `loses` if the text of the loss already states it."""
    nodes_end = change.verdict in ("ends reserved nodes", "ends running nodes")
    return "loses" if nodes_end or change.verdict == "loses data" else change.verdict


def _groups(changes: Sequence[Change]) -> Iterator[str]:
    for group in _equal_changes(changes):
        yield from _resource(group[0]) if len(group) == 1 else _group_lines(group)


def _equal_changes(changes: Sequence[Change]) -> Iterator[Sequence[Change]]:
    """Yield groups of changes with one type and stack, and with equal losses and openings."""
    groups: dict[tuple[str, ...], list[Change]] = {}
    for change in changes:
        alike = (change.stack, change.type, change.action, change.lost, *change.opens)
        groups.setdefault(alike, []).append(change)
    yield from groups.values()


def _group_lines(changes: Sequence[Change]) -> Iterator[str]:
    first = changes[0]
    yield f"  {first.action}: {len(changes)} {first.type} of {first.stack}"
    for change in changes:
        telling = [_property(part) for part in change.properties if part.effect != "updates"]
        more = f" and {len(telling) - 1} more" if len(telling) > 1 else ""
        own = change.ids[-1].partition("/")[2]
        yield f"      {own}{': ' if telling else ''}{''.join(telling[:1])}{more}"
    if first.lost:
        yield f"      {_loss_word(first)}, each: {first.lost}"
    yield from (f"      exposes, each: {setting}" for setting in first.opens)
    reasons = [change.fails for change in changes if change.fails]
    for reason in reasons[:_MOST_REASONS]:
        yield f"      fails: {reason}"
    if len(reasons) > _MOST_REASONS:
        yield f"      fails: {len(reasons) - _MOST_REASONS} more likewise"
    if first.instead:
        yield f"      instead: {first.instead}"
    yield f"      to go on: --replace {first.ids[-1]}, and so for each"


def _property(change: PropertyChange) -> str:
    why = f" ({change.why})" if change.why else ""
    return f"{change.path}: {change.old} -> {change.new}{why}"


def _pool_lines(pool: RolledPool) -> Iterator[str]:
    yield f"  {pool.rolling}: pool {pool.pool} ({pool.stack}), {_size_words(pool)}, {pool.at_once}"
    for reason in pool.why[:_MOST_PROPERTIES]:
        yield f"      {reason}"
    if len(pool.why) > _MOST_PROPERTIES:
        yield f"      and {len(pool.why) - _MOST_PROPERTIES} more, which --json has"
    if pool.lost:
        yield f"      loses: {pool.lost}"
        yield f"      instead: {pool.instead}"
        if not pool.named:
            yield f"      to go on: --replace {pool.stack}/{pool.pool}"


def _size_words(pool: RolledPool) -> str:
    nodes = "nodes of an unknown number" if pool.nodes is None else f"at most {pool.nodes:,} nodes"
    if pool.usd_per_hour is None:
        return f"{nodes} of no known price"
    return f"{nodes}, ${pool.usd_per_hour:,.2f} an hour On-Demand"


def _nodes(pools: Sequence[RolledPool]) -> Iterator[str]:
    if pools:
        yield "Nodes that run:"
    for pool in pools:
        yield from _pool_lines(pool)


def _other_changes(changes: Changes) -> Iterator[str]:
    """Yield the changes that need no decision, a line for each stack and type."""
    quiet = [
        change for change in changes.resources if not (change.lost or change.fails or change.opens)
    ]
    for action, title in _TITLES.items():
        groups: dict[tuple[str, str], list[str]] = {}
        for change in quiet:
            if change.action == action:
                groups.setdefault((change.stack, change.type), []).append(change.name)
        if groups:
            yield title
        for (stack, kind), names in groups.items():
            yield f"  {stack}: {len(names)} {kind} ({_shortened_list(names)})"
    yield from (
        f"{change.action}: {change.name} ({change.stack}): {change.note}"
        for change in changes.resources
        if change.note
    )
    if changes.left_stacks:
        yield (
            "Left behind, running and paid for, as `cdk deploy` removes no stack; "
            "by the file that still has them:"
        )
    for stack in changes.left_stacks:
        yield f"  {stack}: `cdk destroy --exclusively {stack} -c cluster=FILE`"
    if changes.unprotected:
        yield "Termination protection, which `cdk deploy` takes off and a pipeline does not:"
        yield f"  {', '.join(changes.unprotected)}"
    if changes.unread:
        yield f"Not known, as a manifest cannot be read: {', '.join(changes.unread)}"


def _shortened_list(names: Sequence[str]) -> str:
    shown = ", ".join(names[:_MOST_NAMES])
    more = len(names) - _MOST_NAMES
    return f"{shown} and {more} more" if more > 0 else shown


def _verdict(changes: Changes) -> str:
    counts = Counter(change.action for change in changes.resources)
    of_new = len(changes.new_stacks)
    counted = ", ".join(
        f"{counts[action]} {action}" for action in (*_WORST_FIRST, "added") if counts[action]
    )
    told = f"{counted or 'no resource changes'}{f', {of_new} new stacks' if of_new else ''}"
    if changes.is_safe:
        return f"safe: {told}"
    opening = [each for each in changes.protected if isinstance(each, Change) and not each.lost]
    losing = len(changes.protected) - len(opening)
    why = [f"{losing} protected"] if losing or not opening else []
    why += [f"{len(opening)} opening"] if opening else []
    return f"refused: {', '.join(why)}; {told}"
