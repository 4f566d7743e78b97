"""The front: the Gateway, the proxies' policies for requests, and the network policies."""

from collections.abc import Mapping, Sequence

from ultrascale.parts.front.model import Plan
from ultrascale_k8s._platform_chart import PlatformChart
from ultrascale_k8s.front.admission import front_route_objects
from ultrascale_k8s.front.gateway import front_ingress_objects, front_objects


def charts(plan: Plan) -> Mapping[str, Sequence[PlatformChart]]:
    """Return the charts of the front, by the layer whose stack applies them."""
    return {
        "platform": [PlatformChart(name="front-ingress", published=front_ingress_objects(plan))],
        "serving-front": [
            # The policies come first, so that every route is checked.
            PlatformChart(name="front-routes", published=[*front_route_objects(plan)]),
            PlatformChart(name="front", published=front_objects(plan)),
        ],
    }
