"""Charts rendered by Helm with our values: the list of their images, and what a cluster takes.

The sources are other projects': ULTRASCALE_CHARTS names a folder that holds them, as folders
`karpenter`, `karpenter-crd`, `kueue`, `jobset`, `gateway-helm`, `aws-load-balancer-controller`,
`keda` and `lws`. `tests/templates/test_chart_values.py` needs none of them.
"""

import json
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest
import yaml

from tests.support.chart_values import refused_limits
from tests.support.helm_tools import HELM, unpack_tools
from tests.support.kubernetes_schemas import MINORS, Document, containers, is_core, validate_core
from tests.support.pools import SYSTEM_POOL, make_cluster, pool_document
from ultrascale.catalog import karpenter, leaderworkerset
from ultrascale.catalog.registries import chart_images
from ultrascale.parts import services
from ultrascale.parts.front import Plan, envoy_gateway, load_balancer_controller
from ultrascale.parts.kueue import facts as kueue
from ultrascale.parts.kueue import jobset
from ultrascale.parts.kueue.model import Plan as KueuePlan
from ultrascale.parts.services import keda
from ultrascale.plan.cluster import assemble
from ultrascale.sbom.images import container_images
from ultrascale_constructs.front import controller_values as load_balancer_values
from ultrascale_constructs.front import gateway_values
from ultrascale_constructs.karpenter import controller_values
from ultrascale_stacks.kueue import jobset_values, kueue_values
from ultrascale_stacks.services import keda_values, leader_worker_set_values

CHARTS = os.environ.get("ULTRASCALE_CHARTS")
pytestmark = pytest.mark.skipif(CHARTS is None, reason="ULTRASCALE_CHARTS names no folder")
MIRROR = "registry.example.com/mirror"
LOCATIONS = {
    "karpenter": karpenter.CHART,
    "karpenter-crd": karpenter.CRD_CHART,
    "kueue": kueue.CHART,
    "jobset": jobset.CHART,
    "gateway-helm": envoy_gateway.CHART,
    "aws-load-balancer-controller": load_balancer_controller.CHART,
    "keda": keda.CHART,
    "lws": leaderworkerset.CHART,
}


def values() -> Mapping[str, Mapping[str, object]]:
    """Return the values of each chart in a cluster with a mirror."""
    pools = [SYSTEM_POOL, pool_document(provisioner="karpenter")]
    cluster = make_cluster(
        pools=pools,
        karpenter={"version": karpenter.NEWEST_VERSION},
        scheduling={"queueing": "kueue"},
        images={"mirror": MIRROR},
        serving={"controllers": ["keda", "leader-worker-set"], "front": {}},
    )
    plan = assemble(cluster)
    assert plan.nodes.karpenter is not None
    kueue = plan.part(KueuePlan)
    assert kueue is not None
    front = plan.part(Plan)
    assert front is not None
    assert front.load_balancer is not None
    assert front.load_balancer.controller is not None
    serving = plan.part(services.Plan)
    assert serving is not None
    assert serving.keda is not None
    assert serving.leader_worker_set is not None
    return {
        "karpenter": controller_values(plan.nodes.karpenter, cluster_name=plan.name),
        "karpenter-crd": {},
        "kueue": kueue_values(kueue),
        "jobset": jobset_values(kueue),
        "gateway-helm": gateway_values(front),
        "aws-load-balancer-controller": load_balancer_values(
            front.load_balancer.controller, cluster_name="x", region="us-west-2", vpc_id="vpc"
        ),
        "keda": keda_values(serving.keda, cluster_name=plan.name),
        "lws": leader_worker_set_values(serving.leader_worker_set),
    }


@pytest.fixture(scope="module")
def helm(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpack_tools(tmp_path_factory.mktemp("tools"), (HELM,)) / HELM


def rendered(name: str, helm: Path, folder: Path) -> list[Document]:
    """Return the objects of a chart."""
    assert CHARTS is not None
    given = folder / "values.json"
    given.write_text(json.dumps(values()[name]))
    text = subprocess.run(
        [helm, "template", name, Path(CHARTS, name), "--values", given, "--include-crds"],
        capture_output=True,
        check=True,
        text=True,
    ).stdout
    return [each for each in yaml.load_all(text, Loader=yaml.CSafeLoader) if each]


@pytest.mark.parametrize("name", LOCATIONS)
def test_a_cluster_takes_the_objects_of_a_chart(name: str, helm: Path, tmp_path: Path) -> None:
    documents = rendered(name, helm, tmp_path)

    assert documents
    assert [
        finding
        for document in documents
        for finding in [
            *(
                why
                for each in containers(document)
                for why in refused_limits(each.get("resources", {}))
            ),
            *(
                why
                for minor in MINORS
                if is_core(document)
                for why in validate_core(document, minor)
            ),
        ]
    ] == []


@pytest.mark.parametrize("name", LOCATIONS)
def test_every_image_of_a_chart_is_on_its_list_and_comes_from_the_mirror(
    name: str, helm: Path, tmp_path: Path
) -> None:
    assert CHARTS is not None
    version = str(yaml.safe_load(Path(CHARTS, name, "Chart.yaml").read_text())["version"])

    found = {
        image.partition("@")[0].rpartition(":")[0]
        for document in rendered(name, helm, tmp_path)
        for image in container_images(document)
    }

    listed = chart_images(LOCATIONS[name], version.removeprefix("v"))
    if name == "gateway-helm":
        # The controller makes these pods, of an object that the chart does not bring.
        listed = tuple(image for image in listed if image != envoy_gateway.PROXY_IMAGE)
    assert found == {f"{MIRROR}/{image.rpartition(':')[0]}" for image in listed}
