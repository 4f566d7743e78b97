"""Charts of a cluster with a mirror, and the images that their values name."""

from tests.support.pools import make_cluster, make_document
from ultrascale.documents import look_up
from ultrascale.parts.kueue import facts as kueue
from ultrascale.parts.kueue import jobset
from ultrascale.parts.kueue.model import Plan as KueuePlan
from ultrascale.parts.mirror.lock import MirrorLock
from ultrascale.plan.cluster import assemble
from ultrascale_constructs.karpenter import controller_values
from ultrascale_stacks.kueue import jobset_values, kueue_values

MIRROR = "111122223333.dkr.ecr.us-west-2.amazonaws.com/mirror"
DIGEST = "sha256:" + "a" * 64


def test_charts_come_from_the_mirror_and_their_controllers_with_them() -> None:
    pool = make_document()["pools"][1] | {"provisioner": "karpenter"}
    pools = [make_document()["pools"][0], pool]
    cluster = make_cluster(
        pools=pools,
        karpenter={"version": "1.15.2"},
        scheduling={"queueing": "kueue"},
        images={"mirror": MIRROR},
    )
    image = f"{kueue.IMAGE}:v{kueue.VERSION}"
    planned = assemble(cluster, records=(MirrorLock(mirrors={MIRROR: {image: DIGEST}}),))

    assert planned.nodes.karpenter is not None
    queueing = planned.part(KueuePlan)
    assert queueing is not None
    values = controller_values(planned.nodes.karpenter, cluster_name="research")
    assert planned.nodes.karpenter.chart == f"oci://{MIRROR}/public.ecr.aws/karpenter/karpenter"
    assert (
        planned.nodes.karpenter.crd_chart
        == f"oci://{MIRROR}/public.ecr.aws/karpenter/karpenter-crd"
    )
    assert look_up(values, "controller", "image") == {
        "repository": f"{MIRROR}/public.ecr.aws/karpenter/controller"
    }
    assert queueing.chart == f"oci://{MIRROR}/registry.k8s.io/kueue/charts/kueue"
    # The chart puts a colon between the two.
    assert look_up(kueue_values(queueing), "controllerManager", "manager", "image") == {
        "repository": f"{MIRROR}/{kueue.IMAGE}",
        "tag": f"v{kueue.VERSION}@{DIGEST}",
        "pullPolicy": "IfNotPresent",
    }
    assert look_up(jobset_values(queueing), "image", "repository") == f"{MIRROR}/{jobset.IMAGE}"
