"""The resource types that the project defines, those of no cluster file among them."""

import ast
import importlib
from collections.abc import Iterator

from tests.support.folders import ROOT


def defined_types() -> Iterator[str]:
    """Yield the type of each L1 construct that a construct or a stack uses."""
    for folder in ("constructs/ultrascale_constructs", "stacks/ultrascale_stacks"):
        for file in (ROOT / folder).glob("*.py"):
            tree = ast.parse(file.read_text())
            modules = {
                name.asname or name.name: name.name
                for node in ast.walk(tree)
                if isinstance(node, ast.ImportFrom) and node.module == "aws_cdk"
                for name in node.names
            }
            for node in ast.walk(tree):
                if not (isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)):
                    continue
                module = modules.get(node.value.id, "")
                if module.startswith("aws_") and node.attr.startswith("Cfn"):
                    found = getattr(importlib.import_module(f"aws_cdk.{module}"), node.attr)
                    yield found.CFN_RESOURCE_TYPE_NAME
