"""Repositories with a pipeline, and what it becomes."""

import json
from collections.abc import Iterator, Mapping
from contextlib import chdir
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import yaml

from tests.support.pools import NEURON_POOL, SYSTEM_POOL, make_document
from ultrascale.parts.pipeline.model import PipelinePlan
from ultrascale.plan import load_app
from ultrascale_stacks.feature_flags import FLAGS
from ultrascale_stacks.pipeline import synthesize

HOME = "777788889999"
DEV_ACCOUNT = "111122223333"
PROD_ACCOUNT = "444455556666"
CONNECTION = f"arn:aws:codeconnections:us-east-2:{HOME}:connection/0aa1"
BOUNDARY = "prod-roles"
EMAIL = "platform@example.com"
WHEEL = "s3://artifacts/tools/ultrascale-0.4.0-py3-none-any.whl"
DEV = "clusters/dev.yaml"
PROD = "clusters/prod.yaml"

Document = Mapping[str, Any]


def cluster(**changes: Any) -> dict[str, Any]:
    """Return a cluster file that can be planned as a whole."""
    return make_document(pools=[SYSTEM_POOL, NEURON_POOL], **changes)


def pipeline(*stages: Document, **changes: Any) -> dict[str, Any]:
    """Return a `pipeline` of ``stages``; without any, of a development cluster, then this one.

    A change to None takes a key away.
    """
    document = {
        "connection": CONNECTION,
        "repository": "example/clusters",
        "package": WHEEL,
        "notifications": {"email": EMAIL},
        "stages": [*stages] or [{"name": "dev", "cluster": DEV, "approval": False}, PROD_STAGE],
    } | changes
    return {key: value for key, value in document.items() if value is not None}


PROD_STAGE: Document = {"name": "prod", "replace": ["Key1", "prod-network/Vpc2"]}


def write(folder: Path, **files: Document) -> Path:
    """Write clusters/NAME.yaml in ``folder`` for each of ``files``; return the one of `prod`."""
    (folder / "clusters").mkdir(exist_ok=True)
    for name, document in files.items():
        (folder / "clusters" / f"{name}.yaml").write_text(yaml.safe_dump(document))
    return Path(PROD)


def two_accounts(folder: Path, **changes: Any) -> Path:
    """Write a repository whose pipeline deploys two clusters into two accounts and Regions."""
    zones = ["us-east-2a", "us-east-2b"]
    prod = cluster(
        name="prod",
        account=PROD_ACCOUNT,
        region="us-east-2",
        permissions_boundary=BOUNDARY,
        network={"vpc_cidr": "10.0.0.0/16", "zones": zones},
        pipeline=pipeline(**changes),
    )
    prod["pools"] = [SYSTEM_POOL, NEURON_POOL | {"zones": ["us-east-2b"]}]
    return write(folder, dev=cluster(name="dev", account=DEV_ACCOUNT), prod=prod)


@dataclass(frozen=True, kw_only=True)
class Piped:
    """Result of a pipeline of two stages."""

    plan: PipelinePlan  # Its plan
    folder: Path  # Where it was written to
    template: Document  # Template of the pipeline's stack

    def of(self, kind: str) -> list[Document]:
        """Return the properties of every resource of a CloudFormation type."""
        found = self.template["Resources"].values()
        return [each["Properties"] for each in found if each["Type"] == kind]

    def templates(self) -> Iterator[tuple[Path, Any]]:
        """Yield every template of the pipeline and of its stages, with its path."""
        for path in sorted((self.folder / "cdk.out").glob("**/*.template.json")):
            yield path, json.loads(path.read_text())

    def own_templates(self) -> list[Document]:
        """Return the templates of the stacks beside those of the clusters."""
        own = self.folder / "cdk.out"
        files = [*own.glob("*.template.json"), *own.glob("assembly-*/*.template.json")]
        return [json.loads(path.read_text()) for path in files]

    def stage(self, name: str) -> list[Document]:
        """Return the actions of a stage of the pipeline, in the order they run in."""
        (made,) = self.of("AWS::CodePipeline::Pipeline")
        (stage,) = (each for each in made["Stages"] if each["Name"] == name)
        return sorted(stage["Actions"], key=lambda action: int(action["RunOrder"]))

    def deployments(self, stage: str) -> list[Document]:
        """Return the actions of a stage that deploy a stack."""
        found = self.stage(stage)
        return [each for each in found if each["ActionTypeId"]["Provider"] == "CloudFormation"]

    def build(self, *words: str) -> Document:
        """Return the one build project of which the specification has all of ``words``."""
        (found,) = (
            each
            for each in self.of("AWS::CodeBuild::Project")
            if all(word in str(each["Source"].get("BuildSpec")) for word in words)
        )
        return found


def load_pipeline(path: Path) -> PipelinePlan | None:
    """Read and plan the pipeline of a file; None where it has none."""
    plan = load_app(path)
    assert plan is None or isinstance(plan, PipelinePlan)
    return plan


def synthesize_pipeline(path: Path, folder: Path) -> PipelinePlan | None:
    """Synthesize the pipeline of a file, if it has one, as `synthesize` does a cluster.

    Args:
        path: The file, from the repository's folder, which is the current one.
        folder: Where it is written to.
    """
    pipeline = load_pipeline(path)
    if pipeline is not None:
        app = cdk.App(
            outdir=str(folder / "cdk.out"),
            context=dict(FLAGS),
            builtin_cloud_formation_validation=False,
        )
        synthesize(app, pipeline, manifests=folder / "dist")
    return pipeline


def piped_accounts(folder: Path) -> Piped:
    """Synthesize the pipeline of a repository with `two_accounts`."""
    path = two_accounts(folder)
    with chdir(folder):
        plan = synthesize_pipeline(path, folder)
    assert plan is not None
    template = json.loads((folder / "cdk.out" / "prod-pipeline.template.json").read_text())
    return Piped(plan=plan, folder=folder, template=template)


def files_of(folder: Path, pattern: str) -> dict[str, str]:
    return {path.name: path.read_text() for path in folder.glob(pattern)}


def actions(document: Any) -> list[str]:
    return sorted(
        action for statement in document["Statement"] for action in listed(statement["Action"])
    )


def listed(value: Any) -> list[Any]:
    return [*value] if isinstance(value, list) else [value]


def installs(text: str) -> Iterator[str]:
    words = text.replace("\\", " ").replace('"', " ").split()
    for number, word in enumerate(words):
        if word == "npm" and words[number + 1 : number + 3] == ["install", "-g"]:
            yield words[number + 3].rstrip(",")
