"""Manifests of a cluster with a mirror: no pod names a publisher's registry."""

from tests.support.pools import NEURON_POOL, SYSTEM_POOL, make_cluster
from ultrascale.catalog import versions
from ultrascale.parts.mirror.lock import MirrorLock
from ultrascale.plan.cluster import assemble
from ultrascale.sbom.images import container_images
from ultrascale_k8s import define_charts

MIRROR = "registry.example.com/mirror"
NEURON = versions.image("neuron-device-plugin").reference
DIGEST = "sha256:" + "a" * 64


def test_every_image_of_the_platform_is_a_copy_or_in_the_regions_ecr() -> None:
    cluster = make_cluster(
        images={"mirror": MIRROR},
        pools=[SYSTEM_POOL, NEURON_POOL],
        scheduling={"queueing": "volcano", "rendezvous": {"backend": "etcd"}},
    )
    charts = define_charts(
        assemble(cluster, records=(MirrorLock(mirrors={MIRROR: {NEURON: DIGEST}}),))
    )

    pulled = {
        image
        for chart in charts.all
        for manifest in chart.manifests
        for image in container_images(manifest)
    }

    assert f"{MIRROR}/{NEURON}@{DIGEST}" in pulled
    assert f"{MIRROR}/{versions.image('volcano-scheduler').reference}" in pulled
    elsewhere = {image for image in pulled if not image.startswith(f"{MIRROR}/")}
    assert {image.partition("/")[0] for image in elsewhere} == {
        "602401143452.dkr.ecr.us-west-2.amazonaws.com"
    }
