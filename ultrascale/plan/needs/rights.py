"""Tables of rights: roles in the cluster, callers of the backend, and users of KMS keys."""

from ultrascale.plan.model import ClusterNeeds
from ultrascale.plan.needs.tables import Table, columns, row


def access_table(needs: ClusterNeeds) -> Table:
    """Return the roles that the file lets into the cluster, and what EKS allows each."""
    return Table(
        columns=tuple(
            columns("words", "role with access", "policy of EKS", "in", "queues of its jobs")
        ),
        rows=tuple(
            row(
                entry.role,
                policy.name,
                ", ".join(policy.namespaces) or "the whole cluster",
                ", ".join(policy.sends_to) or "sends none",
            )
            for entry in needs.access
            for policy in entry.policies
        ),
    )


def callers_table(needs: ClusterNeeds) -> Table:
    """Return the callers of the backend, and what each may submit."""
    titles = ("caller of the backend", "may submit", "of", "up to", "sees and cancels")
    admins, rights = (needs.callers.admins, needs.callers.rights) if needs.callers else ((), ())
    rows = [
        *(row(name, "everything", "every template", "every priority", "all") for name in admins),
        *(
            row(
                right.group,
                " and ".join(right.kinds),
                ", ".join(right.templates),
                right.priority or "no priority",
                "its own",
            )
            for right in rights
        ),
    ]
    return Table(columns=tuple(columns("words", *titles)), rows=tuple(rows))


def keys_table(needs: ClusterNeeds) -> Table:
    """Return who uses the user's own KMS keys, and what fails without that."""
    return Table(
        columns=tuple(columns("words", "key of", "used by", "through", "actions", "without it")),
        rows=tuple(
            row(
                " and ".join(policy.uses),
                access.who,
                "" if access.via is None else access.via.partition(".")[0],
                ", ".join(
                    [
                        *(action.removeprefix("kms:") for action in access.actions),
                        *(["CreateGrant"] if access.grants else []),
                    ]
                ),
                access.does,
            )
            for policy in needs.keys
            for access in policy.accesses
        ),
    )
