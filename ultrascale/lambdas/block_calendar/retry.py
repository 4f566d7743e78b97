"""Retries of a deployment: new permissions need seconds, and the schedule runs beside it."""

import time
from collections.abc import Callable
from http import HTTPStatus

from botocore.exceptions import ClientError

from ..kubernetes import KubernetesError

# Services learn of a new role and its policies only after some seconds.
# Source: https://docs.aws.amazon.com/IAM/latest/UserGuide/troubleshoot.html#troubleshoot_general_eventual-consistency
_NOT_KNOWN_YET = frozenset(
    {
        "AccessDenied",
        "AccessDeniedException",
        "AuthFailure",
        "InvalidClientTokenId",
        "UnauthorizedOperation",
        "UnrecognizedClientException",
    }
)
# The schedule sets the same size at the same moment; the next try finds it done.
_OVERTAKEN = frozenset({"ResourceInUseException", "ScalingActivityInProgress"})
_OVERTAKEN_STATUS = (HTTPStatus.CONFLICT, HTTPStatus.UNPROCESSABLE_ENTITY)
_ATTEMPTS = 7
_SECONDS_BETWEEN = 5


def until_settled(run: Callable[[], str], sleep: Callable[[float], None] = time.sleep) -> str:
    """Return the result of ``run``, and retry transient errors for half a minute.

    Args:
        run: A repeatable operation.
        sleep: Waits, in seconds.

    Raises:
        Exception: It failed for another reason, or for too long.
    """
    for _ in range(_ATTEMPTS - 1):
        try:
            return run()
        except (ClientError, KubernetesError) as error:
            if not _passes(error):
                raise
            print(f"tried again: {error}")
        sleep(_SECONDS_BETWEEN)
    return run()


def _passes(error: ClientError | KubernetesError) -> bool:
    if isinstance(error, KubernetesError):
        return error.status in _OVERTAKEN_STATUS
    return error.response["Error"]["Code"] in _NOT_KNOWN_YET | _OVERTAKEN
