"""Rights of people to the kinds of jobs, by the groups of their access entries."""

from collections.abc import Iterable, Iterator

from ultrascale.documents import JsonObject
from ultrascale.plan.model import ClusterRolePlan, GroupBindingPlan
from ultrascale_k8s._rbac import binding, groups, role, rules

_COMPONENT = "access"


def access_objects(
    roles: Iterable[ClusterRolePlan], bindings: Iterable[GroupBindingPlan]
) -> Iterator[JsonObject]:
    """Yield ClusterRoles, and bindings of groups to these or others.

    Namespaces of the bindings must be there.
    """
    for each in roles:
        yield role(each.name, rules(each.rights), component=_COMPONENT)
    for each in bindings:
        yield binding(
            each.role, groups(each.groups), namespace=each.namespace, component=_COMPONENT
        )
