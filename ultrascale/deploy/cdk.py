"""`cdk deploy` of one stack of an assembly."""

import os
import shlex
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import suppress
from pathlib import Path

from ultrascale.cdk_cli import CdkCli
from ultrascale.documents import JsonObject, mapping, read_json, sequence, text
from ultrascale.errors import AccountError, QuestionError
from ultrascale.frozen import Frozen
from ultrascale.plan.model import ClusterPlan
from ultrascale.plan.stacks import planned_stacks


class DeployCommand(Frozen):
    """The `cdk deploy` command of a deployment."""

    cdk: CdkCli  # The CDK CLI
    assembly: Path  # Folder that `cdk synth` wrote
    # Profile of the AWS CLI's configuration; None for the CDK's own choice.
    profile: str | None = None
    import_existing: bool = False  # Whether stacks import existing resources that have their names

    def by_hand(self, stack: str) -> str:
        """Return the command that a user can paste into a shell in the working folder."""
        return shlex.join(("ultrascale", "cdk", *self._arguments(stack)))

    def _arguments(self, stack: str) -> tuple[str, ...]:
        return (
            *("deploy", stack, "--exclusively", "--app", str(self.assembly)),
            # The user has agreed before, and the CDK has no terminal to ask on.
            *("--require-approval", "never", "--progress", "events", "--no-notices", "--no-color"),
            # Later stacks need what is ready; an express deployment ends before it is.
            *("--rollback", "--no-express"),
            *(("--profile", self.profile) if self.profile else ()),
            *(("--import-existing-resources",) if self.import_existing else ()),
        )

    def start(self, stack: str) -> "CdkDeploy":
        """Start the deployment of ``stack`` alone, without its dependencies."""
        return CdkDeploy((*self.cdk.command, *self._arguments(stack)), self.cdk)


class CdkDeploy:
    """A running `cdk deploy`."""

    def __init__(self, command: tuple[str, ...], cdk: CdkCli) -> None:
        # The program has a session of its own: otherwise Ctrl-C would end the CDK before we print
        # anything.
        self._process = subprocess.Popen(
            command,
            env=cdk.closed_environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            errors="replace",
            start_new_session=True,
        )

    def lines(self) -> Iterator[str]:
        """Yield the lines that the program prints, until it ends."""
        output = self._process.stdout
        assert output is not None, "the process was started with a pipe"
        with output:
            for line in output:
                yield line.rstrip()

    def wait(self) -> int:
        """Wait for the end of the program, and return its exit status."""
        return self._process.wait()

    def stop(self) -> None:
        """Ask the program to end. CloudFormation goes on with its operation."""
        self._signal(signal.SIGTERM)

    def kill(self) -> None:
        """Kill the program."""
        self._signal(signal.SIGKILL)

    def _signal(self, number: signal.Signals) -> None:
        # macOS raises PermissionError for a group of ended processes until all were waited for.
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)


# --- Stacks of a synthesized assembly, compared with the cluster file that is deployed ------------


_STACK = "aws:cloudformation:stack"
# aws-cdk-lib's word for the account of a stack that sets no account.
# Source: https://github.com/aws/aws-cdk/blob/v2.275.0/packages/aws-cdk-lib/cx-api/lib/environment.ts
_ANY_ACCOUNT = "unknown-account"


class StackArtifact(Frozen):
    """A synthesized stack."""

    name: str  # Its name
    account: str | None  # Its account; None for the account of the credentials
    region: str  # Its AWS Region
    needs: frozenset[str]  # Stacks of the same assembly that are deployed before it


def read_assembly(folder: Path) -> tuple[StackArtifact, ...]:
    """Return the stacks that `cdk synth` wrote to ``folder``, in the assembly's order.

    Raises:
        QuestionError: Nothing is synthesized there, or the manifest is damaged.
    """
    manifest = folder / "manifest.json"
    if not manifest.is_file():
        raise QuestionError(
            [f"--assembly: nothing is synthesized there, got {folder}; leave the option out"]
        )
    try:
        document = read_json(manifest)
    except ValueError as error:
        raise QuestionError([f"--assembly: {manifest} is no JSON: {error}"]) from error
    stacks = {
        name: mapping(artifact)
        for name, artifact in mapping(document, "artifacts").items()
        if text(artifact, "type") == _STACK
    }
    return tuple(_stack(name, artifact, stacks.keys()) for name, artifact in stacks.items())


def _stack(name: str, artifact: JsonObject, stacks: Set[str]) -> StackArtifact:
    account, _, region = text(artifact, "environment").removeprefix("aws://").partition("/")
    return StackArtifact(
        name=name,
        account=None if account == _ANY_ACCOUNT else account,
        region=region,
        needs=frozenset(map(str, sequence(artifact, "dependencies"))) & stacks,
    )


def refuse_other(
    stacks: Sequence[StackArtifact], plan: ClusterPlan, *, account: str, folder: Path
) -> None:
    """Refuse an assembly of another cluster file, account or Region.

    Args:
        stacks: Stacks of the assembly.
        plan: The cluster to deploy.
        account: Id of the account to deploy to.
        folder: Folder of the assembly.

    Raises:
        QuestionError: The assembly is of another cluster file, account or Region; one line a
            difference.
    """
    differences = [*_differences(stacks, plan.region, account, planned_stacks(plan))]
    if differences:
        todo = "synthesize the file again, or leave the option out"
        raise QuestionError(
            [f"--assembly: {difference}, got {folder}; {todo}" for difference in differences]
        )


def _differences(
    stacks: Sequence[StackArtifact], region: str, account: str, planned: Set[str]
) -> Iterator[str]:
    for stack in stacks:
        if stack.name not in planned:
            yield f"the stack {stack.name} is none of the file's"
        if stack.region != region:
            yield f"the stack {stack.name} is for {stack.region}, and the file for {region}"
        if stack.account not in (None, account):
            yield f"the stack {stack.name} is for account {stack.account}, and not for {account}"
    for name in sorted(planned - {stack.name for stack in stacks}):
        yield f"the file's stack {name} is missing"


# --- Refusal of credentials that boto3 and the CDK CLI would resolve to different accounts --------


_KEYS = ("ACCESS_KEY_ID", "SECRET_ACCESS_KEY", "SESSION_TOKEN")


def refuse_two_sources(
    environment: Mapping[str, str], profile: str | None, files: Sequence[Path]
) -> None:
    """Refuse credentials that boto3 and the CDK CLI would take from different sources.

    The command would check one account and deploy to another. In both, keys in the
    environment take precedence over AWS_PROFILE.

    Args:
        environment: Variables of the process.
        profile: Profile that the user named; it takes precedence in both.
        files: Configuration files of the CDK CLI; they may be missing.

    Raises:
        AccountError: There are two sources, or a file is no JSON.

    Sources:
        https://docs.aws.amazon.com/boto3/latest/guide/credentials.html
        https://github.com/boto/botocore/blob/develop/botocore/configprovider.py
        https://github.com/aws/aws-cdk-cli (aws-auth/awscli-compatible.ts, user-configuration.ts)
    """
    if profile is not None:
        return
    sources = [*_variables(environment), *_settings(files)]
    if sources:
        todo = "take that away, or name the profile by --profile"
        raise AccountError("\n".join(f"{source}; {todo}" for source in sources))


def _variables(environment: Mapping[str, str]) -> Iterator[str]:
    if environment.get("CDK_PROFILE"):
        yield "CDK_PROFILE is set, which the CDK takes and AWS's Python SDK does not"
    for key in _KEYS:
        if environment.get(f"AMAZON_{key}") and not environment.get(f"AWS_{key}"):
            yield f"AMAZON_{key} is set, which the CDK takes and AWS's Python SDK does not"
    one, other = (environment.get(name) for name in ("AWS_PROFILE", "AWS_DEFAULT_PROFILE"))
    keys = all(environment.get(f"AWS_{key}") for key in _KEYS[:2])
    if one and other and one != other and not keys:
        yield (
            "AWS_PROFILE and AWS_DEFAULT_PROFILE are two profiles: the CDK takes the first, and "
            "AWS's Python SDK the second"
        )


def _settings(files: Sequence[Path]) -> Iterator[str]:
    for file in files:
        if file.is_file() and (profile := _profile_in(file)):
            yield f"{file}: has the profile {profile}, which AWS's Python SDK does not read"


def _profile_in(file: Path) -> str:
    """Return the profile that a configuration file of the CDK CLI names; empty if it names none."""
    try:
        return text(read_json(file), "profile")
    except ValueError as error:
        raise AccountError(f"{file}: is no JSON, and the CDK reads it: {error}") from error
