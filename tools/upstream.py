"""Objects of upstream's manifests that our charts carry: `python tools/upstream.py NAME SOURCE`.

NAME is one of `PROJECTS`. SOURCE is the project's repository at the pinned tag: the folder of a
checkout, or a URL such as https://raw.githubusercontent.com/volcano-sh/volcano/v1.15.1. The trimmed
objects go to `k8s/ultrascale_k8s/upstream/`, where the charts read them. What we decide about them
stands in the charts.
"""

import argparse
import urllib.request
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import cast

import yaml

from ultrascale import yaml_writer
from ultrascale.documents import Json, JsonObject, look_up, mapping, objects, sequence, text

FOLDER = Path(__file__).parent.parent / "k8s" / "ultrascale_k8s" / "upstream"

_KEEP = "x-kubernetes-preserve-unknown-fields"
_ANYTHING: JsonObject = {"type": "object", _KEEP: True}


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """A project, and the objects of its manifest that we carry."""

    repository: str  # Its repository on GitHub
    tag: str  # The pinned release
    manifest: str  # Path of the manifest in the repository
    # For each file that is written: its name, and the kind and name of each object in it.
    files: Mapping[str, Sequence[tuple[str, str]]]
    # Rights that nothing of ours uses: by role, ``*`` for all, API group, and resource, ``*`` for
    # all of the group, the verbs, none for all.
    withheld: Mapping[tuple[str, str, str], Collection[str]]


# Every program holds its Lease in its own namespace alone, by a Role of ours.
_LEASES = ("*", "coordination.k8s.io", "*")

PROJECTS: Mapping[str, Project] = {
    "volcano": Project(
        repository="volcano-sh/volcano",
        tag="v1.15.1",
        manifest="installer/volcano-development.yaml",
        files={
            "volcano-crds": [
                ("CustomResourceDefinition", f"{name}.volcano.sh")
                for name in (
                    "jobs.batch",
                    "cronjobs.batch",
                    "jobflows.flow",
                    "jobtemplates.flow",
                    "podgroups.scheduling",
                    "queues.scheduling",
                    "hypernodes.topology",
                    "commands.bus",
                    "numatopologies.nodeinfo",
                    "nodeshards.shard",
                    "colocationconfigurations.config",
                )
            ],
            "volcano-roles": [
                ("ClusterRole", f"volcano-{name}")
                for name in ("scheduler", "controllers", "admission")
            ],
            # Those for pods and for mutating PodGroups are off, so that no pod outside Volcano
            # ever waits for its webhooks.
            "volcano-webhooks": [
                (
                    f"{'Mutating' if verb == 'mutate' else 'Validating'}WebhookConfiguration",
                    f"volcano-admission-service-{resource}-{verb}",
                )
                for resource, verb in (
                    ("jobs", "mutate"),
                    ("jobs", "validate"),
                    ("podgroups", "validate"),
                    ("queues", "mutate"),
                    ("queues", "validate"),
                    ("hypernodes", "validate"),
                    ("cronjobs", "validate"),
                )
            ],
        },
        withheld={
            _LEASES: (),
            ("*", "apiextensions.k8s.io", "*"): (),
            ("*", "certificates.k8s.io", "*"): (),
            # Retired long ago.
            ("*", "scheduling.incubator.k8s.io", "*"): (),
            ("*", "scheduling.k8s.io", "priorityclasses"): ("create", "delete"),
            # For the plugin `ssh` of jobs, which keeps keys there: none of our jobs has it.
            ("volcano-controllers", "", "secrets"): (),
            ("volcano-scheduler", "", "configmaps"): ("create", "delete", "update"),
            # The chart allows it to update its own configurations, by their names.
            ("*", "admissionregistration.k8s.io", "*"): ("create", "update"),
            # Upstream means those of JobFlows, which the chart adds.
            ("*", "flow.volcano.sh", "jobs/finalizers"): (),
        },
    ),
    # The example that the releases of all minors share.
    "cluster-autoscaler": Project(
        repository="kubernetes/autoscaler",
        tag="cluster-autoscaler-1.36.1",
        manifest="cluster-autoscaler/cloudprovider/aws/examples/cluster-autoscaler-autodiscover.yaml",
        files={"cluster-autoscaler-roles": [("ClusterRole", "cluster-autoscaler")]},
        withheld={
            _LEASES: (),
            # API groups and the lock of long ago.
            ("*", "extensions", "*"): (),
            ("*", "", "endpoints"): (),
        },
    ),
}


def objects_of(project: Project, manifest: str, names: Sequence[tuple[str, str]]) -> list[Json]:
    """Return the objects ``names`` of ``manifest``, trimmed, in this order.

    Raises:
        KeyError: The manifest lacks one of them.
    """
    documents = cast("list[JsonObject | None]", list(yaml.load_all(manifest, yaml.CSafeLoader)))
    by_name = {
        (text(document, "kind"), text(document, "metadata", "name")): document
        for document in documents
        if document is not None
    }
    return [_trimmed(by_name[name], project) for name in names]


def _trimmed(document: JsonObject, project: Project) -> Json:
    trimmers: Mapping[str, Callable[[JsonObject], JsonObject]] = {
        "CustomResourceDefinition": _definition,
        "ClusterRole": lambda role: {"rules": [*_rules(role, project)]},
    }
    kind = text(document, "kind")
    trim = trimmers.get(kind, _webhooks)
    return {
        "apiVersion": document["apiVersion"],
        "kind": kind,
        "metadata": {"name": text(document, "metadata", "name")},
        **trim(document),
    }


def _webhooks(document: JsonObject) -> JsonObject:
    """Return the webhooks without empty selectors, which select everything."""
    return {
        "webhooks": [
            {key: value for key, value in webhook.items() if value != {}}
            for webhook in objects(document, "webhooks")
        ]
    }


def _rules(role: JsonObject, project: Project) -> Iterator[Json]:
    """Yield the rules of a role without withheld rights, one for each group and its verbs."""
    name = text(role, "metadata", "name")
    for rule in objects(role, "rules"):
        for group in cast("Sequence[str]", sequence(rule, "apiGroups")):
            resources: dict[tuple[str, ...], list[str]] = {}
            for resource in cast("Sequence[str]", sequence(rule, "resources")):
                verbs = cast("Sequence[str]", sequence(rule, "verbs"))
                for key in product(("*", name), (group,), ("*", resource)):
                    if (withheld := project.withheld.get(key)) is not None:
                        verbs = [verb for verb in verbs if withheld and verb not in withheld]
                resources.setdefault(tuple(verbs), []).append(resource)
            for verbs, names in resources.items():
                if verbs:
                    yield {**rule, "apiGroups": [group], "resources": names, "verbs": [*verbs]}


def _definition(document: JsonObject) -> JsonObject:
    spec = mapping(document, "spec")
    return {
        "spec": {**spec, "versions": [_version(version) for version in objects(spec, "versions")]}
    }


def _version(version: JsonObject) -> JsonObject:
    schema = mapping(version, "schema", "openAPIV3Schema")
    own = {
        name: field
        for name, field in mapping(schema, "properties").items()
        if name not in ("apiVersion", "kind", "metadata")
    }
    return {
        **{key: value for key, value in version.items() if value != {}},
        "schema": {"openAPIV3Schema": _schema({**schema, "properties": own})},
    }


def _schema(schema: JsonObject) -> JsonObject:
    """Return the schema without descriptions; its objects keep the fields that it does not name.

    Pod templates, volume claims, metadata and `status` are left to the kinds that own them.
    """
    trimmed: dict[str, Json] = {
        key: value for key, value in schema.items() if key not in ("description", "properties")
    }
    for key in ("items", "additionalProperties"):
        if key in schema:
            trimmed[key] = _schema(mapping(schema, key))
    properties = mapping(schema, "properties")
    if properties:
        trimmed[_KEEP] = True
        trimmed["properties"] = {
            name: _field(name, cast("JsonObject", field)) for name, field in properties.items()
        }
    return trimmed


def _field(name: str, schema: JsonObject) -> JsonObject:
    if name in ("metadata", "status", "volumeClaim"):
        return _ANYTHING
    if name == "template" and look_up(schema, "properties", "spec", "properties", "containers"):
        containers: JsonObject = {"type": "array", "items": _ANYTHING}
        pod = {**_ANYTHING, "required": ["containers"], "properties": {"containers": containers}}
        return {**_ANYTHING, "properties": {"metadata": _ANYTHING, "spec": pod}}
    return _schema(schema)


def _manifest(project: Project, source: str) -> str:
    place = f"{source.rstrip('/')}/{project.manifest}"
    if source.startswith("https://"):
        with urllib.request.urlopen(place) as answer:
            return answer.read().decode()
    return Path(place).read_text(encoding="utf-8")


def main() -> None:
    """Write the files of a project."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("project", choices=PROJECTS)
    parser.add_argument("source", help="repository at the pinned tag: a folder or a URL")
    options = parser.parse_args()
    name: str = options.project
    project = PROJECTS[name]
    manifest = _manifest(project, options.source)
    for file, names in project.files.items():
        head = (
            f"# Trimmed by `python tools/upstream.py {name} SOURCE`, which says how.\n"
            f"# Source: https://github.com/{project.repository}/blob/{project.tag}/"
            f"{project.manifest}\n# License: Apache-2.0\n---\n"
        )
        body = yaml_writer.dump_all(objects_of(project, manifest, names), compact=True)
        (FOLDER / f"{file}.yaml").write_text(head + body, encoding="utf-8")


if __name__ == "__main__":
    main()
