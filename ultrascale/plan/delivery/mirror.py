"""The mirror of public registries, from which a closed network takes every image and chart."""

from collections.abc import Iterator

from msgspec.structs import replace

from ultrascale import config
from ultrascale.catalog import hyperpod_chart as chart
from ultrascale.catalog import registries
from ultrascale.catalog.karpenter import CONTROLLER_IMAGE
from ultrascale.documents import look_up
from ultrascale.mirror_lock import FILE, MirrorLock
from ultrascale.plan.model import (
    BuildMirrorPlan,
    ChartCopyPlan,
    ClusterPlan,
    HyperPodChartPlan,
    LoadBalancerPlan,
    MirrorPlan,
    ServingControllersPlan,
)
from ultrascale.plan.rules import rule


def plan_mirror(cluster: config.Cluster, lock: MirrorLock) -> MirrorPlan | None:
    """Return the mirror that the file names, with the digests of its copies.

    Args:
        cluster: The cluster file.
        lock: Record of the copies, from beside the file.
    """
    location = cluster.images.mirror
    if location is None:
        return None
    return MirrorPlan(
        location=location,
        regional=registries.ecr_registry("", cluster.region),
        digests=lock.mirrors.get(location, {}),
        is_recorded=location in lock.mirrors,
    )


def mirror_login(mirror: MirrorPlan) -> BuildMirrorPlan | None:
    """Return how builds log in to a mirror in Amazon ECR; None for another registry."""
    host, _, prefix = mirror.location.partition("/")
    found = registries.parse_ecr_registry(host)
    if found is None:
        return None
    account, region = found
    return BuildMirrorPlan(host=host, account=account, region=region, prefix=prefix)


def with_copies(plan: ClusterPlan) -> ClusterPlan:
    """Return ``plan`` with the charts of the mirror, whose values name its images.

    Charts come from a registry, as ``oci://``: the function that installs them logs in to a
    private one of Amazon ECR by its own role, through the endpoints that pods have. An archive in
    S3 would have to be at hand while templates are made, which ask nobody.
    """
    mirror = plan.mirror
    if mirror is None:
        return plan
    karpenter, kueue, front = plan.karpenter, plan.kueue, plan.front
    if karpenter is not None:
        karpenter = replace(
            karpenter,
            crd_chart=mirror.chart(karpenter.crd_chart),
            chart=mirror.chart(karpenter.chart),
            # The chart names the image by digest, and the mirror keeps digests.
            image=mirror.reference(CONTROLLER_IMAGE),
        )
    if kueue is not None:
        kueue = replace(
            kueue,
            chart=mirror.chart(kueue.chart),
            image=mirror.reference(kueue.image),
            jobset_chart=mirror.chart(kueue.jobset_chart),
            jobset_image=mirror.reference(kueue.jobset_image),
        )
    if front is not None:
        front = replace(
            front,
            chart=mirror.chart(front.chart),
            image=mirror.reference(front.image),
            proxy_image=mirror.reference(front.proxy_image),
            load_balancer=_load_balancer(front.load_balancer, mirror),
        )
    return replace(
        plan,
        karpenter=karpenter,
        kueue=kueue,
        serving=_serving(plan.serving, mirror),
        front=front,
        hyperpod_chart=_hyperpod_chart(plan, mirror),
    )


def _serving(
    serving: ServingControllersPlan | None, mirror: MirrorPlan
) -> ServingControllersPlan | None:
    if serving is None:
        return None
    keda, groups = serving.keda, serving.leader_worker_set
    if keda is not None:
        keda = replace(
            keda,
            chart=mirror.chart(keda.chart),
            operator_image=mirror.reference(keda.operator_image),
            metrics_image=mirror.reference(keda.metrics_image),
            webhooks_image=mirror.reference(keda.webhooks_image),
        )
    if groups is not None:
        groups = replace(
            groups, chart=mirror.chart(groups.chart), image=mirror.reference(groups.image)
        )
    return ServingControllersPlan(keda=keda, leader_worker_set=groups)


def _load_balancer(
    balancer: LoadBalancerPlan | None, mirror: MirrorPlan
) -> LoadBalancerPlan | None:
    """Return the load balancer with its controller's chart and image in the mirror."""
    if balancer is None or (controller := balancer.controller) is None:
        return balancer
    copy = replace(
        controller,
        chart=mirror.chart(controller.chart),
        image=mirror.reference(controller.image),
    )
    return replace(balancer, controller=copy)


def _hyperpod_chart(plan: ClusterPlan, mirror: MirrorPlan) -> HyperPodChartPlan | None:
    """Return AWS's chart from the mirror, with the images of the parts that are on."""
    release = plan.hyperpod_chart
    if release is None:
        return None
    repository = f"oci://{mirror.location}/{chart.ARTEFACT}"
    images = [chart.TRAINING_OPERATOR_IMAGE]
    for part, image in (
        ("neuron-device-plugin", chart.NEURON_IMAGE),
        ("nvidia-device-plugin", chart.NVIDIA_IMAGE),
    ):
        if look_up(release.values, part, "devicePlugin", "enabled"):
            images.append(image)
    efa = chart.EFA_REPOSITORY.partition("/")[2]
    idle = mirror.copy(chart.IDLE_REPOSITORY)
    copy = ChartCopyPlan(
        repository=repository,
        version=chart.ARTEFACT_VERSION,
        digest=mirror.digests.get(f"oci://{chart.ARTEFACT}:{chart.ARTEFACT_VERSION}"),
        images={image: mirror.reference(image) for image in images},
        renamed={
            chart.EFA_REPOSITORY: f"{registries.eks_registry(plan.region)}/{efa}",
            chart.IDLE_REPOSITORY: idle,
        },
        registries=(mirror.location, f"*{mirror.regional}"),
        login=mirror_login(mirror),
    )
    return replace(release, copy=copy)


@rule(severity="warning")
def copies_are_recorded(mirror: MirrorPlan) -> Iterator[config.Mistake]:
    """Yield that the copies are named by tags alone, which can be moved."""
    if not mirror.is_recorded:
        wrong = f"no copies of it in {FILE} beside the file, so tags name them, which can be moved"
        todo = "run `ultrascale mirror FILE copy`, then synthesize again"
        yield config.Mistake(("images", "mirror"), wrong, todo, got="")
