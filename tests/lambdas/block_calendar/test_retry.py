"""Retries within a deployment, and their duration."""

from collections.abc import Callable

import pytest
from botocore.exceptions import ClientError

from ultrascale.lambdas.block_calendar.handler import until_settled
from ultrascale.lambdas.kubernetes import KubernetesError


def refused(code: str) -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": ""}}, "Describe")


def conflict(status: int) -> KubernetesError:
    return KubernetesError(status, "PATCH nodepools/train", "")


def failing(*errors: Exception) -> Callable[[], str]:
    left = list(errors)

    def run() -> str:
        if left:
            raise left.pop(0)
        return "done"

    return run


PASSING = (
    refused("AccessDenied"),
    refused("AccessDeniedException"),
    refused("UnauthorizedOperation"),
    refused("UnrecognizedClientException"),
    refused("ResourceInUseException"),
    conflict(409),
    conflict(422),
)
LASTING = (
    refused("ServiceUnavailable"),
    refused("InvalidCapacityReservationId.NotFound"),
    conflict(403),
    LookupError("there is no node group train"),
)


@pytest.mark.parametrize("error", PASSING, ids=str)
def test_what_passes_is_tried_again(error: Exception) -> None:
    waits: list[float] = []
    assert until_settled(failing(error, error), waits.append) == "done"
    assert len(waits) == 2


@pytest.mark.parametrize("error", LASTING, ids=str)
def test_what_lasts_is_raised_at_once(error: Exception) -> None:
    waits: list[float] = []
    with pytest.raises(type(error)):
        until_settled(failing(error), waits.append)
    assert not waits


def test_rights_that_never_come_are_an_error_after_half_a_minute() -> None:
    waits: list[float] = []
    with pytest.raises(ClientError):
        until_settled(failing(*[refused("AccessDenied")] * 100), waits.append)
    assert sum(waits) == 30
