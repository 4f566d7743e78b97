"""The user's own KMS keys: their uses, and the needs of their policies."""

from collections.abc import Sequence
from typing import get_args

from ultrascale import config
from ultrascale.core.part import Part
from ultrascale.frozen import Frozen
from ultrascale.parts.keys.model import Plan
from ultrascale.parts.keys.section import FileKeys, Keys
from ultrascale.plan.model import ClusterPlan, KeyUse, PartNeeds

_USES: tuple[KeyUse, ...] = get_args(KeyUse)


class _Part(Part[FileKeys, Plan]):
    name = "keys"
    section = FileKeys
    has_checks = True

    def plan(self, cluster: config.Cluster, records: Sequence[Frozen]) -> Plan | None:
        section = cluster.section(Keys)
        arns: dict[KeyUse, str] = {
            use: arn for use in _USES if (arn := getattr(section, use)) is not None
        }
        return Plan(arns=arns) if arns else None

    def needs(self, plan: ClusterPlan) -> PartNeeds:
        from ultrascale.parts.keys.accesses import key_policies
        from ultrascale.parts.keys.needs import needs_of

        return needs_of(key_policies(plan, plan.account))


PART = _Part()

__all__ = ["PART", "Keys", "Plan"]
