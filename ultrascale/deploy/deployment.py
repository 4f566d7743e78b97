"""Deployment of a cluster file: all checks come before its first stack."""

import os
import shlex
import tempfile
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime, timedelta
from graphlib import TopologicalSorter
from pathlib import Path
from typing import Literal, Protocol

from msgspec.structs import replace

from ultrascale import config, guard, preflight
from ultrascale.catalog.prices import PriceList
from ultrascale.cdk_cli import find_cdk_cli
from ultrascale.deploy.cause import Cause, Events, Left
from ultrascale.deploy.cdk import (
    CdkDeploy,
    DeployCommand,
    StackArtifact,
    read_assembly,
    refuse_other,
    refuse_two_sources,
)
from ultrascale.deploy.run import Outcome, Watcher, run_stacks
from ultrascale.errors import UltrascaleError, UnansweredError
from ultrascale.frozen import Frozen
from ultrascale.guard import Changes
from ultrascale.jobs.checked_file import check_file
from ultrascale.plan.model import ClusterNeeds, ClusterPlan, PoolPlan
from ultrascale.plan.needs.load import beyond_published
from ultrascale.plan.needs.quotas import beyond_limits
from ultrascale.plan.stacks import StackName, all_layers, not_due, stacks_of
from ultrascale.preflight import Context, Progress, Verdict, checks
from ultrascale.preflight.stacks import STACKS
from ultrascale.synthesis import ASSEMBLY, refuse_stdin

Ending = Literal[
    "deployed",
    "printed",
    "declined",
    "beyond limits",
    "preflight failed",
    "protected",
    "failed",
    "interrupted",
]
"""End of a deployment: with all stacks deployed, with the commands printed (dry run), because
the user declined, because AWS publishes lower limits, because a check failed, because a protected
resource would be lost, because a stack failed, or because the user stopped it."""

# The user may answer the question hours later.
_LONGEST_REVIEW = timedelta(minutes=30)
# The user's settings of the CDK CLI, in the home folder.
# Source: https://docs.aws.amazon.com/cdk/v2/guide/cli.html
_SETTINGS = ".cdk.json"
# The CDK CLI's words where CloudFormation refuses a change set before it changes anything.
_VALIDATION = "validation failed"


class Deployment(Frozen):
    """Options of a deployment."""

    file: Path  # The cluster file
    profile: str | None = None  # Profile of the AWS CLI's configuration
    # Protected things that may be lost: names, logical ids or STACK/ID.
    permitted: tuple[str, ...] = ()
    concurrency: int = 4  # Number of stacks deployed at the same time
    # Folder that `cdk synth` wrote for this file; None to synthesize it now.
    assembly: Path | None = None
    import_existing: bool = False  # Take over resources that an earlier deployment left
    allow_unknown: bool = False  # Count a check that could not ask AWS as passed
    skip_preflight: bool = False  # Leave the checks of `ultrascale preflight` out
    dry_run: bool = False  # Print each `cdk deploy` instead of running it
    cdk: Path | None = None  # Path of an installed CDK CLI to use; None for the pinned one
    # Prices that the user is shown; None takes those of the catalog.
    price_list: PriceList | None = None


class View(Protocol):
    """The part of the command line that a deployment writes to."""

    def say(self, line: str) -> None:
        """Show a line of the result."""
        ...

    def warn(self, line: str) -> None:
        """Show a warning or an error."""
        ...

    def progress(self, checks: int) -> AbstractContextManager[Progress | None]:
        """Show the progress of a number of checks."""
        ...

    def verdict(self, context: Context, verdict: Verdict) -> None:
        """Show the findings of preflight."""
        ...

    def changes(self, changes: Changes) -> None:
        """Show the resources that the deployment would replace, delete or roll."""
        ...

    def costs(self, pools: Sequence[PoolPlan], needs: ClusterNeeds) -> None:
        """Show the nodes of each pool and their price."""
        ...

    def agree(self, context: Context, stacks: int) -> bool:
        """Return whether the user agrees to deploy a number of stacks."""
        ...

    def watcher(self, stacks: int) -> Watcher:
        """Return the view of running stacks."""
        ...

    def failure(
        self,
        outcome: Outcome,
        cause: Cause | None,
        unanswered: str | None,
        words: Mapping[str, str],
    ) -> None:
        """Show why a stack failed."""
        ...

    def left(self, stack: str, left: Sequence[Left]) -> None:
        """Show the resources that left a stack and still exist."""
        ...

    def outcomes(self, outcomes: Sequence[Outcome], region: str) -> None:
        """Show the outcome of each stack."""
        ...


class _Stopped(Exception):  # noqa: N818 it is no error
    """Error that ends the deployment before its first stack."""

    def __init__(self, ending: Ending) -> None:
        super().__init__(ending)
        self.ending: Ending = ending


def deploy(deployment: Deployment, view: View) -> Ending:
    """Check, synthesize, compare and deploy a cluster file, stack by stack.

    Args:
        deployment: The deployment.
        view: Receives what the user is shown.

    Raises:
        ConfigError: The cluster file has mistakes, or names another account.
        UltrascaleError: There is no CDK CLI, the credentials are ambiguous, AWS cannot be asked,
            or the file changed meanwhile.
    """
    try:
        return _deploy(deployment, view)
    except _Stopped as stopped:
        view.warn(f"{deployment.file}: nothing was deployed")
        return stopped.ending


def _deploy(deployment: Deployment, view: View) -> Ending:
    file, profile = deployment.file, deployment.profile
    refuse_stdin(file)
    refuse_two_sources(os.environ, profile, (*_home_settings(), Path("cdk.json")))
    cdk = find_cdk_cli(deployment.cdk)
    if cdk.note:
        view.warn(cdk.note)
    for warning in check_file(file).warnings:
        view.warn(str(warning))
    text = file.read_bytes()
    context = replace(
        preflight.read_context(file, datetime.now(UTC), profile, deployment.price_list),
        imports=deployment.import_existing,
    )
    _refuse_account(file, context)
    _refuse_beyond(file, context, view)
    _check(deployment, context, view)
    with _assembly(deployment, view) as folder:
        command = DeployCommand(
            cdk=cdk, assembly=folder, profile=profile, import_existing=deployment.import_existing
        )
        if file.read_bytes() != text:
            raise UltrascaleError(f"{file}: was changed meanwhile; run the command again")
        order = _without_late_stacks(deployment, context, _order(context, folder), view)
        _refuse_stacks(deployment, context, view)
        _show_changes(deployment, context, folder, view)
        view.costs(context.plan.all_pools, context.needs)
        if deployment.dry_run:
            _print_commands(deployment, command, order, view)
            return "printed"
        _ask_for_agreement(file, context, len(order), view)
        return _deploy_stacks(deployment, context, command, order, view)


def _home_settings() -> Iterator[Path]:
    try:
        yield Path.home() / _SETTINGS
    except RuntimeError:
        # Without a home folder the CDK has no settings there.
        return


def _refuse_account(file: Path, context: Context) -> None:
    wanted, has = context.plan.account, context.account.id
    if wanted not in (None, has):
        wrong = f"the cluster file names account {wanted}, the credentials belong to {has}"
        todo = "name another profile by --profile, or correct the account"
        raise config.read(file).refusal([config.Mistake(("account",), wrong, todo, got="")])


def _refuse_beyond(file: Path, context: Context, view: View) -> None:
    lines = [*beyond_limits(context.needs), *beyond_published(context.needs.load)]
    for line in lines:
        view.warn(f"{file}: {line}")
    if lines:
        raise _Stopped("beyond limits")


def _check(deployment: Deployment, context: Context, view: View) -> None:
    if deployment.skip_preflight:
        view.warn("preflight is skipped: what the account lacks shows when stacks fail")
        return
    with view.progress(len(checks.all_checks())) as progress:
        verdict = preflight.check(
            context, allow_unknown=deployment.allow_unknown, progress=progress
        )
    view.verdict(context, verdict)
    if verdict.state == "beyond":
        raise _Stopped("beyond limits")
    if verdict.state == "failed":
        raise _Stopped("preflight failed")


@contextmanager
def _assembly(deployment: Deployment, view: View) -> Generator[Path]:
    """Yield an assembly that nobody else writes to, so that it stays as the user has seen it."""
    if deployment.assembly is not None:
        yield deployment.assembly.resolve()
        return
    with tempfile.TemporaryDirectory(prefix="ultrascale-deploy-") as folder:
        view.warn(f"synthesizing {deployment.file}")
        guard.synthesize(deployment.file, Path(folder))
        yield Path(folder, "cdk.out")


def _order(context: Context, folder: Path) -> Mapping[str, frozenset[str]]:
    stacks = read_assembly(folder)
    refuse_other(stacks, context.plan, account=context.account.id, folder=folder)
    return waits_for(stacks, context.plan)


def _without_late_stacks(
    deployment: Deployment, context: Context, order: Mapping[str, frozenset[str]], view: View
) -> Mapping[str, frozenset[str]]:
    """Return ``order`` without the stacks whose nodes cannot be launched yet."""
    late = not_due(context.plan, context.at)
    for stack, starts in late.items():
        when = "the window of its nodes is over"
        if starts is not None:
            when = (
                f"its nodes cannot be there before {starts:%Y-%m-%d %H:%M} UTC; run the command "
                "again then"
            )
        view.warn(f"{deployment.file}: {stack}: left out, as {when}")
    return {stack: earlier for stack, earlier in order.items() if stack not in late}


def _refuse_stacks(deployment: Deployment, context: Context, view: View) -> None:
    """Raise an error if a stack cannot be updated, even if preflight was skipped.

    The CDK would delete the rest of a new stack that was rolled back, without asking.
    """
    stops = {"fail"} if deployment.allow_unknown else {"fail", "unknown"}
    findings = [finding for finding in STACKS.run(context) if finding.state in stops]
    for finding in findings:
        view.warn(f"{deployment.file}: {finding.subject}: {finding.evidence}; {finding.fix}")
    if findings:
        raise _Stopped("preflight failed")


def _show_changes(deployment: Deployment, context: Context, folder: Path, view: View) -> None:
    """Show the changes, and raise an error if a protected resource would go without permission."""
    new = guard.read_assembly(folder)
    changes = guard.compare_deployed(context.account, context.plan.name, context.plan.region, new)
    changes = changes.permit(*deployment.permitted)
    view.changes(changes)
    if not changes.is_safe:
        raise _Stopped("protected")


def _ask_for_agreement(file: Path, context: Context, stacks: int, view: View) -> None:
    if not view.agree(context, stacks):
        raise _Stopped("declined")
    if datetime.now(UTC) - context.at > _LONGEST_REVIEW:
        # Meanwhile a window may have ended, or somebody else may have deployed.
        raise UltrascaleError(
            f"{file}: the figures above are of {context.at:%Y-%m-%d %H:%M} UTC; run the command "
            "again"
        )


def _print_commands(
    deployment: Deployment, command: DeployCommand, order: Iterable[str], view: View
) -> None:
    if deployment.assembly is None:
        # Our own assembly is deleted with this process.
        view.say(shlex.join(("ultrascale", "synth", str(deployment.file))))
        command = replace(command, assembly=ASSEMBLY)
    for stack in order:
        view.say(command.by_hand(stack))


def _deploy_stacks(
    deployment: Deployment,
    context: Context,
    command: DeployCommand,
    order: Mapping[str, frozenset[str]],
    view: View,
) -> Ending:
    events = Events(context.account)

    def launch(stack: str) -> CdkDeploy:
        events.mark(stack)
        return command.start(stack)

    outcomes = run_stacks(
        order, launch, view.watcher(len(order)), concurrency=deployment.concurrency
    )
    plan = context.plan
    words = {"file": str(deployment.file), "cluster": plan.name, "region": plan.region}
    for outcome in outcomes:
        _show_failure(outcome, events, words, view)
    view.outcomes(outcomes, plan.region)
    return _ending(outcomes)


def _ending(outcomes: Sequence[Outcome]) -> Ending:
    # A stack that was not begun, and waits for no failed stack, means that the user stopped the
    # deployment.
    if any(
        outcome.state == "interrupted"
        or (outcome.state == "not started" and not outcome.waited_for)
        for outcome in outcomes
    ):
        return "interrupted"
    return "failed" if any(outcome.state == "failed" for outcome in outcomes) else "deployed"


def _show_failure(outcome: Outcome, events: Events, words: Mapping[str, str], view: View) -> None:
    """Show why a stack failed, and which resources left it and still exist."""
    failed = outcome.state == "failed"
    cause: Cause | None = None
    left: Sequence[Left] = ()
    unanswered, refused = None, ()
    try:
        if failed:
            cause = events.first_cause(outcome.stack, words)
        if failed and any(_VALIDATION in line.lower() for line in outcome.said):
            refused = events.refused_properties(outcome.stack)
        # A new stack has no earlier resources that it could leave behind.
        if failed or (outcome.state == "deployed" and events.was_there(outcome.stack)):
            left = events.left(outcome.stack)
    except UnansweredError as error:
        unanswered = str(error)
    if failed:
        view.failure(outcome, cause, unanswered, words)
        for line in refused:
            view.warn(f"{outcome.stack}: CloudFormation's validation: {line}")
    elif unanswered is not None:
        view.warn(f"{outcome.stack}: the resources that it left are not known: {unanswered}")
    view.left(outcome.stack, left)


def waits_for(
    stacks: Sequence[StackArtifact], plan: ClusterPlan
) -> Mapping[StackName, frozenset[StackName]]:
    """Return the stacks that each stack waits for, in an order of deployment.

    Among stacks that could be next, the assembly's order decides. Stacks that launch accelerated
    nodes, and the stacks after them, wait for all other stacks: their nodes cost from the first
    minute. They do not wait for each other: a stack that finds no capacity must not stop the
    others.
    """
    costly = (id for id, layer in all_layers().items() if layer.costs_nodes)
    launching = {stack for id in costly for stack in stacks_of(plan, id)}
    last = _with_followers(launching, stacks)
    first = frozenset(stack.name for stack in stacks) - last
    return _sorted_topologically(
        {stack.name: stack.needs | first if stack.name in last else stack.needs for stack in stacks}
    )


def _sorted_topologically(
    waits_for: Mapping[StackName, frozenset[StackName]],
) -> Mapping[StackName, frozenset[StackName]]:
    place = {stack: number for number, stack in enumerate(waits_for)}
    sorter = TopologicalSorter(waits_for)
    sorter.prepare()
    ordered: dict[StackName, frozenset[StackName]] = {}
    ready = [*sorter.get_ready()]
    while ready:
        stack = min(ready, key=place.__getitem__)
        ready.remove(stack)
        ordered[stack] = waits_for[stack]
        sorter.done(stack)
        ready += sorter.get_ready()
    return ordered


def _with_followers(last: Set[StackName], stacks: Sequence[StackArtifact]) -> frozenset[StackName]:
    """Return the stacks of an assembly that are among ``last``, or wait for one of them."""
    while followers := {
        stack.name for stack in stacks if stack.name not in last and stack.needs & last
    }:
        last |= followers
    return frozenset(last) & {stack.name for stack in stacks}
