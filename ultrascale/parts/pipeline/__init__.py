"""The pipeline that deploys clusters from a repository, by an app of its own."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from ultrascale import config
from ultrascale.core.part import Part
from ultrascale.frozen import Frozen
from ultrascale.parts.pipeline.model import GATE_STACK, OWN_STACK, PipelinePlan, Plan
from ultrascale.parts.pipeline.section import FileKeys, Pipeline


class _Part(Part[FileKeys, Plan]):
    name = "pipeline"
    section = FileKeys
    has_app = True
    has_checks = True
    # They may deploy other clusters.
    stacks_apart: Mapping[str, str] = dict.fromkeys(
        (OWN_STACK, GATE_STACK),
        "its pipeline runs, and would deploy the cluster meanwhile: stop that first",
    )

    def plan(self, cluster: config.Cluster, records: Sequence[Frozen]) -> Plan | None:
        section = cluster.section(Pipeline)
        return section and Plan(home=section.home, release=section.release)

    def plan_app(self, path: Path, reading: config.Reading) -> PipelinePlan | None:
        cluster = config.check(reading)
        if (section := cluster.section(Pipeline)) is None:
            return None
        # Most files have none.
        from ultrascale.parts.pipeline.plan import plan_pipeline

        return plan_pipeline(path, reading, cluster, section)


PART = _Part()

__all__ = ["PART", "Plan"]
