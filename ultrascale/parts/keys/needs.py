"""The table of keys in `ultrascale plan`: users of each key, and statements that let them in."""

from collections.abc import Iterator, Mapping, Sequence

from ultrascale.parts.keys.model import KeyPolicyPlan
from ultrascale.plan.model import PartNeeds


def needs_of(policies: tuple[KeyPolicyPlan, ...]) -> PartNeeds:
    """Return the table for the owners of the keys."""
    return PartNeeds(
        name="keys",
        columns=("key of", "used by", "through", "actions", "without it"),
        rows=tuple(row for policy in policies for row in _rows(policy)),
        remarks=tuple(_remarks(policies)),
        needs=policies,
        answers=tuple(map(_answer, policies)),
    )


def _rows(policy: KeyPolicyPlan) -> Iterator[tuple[str, ...]]:
    for access in policy.accesses:
        actions = [action.removeprefix("kms:") for action in access.actions]
        yield (
            " and ".join(policy.uses),
            access.who,
            "" if access.via is None else access.via.partition(".")[0],
            ", ".join([*actions, *(["CreateGrant"] if access.grants else [])]),
            access.does,
        )


def _remarks(policies: Sequence[KeyPolicyPlan]) -> Iterator[str]:
    if policies:
        yield "Keys: `ultrascale plan FILE keys --json` prints the statements that they need."
    for policy in policies:
        for grant in policy.grants:
            unless = "" if policy.foreign else f"unless the cluster is in account {policy.owner}: "
            yield (
                f"Key of {' and '.join(policy.uses)}: it is account {policy.owner}'s, whose policy "
                f"alone lets no service-linked role in; {unless}`{grant.command}`."
            )


def _answer(policy: KeyPolicyPlan) -> Mapping[str, object]:
    """Return the answer for the owner of a key: statements in a policy's form, and grants."""
    return {
        "key": policy.arn,
        "uses": list(policy.uses),
        "statements": list(policy.statements),
        "grants": [grant.command for grant in policy.grants],
    }
