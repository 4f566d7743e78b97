"""The code of the functions that run in AWS Lambda."""

from pathlib import Path

from aws_cdk import IgnoreMode
from aws_cdk import aws_lambda as lambda_

import ultrascale

RUNTIME = lambda_.Runtime.PYTHON_3_14


def lambda_code() -> lambda_.Code:
    """Return the one asset of all functions: the package `lambdas`, without compiled files.

    A function's handler is written ``lambdas.<package>.<module>.<function>``.
    """
    return lambda_.Code.from_asset(
        str(Path(ultrascale.__file__).parent),
        exclude=["/*", "!/lambdas", "__pycache__"],
        ignore_mode=IgnoreMode.GIT,
    )
