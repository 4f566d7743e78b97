"""Lines of mistakes in a document: key path, mistake, value, remedy."""

import difflib
from collections.abc import Collection, Iterator

import pydantic

_LONGEST = 100


def form_mistakes(error: pydantic.ValidationError) -> Iterator[str]:
    """Yield one line for each thing that pydantic found wrong."""
    for item in error.errors(include_url=False):
        where = ".".join(str(part) for part in item["loc"])
        if item["type"] == "extra_forbidden":
            yield f"{where}: unknown key; leave it out"
            continue
        if item["type"] == "missing":
            yield f"{where}: missing; add it"
            continue
        wrong = item["msg"][:1].lower() + item["msg"][1:]
        got = repr(item["input"])
        shown = got if len(got) <= _LONGEST else f"{got[:_LONGEST]}…"
        yield ": ".join(part for part in (where, f"{wrong}, got {shown}") if part)


def near(name: str, known: Collection[str]) -> str:
    """Return what to do about an unknown ``name``: its nearest match, or all that is known."""
    match = difflib.get_close_matches(name, known, n=1)
    if match:
        return f"did you mean {match[0]}?"
    return f"known: {', '.join(sorted(known))}" if known else "there is none"
