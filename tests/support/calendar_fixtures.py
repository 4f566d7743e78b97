"""The world around the function behind the block calendar: AWS, the clock, CloudFormation."""

import json
import urllib.request
from collections.abc import Callable, Iterator
from datetime import datetime
from functools import partial
from typing import Any

import boto3
import pytest

from tests.support.calendar_services import Aws
from ultrascale.lambdas import cloudformation
from ultrascale.lambdas.block_calendar import handler

Clock = Callable[[datetime], None]
Answers = list[dict[str, Any]]


@pytest.fixture
def aws(monkeypatch: pytest.MonkeyPatch) -> Iterator[Aws]:
    fake = Aws()
    monkeypatch.setattr(boto3, "client", fake.client)
    yield fake
    fake.verify()


@pytest.fixture
def at(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """Sets the clock."""
    return lambda moment: monkeypatch.setattr(handler, "clock", lambda: moment)


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> Answers:
    """Properties that CloudFormation received."""
    bodies: Answers = []

    def send(request: urllib.request.Request) -> None:
        assert isinstance(request.data, bytes)
        bodies.append(json.loads(request.data))

    monkeypatch.setattr(handler, "respond", partial(cloudformation.respond, send=send))
    return bodies
