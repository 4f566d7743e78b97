"""Records of requests in the database, under concurrent access."""

from collections.abc import Iterator
from datetime import timedelta
from uuid import UUID, uuid4

import psycopg
import pytest

from tests.support.backend_process import eventually
from tests.support.postgres_server import PostgresServer
from ultrascale_backend import store
from ultrascale_backend.database import Connection
from ultrascale_backend.migrations import migrate
from ultrascale_backend.records import NewRecord, Observation, State

pytestmark = pytest.mark.postgres

OWNER = "system:serviceaccount:web:web"


@pytest.fixture(scope="module")
def url(postgres: PostgresServer) -> str:
    return postgres.url(postgres.new_database())


@pytest.fixture
def one(url: str) -> Iterator[Connection]:
    with psycopg.connect(url, autocommit=True) as connection:
        migrate(connection)
        yield connection
        connection.execute("TRUNCATE requests, outbox")


@pytest.fixture
def other(url: str) -> Iterator[Connection]:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("SET lock_timeout = '1s'")
        yield connection


def recorded(connection: Connection, *, workloads: int = 1) -> UUID:
    """Record a request, and return its id."""
    request_id = uuid4()
    new = NewRecord(
        id=request_id,
        owner=OWNER,
        key=str(request_id),
        fingerprint=b"",
        type="research",
        urgency="normal",
        deadline=None,
        rule="research",
        template="research",
        namespace="training",
        job_name=f"request-{request_id.hex}",
        kind="jobs.batch",
        workloads=workloads,
        objects="[]",
        notes=[],
    )
    store.create(connection, new)
    return request_id


def seen(request_id: UUID, state: State, *, workloads: int = 1) -> list[Observation]:
    return [Observation(request_id=request_id, state=state, reason="", seen=workloads, stays=True)]


def state(connection: Connection, request_id: UUID) -> str:
    found = store.find(connection, request_id)
    assert found is not None
    return found.state


def submitted(connection: Connection) -> UUID:
    request_id = recorded(connection)
    with connection.transaction():
        entry = store.claim(connection)
        assert entry is not None
        store.record_done(connection, entry, "submitted")
    return request_id


def test_two_replicas_never_hold_the_same_entry(one: Connection, other: Connection) -> None:
    both = {recorded(one), recorded(one)}

    with one.transaction(), other.transaction():
        claimed = [store.claim(each) for each in (one, other, other)]

    assert {each.request_id for each in claimed[:2] if each} == both


def test_an_entry_whose_holder_dies_is_free_again(one: Connection, url: str) -> None:
    request_id = recorded(one)
    dying = psycopg.connect(url)
    assert store.claim(dying) is not None
    with one.transaction():
        assert store.claim(one) is None

    dying.close()

    def claimed() -> UUID | None:
        with one.transaction():
            entry = store.claim(one)
        return entry.request_id if entry else None

    eventually(lambda: claimed() == request_id)


def test_a_cancellation_during_a_submission_is_not_lost(one: Connection, other: Connection) -> None:
    request_id = recorded(one)

    with one.transaction():
        entry = store.claim(one)
        assert entry is not None
        store.cancel(other, request_id)
        store.record_done(one, entry, "submitted")

    with one.transaction():
        following = store.claim(one)
    assert following is not None
    assert following.cancelled


def test_a_cancellation_does_not_wait_for_a_retry(one: Connection, other: Connection) -> None:
    request_id = recorded(one)
    with one.transaction():
        entry = store.claim(one)
        assert entry is not None
        store.record_later(one, entry, timedelta(minutes=1), "no quota")
    with one.transaction():
        assert store.claim(one) is None

    store.cancel(other, request_id)

    with one.transaction():
        assert store.claim(one) is not None


def test_a_job_that_runs_before_its_submission_is_recorded_stays_running(
    one: Connection, other: Connection
) -> None:
    request_id = recorded(one)

    with one.transaction():
        entry = store.claim(one)
        assert entry is not None
        store.record_seen(other, seen(request_id, "running"))
        store.record_done(one, entry, "submitted")

    found = store.find(one, request_id)
    assert found is not None
    assert found.state == "running"
    assert found.submitted_at is not None
    assert store.submitted(one, "training", "jobs.batch") == {request_id}


@pytest.mark.parametrize("last", ["running", "failed", "succeeded"])
def test_what_has_ended_does_not_begin_again(one: Connection, last: State) -> None:
    request_id = submitted(one)
    store.record_seen(one, seen(request_id, "succeeded"))

    store.record_seen(one, seen(request_id, last))

    assert state(one, request_id) == "succeeded"


def test_a_job_waits_anew_when_its_pods_are_lost(one: Connection) -> None:
    request_id = submitted(one)
    store.record_seen(one, seen(request_id, "running"))

    store.record_seen(one, seen(request_id, "submitted"))

    assert state(one, request_id) == "submitted"


def test_a_job_of_several_workloads_has_not_succeeded_with_the_first(one: Connection) -> None:
    request_id = recorded(one, workloads=2)

    store.record_seen(one, seen(request_id, "succeeded", workloads=1))
    early = state(one, request_id)
    store.record_seen(one, seen(request_id, "succeeded", workloads=2))

    assert (early, state(one, request_id)) == ("pending", "succeeded")


def test_pages_neither_repeat_nor_skip_requests_of_one_moment(one: Connection) -> None:
    with one.transaction():
        ids = {recorded(one) for _ in range(7)}
    one.execute("UPDATE requests SET created_at = '2026-11-21'")
    found: list[UUID] = []
    after: UUID | None = None

    while page := store.newest(one, owner=None, state=None, after=after, limit=3):
        found += [each.id for each in page]
        after = found[-1]

    assert len(found) == 7
    assert set(found) == ids
