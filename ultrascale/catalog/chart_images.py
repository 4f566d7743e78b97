"""Images of Helm charts with this product's values.

Our values turn on no other container of these charts: KEDA has three programs, the others have one
container. Parts have rows of their own. `tests/parts/mirror/test_chart_images.py`
compares a chart's source with its row by `helm template`, as done with Karpenter 1.14.1,
LeaderWorkerSet 0.10.0 and KEDA 2.20.2.

Sources:
    https://github.com/aws/karpenter-provider-aws/blob/v1.14.1/charts/karpenter/templates/deployment.yaml
    https://github.com/kubernetes-sigs/lws/blob/v0.10.0/charts/lws/templates/manager/deployment.yaml
    https://github.com/kedacore/charts/tree/1444d00/keda/templates
"""

from collections.abc import Mapping
from types import MappingProxyType

from ultrascale.catalog import karpenter
from ultrascale.core.table import all_parts
from ultrascale.errors import CatalogError

_IMAGES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        # Custom resource definitions alone.
        karpenter.CRD_CHART: (),
        karpenter.CHART: (f"{karpenter.CONTROLLER_IMAGE}:",),
    }
)


def chart_images(chart: str, version: str) -> tuple[str, ...]:
    """Return the images of a chart.

    Args:
        chart: Its published location, ``oci://HOST/PATH`` or ``https://HOST/PATH``; the part
            before the path does not matter.
        version: Its version, which completes the tags.

    Raises:
        CatalogError: The images of that chart are not known.
    """
    of_parts = {each.location: each.images for part in all_parts() for each in part.charts}
    known = {
        location.partition("://")[2]: images for location, images in {**_IMAGES, **of_parts}.items()
    }
    try:
        return tuple(
            f"{image}{version}" if image.endswith((":", ":v")) else image
            for image in known[chart.partition("://")[2]]
        )
    except KeyError:
        message = f"no list of the images of {chart}; add it to ultrascale/catalog/chart_images.py"
        raise CatalogError(message) from None
