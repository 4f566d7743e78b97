"""What the plan has against a cluster file, as far as the file can be read."""

from collections.abc import Iterable, Iterator
from ipaddress import IPv4Network
from typing import cast

from ultrascale import catalog, config
from ultrascale.catalog import eks
from ultrascale.errors import CatalogError
from ultrascale.plan import support
from ultrascale.plan.addons import addon_mistakes
from ultrascale.plan.jobs import claims, governance
from ultrascale.plan.model import PoolPlan
from ultrascale.plan.network.addresses import AddressCheck
from ultrascale.plan.network.demand import Demand, may_move, single_addresses
from ultrascale.plan.platform import plan_efa_plugin
from ultrascale.plan.pools.karpenter import karpenter_has_room
from ultrascale.plan.pools.pool import plan_pool
from ultrascale.plan.pools.scaling import labels_fit_group_tags

Mistakes = Iterator[config.Mistake]


def all_mistakes(reading: config.Reading) -> list[config.Mistake]:
    """Return what is wrong with the file itself, and what cannot be planned.

    What hangs on a thing that is not supported yet is left out.
    """
    unsupported = [*reading.judge(support.RULES)]
    others = (
        *reading.mistakes,
        *reading.judge(_RULES),
        *_address_mistakes(reading),
        *_addon_mistakes(reading),
        *(_template_mistakes(reading.cluster) if reading.cluster else ()),
    )
    mended = [m for m in others if not any(support.is_moot(m, each) for each in unsupported)]
    return [*unsupported, *mended]


def _template_mistakes(cluster: config.Cluster) -> Mistakes:
    yield from governance.template_mistakes(cluster)
    yield from claims.template_mistakes(cluster)


def _facts_are_known(efa: str, instance_types: tuple[str, ...], zones: tuple[str, ...]) -> Mistakes:
    # Raises CatalogError where they are not, which names the types.
    _sample_plan({"efa": efa, "instance_types": instance_types, "zones": zones})
    yield from ()


def _addon_registry_is_known(region: str, parts: tuple[config.Part, ...]) -> Mistakes:
    pools = [*_known_pools(parts)]
    named = any(part.kind is config.Images and part.fields.get("eks_registry") for part in parts)
    try:
        if not named:
            images = config.Images()
            plan_efa_plugin(config.Cluster.model_construct(region=region, images=images), pools)
    except CatalogError as error:
        yield config.refuse("region", str(error), got="")


_RULES: config.Rules = {
    config.Pool: (_facts_are_known, labels_fit_group_tags),
    config.Cluster: (_addon_registry_is_known, karpenter_has_room),
}


def _known_pools(parts: Iterable[config.Part]) -> Iterator[PoolPlan]:
    for part in parts:
        if part.kind is config.Pool and {"efa", "instance_types", "zones"} <= part.fields.keys():
            try:
                yield _sample_plan(part.fields)
            except CatalogError:
                continue  # a mistake of its own


def _sample_plan(fields: config.Fields) -> PoolPlan:
    """Plan a pool of which types, zones and EFA alone are read."""
    pool = config.Pool.model_construct(
        name="sample",
        role="burst",
        provisioner="managed-node-group",
        nodes=config.Nodes(max=1),
        instance_types=fields["instance_types"],
        zones=fields["zones"],
        efa=fields["efa"],
    )
    return plan_pool(pool, kubernetes_version=eks.DEFAULT_VERSION)


def _address_mistakes(reading: config.Reading) -> Mistakes:
    known = reading.known
    sound = all(reading.is_sound("network", key) for key in ("vpc_cidr", "pod_cidrs"))
    keys = {"network_vpc_cidr", "network_pod_cidrs", "network_zones"}
    if not sound or not keys <= known.keys():
        return
    zones = tuple(dict.fromkeys(cast("tuple[str, ...]", known["network_zones"])))
    pod_cidrs = cast("tuple[IPv4Network, ...] | config.PodBlocks", known["network_pod_cidrs"])
    if len(zones) < 2:
        return
    check = AddressCheck(
        vpc_cidr=cast("IPv4Network", known["network_vpc_cidr"]),
        pod_cidrs=pod_cidrs,
        zones=zones,
    )
    yield from check.mistakes([*_demands(reading, has_pod_ranges=bool(config.blocks(pod_cidrs)))])


def _demands(reading: config.Reading, *, has_pod_ranges: bool) -> Iterator[Demand]:
    """Yield what each pool needs; what is not built or not readable counts for nothing."""
    for part in reading.parts:
        if part.kind is not config.Pool or not reading.is_sound(*part.at, "nodes"):
            continue
        types = cast("tuple[str, ...]", part.fields.get("instance_types", ()))
        nodes, zones = part.fields.get("nodes"), part.fields.get("zones")
        shards = part.fields.get("shards")
        if not isinstance(shards, int) or not (types or not has_pod_ranges):
            continue
        if isinstance(nodes, config.Nodes) and zones:
            yield Demand(
                zones=cast("tuple[str, ...]", zones),
                nodes=nodes.highest * shards,
                accelerated=any(catalog.lookup(name).accelerator for name in types),
                movable=may_move(part.fields.get("provisioner"), part.fields.get("role")),
                addresses_per_node=single_addresses(part.fields.get("provisioner"), types),
            )


def _addon_mistakes(reading: config.Reading) -> Mistakes:
    known = reading.known
    if not reading.is_sound("kubernetes", "version") or not reading.is_sound(
        "kubernetes", "addons"
    ):
        return
    if not {"kubernetes_version", "kubernetes_addons"} <= known.keys():
        return
    has_lustre = any(part.kind is config.Lustre for part in reading.parts)
    provisioners = [
        part.fields.get("provisioner", "managed-node-group")
        for part in reading.parts
        if part.kind is config.Pool
    ]
    cluster = config.Cluster.model_construct(
        # Where none says what launches its nodes, they may need every add-on.
        pools=tuple(
            config.Pool.model_construct(provisioner=provisioner)
            for provisioner in provisioners or ["managed-node-group"]
        ),
        kubernetes=config.Kubernetes.model_construct(
            version=known["kubernetes_version"], addons=known["kubernetes_addons"]
        ),
        observability=cast("config.Observability | None", known.get("cluster_observability")),
        hyperpod=cast("config.HyperPod", known.get("cluster_hyperpod", config.HyperPod())),
        storage=config.Storage.model_construct(
            lustre=(config.Lustre.model_construct(name="", zone=""),) if has_lustre else (),
            buckets=cast("tuple[str, ...]", known.get("storage_buckets", ())),
            default_claims=known.get("storage_default_claims"),
        ),
    )
    for key, text in addon_mistakes(cluster):
        yield config.refuse(key, text, got="")
