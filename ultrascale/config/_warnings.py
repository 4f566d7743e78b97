"""Warnings: rules against values that are legal but likely not meant."""

from collections.abc import Sequence
from datetime import timedelta
from urllib.parse import urlsplit

from msgspec.structs import replace

from ultrascale import catalog
from ultrascale.catalog import (
    auto_mode,
    hyperpod_chart,
    karpenter,
    matrix,
    prices,
    provisioners,
    quotas,
    regions,
    volcano,
    volcano_placement,
)
from ultrascale.config._document import named
from ultrascale.config._errors import Mistake, Mistakes, refuse
from ultrascale.config._form import keys_of
from ultrascale.config._parts import Placed, Readable, parts_of
from ultrascale.config._rules import Rules
from ultrascale.config.backend import Backend, accounts_in, namespaces_of_jobs
from ultrascale.config.cluster import Cluster
from ultrascale.config.front import Front
from ultrascale.config.hyperpod import TaskGovernance
from ultrascale.config.identity import Identity
from ultrascale.config.jobs import Job
from ultrascale.config.karpenter import Karpenter
from ultrascale.config.keys import Keys
from ultrascale.config.kubernetes import Kubernetes
from ultrascale.config.network import AgreedLimits, Network
from ultrascale.config.observability import Observability
from ultrascale.config.pools import (
    Pool,
    could_have_efa,
    has_efa,
    loses_efa,
    node_pools_of,
    spans_nodes,
    zones_of,
)
from ultrascale.config.purchase import CapacityBlock, Odcr, OnDemand, Spot, TrainingPlan
from ultrascale.config.scheduling import Scheduling
from ultrascale.config.storage import Lustre, Storage

warning = Rules()
"""Rules whose mistakes a user may make."""


def warnings(cluster: Cluster) -> tuple[str, ...]:
    """Return what is legal in ``cluster`` but likely not meant, a line for each."""
    return tuple(f"{named(cluster, each.at)}: {each.text}" for each in warning_mistakes(cluster))


def warning_mistakes(cluster: Cluster) -> Sequence[Mistake]:
    """Return what is legal in ``cluster`` but likely not meant, in the order of the keys."""
    order = keys_of(Cluster)
    return sorted(
        warning.judge(parts_of(cluster)),
        key=lambda each: (order.index(str(each.at[0])), *each.at[1:2]),
    )


def note(key: str, text: str) -> Mistake:
    """Return the warning at ``key``, whose ``text`` ends with what to do."""
    wrong, _, todo = text.rpartition("; ")
    return refuse(key, wrong or text, todo if wrong else "", got="")


@warning
def nobody_has_access(kubernetes: Kubernetes) -> Mistakes:
    if kubernetes.admins or any(each.policy == "cluster-admin" for each in kubernetes.access):
        return
    lost = "nobody administers the cluster" if kubernetes.access else "nobody can use kubectl"
    yield note("admins", f"empty, so {lost}; add the ARN of an IAM role")


@warning
def keys_of_the_issuer_are_out_of_reach(front: Front, network: Network) -> Mistakes:
    if front.jwt is not None and network.egress == "none":
        host = urlsplit(front.jwt.jwks_uri).hostname
        wrong = f"the front asks {host} for keys, and network.egress: none reaches no host outside"
        yield note("jwt.jwks_uri", f"{wrong}; name one that the VPC reaches, or use api_keys")


@warning
def karpenter_is_unread(section: Karpenter) -> Mistakes:
    if section.version not in karpenter.READ_VERSIONS:
        text = (
            f"{section.version} is a Karpenter that this product was not held against; write "
            f"{karpenter.NEWEST_VERSION}, or {karpenter.LONG_TERM_VERSION} for long-term support"
        )
        yield note("version", text)


@warning
def link_needs_a_key_of_the_account(
    file_system: Lustre, storage: Storage, keys: Keys, identity: Identity
) -> Mistakes:
    """Yield links to buckets whose keys are another account's.

    FSx reads them in a service-linked role that it makes with the link: nobody can make a grant
    before, and no policy of the cluster's account gives that role the key.

    Source: https://docs.aws.amazon.com/kms/latest/developerguide/key-policy-modifying-external-accounts.html
    """
    if file_system.s3 is None or identity.account is None:
        return
    name = file_system.s3.bucket
    existing = storage.existing_buckets.get(name)
    key = keys.storage if existing is None else existing.key
    owner = None if key is None else key.split(":")[4]
    if owner not in (None, identity.account):
        text = (
            f"bucket {name} has a key of account {owner}, whose policy may reach no service-linked "
            "role: FSx would refuse the link; encrypt the bucket with a key of account "
            f"{identity.account}, or leave s3 out and mount the bucket itself"
        )
        yield note("s3.bucket", text)


@warning
def agreed_already(agreed: AgreedLimits) -> Mistakes:
    most = quotas.quota("network-address-usage").most
    stated = agreed.nau_per_vpc
    if most is not None and stated is not None and stated <= most:
        text = (
            f"AWS publishes that it grants {most:,}, so this says "
            "nothing more; leave it out, or write what the agreement says"
        )
        yield note("nau_per_vpc", text)


@warning
def agent_may_lack_an_image(identity: Identity, pools: Readable[Pool]) -> Mistakes:
    if (
        any(pool.is_hyperpod for pool in pools)
        and identity.region not in hyperpod_chart.AGENT_REGIONS
    ):
        text = (
            "AWS's HyperPod chart may know no image of the health-monitoring agent in "
            f"{identity.region}, without which no faulty node is found; ask AWS"
        )
        yield note("region", text)


@warning
def types_may_not_be_had(pool: Pool, identity: Identity) -> Mistakes:
    region, is_hyperpod = identity.region, pool.is_hyperpod
    for number, name in enumerate(pool.instance_types):
        key = f"instance_types.{number}"
        if not catalog.lookup(name).announced:
            yield note(key, f"{name} is a preview name; EC2 may not launch it yet")
        if isinstance(pool.purchase, CapacityBlock):
            if region not in catalog.lookup(name).capacity_block_regions:
                yield note(key, f"AWS lists no Capacity Blocks of {name} in {region}; ask AWS")
        elif regions.offered(name, region, hyperpod=is_hyperpod) is False:
            yield note(key, f"{name} has no listed price in {region}; check with AWS")


@warning
def karpenter_repairs_by_alpha_gates(pool: Pool) -> Mistakes:
    if pool.is_karpenter and pool.repair in ("reboot", "replace"):
        shortest, longest = karpenter.REPAIR_DRAIN_MINUTES
        text = (
            f"Karpenter's repair is alpha, and its gates hold for the whole cluster; the pods of a "
            f"node get {shortest} to {longest} minutes, whatever their disruption budgets say: let "
            f"jobs save checkpoints as often"
        )
        yield note("repair", text)


@warning
def efa_is_lost(pool: Pool, network: Network) -> Mistakes:
    """Warn of pools that no rule refuses: see `pool_rules.efa_is_given_up_knowingly`."""
    lost = loses_efa(pool, network)
    if lost == "types" and isinstance(pool.purchase, Spot):
        # A Spot pool needs its choice of types, on a node group by our own rule.
        yield note("efa", "no EFA for several instance types; write efa: none")
    elif lost == "zones" and not spans_nodes(pool):
        spot = isinstance(pool.purchase, Spot)
        todo = "write efa: none" if spot else "keep one zone, or write efa: none"
        yield note("efa", f"no EFA across several zones; {todo}")


@warning
def replaced_within_window(pool: Pool) -> Mistakes:
    days, purchase = auto_mode.NODE_DAYS, pool.purchase
    if not pool.is_auto_mode or not isinstance(purchase, CapacityBlock):
        return
    if purchase.ends - purchase.starts > timedelta(days=days):
        text = (
            f"EKS Auto Mode replaces a node after {days} days, within this window; "
            "let jobs save checkpoints, or use managed-node-group"
        )
        yield note("purchase.ends", text)


@warning
def reserved_elsewhere(pool: Pool) -> Mistakes:
    if pool.placement_group and isinstance(pool.purchase, Odcr) and not pool.purchase.reservation:
        text = (
            "a capacity reservation that was not made in this group may not fill it; "
            "leave it out, or make the reservation in the group"
        )
        yield note("placement_group", text)


@warning
def spot_is_tightly_coupled(pool: Pool, network: Network) -> Mistakes:
    is_one = len(pool.instance_types) == 1 and len(zones_of(pool, network)) == 1
    is_spot = isinstance(pool.purchase, Spot) and pool.efa != "none"
    if is_spot and is_one and could_have_efa(pool):
        text = (
            "EC2 takes Spot nodes one by one, and a job that spans them over EFA stops "
            "with the first; let it save checkpoints, or use capacity-block"
        )
        yield note("purchase.option", text)


@warning
def spot_is_never_reserved(pool: Pool) -> Mistakes:
    if pool.role == "reserved" and isinstance(pool.purchase, Spot):
        todo = "write burst" + (", with nodes.max" if pool.nodes.static is not None else "")
        yield note("role", f"EC2 takes Spot nodes back whatever the role; {todo}")


@warning
def sizes_are_unlike(pool: Pool, pools: Readable[Pool]) -> Mistakes:
    """Warn where the Cluster Autoscaler, which takes one node for all, may take the wrong one.

    Source: https://github.com/kubernetes/autoscaler/blob/cluster-autoscaler-1.36.1/cluster-autoscaler/cloudprovider/aws/README.md
    """
    specs = [catalog.lookup(name) for name in pool.instance_types]
    scales = pool.nodes.lowest < pool.nodes.highest and not isinstance(pool.purchase, Odcr)
    known = all(matrix.can_be_planned(spec) for spec in specs)
    if not pool.is_node_group or not scales or not known:
        return
    vcpus = sorted({spec.vcpus for spec in specs})
    accelerators = sorted({spec.accelerator.count if spec.accelerator else 0 for spec in specs})
    unlike = [
        f"{' and '.join(map(str, counts))} {resource}"
        for counts, resource in ((vcpus, "vCPUs"), (accelerators, "accelerators"))
        if len(counts) > 1
    ]
    if unlike:
        other = node_pools_of(pools)
        text = (
            f"nodes of {', '.join(unlike)} in one group: the Cluster Autoscaler takes one "
            "for all, and adds nodes that are too small for the pods that wait; keep types of one "
            "size" + ("" if pool.role == "system" else f", or use {other}")
        )
        yield note("instance_types", text)


@warning
def kept_at_list_price(pool: Pool) -> Mistakes:
    """Warn where nodes that are paid for by the second stay when no pod needs them."""
    scales = pool.is_node_pool and pool.nodes.static is None
    if scales and pool.role == "reserved" and isinstance(pool.purchase, OnDemand):
        text = (
            "reserved nodes are kept when they are idle, here at the On-Demand price; "
            "write burst, or nodes.static for a count that you mean to pay for"
        )
        yield note("role", text)


@warning
def static_in_zones(pool: Pool, network: Network) -> Mistakes:
    """Warn where a fixed count may land in one zone.

    Source: https://karpenter.sh/docs/concepts/nodepools/#specreplicas
    """
    static = pool.nodes.static is not None and pool.is_node_pool
    if static and len(zones_of(pool, network)) > 1:
        by = provisioners.NAMES[pool.provisioner]
        text = f"{by} does not spread a fixed count over zones; make a pool of each zone"
        yield note("zones", text)


@warning
def jobs_without_efa(pool: Pool, network: Network, pools: Readable[Pool]) -> Mistakes:
    """Warn where pods of an EFA pool fit on nodes without EFA as well: nothing repels them."""
    for other in pools.placed:
        peer = other.item
        shared = [name for name in pool.instance_types if name in peer.instance_types]
        accelerated = any(catalog.lookup(name).accelerator for name in shared)
        if not _repels(pool) <= _repels(peer):
            continue
        if accelerated and not has_efa(pool, network) and has_efa(peer, network):
            text = (
                f"nodes of {shared[0]} without EFA, which {other.path} "
                f"has with EFA behind the same taint: a job may land here and run without; "
                "let its pods select node-type, or ask for vpc.amazonaws.com/efa"
            )
            yield note("efa", text)
            return


@warning
def reservation_is_filled_twice(pools: Readable[Pool]) -> Mistakes:
    """Warn where a node group, which starts at its maximum, shares a reservation."""
    groups = {
        pool.purchase.reservation
        for pool in pools
        if pool.is_node_group and isinstance(pool.purchase, Odcr)
    }
    filled: dict[str, tuple[Placed[Pool], int]] = {}
    for placed in pools.placed:
        pool, purchase = placed.item, placed.item.purchase
        if not isinstance(purchase, Odcr) or purchase.reservation not in groups - {None}:
            continue
        assert purchase.reservation is not None
        owner, nodes = filled.get(purchase.reservation, (placed, 0))
        nodes += pool.nodes.highest * pool.shards
        filled[purchase.reservation] = owner, nodes
        if owner is not placed:
            text = (
                f"the reservation of {owner.path} too, and a "
                f"node group starts with all its nodes, {nodes} together; lower nodes.max if the "
                "reservation has fewer, or keep one pool"
            )
            told = note("purchase.reservation", text)
            yield replace(told, at=(*placed.at, *told.at))


@warning
def launched_twice(pool: Pool, pools: Readable[Pool]) -> Mistakes:
    """Warn where two scalers answer the same pod: neither sees what the other is launching.

    Source: https://github.com/aws/karpenter-provider-aws/issues/2543
    """
    for other in pools.placed if _is_autoscaled(pool) else ():
        if _follows_pods(other.item) and _taint(pool) == _taint(other.item) is not None:
            scalers = f"the Cluster Autoscaler and {provisioners.NAMES[other.item.provisioner]}"
            text = (
                f"pods that fit here and on {other.path} start "
                f"nodes of both, by {scalers}; let them select node-type"
            )
            yield note("provisioner", text)
            return


@warning
def nobody_may_submit(backend: Backend) -> Mistakes:
    identity = backend.identity
    if backend.image is None:
        return
    if not identity.rights and not identity.admins:
        text = "missing, so every caller is refused; name groups in rights, and admins"
        yield note("identity", text)
    elif not identity.admins:
        text = (
            "empty, so nobody can cancel the job of somebody who is away, or see jobs that were "
            "recorded before they had owners; name a group"
        )
        yield note("identity.admins", text)


@warning
def jobs_submit_jobs(
    backend: Backend, jobs: Readable[Job], governance: TaskGovernance | None
) -> Mistakes:
    """Warn of rights that every pod of a namespace of jobs has."""
    namespaces = namespaces_of_jobs(jobs, governance)
    for name in backend.identity.rights:
        if accounts_in(name) in (None, *namespaces) and name.startswith("system:"):
            text = f"{name}: pods of jobs have this right too, and each may submit more jobs"
            yield note("identity.rights", text)


@warning
def file_system_is_far(file_system: Lustre, pools: Readable[Pool], network: Network) -> Mistakes:
    if not any(file_system.zone in zones_of(pool, network) for pool in pools):
        yield note("zone", f"no pool has nodes in {file_system.zone}")


@warning
def file_system_is_of_another_vpc(file_system: Lustre, network: Network) -> Mistakes:
    if file_system.existing is not None and network.vpc is None:
        text = (
            "the VPC of this cluster is made with it, and nothing lies there before its first "
            "deployment; name the file system's VPC in network.vpc"
        )
        yield note("existing.id", text)


@warning
def nobody_hears_of_the_end(
    pool: Pool, identity: Identity, observability: Observability | None
) -> Mistakes:
    """Warn where the alarms of a window's calendar reach nobody, with the price of one that fails.

    A fee is paid in advance, so On-Demand prices stand for what a node-hour is worth.
    """
    if not isinstance(pool.purchase, CapacityBlock | TrainingPlan):
        return
    if observability is not None and observability.alarms is not None:
        return
    nodes, name = pool.nodes.highest * pool.shards, pool.instance_types[0]
    found = prices.on_demand_near(identity.region, name)
    if found is None:
        cost = f"{nodes} node-hours of {name} for each hour of it; the catalog has no price"
    else:
        price, region = found
        cost = (
            f"${nodes * price:,.0f} for each hour of it ({nodes} x ${price:,.2f}, On-Demand in "
            f"{region} on {prices.seen(region)})"
        )
    text = (
        "nobody is told when its nodes fail to start, stand unused or are not drained before the "
        f"end. One missed end costs what all jobs did since their last checkpoint, {cost}; add "
        "observability.alarms.email"
    )
    yield note("purchase", text)


def _repels(pool: Pool) -> frozenset[tuple[str, str]]:
    """Return the taints of accelerated nodes beside the one of their accelerators."""
    own = {(taint.key, taint.effect) for taint in pool.taints}
    return frozenset(own | ({("spot", "NoSchedule")} if isinstance(pool.purchase, Spot) else set()))


def _follows_pods(pool: Pool) -> bool:
    return pool.is_node_pool and pool.nodes.static is None


def _is_autoscaled(pool: Pool) -> bool:
    """Return whether the Cluster Autoscaler sizes the pool's node group."""
    bought = isinstance(pool.purchase, OnDemand | Spot)
    scales = pool.nodes.lowest < pool.nodes.highest
    return pool.is_node_group and bought and scales


def _taint(pool: Pool) -> str | None:
    accelerator = catalog.lookup(pool.instance_types[0]).accelerator
    return accelerator and accelerator.kind


@warning
def fleet_is_larger_than_any_placed(scheduling: Scheduling, pools: Readable[Pool]) -> Mistakes:
    nodes = sum(
        pool.nodes.highest * pool.shards
        for pool in pools
        if pool.nodes.are_counted and all(map(volcano.is_placed, pool.instance_types))
    )
    if scheduling.topology_aware and nodes > volcano_placement.MOST_NODES:
        yield note("topology_aware", f"{volcano_placement.too_large(nodes)}; `plan` refuses it")
