"""Images that Helm charts bring with the values that this product gives them.

No value of ours turns on another container of these charts: Kueue's dashboard is off by default,
the others have one container. `tests/mirror/test_chart_images.py` holds a chart's source against
its row by `helm template`, as done with Karpenter 1.14.1, Kueue 0.19.2 and JobSet 0.12.0.

Sources:
    https://github.com/aws/karpenter-provider-aws/blob/v1.14.1/charts/karpenter/templates/deployment.yaml
    https://github.com/kubernetes-sigs/kueue/blob/v0.19.2/charts/kueue/templates/manager/manager.yaml
    https://github.com/kubernetes-sigs/jobset/blob/v0.12.0/charts/jobset/templates/controller/deployment.yaml
"""

from collections.abc import Mapping
from types import MappingProxyType

from ultrascale.catalog import jobset, karpenter, kueue
from ultrascale.errors import CatalogError

_IMAGES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        # Custom resource definitions alone.
        karpenter.CRD_CHART: (),
        karpenter.CHART: (f"{karpenter.CONTROLLER_IMAGE}:",),
        kueue.CHART: (f"{kueue.IMAGE}:v",),
        jobset.CHART: (f"{jobset.IMAGE}:v",),
    }
)


def chart_images(chart: str, version: str) -> tuple[str, ...]:
    """Return the images that a chart brings.

    Args:
        chart: Its location, ``oci://HOST/PATH``, as its publisher has it.
        version: Its version, which completes the tags.

    Raises:
        CatalogError: The images of that chart are not known.
    """
    try:
        return tuple(f"{image}{version}" for image in _IMAGES[chart])
    except KeyError:
        message = f"no list of the images of {chart}; add it to ultrascale/catalog/chart_images.py"
        raise CatalogError(message) from None
