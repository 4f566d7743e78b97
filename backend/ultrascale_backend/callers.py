"""Callers: their names, and the requests that each may submit, see and cancel."""

from collections.abc import Mapping
from dataclasses import dataclass

from ultrascale.parts.backend.model import CallerRightPlan, IdentityPlan
from ultrascale_backend.errors import ForbiddenError

ANONYMOUS = "system:anonymous"
"""Name of every caller if the process authenticates nobody."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """The sender of a request."""

    # Owner of its requests: `system:serviceaccount:NAMESPACE:NAME`, or the issuer and its user, as
    # `ISSUER#SUBJECT`
    name: str
    groups: frozenset[str]  # Groups that the caller is in
    # End of the token, in seconds since 1970; None if the token does not state it
    expires: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Submission:
    """Properties of a request's job that decide whether its caller may send it."""

    template: str  # Job of the cluster file
    kind: str  # Kind of the job, such as `training`
    priority: str | None  # Its PriorityClass; None for the cluster's default


class Rights:
    """Rights of callers, as the cluster file states them.

    Args:
        identity: Rights in the file; None: everybody may do everything.
    """

    def __init__(self, identity: IdentityPlan | None) -> None:
        self._admins = frozenset(identity.admins if identity else {ANONYMOUS})
        self._rights = identity.rights if identity else ()
        self._priorities: Mapping[str, int] = identity.priorities if identity else {}

    def is_admin(self, caller: Caller) -> bool:
        """Return whether a caller may do everything, even with requests of others."""
        return not self._admins.isdisjoint(_names(caller))

    def may_see(self, caller: Caller, owner: str | None) -> bool:
        """Return whether a caller may see and cancel the requests of ``owner``.

        Requests without an owner were recorded before callers were known: only admins see them.
        """
        return owner == caller.name or self.is_admin(caller)

    def check(self, caller: Caller, submission: Submission) -> None:
        """Check that a single right of the caller covers all of ``submission``.

        Raises:
            ForbiddenError: No right covers the submission.
        """
        if self.is_admin(caller):
            return
        names = _names(caller)
        rights = [right for right in self._rights if right.group in names]
        if any(self._covers(right, submission) for right in rights):
            return
        if not rights:
            raise ForbiddenError(
                ["you have no right to submit; ask for one in backend.identity.rights"]
            )
        priority = f"priority {submission.priority}" if submission.priority else "no priority"
        raise ForbiddenError(
            [
                f"job: a {submission.kind} job of template {submission.template} with {priority} "
                "is beyond your rights",
                *(_right_in_words(right) for right in rights),
            ]
        )

    def _covers(self, right: CallerRightPlan, submission: Submission) -> bool:
        # The value of a class that the file does not name is unknown here.
        value = 0 if submission.priority is None else self._priorities.get(submission.priority)
        return (
            submission.kind in right.kinds
            and submission.template in right.templates
            and value is not None
            and value <= right.highest_value
        )


def _names(caller: Caller) -> frozenset[str]:
    return caller.groups | {caller.name}


def _right_in_words(right: CallerRightPlan) -> str:
    highest = f"up to priority {right.priority}" if right.priority else "without a priority"
    return (
        f"{right.group} may submit {' and '.join(right.kinds)} jobs of "
        f"{', '.join(right.templates)}, {highest}"
    )
