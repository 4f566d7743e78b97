"""Objects of upstream's manifests: of the pinned releases, and what `tools/upstream.py` left."""

import json
from typing import Any

import pytest
import yaml

from tools.upstream import FOLDER, PROJECTS, Project, objects_of
from ultrascale.catalog.versions import image
from ultrascale_k8s.upstream import upstream_objects

FILES = {name: project for project in PROJECTS.values() for name in project.files}


def test_files_are_of_the_pinned_releases() -> None:
    assert PROJECTS["volcano"].tag == image("volcano-scheduler").tag
    assert {file.stem for file in FOLDER.glob("*.yaml")} == set(FILES)
    for name, project in FILES.items():
        head = (FOLDER / f"{name}.yaml").read_text().partition("---")[0]
        assert f"{project.repository}/blob/{project.tag}/" in head
        assert "License: Apache-2.0" in head


@pytest.mark.parametrize("file", FILES)
def test_nothing_is_left_to_trim(file: str) -> None:
    project = FILES[file]
    written = (FOLDER / f"{file}.yaml").read_text()

    again = objects_of(project, written, project.files[file])

    assert again == [*upstream_objects(file).values()]
    assert '"description"' not in json.dumps(again)


def role(*rules: dict[str, Any]) -> str:
    return yaml.safe_dump({"kind": "ClusterRole", "metadata": {"name": "own"}, "rules": [*rules]})


def make_project(withheld: dict[tuple[str, str, str], tuple[str, ...]]) -> Project:
    return Project(repository="a/b", tag="v1", manifest="m.yaml", files={}, withheld=withheld)


def test_rights_that_nothing_uses_are_withheld() -> None:
    manifest = role(
        {"apiGroups": ["old", "new"], "resources": ["jobs"], "verbs": ["get", "list"]},
        {"apiGroups": [""], "resources": ["pods", "nodes"], "verbs": ["get", "delete"]},
        {"apiGroups": [""], "resources": ["secrets"], "verbs": ["list"]},
    ).replace("kind", "apiVersion: rbac.authorization.k8s.io/v1\nkind")
    withheld = {
        ("*", "old", "*"): (),
        ("own", "", "nodes"): ("delete",),
        ("other", "", "pods"): (),
        ("*", "", "secrets"): (),
    }

    (trimmed,) = objects_of(make_project(withheld), manifest, [("ClusterRole", "own")])

    assert isinstance(trimmed, dict)
    assert trimmed["rules"] == [
        {"apiGroups": ["new"], "resources": ["jobs"], "verbs": ["get", "list"]},
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "delete"]},
        {"apiGroups": [""], "resources": ["nodes"], "verbs": ["get"]},
    ]


def test_an_object_that_upstream_dropped_is_missed() -> None:
    with pytest.raises(KeyError, match="gone"):
        objects_of(make_project({}), "---\n", [("ClusterRole", "gone")])
