"""Facts of the catalog that age: their sources and expiry, and the facts that a plan rests on.

Nothing of it enters templates or manifests: the same file gives the same bytes on any day.
"""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import date
from itertools import groupby

import msgspec
from msgspec.structs import replace

from ultrascale.catalog import addons, eks, lives, tables, upgrades, versions
from ultrascale.catalog.advisories import advisories, image_contents
from ultrascale.catalog.instance_types import INSTANCE_TYPES, OFFER_SOURCES
from ultrascale.catalog.prices import Price, PriceList, catalog_prices
from ultrascale.frozen import Frozen
from ultrascale.plan.model import ClusterPlan
from ultrascale.plan.needs.pools import prices_as_bought
from ultrascale.plan.needs.standing import plan_items

_CLUSTER = "cluster"
_VLLM = '"server":"vllm"'
# Fields of a plan that name versions; its parts and pools have names of their own.
_FIELDS = ("control_plane", "nodes", "storage", "images", "devices", "services")
# Columns of `offers.csv`, with the mark of the pools that rest on them.
_OFFERED = {
    "ec2_regions": "",
    "hyperpod": '"provisioner":"hyperpod"',
    "hyperpod_regions": '"provisioner":"hyperpod"',
    "capacity_block_regions": '"purchase":"capacity-block"',
    "training_plan": '"purchase":"training-plan"',
    "karpenter": '"provisioner":"karpenter"',
    "auto_mode": '"provisioner":"auto-mode"',
}


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


# A fact and its marks: whatever of a plan holds all of the first and one of the others rests on it.
_Marked = tuple[Fact, Sequence[str], Collection[str]]


def all_facts() -> tuple[Fact, ...]:
    """Return all facts of the catalog that age."""
    prices = (_of_price(price) for price in catalog_prices())
    return (*(fact for fact, _, _ in _marked(INSTANCE_TYPES)), *prices)


def facts_of(plan: ClusterPlan, price_list: PriceList | None = None) -> tuple[Fact, ...]:
    """Return the facts that age and that a plan rests on, with their users.

    Args:
        plan: The cluster.
        price_list: Prices; None takes the catalog's.
    """
    texts = _texts(plan)
    types = {name for pool in plan.all_pools for name in pool.instance_types}
    used: list[Fact] = []
    for fact, every, some in _marked(types):
        users = tuple(
            user
            for user, text in texts.items()
            if all(mark in text for mark in every)
            and (not some or any(mark in text for mark in some))
        )
        if users:
            used.append(replace(fact, used_by=users))
    return (*used, *_prices(plan, price_list or catalog_prices()))


def _prices(plan: ClusterPlan, known: PriceList) -> Iterator[Fact]:
    users: dict[Price, list[str]] = {}
    for pool in plan.all_pools:
        for price in prices_as_bought(pool, plan.region, known):
            users.setdefault(price, []).append(f"pools.{pool.name}")
    for item in plan_items(plan, (), known):
        price = known.find(plan.region, item.service, item.item)
        if price is not None and item.kind == "baseline":
            users.setdefault(price, []).append(item.name)
    for price, names in users.items():
        yield replace(_of_price(price), used_by=tuple(names))


def _of_price(price: Price) -> Fact:
    kind = "spot-price" if price.service == "ec2-spot" else "price"
    name = f"{price.region} {price.service} {price.item}"
    value = f"{price.price:g} {price.currency}/{price.unit}"
    return _fact(kind, name, value, price.source, price.valid_on)


def expired_by_kind(facts: Sequence[Fact], day: date) -> Iterator[tuple[str, Sequence[Fact]]]:
    """Yield the kinds with expired facts, with these facts, the first to expire first."""
    expired = [fact for fact in facts if fact.has_expired(day)]
    expired.sort(key=lambda fact: (fact.kind, fact.expires, fact.name))
    for kind, members in groupby(expired, key=lambda fact: fact.kind):
        yield kind, tuple(members)


def _texts(plan: ClusterPlan) -> Mapping[str, str]:
    """Return the JSON of each pool, part and field of a plan, with marks of the cluster."""
    cluster = f'"{plan.region}" "kubernetes {plan.control_plane.version}" '
    named: list[tuple[str, object]] = [
        *((name, getattr(plan, name)) for name in _FIELDS),
        *((type(part).__module__.split(".")[2], part) for part in plan.parts),
        *((f"pools.{pool.name}", pool) for pool in plan.all_pools),
    ]
    texts = {_CLUSTER: f"{cluster}<{_CLUSTER}>"}
    encode = msgspec.json.Encoder(enc_hook=str).encode
    # A field and a part may have the same name.
    for name, value in named:
        texts[name] = f"{texts.get(name, cluster)}<{name}> {encode(value).decode()}"
    return texts


def _fact(
    kind: str, name: str, value: object, source: str, seen: date, *, ends: date | None = None
) -> Fact:
    expires = lives.expiry(kind, seen, name=name, ends=ends)
    return Fact(kind=kind, name=name, value=f"{value}", source=source, seen=seen, expires=expires)


def _marked(types: Collection[str]) -> Iterator[_Marked]:
    """Yield all facts but prices with their marks; of sources, those that ``types`` cite."""
    for image in versions.images().values():
        name = image.repository.rpartition("/")[2]
        fact = _fact("image", image.name, image.tag, image.source, image.seen)
        yield fact, (f"/{name}:{image.tag}",), ()
    for chart in versions.charts().values():
        pinned = chart.version
        fact = _fact("chart", chart.name, pinned, chart.source, chart.seen)
        some = (f"/{chart.name}:{pinned}", f"/{chart.name}:v{pinned}", f'"{pinned}"')
        yield fact, (), some
    for minor, release in versions.ami_releases().items():
        fact = _fact("ami-release", minor, release.version, release.source, release.seen)
        yield fact, ('"ami_release"', f'"{release.version}"'), ()
    for addon in addons.known_addons().values():
        for minor, pin in addon.versions.items():
            name = f"{addon.name} {minor}"
            fact = _fact("addon-build", name, pin.version, pin.source, pin.seen)
            named = f'"name":"{addon.name}","version":"{pin.version}"'
            yield fact, (f'"kubernetes {minor}"', named), ()
    yield from _of_versions()
    yield from _of_services()
    yield from _of_types(types)


def _of_versions() -> Iterator[_Marked]:
    support, tiers = lives.readings()["end-of-support"], lives.readings()["tier"]
    for minor, end in upgrades.STANDARD_SUPPORT_ENDS.items():
        fact = _fact("end-of-support", minor, end, support.source, support.seen, ends=end)
        yield fact, (f'"kubernetes {minor}"', f"<{_CLUSTER}>"), ()
    for tier, limits in eks.TIER_LIMITS.items():
        size = f"{limits.api_seats} seats, {limits.pods_per_second} pods/s, {limits.database_gb} GB"
        fact = _fact("tier", tier, size, tiers.source, tiers.seen)
        yield fact, ("<control_plane>", f'"tier":"{tier}"'), ()
    newest = eks.LATEST_HYPERPOD_VERSION
    page, seen = eks.HYPERPOD_VERSIONS_SOURCE, eks.PAGED_HYPERPOD_DAY
    yield _fact("hyperpod-minor", "newest", newest, page, seen), ("<hyperpod>",), ()
    for kind, value in (("region", "names, zones"), ("quota", "defaults")):
        table = lives.readings()[kind]
        yield _fact(kind, table.table, value, table.source, table.seen), (f"<{_CLUSTER}>",), ()


def _of_services() -> Iterator[_Marked]:
    listed = lives.readings()["advisories"]
    count = f"{len(advisories())} advisories"
    fact = _fact("advisories", listed.table, count, listed.source, listed.seen)
    yield fact, ("<services>", _VLLM), ()
    for row in image_contents():
        name, value = f"{row.repository}:{row.tag}", f"{row.package} {row.version}"
        fact = _fact("image-contents", name, value, row.source, row.seen)
        yield fact, ("<services>", _VLLM), ()


def _of_types(types: Collection[str]) -> Iterator[_Marked]:
    """Yield the sources of the cells of ``types``, and of the Regions that sell them."""
    citing: dict[str, set[str]] = defaultdict(set)
    for name in types:
        for key in tables.sources_of_type(name):
            citing[key].add(f'"{name}"')
    for key, source in tables.sources().items():
        fact = _fact("source", key, source.title, source.url, source.seen)
        # Prices state their sources themselves.
        yield fact, ("<pools.",), citing.get(key, (f"<{key}>",))
    for column, key in OFFER_SOURCES.items():
        source = tables.sources()[key]
        fact = _fact("offer", column, source.title, source.url, source.seen)
        yield fact, ("<pools.", _OFFERED[column]), ()
