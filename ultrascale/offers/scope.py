"""Scope of a request: the requests to AWS, and remarks on requests that are not sent."""

from collections.abc import Iterator, Sequence

from ultrascale import catalog
from ultrascale.catalog import capacity_blocks, regions, spot, training_plans
from ultrascale.offers.model import Option, Request
from ultrascale.offers.request import FOR_POOLS
from ultrascale.offers.sizes import size_remark, sizes

_NAMES: dict[Option, str] = {"capacity-block": "Capacity Blocks", "training-plan": "training plans"}
_FEW_TYPES = (
    f"Spot placement scores of fewer than {spot.TYPES_FOR_A_SCORE} instance types are always low; "
    f"AWS scores the best {spot.SCORED_ZONES} zones only"
)


def reservable(request: Request, instance_type: str) -> frozenset[Option]:
    """Return the purchase options of reserved capacity to request for one type.

    Args:
        request: The request.
        instance_type: EC2 name.
    """
    if request.days is None:
        return frozenset()
    options = _options_on_sale(instance_type) & set(request.options)
    return options - {"capacity-block"} if _is_above_limit(request) else options


def remarks(requests: Sequence[Request]) -> tuple[str, ...]:
    """Return remarks: the requests that are not sent, with reasons, and the sizes on sale."""
    lines = [
        line
        for request in requests
        for line in (*_unasked_remarks(request), *_size_remarks(request))
    ]
    for option, name in _NAMES.items():
        without = dict.fromkeys(
            instance_type
            for request in requests
            for instance_type in request.instance_types
            if option in request.options and option not in _options_on_sale(instance_type)
        )
        if without:
            lines.append(f"no {name} are sold of {', '.join(without)}")
    if any(
        "spot" in request.options and len(request.instance_types) < spot.TYPES_FOR_A_SCORE
        for request in requests
    ):
        lines.append(_FEW_TYPES)
    return tuple(dict.fromkeys(lines))


def warnings(request: Request) -> Iterator[str]:
    """Yield a warning for each type that the catalog does not list in a Region."""
    planned = request.options == ("training-plan",)
    where = "for HyperPod" if planned else "On-Demand"
    for region in request.regions:
        for name in request.instance_types:
            if regions.offered(name, region, by="sagemaker" if planned else "ec2") is False:
                yield (
                    f"{name} is not listed {where} in {region}; AWS is asked nevertheless, for the "
                    "list ages and knows no blocks and plans"
                )


def _options_on_sale(instance_type: str) -> frozenset[Option]:
    spec = catalog.lookup(instance_type)
    options: set[Option] = set()
    # Without a source, AWS is asked.
    if not spec.knows("capacity_block") or spec.capacity_block:
        options.add("capacity-block")
    if spec.training_plan:
        options.add("training-plan")
    return frozenset(options)


def _is_above_limit(request: Request) -> bool:
    return request.count > capacity_blocks.MOST_TOGETHER


def _unasked_remarks(request: Request) -> Iterator[str]:
    where = "" if request.pool is None else f"{request.pool}: "
    if not request.options:
        yield f"{where}nothing is asked for: {FOR_POOLS}"
    wanted = {option for name in request.instance_types for option in _options_on_sale(name)}
    wanted &= set(request.options)
    if wanted and request.days is None:
        names = " and ".join(name for option, name in _NAMES.items() if option in wanted)
        yield f"{where}{names} are not asked for: add --days"
    elif "capacity-block" in wanted and _is_above_limit(request):
        yield (
            f"{where}{request.count:,} nodes are more than the {capacity_blocks.MOST_TOGETHER} "
            "that an account may have in Capacity Blocks at a time, which are not asked for: ask "
            "your account team, or add a smaller --count"
        )


def _size_remarks(request: Request) -> Iterator[str]:
    for name in request.instance_types:
        options = reservable(request, name)
        pieces = size_remark(name, request.count) if options else None
        if pieces is not None:
            yield pieces
        for size in sizes(name, request.count) if "training-plan" in options else ():
            if size.ultraserver is None and size.count not in training_plans.SIZES:
                sold = ", ".join(str(count) for count in training_plans.SIZES)
                yield (
                    f"training plans are of {sold} nodes by AWS's guide; {size.count} may never be "
                    "on offer"
                )
