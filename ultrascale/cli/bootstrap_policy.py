"""`ultrascale bootstrap-policy`: write the policies that `cdk bootstrap` attaches."""

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

import typer

from ultrascale import config, plan
from ultrascale.cdk_cli import CDK_CLI_VERSION
from ultrascale.cli import options
from ultrascale.documents import Template, as_template, mapping, read_json, text
from ultrascale.errors import QuestionError
from ultrascale.plan.delivery.execution_policy import (
    Document,
    ExecutionScope,
    boundary,
    execution_policies,
    roles_boundary,
)
from ultrascale.plan.model import AppPlan

_ACTION = re.compile(r"[a-z0-9-]+:[A-Za-z0-9]+")
_STACK = "aws:cloudformation:stack"


def bootstrap_policy(
    file: options.ClusterFile,
    assembly: Annotated[
        Path, typer.Option(metavar="DIR", help="Folder that `ultrascale synth` wrote.")
    ] = Path("cdk.out"),
    of_pipeline: Annotated[
        bool,
        typer.Option(
            "--of-pipeline", help="Write the policies for the account of FILE's pipeline."
        ),
    ] = False,
    trust: Annotated[
        list[str] | None,
        typer.Option(metavar="ACCOUNT", help="Account of a pipeline that deploys into this one."),
    ] = None,
    allow: Annotated[
        list[str] | None,
        typer.Option(metavar="ACTION", help="Allow one more action, such as eks:TagResource."),
    ] = None,
    out: Annotated[
        Path, typer.Option(metavar="DIR", help="Folder for the policies, sorted by account.")
    ] = Path("dist/bootstrap"),
) -> None:
    """Write the policies and the permissions boundary of CloudFormation's role. Asks no account.

    The types of resources in the synthesized templates decide the policies. Prints the commands
    that create them in the account and bootstrap it.
    """
    _refuse_wrong_names(trust or (), allow or ())
    cluster = config.load(file)
    app = plan.load_app(file)
    if of_pipeline and app is None:
        raise QuestionError([f"--of-pipeline: {file} has no pipeline; leave it out"])
    scope = _scope(file, cluster, app if of_pipeline else None)
    found = [*_templates(assembly, scope)]
    kinds = _kinds(file, assembly, scope, found)
    policies = {
        scope.policy_name(number): document
        for number, document in enumerate(execution_policies(kinds, scope, allow or ()), 1)
    }
    written = policies | {scope.boundary_name: boundary(kinds, scope, allow or ())}
    if (name := scope.permissions_boundary) is not None:
        if name in written:
            wrong = f"the name of a policy of CloudFormation's role, got {name!r}"
            raise QuestionError([f"{file}: permissions_boundary: {wrong}; choose another"])
        # A policy has no Region: it applies to all roles of the account.
        written[name] = roles_boundary((template for _, template in found), scope)
    # The pipeline's account may have policies of these names for other stacks.
    folder = out / scope.account
    _write(folder, written)
    trusted = dict.fromkeys(trust or ())
    if app and app.account != scope.account and any(stage.file == app.file for stage in app.stages):
        trusted[app.account] = None
    for line in _commands(scope, [*policies], [*written], [*trusted], folder):
        typer.echo(line)


def _refuse_wrong_names(trusted: Sequence[str], allowed: Sequence[str]) -> None:
    """Refuse account ids and actions that AWS would refuse.

    Raises:
        QuestionError: An id is no account id, or an action is no IAM action.
    """
    wrong = [
        *(
            f"--trust: not an AWS account id, got {account!r}; write its 12 digits"
            for account in trusted
            if not config.is_account_id(account)
        ),
        *(
            f"--allow: not an action of IAM, got {action!r}; write it as eks:TagResource"
            for action in allowed
            if _ACTION.fullmatch(action) is None
        ),
    ]
    if wrong:
        raise QuestionError(wrong)


def _scope(file: Path, cluster: config.Cluster, app: AppPlan | None) -> ExecutionScope:
    """Return the account and Region of the cluster, or of the app that deploys it.

    Raises:
        ConfigError: The file is wrong.
        QuestionError: It states no account.
    """
    if app is not None:
        account, region, partition = app.account, app.region, app.partition
    elif cluster.account is None:
        raise QuestionError([f"{file}: states no account; write account: beside region:"])
    else:
        account, region = cluster.account, cluster.region
        partition = plan.load(file).partition
    return ExecutionScope(
        cluster=cluster.name,
        partition=partition,
        account=account,
        region=region,
        permissions_boundary=cluster.permissions_boundary,
    )


def _kinds(
    file: Path, assembly: Path, scope: ExecutionScope, found: Sequence[tuple[bool, Template]]
) -> frozenset[str]:
    """Return the resource types that the role of ``scope`` deploys.

    Raises:
        QuestionError: The role deploys nothing of ``found``.
    """
    templates = [template for deployed, template in found if deployed]
    if not templates:
        raise QuestionError(
            [
                f"{assembly}: has no stack of {scope.cluster} for "
                f"aws://{scope.account}/{scope.region}; "
                f"run `ultrascale synth {file}`, with --pipeline for that of a pipeline"
            ]
        )
    return frozenset(
        resource["Type"]
        for template in templates
        for resource in template.get("Resources", {}).values()
    )


def _templates(assembly: Path, scope: ExecutionScope) -> Iterator[tuple[bool, Template]]:
    """Yield each stack template in the account, and whether the scope's role deploys it.

    The role in the pipeline's Region also deploys the pipeline's stacks in other Regions.
    """
    account = f"aws://{scope.account}/"
    role = f"-{scope.account}-{scope.region}"
    for manifest in sorted(assembly.glob("**/manifest.json")):
        for id, stack in mapping(_document(manifest), "artifacts").items():
            if text(stack, "type") != _STACK:
                continue
            environment = text(stack, "environment")
            name = text(stack, "properties", "stackName") or id
            deployer = text(stack, "properties", "cloudFormationExecutionRoleArn")
            if environment.startswith(account) and name.startswith(f"{scope.cluster}-"):
                deployed = environment == account + scope.region or deployer.endswith(role)
                file = manifest.parent / text(stack, "properties", "templateFile")
                yield deployed, _document(file)


def _document(path: Path) -> Template:
    try:
        document = as_template(read_json(path))
    except (OSError, ValueError):
        document = None
    if document is None:
        raise QuestionError([f"{path}: is not what `cdk synth` wrote; synthesize anew"])
    return document


def _write(folder: Path, documents: dict[str, Document]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, document in documents.items():
        # IAM's limit does not count white space.
        (folder / f"{name}.json").write_text(json.dumps(document, indent=1) + "\n")


def _commands(
    scope: ExecutionScope,
    policies: Sequence[str],
    written: Sequence[str],
    trusted: Sequence[str],
    folder: Path,
) -> Iterator[str]:
    """Yield the commands that create the written policies, and bootstrap the account with them."""
    for name in written:
        path = folder / f"{name}.json"
        yield f"aws iam create-policy --policy-name {name} --policy-document file://{path}"
    arns = ",".join(scope.iam(f"policy/{name}") for name in policies)
    words = [
        f"npx aws-cdk@{CDK_CLI_VERSION} bootstrap aws://{scope.account}/{scope.region}",
        *(f"--trust {account}" for account in trusted),
        f"--cloudformation-execution-policies {arns}",
        f"--custom-permissions-boundary {scope.boundary_name}",
        "--termination-protection",
    ]
    yield " ".join(words)
