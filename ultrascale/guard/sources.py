"""Where templates are read from beside saved assemblies: the account, or a synthesis of the file.

States of a stack: https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/view-stack-events.html
"""

import json
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import yaml

from ultrascale.cdk_cli import find_cdk_cli
from ultrascale.errors import AccountError, UltrascaleError
from ultrascale.guard.assembly import read_assembly
from ultrascale.guard.comparison import compare
from ultrascale.guard.model import Changes
from ultrascale.guard.templates import Template, Templates
from ultrascale.plan import names
from ultrascale.plan.model import ClusterPlan

if TYPE_CHECKING:
    from ultrascale.account import Account

# They are deployed beside the cluster, and stay when the file has them no more.
_APART = ("pipeline", "pipeline-gate")
# A change set was made and never executed, or the stack is gone.
_NOT_THERE = frozenset({"REVIEW_IN_PROGRESS", "DELETE_COMPLETE"})
# Of any other state the template is not what there is: something of it failed half-way.
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployed:
    """The stacks of a cluster in its account.

    Attributes:
        templates: Their templates, by their names.
        protected: Names of those whose termination protection is on.
    """

    templates: Templates
    protected: tuple[str, ...] = ()


def compare_deployed(account: "Account", plan: ClusterPlan, new: Templates) -> Changes:
    """Return what a deployment of ``new`` does to what the account has.

    Args:
        account: The account to ask.
        plan: The cluster.
        new: What would be deployed.

    Raises:
        AccountError: As `read_deployed`.
    """
    deployed = read_deployed(account, plan.name, new)
    changes = compare(deployed.templates, as_deployed(new), region=plan.region)
    # The CDK's command line sets what its stacks say, and ours say none.
    # Source: https://github.com/aws/aws-cdk-cli/blob/main/packages/@aws-cdk/toolkit-lib/lib/api/deployments/deploy-stack.ts
    return replace(changes, unprotected=tuple(each for each in deployed.protected if each in new))


def read_deployed(account: "Account", cluster: str, new: Templates) -> Deployed:
    """Return what is deployed: of the stacks of ``new``, and of those left behind.

    Args:
        account: The account to ask.
        cluster: Name of the cluster.
        new: What would be deployed.

    Raises:
        AccountError: AWS did not answer for a stack, or one of ``new`` is changing, failed half-way
            or is another's; one line for each.
    """
    described = names.stack_description(cluster)
    apart = {names.stack(cluster, layer) for layer in _APART}
    found: list[str] = []
    protected: list[str] = []
    wrong: list[str] = []
    for each in account.ask_all(
        account.client("cloudformation").describe_stacks, lambda page: page["Stacks"]
    ):
        name, status = each["StackName"], each["StackStatus"]
        if status in _NOT_THERE or name in apart:
            continue
        if each.get("Description") != described:
            if name in new:
                whose = each.get("Description", "no description")
                todo = "give the cluster, or the pool, another name"
                wrong.append(f"{name}: it is no stack of {cluster}: {whose}; {todo}")
        # What is left behind is not deployed: its template says all that it may still hold.
        elif status in _WHOLE or name not in new:
            found.append(name)
            if each.get("EnableTerminationProtection", False):
                protected.append(name)
        else:
            wrong.append(f"{name}: StackStatus is {status}; {_advice(status)}")
    if wrong:
        raise AccountError("\n".join(wrong))
    templates = {name: _deployed(account, name) for name in found}
    return Deployed(templates=templates, protected=tuple(protected))


def other_clusters(account: "Account", cluster: str) -> tuple[str, ...]:
    """Return the names of the clusters in the account's Region that are not ``cluster``.

    Raises:
        AccountError: AWS did not answer.
    """
    answers = account.ask_all(
        account.client("cloudformation").describe_stacks, lambda page: page["Stacks"]
    )
    found = {names.described_cluster(each.get("Description", "")) for each in answers}
    return tuple(sorted(each for each in found if each not in (None, cluster)))


def as_deployed(templates: Templates) -> Templates:
    """Return ``templates`` as CloudFormation gives them back once they are deployed."""
    text = json.dumps(templates, ensure_ascii=False)
    return json.loads(_NOT_ASCII.sub("?", text))


def synthesize(file: Path, folder: Path) -> Templates:
    """Return the templates of a cluster file, by the pinned command line of the CDK.

    Args:
        file: The cluster file.
        folder: An empty folder for ``cdk.out`` and ``dist``.

    Raises:
        UltrascaleError: The CDK CLI is not installed or is another one, or refuses the file.
    """
    cdk = find_cdk_cli()
    # Its context is read from where it runs, and the manifests are written there.
    (folder / "cdk.json").write_text((cdk.project / "cdk.json").read_text())
    app = shlex.join([sys.executable, str(cdk.project / "app.py")])
    command = [str(cdk.program), "synth", "--strict", "--quiet", "--no-notices", "--app", app]
    done = subprocess.run(
        [*command, "--context", f"cluster={file.resolve()}"],
        cwd=folder,
        env=cdk.environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise UltrascaleError(f"{file}: cdk synth failed:\n{(done.stderr or done.stdout).strip()}")
    return read_assembly(folder)


def _advice(status: str) -> str:
    if status.endswith("_IN_PROGRESS"):
        return "wait until it ends"
    return "what of it is there its template does not say; `ultrascale preflight` says what to do"


def _deployed(account: "Account", name: str) -> Template:
    body = account.ask(
        account.client("cloudformation").get_template, StackName=name, TemplateStage="Original"
    )["TemplateBody"]
    try:
        # What is no JSON botocore leaves as it is: YAML, in which CDK's small templates were sent.
        found: Any = (
            yaml.load(body, Loader=yaml.CSafeLoader)
            if isinstance(body, str)
            else json.loads(json.dumps(body))
        )
    except yaml.YAMLError as error:
        raise AccountError(f"{name}: its template is none of the CDK's: {error}") from error
    template = cast("Template", found) if isinstance(found, dict) else {"Resources": None}
    if not isinstance(template.get("Resources", {}), dict):
        raise AccountError(f"{name}: its template is none of the CDK's: it has no resources")
    return template
