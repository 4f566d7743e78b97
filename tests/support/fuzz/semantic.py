"""Random clusters over the whole pool matrix, with keys that hardly a file combines."""

import copy
from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Any

from tests.support.cluster_keys import DOCUMENTS
from tests.support.fuzz.keys import Place, Schema, at, file_schema, missing, options, put
from tests.support.fuzz.values import matching, value_of
from tests.support.rich_documents import RICH
from ultrascale.catalog.instance_types import INSTANCE_TYPES
from ultrascale.catalog.matrix import MATRIX

Refused = Callable[[Any], Mapping[Place, Sequence[str]]]
"""Returns the places in a file that are refused, and the values that are offered there."""

# A file that is refused still after so many repairs is left as it is.
_MOST_REPAIRS = 25


def random_document(random: Random) -> dict[str, Any]:
    """Return a cluster file with pools of random cells of the matrix, and random keys."""
    document = copy.deepcopy(random.choice((*DOCUMENTS.values(), RICH)))
    pools: list[dict[str, Any]] = document["pools"]
    system = [pool for pool in pools if pool["name"] == "system"]
    if random.random() < 0.5:
        document["pools"] = pools = [*system, *random.sample(pools, random.randint(0, len(pools)))]
    for number in range(random.choice((0, 1, 1, 2, 3))):
        pools.append(_pool(f"fuzz{number}", document, random))
    for _ in range(random.choice((1, 2, 4, 8, 16))):
        absent = [*missing(file_schema(), document)]
        place, schemas = random.choice(absent)
        put(document, place, value_of({"anyOf": schemas}, place, random))
    return document


def repaired(document: Any, refused: Refused, schema: Schema, random: Random) -> Any:
    """Return ``document`` with what its refusals offer, and without the other refused keys."""
    document = copy.deepcopy(document)
    for _ in range(_MOST_REPAIRS):
        wrong = refused(document)
        if not wrong:
            break
        absent = dict(missing(schema, document))
        # The last first, so that numbers of items stay right.
        for place in sorted(wrong, key=str, reverse=True):
            offered = wrong[place]
            if place in absent:
                value = value_of({"anyOf": absent[place]}, place, random)
                put(document, place, random.choice(offered) if offered else value)
            else:
                _drop(document, place)
    return document


def _drop(document: Any, place: Place) -> None:
    """Remove what stands at ``place``, or what is nearest above it."""
    for length in range(len(place), 0, -1):
        try:
            parent = at(document, place[: length - 1])
            del parent[place[length - 1]]
        except (KeyError, IndexError, TypeError):
            continue
        return


def _pool(name: str, document: dict[str, Any], random: Random) -> dict[str, Any]:
    cell = random.choice([each for each in MATRIX.values() if each.works])
    (pool,) = options(file_schema()["properties"]["pools"]["items"])
    purchases = {
        each["properties"]["option"]["const"]: each
        for each in options(pool["properties"]["purchase"])
    }
    purchase: dict[str, Any] = value_of(purchases[cell.option], ("purchase", cell.option), random)
    if purchase.get("option", cell.option) != cell.option:
        purchase = {"option": cell.option}
    for key, inner in purchases[cell.option]["properties"].items():
        if key in purchases[cell.option].get("required", ()):
            purchase.setdefault(key, value_of(inner, ("purchase", key), random))
    if cell.names_reservation_by and not purchase.keys() & {*cell.names_reservation_by}:
        key = random.choice(cell.names_reservation_by)
        purchase[key] = value_of(
            purchases[cell.option]["properties"][key], ("purchase", key), random
        )
    purchase["option"] = cell.option
    types = random.sample([*INSTANCE_TYPES], random.choice((1, 1, 1, 2, cell.fewest_types)))
    count = random.choice((1, 2, 7, 40, 500, 3_000))
    nodes = random.choice(({"max": count}, {"static": count}, {"min": 1, "max": count}))
    zones: list[str] = document["network"].get("zones") or [matching("[a-c]", random)]
    return {
        "name": name,
        "instance_types": types,
        "provisioner": cell.provisioner,
        "purchase": purchase,
        "nodes": nodes,
        "zones": random.sample(zones, 1),
    }
