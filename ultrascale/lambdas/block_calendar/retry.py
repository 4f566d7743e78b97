"""What a deploy tries again: it meets rights that are seconds old, and the schedule beside it."""

import time
from collections.abc import Callable
from http import HTTPStatus

from botocore.exceptions import ClientError

from ..kubernetes import KubernetesError

# A role and its policies take some seconds until every service knows them.
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
# The schedule sets the same size at the same moment; the next look finds it done.
_OVERTAKEN = frozenset({"ResourceInUseException", "ScalingActivityInProgress"})
_OVERTAKEN_STATUS = (HTTPStatus.CONFLICT, HTTPStatus.UNPROCESSABLE_ENTITY)
_ATTEMPTS = 7
_SECONDS_BETWEEN = 5


def until_settled(run: Callable[[], str], sleep: Callable[[float], None] = time.sleep) -> str:
    """Return what ``run`` returns, and for half a minute try again what fails by its moment alone.

    Args:
        run: What can be repeated.
        sleep: Waits, in seconds.

    Raises:
        Exception: It failed otherwise, or for too long.
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
