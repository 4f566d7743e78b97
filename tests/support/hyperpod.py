"""The part `hyperpod` of a plan."""

from typing import Any

from msgspec.structs import replace

from ultrascale.parts.hyperpod import Plan
from ultrascale.plan import ClusterPlan


def hyperpod_of(plan: ClusterPlan) -> Plan:
    own = plan.part(Plan)
    assert own is not None
    return own


def with_hyperpod(plan: ClusterPlan, **changes: Any) -> ClusterPlan:
    """Return ``plan`` with its HyperPod changed."""
    own = replace(hyperpod_of(plan), **changes)
    return replace(
        plan, parts=tuple(own if isinstance(each, Plan) else each for each in plan.parts)
    )


def without_hyperpod(plan: ClusterPlan) -> ClusterPlan:
    """Return ``plan`` as it is once HyperPod has left the file, but for its pools."""
    return replace(plan, parts=tuple(each for each in plan.parts if not isinstance(each, Plan)))
