"""Answers of custom resources to CloudFormation."""

import io
import json
import urllib.request
from typing import Any

import pytest

from ultrascale.lambdas.cloudformation import put, respond

EVENT: Any = {
    "StackId": "arn:aws:cloudformation:us-west-2:111122223333:stack/research-train/1",
    "RequestId": "request",
    "LogicalResourceId": "AtDeploy",
    "ResponseURL": "https://responses.example/answer?Signature=s",
}


def answer(**changes: Any) -> tuple[urllib.request.Request, dict[str, Any]]:
    """Return the request that answers, and its body."""
    sent: list[urllib.request.Request] = []
    arguments: dict[str, Any] = {"status": "SUCCESS", "physical_id": "id"} | changes
    respond(EVENT, **arguments, send=sent.append)
    (request,) = sent
    assert isinstance(request.data, bytes)
    return request, json.loads(request.data)


def test_the_answer_names_the_request_and_is_put_as_the_url_is_signed_for() -> None:
    request, body = answer(data={"Size": 4})

    assert body == {
        "Status": "SUCCESS",
        "Reason": "",
        "PhysicalResourceId": "id",
        "StackId": EVENT["StackId"],
        "RequestId": "request",
        "LogicalResourceId": "AtDeploy",
        "Data": {"Size": 4},
    }
    assert (request.get_method(), request.full_url) == ("PUT", EVENT["ResponseURL"])
    assert request.get_header("Content-type") == ""


@pytest.mark.parametrize("letter", ["e", "é", "🙂", "\n", "\0"])
def test_a_long_reason_is_cut_to_what_cloudformation_takes(letter: str) -> None:
    request, body = answer(status="FAILED", reason=letter * 10_000)
    assert body["Reason"].startswith(letter * 500)
    assert isinstance(request.data, bytes)
    assert len(request.data) <= 4096


def test_an_answer_that_cloudformation_would_not_take_is_refused() -> None:
    with pytest.raises(ValueError, match="4096"):
        answer(data={"Text": "x" * 5000})


@pytest.mark.parametrize("failures", [0, 1, 2])
def test_the_answer_is_sent_again_when_the_network_fails(
    failures: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    attempts: list[urllib.request.Request] = []

    def urlopen(request: urllib.request.Request, timeout: float) -> io.BytesIO:
        attempts.append(request)
        if len(attempts) <= failures:
            raise OSError
        return io.BytesIO()

    monkeypatch.setattr(urllib.request, "urlopen", urlopen)

    put(urllib.request.Request("https://responses.example", method="PUT"))

    assert len(attempts) == failures + 1


def test_an_answer_that_never_arrives_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def urlopen(request: urllib.request.Request, timeout: float) -> io.BytesIO:
        raise OSError("unreachable")

    monkeypatch.setattr(urllib.request, "urlopen", urlopen)

    with pytest.raises(OSError, match="unreachable"):
        put(urllib.request.Request("https://responses.example", method="PUT"))
