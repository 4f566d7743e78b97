"""What the entries of the cluster file's lists must be to each other."""

import re
from collections.abc import Iterator, Mapping

from ultrascale.catalog import matrix
from ultrascale.config._base import Model
from ultrascale.config._errors import Mistake, refuse
from ultrascale.config._pool_rules import node_pools_of
from ultrascale.config._reader import Part, lists, values
from ultrascale.config.hyperpod import Team
from ultrascale.config.jobs import BatchJob, ServiceJob, TrainingJob
from ultrascale.config.kubernetes import Endpoint, Kubernetes
from ultrascale.config.network import Network
from ultrascale.config.operations import Backend
from ultrascale.config.pipeline import Stage
from ultrascale.config.pools import FALLBACK_SUFFIX, Pool
from ultrascale.config.purchase import Spot
from ultrascale.config.scheduling import Queue, Rendezvous, Scheduling
from ultrascale.config.storage import Claim, Images, Lustre, LustreS3, Storage

Mistakes = Iterator[Mistake]

_NAMED: tuple[type[Model], ...] = (Pool, Lustre, Queue, Team, Stage)
_LISTS: tuple[tuple[type[Model], str], ...] = (
    (Network, "zones"),
    (Kubernetes, "admins"),
    (Endpoint, "public_cidrs"),
    (Pool, "instance_types"),
    (Pool, "zones"),
    (Storage, "buckets"),
    (Images, "repositories"),
    (LustreS3, "import_"),
    (LustreS3, "export"),
    (TrainingJob, "prefer"),
    (BatchJob, "prefer"),
    (ServiceJob, "prefer"),
    (Backend, "submits_to"),
    (Backend, "allow_from"),
    (Stage, "replace"),
)


def names_are_unique(parts: tuple[Part, ...]) -> Mistakes:
    for kind in _NAMED:
        seen: dict[str, int] = {}
        for at, name in values(parts, kind, "name", str):
            number = int(at[-1])
            if name in seen:
                first = ".".join(str(key) for key in (*at[:-1], seen[name]))
                yield Mistake((*at, "name"), f"the name of {first} too", "choose another")
            seen.setdefault(name, number)


def values_are_unique(parts: tuple[Part, ...]) -> Mistakes:
    for kind, field in _LISTS:
        key = kind.model_fields[field].alias or field
        stated = tuple(part for part in parts if field in part.given)
        for at, items in lists(stated, kind, field):
            for number, item in enumerate(items):
                if item in items[:number]:
                    yield Mistake((*at, key, number), "stands in the list twice", "keep one")


def claims_are_unique(parts: tuple[Part, ...]) -> Mistakes:
    seen: set[tuple[object, object]] = set()
    for part in parts:
        if part.kind is Claim and {"namespace", "name"} <= part.fields.keys():
            claim = (part.fields["namespace"], part.fields["name"])
            if claim in seen:
                wrong = f"a second claim of that name in namespace {claim[0]}"
                yield Mistake((*part.at, "name"), wrong, "choose another")
            seen.add(claim)


def shards_have_names_of_their_own(parts: tuple[Part, ...]) -> Mistakes:
    """A shard is named after its pool and its number."""
    names = dict(values(parts, Pool, "name", str))
    for at, shards in values(parts, Pool, "shards", int):
        pattern = re.compile(rf"{re.escape(names.get(at, ''))}-(\d+)")
        for other, name in names.items() if shards > 1 and at in names else ():
            if (match := pattern.fullmatch(name)) and int(match[1]) <= shards:
                wrong = f"the name of a shard of pool {names[at]}"
                yield Mistake((*other, "name"), wrong, "choose another")


def fallbacks_have_names_of_their_own(parts: tuple[Part, ...]) -> Mistakes:
    """The NodePool that launches On-Demand where Spot is short is named after its pool."""
    names = dict(values(parts, Pool, "name", str))
    shards = dict(values(parts, Pool, "shards", int))
    for at, purchase in values(parts, Pool, "purchase", Spot):
        if at not in names or purchase.fallback == "none":
            continue
        number = r"-\d+" if shards.get(at, 1) > 1 else ""
        pattern = re.compile(re.escape(names[at]) + number + re.escape(FALLBACK_SUFFIX))
        for other, name in names.items():
            if pattern.fullmatch(name):
                wrong = f"the name of the NodePool that pool {names[at]} falls back to"
                yield Mistake((*other, "name"), wrong, "choose another")


def managed_node_groups_fit(parts: tuple[Part, ...], provisioners: frozenset[str]) -> Mistakes:
    """EKS allows a cluster a number of managed node groups; each shard of a pool is one."""
    shards = dict(values(parts, Pool, "shards", int))
    count = sum(
        shards.get(at, 1)
        for at, name in values(parts, Pool, "provisioner", str)
        if name == "managed-node-group"
    )
    if count > matrix.MANAGED_NODE_GROUPS:
        wrong = f"more than the {matrix.MANAGED_NODE_GROUPS} managed node groups of a cluster"
        todo = f"use {node_pools_of(provisioners)} or self-managed for some, or fewer shards"
        yield refuse("pools", wrong, todo, got=f"{count} with their shards")


def controllers_have_nodes(
    parts: tuple[Part, ...],
    provisioners: frozenset[str],
    scheduling_gang_scheduler: str,
    fields: Mapping[str, object],
) -> Mistakes:
    controllers = scheduling_gang_scheduler != "none" or _has_controllers(parts)
    pools = [part for part in parts if part.kind is Pool]
    if not pools and "pools" not in fields:
        return  # the reader has said so
    if not pools:
        yield refuse("pools", "no pool at all", "add one named system", got="")
    # A pool whose role could not be read may be the one.
    elif all(part.fields.get("role") not in ("system", None) for part in pools) and (
        provisioners != frozenset({"auto-mode"}) or controllers
    ):
        wrong = "no pool has role: system, so controllers and add-ons have no nodes"
        yield refuse("pools", wrong, "add a pool named system", got="")


def _has_controllers(parts: tuple[Part, ...]) -> bool:
    """Return whether anything but the gang scheduler runs on system nodes of Auto Mode."""
    return any(
        part.kind is Lustre
        # Mountpoint for S3 has a controller.
        or (part.kind is Storage and bool(part.fields.get("default_claims")))
        or (part.kind is Rendezvous and part.fields.get("backend") != "c10d")
        or (part.kind is Scheduling and bool(part.fields.get("neuron_scheduler_extension")))
        or (part.kind is Backend and part.fields.get("image") is not None)
        for part in parts
    )
