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
    """A request and its state."""

    id: UUID  # Its identity; its job's name follows from it
    owner: str | None  # Caller that sent it; None for records from before callers were known
    type: str  # Type that the client stated
    urgency: str  # Urgency that the client stated
    deadline: datetime | None  # Deadline that the client stated
    rule: str  # Rule that chose the template
    template: str  # Job of the cluster file
    namespace: str  # Namespace of its job
    job_name: str  # Name of its job
    kind: str  # Kind of the objects that make its pods, such as `jobs.batch`
    notes: list[str]  # Notes for its user, each a sentence
    state: State  # Its state
    reason: str  # Reason for its state; may be empty
    created_at: datetime  # When it was recorded
    cancel_requested_at: datetime | None  # When a client cancelled it
    submitted_at: datetime | None  # When its job was created in the cluster
    started_at: datetime | None  # When its pods were first seen to run
    ended_at: datetime | None  # When its end was recorded


@dataclass(frozen=True, slots=True, kw_only=True)
class NewRecord:
    """A request to record, with the objects of its job."""

    id: UUID  # Its identity
    owner: str  # Caller that sends it
    key: str  # The client's idempotency key
    fingerprint: bytes  # SHA-256 of its body
    type: str  # Type that the client states
    urgency: str  # Urgency that the client states
    deadline: datetime | None  # Deadline that the client states
    rule: str  # Rule that chose the template
    template: str  # Job of the cluster file
    namespace: str  # Namespace of its job
    job_name: str  # Name of its job
    kind: str  # Kind of the objects that make its pods
    workloads: int  # Number of these objects
    objects: str  # The objects of its job, as JSON
    notes: list[str]  # Notes for its user


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A task of the outbox: to create or delete the objects of a request's job."""

    request_id: UUID  # Id of the request
    namespace: str  # Namespace of the job
    objects: list[JsonObject]  # The objects of its job
    state: State  # State of the request
    cancelled: bool  # Whether the objects are to be deleted instead of created
    attempts: int  # Number of earlier attempts


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """Observed state of a request's job in the cluster."""

    request_id: UUID  # Id of the request
    state: State  # State of its job
    reason: str  # Reason for the state
    seen: int  # Workloads of its job that were seen
    stays: bool  # Whether its job exists and is not being deleted
