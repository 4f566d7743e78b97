"""The tested versions of libraries of this release, and the installed versions."""

from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from itertools import islice

from ultrascale.release import PRODUCT, VERSION
from ultrascale.resources import resource

LOCK = "requirements.txt"
_SHOWN = 3


def other_versions() -> Iterator[str]:
    """Yield each library whose installed version is not the tested one, with both versions."""
    for line in resource(LOCK).read_text(encoding="utf-8").splitlines():
        name, is_pinned, tested = line.partition("==")
        if not is_pinned or name.startswith("#"):
            continue
        try:
            installed = version(name)
        except PackageNotFoundError:
            continue
        if installed != tested:
            yield f"{name} {installed} for {tested}"


def untested() -> str | None:
    """Return the remark that other versions are installed than tested; None if all are equal."""
    others = [*other_versions()]
    if not others:
        return None
    more = f", and {len(others) - _SHOWN} more" if len(others) > _SHOWN else ""
    named = ", ".join(islice(others, _SHOWN))
    wheel = f"{PRODUCT}-{VERSION}-py3-none-any.whl"
    todo = f"install its wheel with the extra: pip install './{wheel}[tested]'"
    return f"templates may differ, as this was tested with other versions: {named}{more}; {todo}"
