"""Kubernetes quantities, and what a job needs of each resource at once."""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from decimal import Decimal

from ultrascale.jobs.fields import Object, mapping, number, objects
from ultrascale.jobs.kinds import VOLCANO_JOB, kind_of

_FORM = re.compile(r"([+-]?[0-9.]+(?:[eE][+-]?[0-9]+)?)(n|u|m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei)?")
_DECIMAL = {"n": -9, "u": -6, "m": -3, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 1, "Mi": 2, "Gi": 3, "Ti": 4, "Pi": 5, "Ei": 6}


def quantity(value: object) -> Decimal | None:
    """Return a quantity as a number; None where it is absent or has no such form.

    Source: https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/quantity/
    """
    match = _FORM.fullmatch(str(value))
    if match is None:
        return None
    amount, unit = Decimal(match[1]), match[2]
    if unit in _BINARY:
        return amount * 1024 ** _BINARY[unit]
    return amount.scaleb(_DECIMAL[unit]) if unit else amount


def demand(manifests: Iterable[Object]) -> Mapping[str, Decimal]:
    """Return what the gangs of Volcano jobs need at once, by resource.

    Of each task it counts what must run: `minAvailable` pods, all without it.
    """
    needs: dict[str, Decimal] = defaultdict(Decimal)
    for manifest in manifests:
        if kind_of(manifest) != VOLCANO_JOB:
            continue
        for task in objects(manifest, "spec", "tasks"):
            replicas = number(task, "replicas", default=1)
            pods = number(task, "minAvailable", default=replicas)
            for container in objects(task, "template", "spec", "containers"):
                for resource, amount in _requests(container).items():
                    needs[resource] += pods * amount
    return needs


def _requests(container: Object) -> Mapping[str, Decimal]:
    """Return what a container requests; of what it only limits, it requests the limit."""
    limits, requests = (mapping(container, "resources", key) for key in ("limits", "requests"))
    amounts = {key: quantity(value) for key, value in {**limits, **requests}.items()}
    return {key: amount for key, amount in amounts.items() if amount is not None}
