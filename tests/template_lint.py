"""cfn-lint, on one template, as `make lint-templates` runs it."""

import importlib
from typing import Any

# It ships no type hints.
_api: Any = importlib.import_module("cfnlint.api")
_config: Any = importlib.import_module("cfnlint.config")


def lint(template: str, *, region: str) -> list[str]:
    """Return what cfn-lint says against ``template`` in ``region``."""
    arguments = _config.ManualArgs(regions=[region], ignore_checks=["W3005"])
    return [str(match) for match in _api.lint(template, config=arguments)]
