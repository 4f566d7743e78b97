"""Retries of requests to an API server: after 429, and where no connection came about."""

from urllib3.util.retry import Retry

# The API server answers 429 to a request that priority and fairness puts off, and has not begun
# it: every such request may be sent again. Waits are in seconds.
# Source: https://kubernetes.io/docs/concepts/cluster-administration/flow-control/
_TOO_MANY = 429
_RETRIES = 5
_BACKOFF = 0.5
_LONGEST_WAIT = 30
_CONNECT_RETRIES = 2


class _RetryPutOff(Retry):
    RETRY_AFTER_STATUS_CODES = frozenset({_TOO_MANY})


def retries() -> Retry:
    """Return the policy by which requests to an API server are sent again."""
    return _RetryPutOff(
        total=_RETRIES,
        connect=_CONNECT_RETRIES,
        read=False,
        redirect=False,
        status=_RETRIES,
        other=0,
        allowed_methods=None,
        status_forcelist={_TOO_MANY},
        backoff_factor=_BACKOFF,
        backoff_max=_LONGEST_WAIT,
        retry_after_max=_LONGEST_WAIT,
        raise_on_status=False,
    )
