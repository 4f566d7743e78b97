"""VPC endpoints: the services that deployed parts call from within the VPC."""

import difflib
from collections.abc import Iterable, Iterator, Mapping, Sequence

from ultrascale import config
from ultrascale.catalog import endpoints as catalog
from ultrascale.catalog.endpoints import Call, Feature
from ultrascale.plan.model import ClusterPlan, EndpointPlan, NetworkPlan
from ultrascale.plan.model.network import EndpointState
from ultrascale.plan.rules import rule

# Endpoints where NAT gateways lead to the other services. Karpenter hears of interruptions through
# one, and file systems use the other: neither may wait for a zone's gateway.
_BESIDE_NAT = ("fsx", "sqs")
_AT = ("network", "endpoints")


def features_of(plan: ClusterPlan) -> tuple[Feature, ...]:
    """Return the parts of ``plan`` that call AWS from within the VPC."""
    addons = {
        addon.name
        for addon in (*plan.control_plane.node_addons, *plan.control_plane.workload_addons)
    }
    deployed: Mapping[Feature, bool] = {
        "nodes": True,
        # Nodes of EKS Auto Mode take no sessions.
        "session-manager": not all(pool.is_auto_mode for pool in plan.all_pools),
        # EKS Auto Mode brings the agent along.
        "pod-identity": True,
        # They apply the platform's manifests, in every cluster.
        "functions": True,
        "karpenter": plan.nodes.karpenter is not None,
        "cluster-autoscaler": plan.nodes.autoscaler is not None,
        "termination-handler": plan.nodes.termination_handler is not None,
        "vpc-cni": "vpc-cni" in addons,
        "ebs-csi": "aws-ebs-csi-driver" in addons,
        "fsx-csi": "aws-fsx-csi-driver" in addons,
        "mountpoint-s3": "aws-mountpoint-s3-csi-driver" in addons,
        "s3-output": plan.storage.output_access is not None,
        "node-pool-calendars": any(pool.calendar is not None for pool in plan.nodes.node_pools),
    }
    of_parts = {feature for part in plan.parts for feature in part.features}
    return tuple(
        feature for feature in catalog.FEATURES if feature in of_parts or deployed.get(feature)
    )


def calls_of(features: Iterable[Feature]) -> Mapping[str, Sequence[tuple[Feature, Call]]]:
    """Return the calls of ``features`` by service, in their order."""
    calls: dict[str, list[tuple[Feature, Call]]] = {}
    for feature in features:
        for call in catalog.features()[feature].calls:
            calls.setdefault(call.service, []).append((feature, call))
    return calls


def plan_endpoints(features: Iterable[Feature], stated: config.Network) -> tuple[EndpointPlan, ...]:
    """Return the endpoints that are made, stated or needed.

    Args:
        features: Parts of the cluster that call AWS from within the VPC.
        stated: What its file says of the VPC.
    """
    calls = calls_of(features)
    return tuple(_planned(calls, _made(calls, stated), stated.endpoints.present))


def _made(calls: Mapping[str, object], stated: config.Network) -> Iterable[str]:
    """Return the services whose endpoints are made, those of any VPC of ours first."""
    wanted, own = stated.endpoints.create, stated.vpc is None
    if isinstance(wanted, tuple):
        return wanted
    if wanted == "none" or (wanted is None and not own):
        return ()
    if own:
        further = calls if stated.egress == "none" else _BESIDE_NAT
        always = ("s3", *catalog.OF_OUR_VPC)
        return (*always, *(name for name in sorted(calls) if name in further))
    # A gateway is an entry in route tables, which have another owner.
    present = stated.endpoints.present
    return (
        name
        for name in sorted(calls)
        if name not in present and catalog.kind_of(name) == "interface"
    )


@rule
def services_have_endpoints(network: NetworkPlan) -> Iterator[config.Mistake]:
    """Yield the services without an endpoint in a VPC without a way out."""
    if network.egress != "none":
        return
    for endpoint in network.endpoints:
        if endpoint.required and endpoint.state == "missing":
            calls = ", ".join(endpoint.reasons)
            wrong = f"no endpoint of {endpoint.service}, and no other way there: {calls}"
            yield config.Mistake(_AT, wrong, _remedy(network, endpoint), got="")


def _remedy(network: NetworkPlan, endpoint: EndpointPlan) -> str:
    name = endpoint.service
    unknown = {e.service: e for e in network.endpoints if e.service not in catalog.services()}
    if spelt := difflib.get_close_matches(name, unknown, n=1):
        key = "present" if unknown[spelt[0]].state == "present" else "create"
        return f"{key} has {spelt[0]}: write {name} where that is meant"
    if network.existing is None:
        return f"add {name} to create, or leave create out"
    if network.existing.shared:
        return f"let the VPC's owner make it, then add {name} to present"
    if endpoint.kind == "gateway":
        return (
            f"let whoever keeps the route tables make the gateway endpoint, then add {name} to "
            "present"
        )
    return f"add {name} to present where the VPC has it, else to create, or write create: missing"


def _planned(
    calls: Mapping[str, Sequence[tuple[Feature, Call]]],
    made: Iterable[str],
    present: Iterable[str] = (),
) -> Iterator[EndpointPlan]:
    """Yield the endpoints that are made, then the existing ones, then the missing ones."""
    states: dict[str, EndpointState] = {
        **dict.fromkeys(made, "made"),
        **dict.fromkeys(present, "present"),
    }
    for service in sorted(calls):
        states.setdefault(service, "missing")
    for service, state in states.items():
        own = calls.get(service, ())
        yield EndpointPlan(
            service=service,
            kind=catalog.kind_of(service),
            state=state,
            required=any(call.required for _, call in own),
            reasons=tuple(
                f"{catalog.features()[feature].title} {call.why}" for feature, call in own
            ),
        )
