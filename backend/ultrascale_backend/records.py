"""Requests as rows of the database."""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal, get_args
from uuid import UUID

from ultrascale.documents import JsonObject

State = Literal["pending", "submitted", "running", "succeeded", "failed", "cancelled"]
STATES: tuple[State, ...] = get_args(State)
ACTIVE: tuple[State, ...] = ("pending", "submitted", "running")


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """A request, and how far it is.

    Attributes:
        id: Its identity; its job's name follows from it.
        owner: Who asked for it; None where that was recorded before callers were known.
        type: What was asked for.
        urgency: As asked for.
        deadline: As asked for.
        rule: Rule that chose the template.
        template: Job of the cluster file.
        namespace: Where its job is.
        job_name: Name of its job.
        kind: What makes its pods, such as `jobs.batch`.
        notes: What its user should know, each a sentence.
        state: How far it is.
        reason: Why it is in that state; empty where there is nothing to say.
        created_at: When it was recorded.
        cancel_requested_at: When it was to be cancelled.
        submitted_at: When its job was made in the cluster.
        started_at: When its pods were first seen to run.
        ended_at: When its end was recorded.
    """

    id: UUID
    owner: str | None
    type: str
    urgency: str
    deadline: datetime | None
    rule: str
    template: str
    namespace: str
    job_name: str
    kind: str
    notes: list[str]
    state: State
    reason: str
    created_at: datetime
    cancel_requested_at: datetime | None
    submitted_at: datetime | None
    started_at: datetime | None
    ended_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class NewRecord:
    """A request that is to be recorded, with what is sent to Kubernetes for it.

    Attributes:
        id: Its identity.
        owner: Who asks for it.
        key: The client's idempotency key, which is no other client's.
        fingerprint: SHA-256 of its body.
        type: What is asked for.
        urgency: As asked for.
        deadline: As asked for.
        rule: Rule that chose the template.
        template: Job of the cluster file.
        namespace: Where its job goes.
        job_name: Name of its job.
        kind: What makes its pods.
        workloads: How many of that kind its job consists of.
        objects: The objects of its job, as JSON.
        notes: What its user should know.
    """

    id: UUID
    owner: str
    key: str
    fingerprint: bytes
    type: str
    urgency: str
    deadline: datetime | None
    rule: str
    template: str
    namespace: str
    job_name: str
    kind: str
    workloads: int
    objects: str
    notes: list[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """Something that is to be done in the cluster, locked for whoever holds it.

    Attributes:
        request_id: For which request.
        namespace: Where.
        objects: The objects of its job.
        state: How far the request is.
        cancelled: Whether they are to be taken away instead of made.
        attempts: How often it was tried before.
    """

    request_id: UUID
    namespace: str
    objects: list[JsonObject]
    state: State
    cancelled: bool
    attempts: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """Observed state of a request's job in the cluster.

    Attributes:
        request_id: Which.
        state: How far its job is.
        reason: Why.
        seen: How many workloads of its job were seen.
        stays: Whether its job is there, and is not being deleted.
    """

    request_id: UUID
    state: State
    reason: str
    seen: int
    stays: bool
