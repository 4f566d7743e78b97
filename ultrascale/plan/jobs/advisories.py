"""Services whose image has a package under security advisories."""

from collections.abc import Iterator

from ultrascale import config
from ultrascale.catalog import advisories, registries
from ultrascale.catalog.advisories import Advisory
from ultrascale.config import Mistakes
from ultrascale.plan.jobs import vllm
from ultrascale.plan.jobs.rules import rule

_PACKAGE = "vllm"


@rule
def images_are_sound(job: config.ServiceJob) -> Mistakes:
    """Yield an image whose advisories are severe, or let an attacker run code."""
    if grave := [item for item in _open(job) if item.is_grave]:
        reasons = (f"{item.id}, {item.impact} ({item.end})" for item in grave)
        wrong = f"under security advisories: {'; '.join(reasons)}"
        todo = f"{_successor(grave)}, or name them in allow_advisories with a reason"
        yield config.refuse("image", wrong, todo)


@rule
def allowances_are_needed(job: config.ServiceJob) -> Mistakes:
    """Yield allowed advisories that the image is not under."""
    known = frozenset[str]().union(*(item.ids for item in _affecting(job)))
    for number, allowed in enumerate(job.allow_advisories):
        if allowed.id not in known:
            at = ("allow_advisories", number, "id")
            wrong = "no known advisory that this image and its options are under"
            yield config.Mistake(at, wrong, "leave it out", got=allowed.id)


@rule(severity="warning")
def images_have_few_advisories(job: config.ServiceJob) -> Mistakes:
    """Yield an image under advisories that harm the service alone."""
    if lesser := [item for item in _open(job) if not item.is_grave]:
        wrong = f"under security advisories: {', '.join(item.id for item in lesser)}"
        todo = f"{_successor(lesser)}, or bound who may reach it and name them in allow_advisories"
        yield config.refuse("image", wrong, todo)


def _affecting(job: config.ServiceJob) -> tuple[Advisory, ...]:
    image = registries.parse_reference(job.image or "")
    release = None if image is None else advisories.release_in(image, _PACKAGE)
    if release is None:
        return ()
    words = (word.partition("=")[0].replace("_", "-") for word in vllm.serve_command(job))
    stated = {*(word for word in words if word.startswith("--")), *job.env}
    return tuple(advisories.advisories_of(_PACKAGE, release, stated))


def _open(job: config.ServiceJob) -> Iterator[Advisory]:
    allowed = {item.id for item in job.allow_advisories}
    return (item for item in _affecting(job) if allowed.isdisjoint(item.ids))


def _successor(items: list[Advisory]) -> str:
    from packaging.version import Version

    if not all(item.fixed for item in items):
        return "use another image"
    return f"use {_PACKAGE} {max((item.fixed for item in items), key=Version)} or newer"
