"""The table of `docs/existing-estate.md` that says what each level of access allows.

`python -m tests.support.access_table` writes it anew, from EKS's access policies and the
ClusterRoles that a cluster with services and queues of Kueue has beside them.
"""

import re
from collections.abc import Iterator, Mapping
from functools import cache

import yaml

from tests.support.eks_access import policies_of
from tests.support.folders import ROOT
from tests.support.pools import as_text, loads_own
from ultrascale.plan.cluster import assemble
from ultrascale.plan.names import EDIT_ROLE, VIEW_ROLE

PAGE = ROOT / "docs" / "existing-estate.md"
LEVELS: Mapping[str, tuple[str, str]] = {
    "view": ("AmazonEKSViewPolicy", VIEW_ROLE),
    "edit": ("AmazonEKSEditPolicy", EDIT_ROLE),
    "admin": ("AmazonEKSAdminPolicy", EDIT_ROLE),
}
_FILE = "llm-kueue"
_TABLE = re.compile(r"(<!-- rights of levels -->\n).*?(<!-- end -->)", re.DOTALL)


@cache
def _own() -> Mapping[str, Mapping[tuple[str, str], frozenset[str]]]:
    """Return the verbs of our ClusterRoles, by role, API group and resource."""
    document = yaml.safe_load((ROOT / "clusters" / f"{_FILE}.yaml").read_text())
    roles = [f"arn:aws:iam::111122223333:role/{level}" for level in LEVELS]
    access = [
        {"role": role, "policy": level, "namespaces": ["training"]}
        for role, level in zip(roles, LEVELS, strict=True)
    ]
    document["kubernetes"]["access"] = access
    return {
        role.name: {
            (right.group, resource): frozenset(right.verbs)
            for right in role.rights
            for resource in right.resources
        }
        for role in assemble(loads_own(as_text(document))).access.roles
    }


def rights() -> Mapping[tuple[str, str], tuple[str, ...]]:
    """Return what each level may do with a resource, by API group and resource."""
    verbs: dict[tuple[str, str], dict[str, set[str]]] = {}
    for level, (policy, role) in LEVELS.items():
        for key, allowed in [*policies_of(policy), *_own()[role].items()]:
            verbs.setdefault(key, {}).setdefault(level, set()).update(allowed)
    return {
        key: tuple(_word(by_level.get(level, set())) for level in LEVELS)
        for key, by_level in sorted(verbs.items())
    }


def _word(verbs: set[str]) -> str:
    return {(False, False): "", (True, False): "reads", (False, True): "writes"}.get(
        ("get" in verbs, "create" in verbs), "reads, writes"
    )


def lines() -> Iterator[str]:
    """Yield the lines of the table: resources of a group with the same rights share one."""
    yield "| API group | resources | `view` | `edit` | `admin` |"
    yield "|---|---|---|---|---|"
    rows: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for (group, resource), words in rights().items():
        if not resource.endswith("/status"):
            rows.setdefault((group, words), []).append(f"`{resource}`")
    for (group, words), resources in rows.items():
        yield f"| {group or 'core'} | {', '.join(resources)} | {' | '.join(words)} |"


def page() -> str:
    """Return the page with the table of today."""
    text = "\n".join(lines())
    return _TABLE.sub(lambda found: f"{found[1]}{text}\n{found[2]}", PAGE.read_text())


if __name__ == "__main__":
    PAGE.write_text(page())
