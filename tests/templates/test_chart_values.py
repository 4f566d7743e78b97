"""Values of other projects' charts, as they were synthesized, beside the keys that the charts have.

A key that the chart lacks is ignored, and a null takes a key away only where the chart has it: as
the limit of a container it is zero, and the API server refuses the Deployment.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pytest

from tests.support.assembly import Assembly
from tests.support.cell_parts import text
from tests.support.chart_values import Values, merged, read_charts, refused_limits, sizes
from tests.support.helm_tools import HELM, unpack_tools

CLUSTERS = ("auto", "estate", "hybrid", "llm", "mixed", "ray", "serving", "trainium", "ultra")
CHARTS = read_charts()
# Its chart of definitions is given no values.
WITHOUT_VALUES = "karpenter-crd"


@pytest.fixture(scope="module")
def assemblies(request: pytest.FixtureRequest) -> list[Assembly]:
    return [request.getfixturevalue(name) for name in CLUSTERS]


@pytest.fixture(scope="module")
def helm(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpack_tools(tmp_path_factory.mktemp("tools"), (HELM,)) / HELM


def installed(assemblies: list[Assembly], chart: str) -> list[Values]:
    """Return the values that the clusters' files give a chart, and each that differs once."""
    texts = {
        text(body["Properties"]["Values"])
        for assembly in assemblies
        for _, body in assembly.resources("Custom::AWSCDK-EKS-HelmChart")
        if body["Properties"]["Chart"] == chart
    }
    return [json.loads(text) for text in sorted(texts)]


def nulls(value: object, path: str = "") -> Iterator[str]:
    """Yield the path of each null in values."""
    if value is None:
        yield path
    elif isinstance(value, dict):
        for key, each in cast("Values", value).items():
            yield from nulls(each, f"{path}.{key}")
    elif isinstance(value, list):
        for each in cast("list[object]", value):
            yield from nulls(each, f"{path}[]")


def test_the_keys_of_every_chart_that_is_installed_are_recorded(assemblies: list[Assembly]) -> None:
    """Another version asks for another look at its values."""
    found = {
        (body["Properties"]["Chart"], body["Properties"]["Version"])
        for assembly in assemblies
        for _, body in assembly.resources("Custom::AWSCDK-EKS-HelmChart")
    }

    recorded = {(name, chart.version) for name, chart in CHARTS.items()}
    assert {each for each in found if each[0] != WITHOUT_VALUES} == recorded


@pytest.mark.parametrize("name", CHARTS)
def test_a_chart_has_every_key_of_its_values(assemblies: list[Assembly], name: str) -> None:
    for ours in installed(assemblies, name):
        assert CHARTS[name].unknown(ours) == []


@pytest.mark.parametrize(
    ("ours", "why"),
    [
        ({"replicas": 2}, "replicas"),
        ({"resources": {"limit": {"memory": "1Gi"}}}, "resources.limit"),
        ({"tolerations": {"operator": "Exists"}}, "tolerations, a list there"),
        ({"image": "registry.k8s.io/lws/lws"}, "image, a map there"),
    ],
)
def test_a_key_that_the_chart_would_ignore_is_found(ours: Values, why: str) -> None:
    assert CHARTS["lws"].unknown(ours) == [why]


@pytest.mark.parametrize("name", CHARTS)
def test_no_null_is_left_where_helm_has_joined_the_values(
    assemblies: list[Assembly], helm: Path, tmp_path: Path, name: str
) -> None:
    for number, ours in enumerate(installed(assemblies, name)):
        folder = tmp_path / str(number)
        folder.mkdir()
        joined = merged(CHARTS[name], ours, helm=helm, folder=folder)

        assert [*nulls(joined)] == []
        assert [why for each in sizes(joined) for why in refused_limits(each)] == []
