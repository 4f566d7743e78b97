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
    """A request and its state.

    Attributes:
        id: Its identity; its job's name follows from it.
        owner: Caller that sent it; None for records from before callers were known.
        type: Type that the client stated.
        urgency: Urgency that the client stated.
        deadline: Deadline that the client stated.
        rule: Rule that chose the template.
        template: Job of the cluster file.
        namespace: Namespace of its job.
        job_name: Name of its job.
        kind: Kind of the objects that make its pods, such as `jobs.batch`.
        notes: Notes for its user, each a sentence.
        state: Its state.
        reason: Reason for its state; may be empty.
        created_at: When it was recorded.
        cancel_requested_at: When a client cancelled it.
        submitted_at: When its job was created in the cluster.
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
    """A request to record, with the objects of its job.

    Attributes:
        id: Its identity.
        owner: Caller that sends it.
        key: The client's idempotency key.
        fingerprint: SHA-256 of its body.
        type: Type that the client states.
        urgency: Urgency that the client states.
        deadline: Deadline that the client states.
        rule: Rule that chose the template.
        template: Job of the cluster file.
        namespace: Namespace of its job.
        job_name: Name of its job.
        kind: Kind of the objects that make its pods.
        workloads: Number of these objects.
        objects: The objects of its job, as JSON.
        notes: Notes for its user.
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
    """A task of the outbox: to create or delete the objects of a request's job.

    Attributes:
        request_id: Id of the request.
        namespace: Namespace of the job.
        objects: The objects of its job.
        state: State of the request.
        cancelled: Whether the objects are to be deleted instead of created.
        attempts: Number of earlier attempts.
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
        request_id: Id of the request.
        state: State of its job.
        reason: Reason for the state.
        seen: Workloads of its job that were seen.
        stays: Whether its job exists and is not being deleted.
    """

    request_id: UUID
    state: State
    reason: str
    seen: int
    stays: bool
