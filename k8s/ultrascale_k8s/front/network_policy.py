"""Connections allowed to the proxies of the front and to their controller.

Their namespace refuses all others.
"""

from ultrascale.documents import JsonObject
from ultrascale.plan.model import FrontPlan
from ultrascale.plan.names import FRONT_GATEWAY, FRONT_NAMESPACE
from ultrascale_k8s.network_policy import ingress_policy, ingress_rule


def front_ingress_objects(plan: FrontPlan) -> list[JsonObject]:
    """Open the proxies to clients, and their controller to the proxies.

    Clients are not told apart here: keys and tokens do that, and the load balancer comes from
    addresses that no selector names.
    """
    proxies: JsonObject = {"matchLabels": plan.proxy_labels}
    controller: JsonObject = {"matchLabels": plan.controller_labels}
    of_proxies = ingress_rule([plan.configuration_port], [{"podSelector": proxies}])
    return [
        ingress_policy(
            f"{name}-ingress", FRONT_NAMESPACE, [rule], pods=pods, component=FRONT_GATEWAY
        )
        for name, pods, rule in (
            ("proxies", proxies, ingress_rule([plan.proxy_port])),
            ("controller", controller, of_proxies),
        )
    ]
