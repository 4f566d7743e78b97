"""The example without a way out: its mirror lists every image and chart that it pulls."""

from tests.support.assembly import Assembly
from tests.support.folders import ROOT
from ultrascale.catalog import versions
from ultrascale.jobs.preparation import read_cluster
from ultrascale.parts.mirror.contents import list_copies
from ultrascale.sbom.images import container_images


def test_nothing_that_the_estate_pulls_is_missing_in_its_list(estate: Assembly) -> None:
    cluster = read_cluster(ROOT / "clusters" / "existing-estate.yaml")
    mirror = cluster.plan.copies
    assert mirror is not None

    copies = list_copies(
        cluster, assembly=estate.folder / "cdk.out", manifests=estate.folder / "dist"
    )

    targets = {copy.target for copy in copies}
    pulled = {image for document in estate.documents for image in container_images(document)}
    elsewhere = pulled - targets
    assert all(".dkr.ecr.us-east-1.amazonaws.com/" in image for image in elsewhere)
    assert not any("/mirror/" in image for image in elsewhere)
    sources = {copy.source for copy in copies}
    assert {
        versions.image("volcano-scheduler").reference,
        versions.image("nvidia-device-plugin").reference,
        versions.image("pytorch-cuda").reference,
        "public.ecr.aws/karpenter/controller:1.15.2",
        "oci://public.ecr.aws/karpenter/karpenter:1.15.2",
        "oci://public.ecr.aws/karpenter/karpenter-crd:1.15.2",
    } <= sources
    assert all(copy.target.removeprefix("oci://").startswith(mirror.location) for copy in copies)
