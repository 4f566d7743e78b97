"""The table of callers in `ultrascale plan`: who may submit which jobs."""

from collections.abc import Iterator

from ultrascale.parts.backend.model import IdentityPlan, Plan
from ultrascale.plan.model import PartNeeds

_ALL = ("everything", "every template", "every priority", "all")


def needs_of(plan: Plan | None) -> PartNeeds:
    """Return the callers of the backend, with the jobs that each may submit."""
    identity = None if plan is None else plan.identity
    return PartNeeds(
        name="callers",
        columns=("caller of the backend", "may submit", "of", "up to", "sees and cancels"),
        rows=() if identity is None else tuple(_rows(identity)),
        remarks=() if identity is None else (_remark(identity),),
        needs=identity,
        answers=(),
    )


def _rows(identity: IdentityPlan) -> Iterator[tuple[str, ...]]:
    for name in identity.admins:
        yield name, *_ALL
    for right in identity.rights:
        yield (
            right.group,
            " and ".join(right.kinds),
            ", ".join(right.templates),
            right.priority or "no priority",
            "its own",
        )


def _remark(identity: IdentityPlan) -> str:
    issuer = f", and users of {identity.issuer}" if identity.issuer is not None else ""
    known = f"service accounts of the cluster by tokens for {identity.accounts_audience}{issuer}"
    if identity.admins or identity.rights:
        return f"Backend: it knows {known}. Callers whom no row names are refused."
    return (
        f"Backend: it knows {known}, and refuses all of them, as backend.identity names "
        "neither rights nor admins."
    )
