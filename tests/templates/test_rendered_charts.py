"""Other projects' charts as Helm renders them with our values, judged as an API server judges them.

The first test needs none of them: a chart of its own shows what the others would find.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.assembly import Assembly, synthesize
from tests.support.chart_values import keys, read_charts
from tests.support.charts import Helm, Release, definitions, findings, releases
from tests.support.crd_schemas import CrdSet
from tests.support.folders import ROOT
from tests.support.kubernetes_schemas import MINORS

CLUSTERS = ("auto", "estate", "hybrid", "llm", "mixed", "ray", "serving", "trainium", "ultra")
# EKS Auto Mode brings these kinds, and no chart.
OF_AUTO_MODE = ("eks.amazonaws.com/v1", "karpenter.sh/v1")


@pytest.fixture(scope="module")
def helm(tmp_path_factory: pytest.TempPathFactory) -> Helm:
    return Helm(tmp_path_factory.mktemp("tools"))


@pytest.fixture(scope="module")
def serving(tmp_path_factory: pytest.TempPathFactory) -> Assembly:
    return synthesize(ROOT / "clusters" / "serving.yaml", tmp_path_factory.mktemp("serving"))


# A Deployment and a ResourceFlavor, as the charts of Kueue and LeaderWorkerSet have them.
DEPLOYMENT = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: it}
spec:
  selector: {matchLabels: {a: b}}
  template:
    metadata: {labels: {a: b}}
    spec:
      {{- with .Values.pod }}{{ toYaml . | nindent 6 }}{{ end }}
      containers:
      - {name: it, image: "it:1", resources: {{ toJson .Values.resources }}}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata: {name: it}
spec: {{ toJson .Values.flavor }}
"""
FLAVOR = {"required": ["topologyName"], "properties": {"topologyName": {"type": "string"}}}
FLAVORS: Any = {"properties": {"spec": {"type": "object", **FLAVOR}}}
KINDS = CrdSet({("kueue.x-k8s.io/v1beta2", "ResourceFlavor"): FLAVORS})


@pytest.mark.parametrize(
    ("values", "why"),
    [
        ({}, ""),
        # LeaderWorkerSet's chart has no limit of CPU: Helm keeps the null, which is a limit of 0.
        (
            {"resources": {"limits": {"cpu": None}, "requests": {"cpu": "1"}}},
            "limit of cpu is None",
        ),
        ({"resources": {"limit": {"memory": "1Gi"}}}, "('limit' was unexpected)"),
        ({"pod": {"priorityclassName": "high"}}, "('priorityclassName' was unexpected)"),
        ({"pod": {"tolerations": [{"key": 1}]}}, "1 is not of type"),
        ({"flavor": None}, "None is not of type 'object'"),
        ({"flavor": {"topologyName": None}}, "'topologyName' is a required property"),
        ({"flavor": {"topologyname": "it"}}, "('topologyname' was unexpected)"),
        ({"flavor": {"topologyName": "it", "labels": {}}}, "('labels' was unexpected)"),
    ],
)
def test_what_an_api_server_would_refuse_of_a_chart_is_found(
    values: dict[str, Any], why: str, helm: Helm, tmp_path: Path
) -> None:
    own = {"pod": {}, "resources": {}, "flavor": {"topologyName": "it"}}
    files = {
        "Chart.yaml": json.dumps({"apiVersion": "v2", "name": "it", "version": "1.0.0"}),
        "values.yaml": json.dumps(own),
        "templates/it.yaml": DEPLOYMENT,
    }
    for name, content in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(content)
    release = Release(release="it", chart="it", version="1.0.0", namespace="it", values=values)

    reasons = findings(helm.objects(tmp_path, release, MINORS[0]), MINORS[0], KINDS)

    assert any(why in each for each in reasons) if why else reasons == []


@pytest.mark.charts
@pytest.mark.parametrize("cluster", CLUSTERS)
def test_a_cluster_takes_each_object_of_its_charts_and_of_ours(
    cluster: str, request: pytest.FixtureRequest, helm: Helm
) -> None:
    assembly: Assembly = request.getfixturevalue(cluster)
    minor = assembly.plan.control_plane.version
    rendered = {
        each.release: helm.objects(each.archive, each, minor) for each in releases(assembly)
    }
    known = definitions([*assembly.documents, *(d for each in rendered.values() for d in each)])
    ours = [
        each
        for each in assembly.documents
        if cluster != "auto" or each["apiVersion"] not in OF_AUTO_MODE
    ]

    assert all(rendered.values())
    assert {
        chart: reasons
        for chart, documents in {**rendered, "ours": ours}.items()
        if (reasons := findings(documents, minor, known))
    } == {}


@pytest.mark.charts
@pytest.mark.parametrize("template", ["production", "development", "research"])
def test_a_cluster_takes_the_job_of_our_chart(template: str, hybrid: Assembly, helm: Helm) -> None:
    """HyperPod's chart has the definition of PyTorchJob."""
    minor, values = hybrid.plan.control_plane.version, {"template": template, "image": "r.io/it:1"}
    ours = Release(
        release="it", chart="training-job", version="", namespace="training", values=values
    )
    definers = [helm.objects(each.archive, each, minor) for each in releases(hybrid)]
    documents = helm.objects(ROOT / "charts" / "training-job", ours, minor)

    known = definitions(document for each in definers for document in each)
    assert documents
    assert findings(documents, minor, known) == []


@pytest.mark.charts
@pytest.mark.parametrize("name", read_charts())
def test_the_recorded_keys_of_a_chart_are_its_own(name: str, helm: Helm) -> None:
    """By them `make test` finds a key of ours that the chart ignores."""
    recorded = read_charts()[name]
    release = Release(release=name, chart=name, version=recorded.version, namespace="it", values={})
    assert keys(helm.values(release.archive)) == recorded.keys
