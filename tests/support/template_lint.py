"""cfn-lint, on one template, as `make lint-templates` runs it."""

import importlib
from functools import cache
from typing import Any

# It ships no type hints.
_config: Any = importlib.import_module("cfnlint.config")
_decode: Any = importlib.import_module("cfnlint.decode.decode")
_runner: Any = importlib.import_module("cfnlint.runner")


def lint(template: str, *, region: str) -> list[str]:
    """Return what cfn-lint says against ``template`` in ``region``."""
    read, mistakes = _decode.decode_str(template)
    return [str(each) for each in mistakes or _linter(region).validate_template(read)]


@cache
def _linter(region: str) -> Any:
    """Making one imports every rule."""
    return _runner.Runner(_config.ConfigMixIn(regions=[region], ignore_checks=["W3005"]))
