"""Charts rendered by Helm with our values: the list of their images, with a mirror."""

from collections.abc import Mapping

import pytest

from tests.support.charts import Helm, Release, definitions, findings, pinned
from tests.support.kubernetes_schemas import MINORS
from tests.support.pools import SYSTEM_POOL, make_cluster, pool_document
from ultrascale.catalog import karpenter
from ultrascale.catalog.registries import chart_images
from ultrascale.parts import services
from ultrascale.parts.front import Plan, envoy_gateway
from ultrascale.parts.kueue.model import Plan as KueuePlan
from ultrascale.parts.ray.model import Plan as RayPlan
from ultrascale.plan.cluster import assemble
from ultrascale.sbom.images import container_images
from ultrascale_constructs.front import controller_values as load_balancer_values
from ultrascale_constructs.front import gateway_values
from ultrascale_constructs.karpenter import controller_values
from ultrascale_stacks.kueue import jobset_values, kueue_values
from ultrascale_stacks.ray import operator_values
from ultrascale_stacks.services import keda_values, leader_worker_set_values

pytestmark = pytest.mark.charts
MIRROR = "registry.example.com/mirror"


def values() -> Mapping[str, Mapping[str, object]]:
    """Return the values of each chart in a cluster with a mirror."""
    pools = [SYSTEM_POOL, pool_document(provisioner="karpenter")]
    cluster = make_cluster(
        pools=pools,
        karpenter={"version": karpenter.NEWEST_VERSION},
        scheduling={"queueing": "kueue", "ray": True},
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
    operator = plan.part(RayPlan)
    assert operator is not None
    return {
        "kuberay-operator": operator_values(operator),
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
def helm(tmp_path_factory: pytest.TempPathFactory) -> Helm:
    return Helm(tmp_path_factory.mktemp("tools"))


@pytest.mark.parametrize(
    ("location", "version"), sorted({(each.location, each.version) for each in pinned()})
)
def test_every_image_of_a_chart_is_on_its_list_and_comes_from_the_mirror(
    location: str, version: str, helm: Helm
) -> None:
    name = location.rpartition("/")[2]
    release = Release(
        release=name, chart=name, version=version, namespace="it", values=values()[name]
    )
    documents = helm.objects(release.archive, release, MINORS[0])

    assert findings(documents, MINORS[0], definitions(documents)) == []
    found = {
        image.partition("@")[0].rpartition(":")[0]
        for document in documents
        for image in container_images(document)
    }
    listed = chart_images(location, version.removeprefix("v"))
    if name == "gateway-helm":
        # The controller makes these pods, of an object that the chart does not bring.
        listed = tuple(image for image in listed if image != envoy_gateway.PROXY_IMAGE)
    assert found == {f"{MIRROR}/{image.rpartition(':')[0]}" for image in listed}
