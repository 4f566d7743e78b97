"""The versions of libraries that this release was tested with, and those that are installed."""

from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from itertools import islice

from ultrascale.release import PRODUCT, VERSION
from ultrascale.resources import resource

LOCK = "requirements.txt"
_SHOWN = 3


def other_versions() -> Iterator[str]:
    """Yield each library that is installed in another version than the tested one, with both."""
    for line in resource(LOCK).read_text(encoding="utf-8").splitlines():
        name, is_pinned, tested = line.partition("==")
        if not is_pinned or name.startswith("#"):
            continue
        try:
            found = version(name)
        except PackageNotFoundError:
            continue
        if found != tested:
            yield f"{name} {found} for {tested}"


def untested() -> str | None:
    """Return that other versions are installed than were tested; None where all are the same."""
    others = [*other_versions()]
    if not others:
        return None
    more = f", and {len(others) - _SHOWN} more" if len(others) > _SHOWN else ""
    named = ", ".join(islice(others, _SHOWN))
    wheel = f"{PRODUCT}-{VERSION}-py3-none-any.whl"
    todo = f"install its wheel with the extra: pip install './{wheel}[tested]'"
    return f"templates may differ, as this was tested with other versions: {named}{more}; {todo}"
