"""Templates to compare: from stacks, an assembly, a new synthesis, or an earlier commit.

States of a stack:
https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/view-stack-events.html
"""

import json
import os
import re
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

import yaml
from msgspec.structs import replace

from ultrascale import config
from ultrascale.core.table import all_parts
from ultrascale.documents import Template, as_template, mapping, parse_json, read_json, text
from ultrascale.errors import AccountError, ConfigError, QuestionError, UltrascaleError
from ultrascale.frozen import Frozen
from ultrascale.guard.comparison import compare
from ultrascale.guard.model import Changes
from ultrascale.guard.templates import Templates
from ultrascale.plan import names
from ultrascale.plan.model import ClusterIdentity
from ultrascale.plan.stacks import stack_of, stacks_apart
from ultrascale.synthesis import synthesize_into

if TYPE_CHECKING:
    from ultrascale.account import Account


_MANIFEST = "manifest.json"
_STACK = "aws:cloudformation:stack"
_ASSEMBLY = "cdk:cloud-assembly"
# aws-cdk-lib's word for the account of a stack that sets no account.
# Source: https://github.com/aws/aws-cdk/blob/v2.275.0/packages/aws-cdk-lib/cx-api/lib/environment.ts
_ANY_ACCOUNT = "unknown-account"
_THIS_FILE = "name what `cdk synth` wrote for this file"

# A change set was made and never executed, or the stack is gone.
_NOT_THERE = frozenset({"REVIEW_IN_PROGRESS", "DELETE_COMPLETE"})
# In any other state something failed half-way, and the template is not what exists.
_WHOLE = frozenset(
    {
        "CREATE_COMPLETE",
        "IMPORT_COMPLETE",
        "IMPORT_ROLLBACK_COMPLETE",
        "UPDATE_COMPLETE",
        "UPDATE_ROLLBACK_COMPLETE",
    }
)
# CloudFormation keeps a question mark for each of them.
# Source: https://github.com/aws/aws-cdk-cli (mangleLikeCloudFormation)
_NOT_ASCII = re.compile(r"[^\x00-\x7f]")


class _Stack(Frozen):
    """A stack of an assembly."""

    name: str  # Its name
    account: str | None  # Its account; None for the account of the credentials
    region: str  # Its AWS Region
    template: Template  # Its template


class Deployed(Frozen):
    """Deployed stacks of a cluster."""

    templates: Templates  # Their templates, by their names
    protected: tuple[str, ...] = ()  # Names of those whose termination protection is on


def compare_deployed(account: "Account", name: str, region: str, new: Templates) -> Changes:
    """Return the changes that a deployment of ``new`` makes in the account.

    Args:
        account: The account to ask.
        name: Name of the cluster.
        region: Region of the cluster.
        new: The templates that would be deployed.

    Raises:
        AccountError: As `read_deployed`.
    """
    deployed = read_deployed(account, name, new)
    changes = compare(deployed.templates, as_deployed(new), region=region)
    # The CDK's command line sets what its stacks say, and ours say none.
    # Source: https://github.com/aws/aws-cdk-cli/blob/main/packages/@aws-cdk/toolkit-lib/lib/api/deployments/deploy-stack.ts
    return replace(
        changes, unprotected=tuple(stack for stack in deployed.protected if stack in new)
    )


def read_deployed(account: "Account", cluster: str, new: Templates) -> Deployed:
    """Return the deployed stacks: those of ``new``, and those that left the file.

    Args:
        account: The account to ask.
        cluster: Name of the cluster.
        new: The templates that would be deployed.

    Raises:
        AccountError: AWS did not answer for a stack, or a stack of ``new`` is changing, failed
            half-way
            or belongs to another cluster; one line a mistake.
    """
    described = names.stack_description(cluster)
    # Stacks of parts are deployed beside the cluster, and stay after they leave the file.
    apart = stacks_apart(cluster)
    deployed: list[str] = []
    protected: list[str] = []
    wrong: list[str] = []
    for stack in account.ask_all(
        account.client("cloudformation").describe_stacks, lambda page: page["Stacks"]
    ):
        name, status = stack["StackName"], stack["StackStatus"]
        if status in _NOT_THERE or name in apart:
            continue
        if stack.get("Description") != described:
            if name in new:
                whose = stack.get("Description", "no description")
                todo = "give the cluster, or the pool, another name"
                wrong.append(f"{name}: it is no stack of {cluster}: {whose}; {todo}")
        # A stack that left the file is not deployed again: only its template says what it may hold.
        elif status in _WHOLE or name not in new:
            deployed.append(name)
            if stack.get("EnableTerminationProtection", False):
                protected.append(name)
        else:
            wrong.append(f"{name}: StackStatus is {status}; {_advice(status)}")
    if wrong:
        raise AccountError("\n".join(wrong))
    templates = {name: _deployed_template(account, name) for name in deployed}
    return Deployed(templates=templates, protected=tuple(protected))


def other_clusters(account: "Account", cluster: str) -> tuple[str, ...]:
    """Return the names of all other clusters in the account's Region.

    Raises:
        AccountError: AWS did not answer.
    """
    answers = account.ask_all(
        account.client("cloudformation").describe_stacks, lambda page: page["Stacks"]
    )
    clusters = {names.described_cluster(stack.get("Description", "")) for stack in answers}
    return tuple(sorted(name for name in clusters if name not in (None, cluster)))


def as_deployed(templates: Templates) -> Templates:
    """Return ``templates`` as CloudFormation returns them after a deployment."""
    return parse_json(_NOT_ASCII.sub("?", json.dumps(templates, ensure_ascii=False)))


def synthesize(file: Path, folder: Path) -> Templates:
    """Return the templates of a cluster file.

    Args:
        file: The cluster file.
        folder: An empty folder for ``cdk.out`` and ``dist``.

    Raises:
        UltrascaleError: The app refuses the file, or its validation has findings.
    """
    synthesize_into(file, assembly=folder / "cdk.out", manifests=folder / "dist")
    return read_assembly(folder)


def read_assembly(folder: Path) -> Templates:
    """Return the templates that `cdk synth` wrote, by the names of their stacks.

    Args:
        folder: The assembly, or a folder with the assembly in ``cdk.out``.

    Raises:
        QuestionError: There is no assembly, it is damaged, or has two stacks of one name.
    """
    return {stack.name: stack.template for stack in _assembly_stacks(folder)}


def read_assembly_of(plan: ClusterIdentity, folder: Path, *, option: str) -> Templates:
    """Return the templates that `cdk synth` wrote for a cluster, by the names of their stacks.

    A comparison of two different clusters would find no replaced resource: all stacks of one would
    be new, and all stacks of the other left as they are.

    Args:
        plan: The cluster.
        folder: The assembly, or a folder with the assembly in ``cdk.out``.
        option: Option that named the folder.

    Raises:
        QuestionError: As `read_assembly`; or the assembly is of another cluster, account or Region,
            one line a mistake.
    """
    stacks = _assembly_stacks(folder)
    wrong = [*_mismatches(stacks, plan)]
    if wrong:
        raise QuestionError([f"{option}: {folder} {mistake}" for mistake in wrong])
    return {stack.name: stack.template for stack in stacks}


def _mismatches(stacks: tuple[_Stack, ...], plan: ClusterIdentity) -> Iterator[str]:
    own = names.stack_description(plan.name)
    foreign = [stack for stack in stacks if stack.template.get("Description") != own]
    if foreign:
        whose = foreign[0].template.get("Description", "no description")
        yield (
            f"has stacks that are not of {plan.name}, got {foreign[0].name}: {whose}; a file with "
            f"another name: makes a second cluster, and leaves the first one running. Put name: "
            f"back, or {_THIS_FILE}"
        )
    elif (cluster := stack_of(plan.name, "cluster")) not in {stack.name for stack in stacks}:
        yield f"has no stack {cluster}; {_THIS_FILE}"
    elsewhere = {stack.region for stack in stacks} - {plan.region}
    if elsewhere:
        yield (
            f"is for {min(elsewhere)}, and the file for {plan.region}: no cluster moves to another "
            f"Region; put region: back, or {_THIS_FILE}"
        )
    accounts = {stack.account for stack in stacks if stack.account} - {plan.account}
    if accounts and plan.account:
        yield (
            f"is for account {min(accounts)}, and the file for {plan.account}: no cluster moves to "
            f"another account; put account: back, or {_THIS_FILE}"
        )


def _assembly_stacks(folder: Path) -> tuple[_Stack, ...]:
    inner = folder / "cdk.out"
    root = folder if (folder / _MANIFEST).is_file() or not inner.is_dir() else inner
    stacks: dict[str, _Stack] = {}
    for stack in _stacks(root):
        if stack.name in stacks:
            raise QuestionError(
                [f"{root}: has the stack {stack.name} twice; name the folder of one of its stages"]
            )
        stacks[stack.name] = stack
    if not stacks:
        raise QuestionError([f"{root}: has no stack; name a folder that `cdk synth` wrote"])
    return tuple(stacks.values())


def _stacks(folder: Path) -> Iterator[_Stack]:
    for id, artifact in mapping(_read_json(folder / _MANIFEST), "artifacts").items():
        kind, properties = text(artifact, "type"), mapping(artifact, "properties")
        if kind == _STACK:
            where = text(artifact, "environment").removeprefix("aws://")
            account, _, region = where.partition("/")
            yield _Stack(
                name=text(properties, "stackName") or id,
                account=None if account == _ANY_ACCOUNT else account,
                region=region,
                template=_read_json(folder / text(properties, "templateFile")),
            )
        elif kind == _ASSEMBLY:
            yield from _stacks(folder / text(properties, "directoryName"))


def _read_json(file: Path) -> Template:
    try:
        document: object = read_json(file)
    except OSError as error:
        raise QuestionError(
            [f"{file}: {error.strerror}; name a folder that `cdk synth` wrote"]
        ) from error
    except (ValueError, RecursionError) as error:
        raise QuestionError([f"{file}: is no JSON: {error}"]) from error
    template = as_template(document)
    if template is None:
        raise QuestionError([f"{file}: is no JSON object"])
    return template


def _advice(status: str) -> str:
    if status.endswith("_IN_PROGRESS"):
        return "wait until it ends"
    return "what of it is there its template does not say; `ultrascale preflight` says what to do"


def _deployed_template(account: "Account", name: str) -> Template:
    body = account.ask(
        account.client("cloudformation").get_template, StackName=name, TemplateStage="Original"
    )["TemplateBody"]
    try:
        # botocore parses JSON and leaves YAML as it is, in which the CDK sent small templates.
        document: object = (
            yaml.load(body, Loader=yaml.CSafeLoader)
            if isinstance(body, str)
            else parse_json(json.dumps(body))
        )
    except yaml.YAMLError as error:
        raise AccountError(f"{name}: its template is none of the CDK's: {error}") from error
    template = as_template(document)
    if template is None:
        raise AccountError(f"{name}: its template is none of the CDK's: it has no resources")
    return template


# --- Cluster files of an earlier commit, synthesized by the installed product ---------------------


_OPTION = "--against"


def read_revision_of(
    plan: ClusterIdentity, file: Path, revision: str, folder: Path
) -> tuple[str, Templates]:
    """Return the commit of a revision, and the templates of its cluster file.

    The installed product synthesizes them, whatever version the commit names. So the
    comparison shows the effect of the changed file, and not that of an upgrade.

    Args:
        plan: The cluster as the file is now.
        file: The cluster file, in a Git repository.
        revision: A name that Git knows, such as ``origin/main`` or ``HEAD~1``.
        folder: An empty folder to work in.

    Raises:
        QuestionError: There is no such revision, the file is not in it, or it describes another
            cluster, account or Region there.
        UltrascaleError: There is no Git, or the file cannot be synthesized as it was.
    """
    top, commit = _commit(file, revision)
    path = file.resolve().relative_to(top)
    tree = folder / "tree"
    if path.as_posix() not in _check_out(top, commit, path, tree):
        raise QuestionError(
            [f"{_OPTION}: {revision} has no file {path}; name a revision that has it"]
        )
    if not (tree / path).is_file():
        todo = "name the file that it stands for, or another revision"
        raise QuestionError([f"{_OPTION}: {path} is no regular file in {revision}; {todo}"])
    try:
        synthesize(tree / path, folder)
    except UltrascaleError as error:
        said = str(error).replace(f"{tree}{os.sep}", f"{revision}:")
        raise UltrascaleError(f"{_OPTION}: {revision} cannot be synthesized:\n{said}") from error
    return commit[:12], read_assembly_of(plan, folder, option=_OPTION)


def _check_out(top: Path, commit: str, path: Path, tree: Path) -> tuple[str, ...]:
    """Write a cluster file of a commit, with the files that it reads, into the folder ``tree``.

    Returns:
        The paths of the files in the repository.
    """
    folder = path.parent
    beside = (config.EJECTED, *(part.record for part in all_parts() if part.record is not None))
    paths = _write(top, commit, (path, *(folder / name for name in beside)), tree)
    own: tuple[str, ...] = ()
    if (tree / path).is_file():
        # Synthesis says what is wrong with the file.
        with suppress(ConfigError):
            own = config.own_folders(tree / path)
    return paths + (_write(top, commit, [folder / each for each in own], tree) if own else ())


def _write(top: Path, commit: str, wanted: Sequence[Path], tree: Path) -> tuple[str, ...]:
    """Write files and folders of a commit into the folder ``tree``, and return the files' paths.

    An archive would lack what Git's attribute export-ignore leaves out.
    """
    listed = _git(top, "ls-tree", "-r", "-z", commit, "--", *(each.as_posix() for each in wanted))
    if listed:
        # An index of its own: the user's stays as it is.
        index = {"GIT_INDEX_FILE": str(tree.with_name("index"))}
        _git(top, "update-index", "-z", "--index-info", given=listed, environment=index)
        prefix = f"--prefix={tree}{os.sep}"
        _git(top, "checkout-index", "--all", "--force", "--quiet", prefix, environment=index)
    return tuple(line.partition("\t")[2] for line in os.fsdecode(listed).split("\0"))


def _commit(file: Path, revision: str) -> tuple[Path, str]:
    """Return the repository's folder that holds ``file``, and the commit of ``revision``."""
    unknown = f"{_OPTION}: neither a folder nor a revision of Git, got {revision}"
    try:
        top = _git(file.resolve().parent, "rev-parse", "--show-toplevel").decode().strip()
    except UltrascaleError as error:
        raise QuestionError([f"{unknown}; {file} is in no Git repository: {error}"]) from error
    try:
        name = f"{revision}^{{commit}}"
        commit = _git(Path(top), "rev-parse", "--verify", "--quiet", "--end-of-options", name)
    except UltrascaleError as error:
        todo = "name a folder, a branch or a commit; a shallow clone has to fetch it first"
        raise QuestionError([f"{unknown}; {todo}"]) from error
    # An old Git prints the option, too.
    return Path(top).resolve(), commit.decode().split()[-1]


def _git(
    folder: Path,
    *arguments: str,
    given: bytes = b"",
    environment: Mapping[str, str] = MappingProxyType({}),
) -> bytes:
    """Return Git's output.

    Args:
        folder: Folder to run Git in.
        arguments: Git's arguments.
        given: Git's standard input.
        environment: Variables beside those of this process.

    Raises:
        UltrascaleError: Git fails, or is not installed.
    """
    try:
        answer = subprocess.run(
            ["git", "-C", str(folder), *arguments],
            env={**os.environ, **environment},
            input=given,
            capture_output=True,
            check=False,
        )
    except OSError as error:
        raise UltrascaleError(f"git: {error.strerror}; install Git, or name a folder") from error
    if answer.returncode:
        raise UltrascaleError(answer.stderr.decode(errors="replace").strip())
    return answer.stdout
