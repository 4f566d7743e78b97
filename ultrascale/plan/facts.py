"""Facts of the catalog that age: their sources and expiry, and the facts that a plan rests on.

Nothing of it enters templates or manifests: the same file gives the same bytes on any day.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import date

import msgspec
from msgspec.structs import replace

from ultrascale.catalog import addons, lives, tables, versions
from ultrascale.catalog.advisories import image_contents
from ultrascale.catalog.prices import Price, PriceList, catalog_prices
from ultrascale.frozen import Frozen
from ultrascale.plan.model import ClusterPlan
from ultrascale.plan.needs.pools import prices_as_bought
from ultrascale.plan.needs.standing import plan_items

# Fields of a plan that name versions; its parts and pools have names of their own.
_FIELDS = ("control_plane", "nodes", "storage", "images", "devices", "services")
_OF_IMAGES = {"vllm": ("<services>", '"server":"vllm"'), "ray": ('"kind":"ray"',)}


class Fact(Frozen):
    """A fact that ages."""

    kind: str  # Its kind, as in `lives.csv`
    name: str  # Its name among its kind
    value: str  # The value that the product counts with
    source: str  # Page that states it
    seen: date  # Day of the page, or of its reading
    expires: date  # First day on which it is no longer trusted
    used_by: tuple[str, ...] = ()  # Parts and pools of a plan that rest on it

    def has_expired(self, day: date) -> bool:
        """Return whether it is past its life on ``day``."""
        return self.expires <= day


def all_facts() -> tuple[Fact, ...]:
    """Return all facts of the catalog that age."""
    return (
        *(fact for fact, _ in _marked()),
        *map(_of_source, tables.sources().values()),
        *map(_of_price, catalog_prices()),
    )


def facts_of(plan: ClusterPlan, price_list: PriceList | None = None) -> tuple[Fact, ...]:
    """Return the facts that age and that a plan rests on, with their users.

    A fact that the file records takes the place of the catalog's.

    Args:
        plan: The cluster.
        price_list: Prices; None takes the catalog's.
    """
    texts, known = _texts(plan), price_list or catalog_prices()
    users: dict[Fact, list[str]] = {
        fact: [user for user, text in texts.items() if all(mark in text for mark in marks)]
        for fact, marks in _marked()
    }
    for pool in plan.all_pools:
        facts = [_of_price(price) for price in prices_as_bought(pool, plan.region, known)]
        for key in sorted({key for t in pool.instance_types for key in tables.sources_of_type(t)}):
            facts.append(_of_source(tables.sources()[key]))
        for fact in facts:
            users.setdefault(fact, []).append(f"pools.{pool.name}")
    for item in plan_items(plan, (), known):
        price = known.find(plan.region, item.service, item.item)
        if price is not None and item.kind == "baseline":
            users.setdefault(_of_price(price), []).append(item.name)
    recorded = recorded_facts(plan)
    replaced = {(fact.kind, fact.name) for fact in recorded}
    return (
        *recorded,
        *(
            replace(fact, used_by=tuple(named))
            for fact, named in users.items()
            if named and (fact.kind, fact.name) not in replaced
        ),
    )


def recorded_facts(plan: ClusterPlan) -> tuple[Fact, ...]:
    """Return the facts that the file of a plan records of its account."""
    return tuple(
        replace(
            _fact(row.kind, row.of, "recorded", "facts of the file", row.seen, ends=row.ends),
            used_by=("facts",),
        )
        for row in plan.recorded
    )


def _texts(plan: ClusterPlan) -> Mapping[str, str]:
    """Return the JSON of each pool, part and field of a plan, with marks in ``<>``."""
    named: list[tuple[str, object]] = [
        ("cluster", plan.region),
        *((name, getattr(plan, name)) for name in _FIELDS),
        *((type(part).__module__.split(".")[2], part) for part in plan.parts),
        *((f"pools.{pool.name}", pool) for pool in plan.all_pools),
    ]
    encode = msgspec.json.Encoder(enc_hook=str).encode
    texts: dict[str, str] = {}
    # A field and a part may have the same name.
    for name, value in named:
        marks = f"<kubernetes-{plan.control_plane.version}> <{name}>"
        texts[name] = f"{texts.get(name, '')}{marks} {encode(value).decode()}"
    return texts


def _marked() -> Iterator[tuple[Fact, Sequence[str]]]:
    """Yield facts with their marks: where a text has all of them, its plan rests on the fact."""
    for image in versions.images().values():
        name = image.repository.rpartition("/")[2]
        yield (
            _fact("image", image.name, image.tag, image.source, image.seen),
            (f"/{name}:{image.tag}",),
        )
    for chart in versions.charts().values():
        yield (
            _fact("chart", chart.name, chart.version, chart.source, chart.seen),
            (f'"{chart.version}"',),
        )
    for minor, release in versions.ami_releases().items():
        marks = ("<pools.", f'"{release.version}"')
        yield _fact("ami-release", minor, release.version, release.source, release.seen), marks
    for addon in addons.known_addons().values():
        for minor, pin in addon.versions.items():
            named = f'"name":"{addon.name}","version":"{pin.version}"'
            fact = _fact("addon-build", f"{addon.name} {minor}", pin.version, pin.source, pin.seen)
            yield fact, (f"<kubernetes-{minor}>", named)
    for row in image_contents():
        value = f"{row.package} {row.version}"
        yield (
            _fact("image-contents", f"{row.repository}:{row.tag}", value, row.source, row.seen),
            _OF_IMAGES[row.package],
        )
    for row in lives.readings():
        yield _fact(row.kind, row.name, row.value, row.source, row.seen, row.ends), row.marks


def _fact(
    kind: str, name: str, value: str, source: str, seen: date, ends: date | None = None
) -> Fact:
    expires = lives.expiry(kind, seen, name=name, ends=ends)
    return Fact(kind=kind, name=name, value=value, source=source, seen=seen, expires=expires)


def _of_source(source: tables.Source) -> Fact:
    title = source.title if source.date else f"{source.title} (undated, day of its reading)"
    return _fact("source", source.key, title, source.url, source.seen)


def _of_price(price: Price) -> Fact:
    kind = "spot-price" if price.service == "ec2-spot" else "price"
    name = f"{price.region} {price.service} {price.item}"
    value = f"{price.price:g} {price.currency}/{price.unit}"
    return _fact(kind, name, value, price.source, price.valid_on)
