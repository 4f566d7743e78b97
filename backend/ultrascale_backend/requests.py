"""Requests of clients: their form, checks and hash."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Annotated, Literal, get_args

import pydantic
from pydantic import AwareDatetime, ConfigDict, Field, JsonValue

from ultrascale_backend.errors import BadRequestError, form_mistakes

Urgency = Literal["low", "normal", "high"]
URGENCIES: tuple[Urgency, ...] = get_args(Urgency)

# A deadline further ahead counts as a typing error.
_LONGEST_DEADLINE = timedelta(days=3660)
_LONGEST_KEY = 255


class JobRequest(pydantic.BaseModel):
    """The body of a request for a job."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    # Type of the request, as the rules name it
    type: Annotated[str, Field(min_length=1, max_length=63)]
    urgency: Urgency = "normal"  # Urgency of an early start
    deadline: AwareDatetime | None = None  # Time at which the result is needed
    # Keys of the job as in a job file; only keys that the rules leave to clients
    job: dict[str, JsonValue] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A request as it arrived."""

    key: str  # The client's idempotency key
    body: JobRequest  # The body of the request
    fingerprint: bytes  # SHA-256 of the body, however its keys are ordered


def read_request(key: str | None, body: bytes) -> Asked:
    """Read the key and the body of an HTTP request.

    Raises:
        BadRequestError: The key or the body is wrong; one line for each mistake.
    """
    mistakes = [*_key_mistakes(key)]
    try:
        asked = JobRequest.model_validate_json(body)
    except pydantic.ValidationError as error:
        raise BadRequestError([*mistakes, *form_mistakes(error)]) from None
    if any("\0" in word for word in _words(asked.job)):
        mistakes.append("job: a NUL character, which no program can be given; leave it out")
    if key is None or mistakes:
        raise BadRequestError(mistakes)
    canonical = json.dumps(json.loads(body), sort_keys=True, separators=(",", ":"))
    return Asked(key=key, body=asked, fingerprint=sha256(canonical.encode()).digest())


def deadline_mistakes(asked: JobRequest, now: datetime) -> Iterator[str]:
    """Yield the mistakes in the deadline of a request that comes at ``now``."""
    if asked.deadline is None:
        return
    if asked.deadline <= now:
        yield f"deadline: it has passed, got {asked.deadline.isoformat()}; leave it out"
    elif asked.deadline - now > _LONGEST_DEADLINE:
        yield f"deadline: more than ten years ahead, got {asked.deadline.isoformat()}; leave it out"


def _key_mistakes(key: str | None) -> Iterator[str]:
    todo = "send a value of your own, the same one with each attempt at this request"
    if not key:
        yield f"Idempotency-Key: this header is missing; {todo}"
    elif len(key) > _LONGEST_KEY or not key.isascii() or not key.isprintable():
        yield f"Idempotency-Key: not 1 to {_LONGEST_KEY} printable ASCII characters; {todo}"


def _words(value: JsonValue) -> Iterator[str]:
    """Yield every text within ``value``, including keys."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from _words(item)
    elif isinstance(value, dict):
        for name, item in value.items():
            yield name
            yield from _words(item)
