"""The front: its Gateway, what its proxies do with requests, and who reaches them."""

from ultrascale_k8s.front.admission import FrontRoutesChart
from ultrascale_k8s.front.gateway import FrontChart
from ultrascale_k8s.front.network_policy import FrontIngressChart

__all__ = ["FrontChart", "FrontIngressChart", "FrontRoutesChart"]
