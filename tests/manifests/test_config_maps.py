"""ConfigMaps that no kubelet watches: a change is a new one, and takes new pods."""

from collections.abc import Mapping
from typing import Any

from tests.support.applied import applied
from ultrascale_k8s.objects import config_map


def render(data: Mapping[str, str]) -> dict[str, Any]:
    (made,) = applied([config_map("settings", namespace="apps", component="app", data=data)])
    return made


def test_kubelets_need_not_watch_it() -> None:
    made = render({"file": "text"})

    assert made["immutable"] is True
    assert made["data"] == {"file": "text"}


def test_its_name_follows_from_its_files_and_from_nothing_else() -> None:
    names = [
        render(data)["metadata"]["name"]
        for data in (
            {"a": "1", "b": "2"},
            {"b": "2", "a": "1"},
            {"a": "12", "b": ""},
            {"a": "1", "b": "3"},
        )
    ]

    assert names[0] == names[1]
    assert len(set(names)) == 3
    assert all(name.startswith("settings-") for name in names)
