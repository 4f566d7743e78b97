"""Buckets of deployed stacks: an output of each stack names its bucket."""

from ultrascale.account.account import Account
from ultrascale.errors import UnansweredError

_ABSENT = "ValidationError"


def bucket_of_stack(account: Account, stack: str, bucket: str) -> str | None:
    """Return S3's name of a bucket that a stack makes; None before the stack makes it.

    Args:
        account: The account of the stack.
        stack: Name of the stack.
        bucket: Name of the bucket in the plan.

    Raises:
        UnansweredError: AWS does not tell the outputs.
    """
    cloudformation = account.client("cloudformation")
    try:
        answer = account.ask(cloudformation.describe_stacks, StackName=stack)
    except UnansweredError as error:
        if error.code != _ABSENT:
            raise
        return None
    outputs = (output for made in answer["Stacks"] for output in made.get("Outputs", []))
    named = (output for output in outputs if output.get("Description") == f"Bucket {bucket}")
    return next((output.get("OutputValue") or None for output in named), None)
