"""A whole cluster file, synthesized once, for tests to look into."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import aws_cdk as cdk
import yaml

from ultrascale import plan
from ultrascale_k8s import define_charts
from ultrascale_stacks import app as entry
from ultrascale_stacks.feature_flags import FLAGS

Document = Mapping[str, Any]


# As `ultrascale synth` has it: findings are read from the report, and by the paths of constructs
# cfn-lint knows a template of the CDK's, whose zones are written down.
_JUDGED: Mapping[str, bool] = {
    "@aws-cdk/core:failSynthOnValidationErrors": False,
    "aws:cdk:enable-path-metadata": True,
}


@dataclass(frozen=True, kw_only=True)
class Assembly:
    """Plan, templates and objects of one cluster file."""

    plan: plan.ClusterPlan  # Its plan
    templates: Mapping[str, Document]  # Templates by stack name, without the cluster's prefix
    # Objects of each chart, by the chart's name, in the order they are applied
    charts: Mapping[str, list[Document]]
    folder: Path  # Where it was written to; the manifests are in its folder ``dist``

    @property
    def documents(self) -> list[Document]:
        """The objects of every chart."""
        return [document for chart in self.charts.values() for document in chart]

    def resources(self, kind: str) -> Iterator[tuple[str, Document]]:
        """Yield the stack name and the body of every resource of a CloudFormation type."""
        for stack, template in self.templates.items():
            for body in template.get("Resources", {}).values():
                if body["Type"] == kind:
                    yield stack, body

    def find(self, kind: str, name: str) -> Document:
        """Return the one object of ``kind`` called ``name``."""
        (found,) = (
            document
            for document in self.documents
            if document["kind"] == kind and document["metadata"]["name"] == name
        )
        return found


def synthesize(
    file: Path, folder: Path, *, validated: bool = True, builtin: bool = False
) -> Assembly:
    """Synthesize a cluster file.

    Args:
        file: The cluster file.
        folder: Where it is written to.
        validated: Whether the templates are checked by the AwsSolutions rules and by our own.
        builtin: Whether the CDK's built-in validation, which costs seconds, has findings in the
            assembly's report too, and each resource the path of its construct.
    """
    cluster = plan.load(file)
    app = cdk.App(
        outdir=str(folder / "cdk.out"),
        context={**FLAGS, **(_JUDGED if builtin else {})},
        builtin_cloud_formation_validation=builtin,
    )
    charts = define_charts(cluster)
    entry.synthesize(app, cluster, charts, file, manifests=folder / "dist", validated=validated)
    templates = {
        path.name.removesuffix(".template.json").removeprefix(f"{cluster.name}-"): json.loads(
            path.read_text()
        )
        for path in sorted((folder / "cdk.out").glob("*.template.json"))
    }
    charts = {
        path.name.removesuffix(".k8s.yaml").split("-", 1)[1]: [
            document
            for document in yaml.load_all(path.read_text(), Loader=yaml.CSafeLoader)
            if document
        ]
        for path in sorted((folder / "dist").glob("*.k8s.yaml"))
    }
    return Assembly(plan=cluster, templates=templates, charts=charts, folder=folder)


def stacks_before(assembly: Assembly, layer: str) -> set[str]:
    """Return every layer that is deployed before ``layer``, directly or not."""
    manifest: Mapping[str, Any] = json.loads(
        (assembly.folder / "cdk.out" / "manifest.json").read_text()
    )
    prefix = f"{assembly.plan.name}-"
    found: set[str] = set()
    waiting = [layer]
    while waiting:
        artifact = manifest["artifacts"][prefix + waiting.pop()]
        for name in artifact.get("dependencies", []):
            other = name.removeprefix(prefix)
            if other in assembly.templates and other not in found:
                found.add(other)
                waiting.append(other)
    return found


def named_in(value: object) -> Iterator[str]:
    """Yield every part of a template that a `Ref` or a `Fn::GetAtt` names."""
    if isinstance(value, list):
        for item in cast("list[object]", value):
            yield from named_in(item)
    elif isinstance(value, dict):
        items = cast("dict[str, Any]", value)
        named = items.get("Ref") or items.get("Fn::GetAtt")
        if len(items) == 1 and named and not str(named).startswith("AWS::"):
            yield named[0] if isinstance(named, list) else named.partition(".")[0]
        for item in items.values():
            yield from named_in(item)


def unneeded_acknowledgments(folder: Path) -> set[tuple[str, str]]:
    """Return the acknowledgments of an assembly that nothing there needs: construct and finding.

    Args:
        folder: An assembly that tests synthesized.
    """
    files = [*folder.glob("*.metadata.json"), *folder.glob("assembly-*/*.metadata.json")]
    acknowledged = {
        (path.removeprefix("/"), finding)
        for file in files
        for path, entries in json.loads(file.read_text()).items()
        for entry in entries
        if entry["type"] == "aws:cdk:acknowledged-rules"
        for finding in entry["data"]
        # The CDK's own validation is off in tests.
        if finding.startswith(("AwsSolutions", "ultrascale"))
    }
    report = json.loads((folder / "validation-report.json").read_text())
    needed = {
        (finding["acknowledgedAt"], finding["acknowledgedId"])
        for plugin in report["pluginReports"]
        for finding in plugin.get("suppressedViolations", ())
    }
    return acknowledged - needed
