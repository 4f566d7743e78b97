"""Callers of the backend who lose or gain rights when the cluster file changes."""

from collections.abc import Iterator
from typing import cast

from ultrascale import config
from ultrascale.documents import text
from ultrascale.errors import ConfigError
from ultrascale.frozen import Frozen
from ultrascale.guard.model import Change, Harm
from ultrascale.guard.objects import KubernetesObject, Objects, updated
from ultrascale.guard.openings import opening_text
from ultrascale.parts.backend.model import CallerRightPlan, IdentityPlan
from ultrascale.parts.backend.plan import CLUSTER_FILE, plan_identity
from ultrascale.parts.backend.section import DEFAULT_JOB_KEYS, Backend

_CONFIG_MAP = "ConfigMap"
_PODS = "pods of "


class _Callers(Frozen, kw_only=False):
    identity: IdentityPlan
    namespaces: frozenset[str]
    # Keys of jobs that they may state; empty where rules of another application say it.
    keys: frozenset[str]


def harmful_changes(applied: tuple[Objects, Objects]) -> Iterator[Change]:
    """Yield the backend's rules file if it allows callers less than before.

    Args:
        applied: The objects in the cluster, of both sides.
    """
    old, new = (_files(objects) for objects in applied)
    for namespace, before in old.items():
        after = new.get(namespace)
        was, will = _callers(before), _callers(after) if after is not None else None
        lost = sorted(_lost_rights(was, will)) if was is not None and will is not None else []
        if after is not None and lost:
            yield updated(after).harmed(
                Harm(
                    verdict="people lose access",
                    lost=f"what callers of the backend may do: {', '.join(lost)}",
                    instead="keep their rights beside the new ones, and name it once they use "
                    "others",
                )
            )


def openings(applied: tuple[Objects, Objects]) -> Iterator[tuple[KubernetesObject, str]]:
    """Yield the backend's rules file if it allows callers more than before, with these callers.

    Network policies decide which pods reach the backend.

    Args:
        applied: The objects in the cluster, of both sides.
    """
    old, new = (_files(objects) for objects in applied)
    for namespace in filter(new.__contains__, old):
        was, will = _callers(old[namespace]), _callers(new[namespace])
        if was is None or will is None:
            continue
        gained = [right for right in _lost_rights(will, was) if not right.startswith(_PODS)]
        if gained:
            yield new[namespace], opening_text("callers of the backend", None, sorted(gained))


def _files(objects: Objects) -> dict[str, KubernetesObject]:
    return {
        applied.namespace: applied
        for applied in objects.of_kind(_CONFIG_MAP)
        if text(applied.body, "data", CLUSTER_FILE)
    }


def _callers(applied: KubernetesObject) -> _Callers | None:
    """Return the callers in a rules file; None where this version cannot read it."""
    try:
        cluster = config.loads(text(applied.body, "data", CLUSTER_FILE))
    except ConfigError:
        return None
    backend = cluster.section(Backend)
    if backend is None:
        return None
    identity = plan_identity(backend, cluster.scheduling.priority_classes)
    stated = DEFAULT_JOB_KEYS if backend.rules is None else backend.rules.get("job_keys")
    keys = cast("tuple[object, ...]", stated) if isinstance(stated, tuple) else ()
    namespaces = frozenset({backend.namespace, *backend.allow_from})
    return _Callers(identity, namespaces, frozenset(map(str, keys)))


def _lost_rights(was: _Callers, will: _Callers) -> Iterator[str]:
    old, new = was.identity, will.identity
    if old.issuer is not None:
        for key in ("issuer", "audience", "groups_claim"):
            if getattr(old, key) != getattr(new, key):
                yield f"users of {old.issuer} (another {key})"
    yield from (f"admin {name}" for name in {*old.admins} - {*new.admins})
    rights = {right.group: right for right in new.rights}
    for right in old.rights:
        after = rights.get(right.group)
        if right.group not in new.admins and (after is None or not _includes(after, right)):
            yield f"{right.group}{' in part' if after else ''}"
    yield from (f"{_PODS}{name}" for name in was.namespaces - will.namespaces)
    if will.keys:
        yield from (f"jobs that state {key}" for key in was.keys - will.keys)


def _includes(new: CallerRightPlan, old: CallerRightPlan) -> bool:
    return (
        new.highest_value >= old.highest_value
        and {*new.kinds} >= {*old.kinds}
        and {*new.templates} >= {*old.templates}
    )
