"""ConfigMaps that no kubelet watches: a change is a new one, and takes new pods."""

from collections.abc import Mapping
from typing import Any

import cdk8s

from ultrascale_k8s.objects import define_config_map


def render(data: Mapping[str, str]) -> tuple[str, dict[str, Any]]:
    chart = cdk8s.Chart(cdk8s.Testing.app(), "chart")
    name = define_config_map(
        chart, "Id", name="settings", namespace="apps", component="app", data=data
    )
    (config_map,) = cdk8s.Testing.synth(chart)
    return name, config_map


def test_kubelets_need_not_watch_it() -> None:
    name, config_map = render({"file": "text"})

    assert config_map["immutable"] is True
    assert config_map["data"] == {"file": "text"}
    assert config_map["metadata"]["name"] == name


def test_its_name_follows_from_its_files_and_from_nothing_else() -> None:
    names = [
        render(data)[0]
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
