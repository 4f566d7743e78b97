"""Cluster files, read and planned once for many jobs, or checked.

Many files have no templates of jobs. What reads and renders those is a large part of the modules of
`ultrascale check`, and is imported for a file that has them.
"""

from collections.abc import Iterator
from datetime import date
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from ultrascale import config, plan
from ultrascale.core.table import all_parts
from ultrascale.errors import Diagnostic
from ultrascale.frozen import Frozen
from ultrascale.plan.model import ClusterPlan, QueueingPlan

if TYPE_CHECKING:
    from ultrascale.plan.jobs.request import JobRequest


class JobCluster(Frozen):
    """A cluster file without mistakes, read and planned once for many jobs."""

    reading: config.Reading  # The file
    cluster: config.Cluster  # The cluster that it describes
    plan: ClusterPlan  # Its plan
    beside_queues: bool = False  # Whether jobs take existing nodes, outside of all queues

    def request(
        self,
        name: str,
        job: config.Job,
        *,
        template: str | None = None,
        account: str | None = None,
        tier: str | None = None,
        precompile: bool = False,
    ) -> "JobRequest":
        """Return the request to plan ``job`` in this cluster."""
        from ultrascale.plan.jobs.request import JobRequest
        from ultrascale.plan.jobs.tiers import tiers_to_choose

        cluster, pools = self.cluster, self.plan.all_pools
        queueing = self.plan.part(QueueingPlan)
        if self.beside_queues:
            unqueued = {"queueing": "none", "gang_scheduler": None, "queues": ()}
            scheduling = cluster.scheduling.model_copy(update=unqueued)
            cluster, queueing = cluster.model_copy(update={"scheduling": scheduling}), None
            pools = tuple(replace(pool, min_nodes=pool.max_nodes) for pool in pools)
        request = JobRequest(
            name=name,
            job=job,
            cluster=cluster,
            pools=pools,
            claims=self.plan.storage.claims,
            builds=self.plan.images.builds,
            account=account or self.cluster.account,
            teams=self.plan.teams,
            queueing=queueing,
            template=template,
            precompile=precompile,
            copies=self.plan.copies,
        )
        return replace(request, tier=tier) if tier in tiers_to_choose(request) else request


def read_cluster(cluster_file: Path) -> JobCluster:
    """Read the cluster that jobs are prepared for.

    Raises:
        ConfigError: The file cannot be read or has mistakes: one line for each.
    """
    reading = config.read(cluster_file)
    wrong = plan.all_mistakes(reading)
    if wrong or reading.cluster is None:
        raise reading.refusal(wrong)
    planned = plan.assemble(reading.cluster, reading.own_images, reading.records)
    if wrong := [*plan.mistakes_of_plan(planned)]:
        raise reading.refusal(wrong)
    return JobCluster(reading=reading, cluster=reading.cluster, plan=planned)


class CheckedFile(Frozen):
    """Notes on a cluster file without mistakes."""

    warnings: tuple[Diagnostic, ...]  # Legal but likely unintended values
    notes: tuple[Diagnostic, ...]  # Facts of every such cluster
    # Values of documentation, which preflight and deploy refuse.
    stand_ins: tuple[Diagnostic, ...]


def check_file(cluster_file: Path, day: date | None = None) -> CheckedFile:
    """Return the warnings and notes of a cluster file without mistakes.

    Args:
        cluster_file: The file.
        day: The day on which the facts that the file rests on are judged; None leaves them
            unjudged.

    Raises:
        ConfigError: The file has mistakes; one line for each.
        CatalogError: No source states a value of an instance type.
    """
    cluster = read_cluster(cluster_file)
    if cluster.cluster.jobs:
        from ultrascale.jobs.preparation import check_templates

        check_templates(cluster)
    for part in all_parts():
        part.plan_app(cluster_file, cluster.reading)
    document = cluster.reading.document
    warnings = (
        *config.remarks(cluster.cluster, "warning"),
        *config.in_order_of_keys(plan.remarks(cluster.reading, cluster.plan, "warning")),
        *_warnings_of_templates(cluster),
    )
    notes = config.in_order_of_keys(
        (
            *plan.remarks(cluster.reading, cluster.plan, "note"),
            *config.remarks(cluster.cluster, "note"),
        )
    )
    return CheckedFile(
        warnings=(
            *(mistake.diagnostic(document) for mistake in warnings),
            *(() if day is None else _expired_facts(cluster.plan, document.source, day)),
        ),
        notes=tuple(mistake.diagnostic(document) for mistake in notes),
        stand_ins=tuple(
            mistake.diagnostic(document) for mistake in config.placeholders(cluster.reading)
        ),
    )


def _expired_facts(planned: ClusterPlan, file: str, day: date) -> Iterator[Diagnostic]:
    """Yield a warning of each kind of facts, of which one that ``planned`` rests on has expired."""
    from ultrascale.plan.facts import facts_of

    expired = [fact for fact in facts_of(planned) if fact.has_expired(day)]
    expired.sort(key=lambda fact: (fact.kind, fact.expires, fact.name))
    for kind, members in groupby(expired, key=lambda fact: fact.kind):
        first, *others = members
        more = f", and {len(others)} more of its kind" if others else ""
        yield Diagnostic(
            message=f"{kind} {first.name}, of {first.seen}, expired on {first.expires}{more}",
            fix=f"see `ultrascale facts {file} --expired`",
            file=file,
            code="expired_facts",
            severity="warning",
        )


def _warnings_of_templates(cluster: JobCluster) -> Iterator[config.Mistake]:
    if cluster.cluster.jobs:
        from ultrascale.jobs.preparation import warnings_of_templates

        yield from warnings_of_templates(cluster)
