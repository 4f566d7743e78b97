"""The copies beside a cluster file that are part of what it says."""

from collections.abc import Sequence
from dataclasses import replace

from ultrascale.config._document import Document, is_mapping, read
from ultrascale.ejected import Ejected


def with_rules(document: Document, ejected: Sequence[Ejected]) -> Document:
    """Return ``document`` with the backend's rules of their own file, where it states none.

    Raises:
        ConfigError: That file cannot be read.
    """
    backend = document.value.get("backend")
    if not is_mapping(backend) or "rules" in backend:
        return document
    for each in ejected:
        if each.use == "rules":
            rules = read(each.location, what="rules")
            whole = {**document.value, "backend": {**backend, "rules": rules.value}}
            return replace(document, value=whole, included=((("backend", "rules"), rules),))
    return document
