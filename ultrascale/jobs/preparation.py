"""Preparation of a job: from a cluster file and a description to manifests."""

import json
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Unpack

from msgspec.structs import replace

from ultrascale import config
from ultrascale.catalog import kubernetes
from ultrascale.documents import JsonObject
from ultrascale.jobs import patches
from ultrascale.jobs import release_values as chart_values
from ultrascale.jobs.checked_file import JobCluster, read_cluster
from ultrascale.jobs.manifests import JobManifests, render, rendered_objects
from ultrascale.jobs.options import JobOptions, changes_of
from ultrascale.plan.jobs import judgement
from ultrascale.plan.jobs import tiers as job_tiers
from ultrascale.plan.jobs.job import plan_job
from ultrascale.plan.jobs.request import JobRequest
from ultrascale.plan.jobs.submission import Submission, rule
from ultrascale.plan.jobs.tiers import Choice, Tier
from ultrascale.plan.model import PoolPlan

Chooser = Callable[[JobRequest, Sequence[Tier]], Choice]
"""Chooses the tier of a job that prefers some tiers; the best comes first."""

_PRECOMPILE_SUFFIX = "-precompile"
_MIB = 2**20
# Keys that a template may leave to the sender of its jobs.
_OF_PROGRAM = frozenset({"image", "script", "command"})


def prepare(
    cluster_file: Path | JobCluster,
    job: str | Path | JsonObject,
    *,
    choose: Chooser | None = None,
    now: datetime | None = None,
    looks: bool = False,
    **options: Unpack[JobOptions],
) -> JobManifests:
    """Return the manifests of a job. Nothing is sent, and no cluster is asked.

    Args:
        cluster_file: The cluster file, or the cluster read from it, for many jobs of one cluster.
        job: Name of one of the file's `jobs`, path of a file that holds one job, or the job. With
            ``values`` it is the name of one of their templates.
        choose: Chooses the tier of a job of several pods where ``tier`` leaves it open. Without
            it, the job runs on the first tier that can hold all of them.
        now: Time of submission, against which windows of Capacity Blocks and training plans are
            checked; None leaves them unchecked.
        looks: Whether to look at the files that the job reads, on this machine and by the user's
            credentials of AWS.
        options: See `JobOptions`.

    Raises:
        ConfigError: The cluster file or the job has mistakes, or they do not fit each other; one
            line for each. With mistakes in the cluster file, the job is not checked.
    """
    tier, account = options.get("tier"), options.get("account")
    precompile = options.get("precompile", False)
    into = read_cluster(cluster_file) if isinstance(cluster_file, Path) else cluster_file
    reading = read(into, job, options)
    translated = reading.translated is not None
    sent = Submission(account=account, tier=tier, now=now, values=translated, looks=looks)
    if reading.job is None:
        raise reading.refusal((*rule.judge(sent), *reading.mistakes))
    request = into.request(
        reading.name,
        reading.job,
        template=reading.template,
        account=account,
        tier=tier,
        precompile=precompile,
    )
    wrong_keys = {str(mistake.at[0]) for mistake in reading.mistakes if mistake.at} | reading.unread
    known = rule.known(sent, request, into.plan)
    mistakes = (
        *reading.mistakes,
        *known.mistakes(),
        *judgement.mistakes_of(request, wrong_keys),
    )
    if mistakes or not reading.is_sound:
        raise reading.refusal(mistakes)
    request, why = _with_tier(request, choose, now)
    planned = plan_job(request)
    if spoiled := [*patches.mistakes_of(rendered_objects(planned), planned.patch)]:
        raise reading.refusal(tuple(spoiled))
    manifests = render(planned)
    seen = (note.wrong for note in known.mistakes(severity="note"))
    notes = (*reading.notes, *why, *manifests.notes, *seen, *_windows_ahead(request, now))
    manifests = replace(manifests, notes=notes)
    if too_large := [*_too_large(manifests)]:
        raise reading.refusal(tuple(too_large))
    return manifests


def stated_parts(into: JobCluster, name: str, *, account: str) -> tuple[JsonObject, ...]:
    """Return a template of the file, or each of its roles, by its stated keys.

    A template may leave open what a submission adds, and cannot be prepared then.

    Args:
        into: The cluster.
        name: Name of one of its `jobs`.
        account: Account of the registry.

    Returns:
        Keys of jobs; an image is a whole reference, as pods pull it.
    """
    request = into.request(name, into.cluster.jobs[name], account=account)
    return tuple(
        {
            **part.job.model_dump(mode="json", exclude={"roles", "image"}, exclude_none=True),
            **({"image": part.image} if part.image else {}),
        }
        for part in request.roles or (request,)
    )


def read(into: JobCluster, job: str | Path | JsonObject, options: JobOptions) -> config.JobReading:
    """Return a job with the changes of ``options``.

    Raises:
        ConfigError: There is no such job, or its file or values cannot be read.
    """
    values = options.get("values")
    suffix = _PRECOMPILE_SUFFIX if options.get("precompile") else ""
    stated = job if values is None else chart_values.translate(values, str(job), into.plan)
    return config.read_job(into.reading, stated, changes=changes_of(options), suffix=suffix)


def _with_tier(
    request: JobRequest, choose: Chooser | None, now: datetime | None
) -> tuple[JobRequest, tuple[str, ...]]:
    if not job_tiers.needs_one(request):
        return request, ()
    tiers = job_tiers.tiers_of(request)
    tiers = tuple(tier for tier in tiers if not _is_over(tier.pools, now)) or tiers
    if choose is None:
        why = "the first that can hold it, as no cluster was asked what is free"
        choice = Choice(tier=tiers[0].name, why=f"{why}; --tier chooses another")
    else:
        choice = choose(request, tiers)
    return replace(request, tier=choice.tier), (f"It runs on {choice.tier}: {choice.why}.",)


@rule
def account_is_an_id(sent: Submission) -> Iterator[config.Mistake]:
    """Yield an account that is no account id: nodes could pull no image."""
    if sent.account and not config.is_account_id(sent.account):
        todo = "write its 12 digits"
        yield config.refuse("account", "not an AWS account id", todo, got=sent.account)


@rule
def tier_can_be_chosen(request: JobRequest, sent: Submission) -> Iterator[config.Mistake]:
    """Yield a tier that the job does not have."""
    yield from job_tiers.tier_mistakes(request, sent.tier)


@rule
def values_have_their_claims(request: JobRequest, sent: Submission) -> Iterator[config.Mistake]:
    """Yield claims of values that are not in the namespace of their job."""
    if sent.values:
        yield from chart_values.mistakes_of(request)


def _is_over(pools: Sequence[PoolPlan], now: datetime | None) -> bool:
    windows = [pool.window for pool in pools if pool.window is not None]
    if now is None or len(windows) < len(pools) or not windows:
        return False
    return now >= max(window.usable_until for window in windows)


@rule
def window_is_open(request: JobRequest, sent: Submission) -> Iterator[config.Mistake]:
    """Yield a pool whose Capacity Block or training plan has no more time for a job."""
    pools = request.nodes
    if _is_over(pools, sent.now):
        last = max(pool.window.usable_until for pool in pools if pool.window is not None)
        what = pools[0].facts.window
        wrong = f"a {what} whose nodes are gone since {last:%Y-%m-%d %H:%M} UTC"
        key = "prefer" if request.job.prefer else "pool"
        yield config.refuse(key, wrong, "choose another pool", got="")


@rule
def allowances_last(request: JobRequest, sent: Submission) -> Iterator[config.Mistake]:
    """Yield advisories that a service may no longer be under."""
    job, now = request.job, sent.now
    if now is None or not isinstance(job, config.ServiceJob):
        return
    for number, allowed in enumerate(job.allow_advisories):
        if now.date() > allowed.until:
            at = ("allow_advisories", number, "until")
            todo = "use an image without the advisory, or decide anew"
            yield config.Mistake(at, "a day that is over", todo, got=str(allowed.until))


def _windows_ahead(request: JobRequest, now: datetime | None) -> Iterator[str]:
    for pool in request.nodes:
        window = pool.window
        if now is None or window is None or now >= window.usable_until:
            continue
        until = f"are drained from {window.usable_until:%Y-%m-%d %H:%M} UTC on"
        if not pool.facts.in_account:
            # SageMaker drains no node before.
            until = f"are taken at {window.reclaimed_from:%Y-%m-%d %H:%M} UTC"
        come = f"come at {window.starts:%Y-%m-%d %H:%M} UTC and " if now < window.starts else ""
        yield f"Nodes of {pool.name} {come}{until}, as their {pool.facts.window} ends."


def _too_large(manifests: JobManifests) -> Iterator[config.Mistake]:
    for manifest in manifests.objects:
        size = len(json.dumps(manifest).encode())
        if size > kubernetes.MOST_OBJECT_BYTES:
            wrong = f"a job of {size / _MIB:.1f} MiB, more than Kubernetes takes of one object"
            todo = "move long arguments and variables into a file on a volume"
            yield config.Mistake((), wrong, todo, got="", code="objects_fit_kubernetes")
            return


# The account of the registry is known only when a job is sent.
_SOME_ACCOUNT = "111122223333"


def check_templates(cluster: JobCluster) -> None:
    """Check each template with its nodes, queue and claims.

    A key that a template leaves out may be given when a job is sent, and is no mistake here.

    Args:
        cluster: The cluster with the templates.

    Raises:
        ConfigError: Jobs of a template would be refused as it stands: one line for each mistake.
        CatalogError: No source states a value of an instance type.
    """
    mistakes: list[config.Mistake] = []
    for name, job in cluster.cluster.jobs.items():
        request = cluster.request(name, job, template=name, account=_SOME_ACCOUNT)
        wrong = _mistakes(request)
        mistakes += (replace(mistake, at=("jobs", name, *mistake.at)) for mistake in wrong)
    if mistakes:
        raise cluster.reading.refusal(mistakes)


def warnings_of_templates(cluster: JobCluster) -> Iterator[config.Mistake]:
    """Yield legal but likely unintended values of a template; a submission may change them."""
    for name, job in cluster.cluster.jobs.items():
        request = cluster.request(name, job, template=name, account=_SOME_ACCOUNT)
        for mistake in judgement.warnings_of(request):
            yield replace(mistake, at=("jobs", name, *mistake.at))


def _mistakes(request: JobRequest) -> Iterator[config.Mistake]:
    mistakes = [*judgement.mistakes_of(request)]
    yield from (mistake for mistake in mistakes if mistake.kind not in ("missing", "undurable"))
    # Objects without a named program have the same names, labels and kinds.
    judged = all(mistake.at and str(mistake.at[0]) in _OF_PROGRAM for mistake in mistakes)
    if request.job.patch and judged:
        planned = plan_job(_with_tier(request, None, None)[0])
        yield from patches.mistakes_of(rendered_objects(planned), planned.patch)
