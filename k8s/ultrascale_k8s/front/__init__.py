"""The front: its Gateway, what its proxies do with requests, and who reaches them."""

from ultrascale_k8s.front.admission import front_route_objects
from ultrascale_k8s.front.gateway import front_ingress_objects, front_objects

__all__ = ["front_ingress_objects", "front_objects", "front_route_objects"]
