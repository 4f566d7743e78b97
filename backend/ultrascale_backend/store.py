"""All SQL statements on requests."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import timedelta
from hashlib import sha256
from typing import LiteralString
from uuid import UUID

from psycopg.rows import class_row

from ultrascale.documents import JsonObject
from ultrascale_backend.database import Connection
from ultrascale_backend.errors import KeyReusedError
from ultrascale_backend.records import ACTIVE, Entry, NewRecord, Observation, Record, State

_COLUMNS: LiteralString = """
    id, owner, type, urgency, deadline, rule, template, namespace, job_name, kind, notes, state,
    reason, created_at, cancel_requested_at, submitted_at, started_at, ended_at
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Keyed(Record):
    fingerprint: bytes


def find_key(
    connection: Connection, owner: str, key: str, fingerprint: bytes, *, is_admin: bool = False
) -> Record | None:
    """Return the request that ``owner`` sent under an idempotency key; None if there is none.

    Args:
        connection: Connection to the database.
        owner: The caller.
        key: The client's idempotency key.
        fingerprint: SHA-256 of the request.
        is_admin: Whether the caller may see requests that were recorded before they had owners.

    Raises:
        KeyReusedError: The key came with another request; or its request has no owner, and
            recording it again would create its job twice.
    """
    with connection.cursor(row_factory=class_row(_Keyed)) as cursor:
        cursor.execute(
            f"""
            SELECT {_COLUMNS}, fingerprint FROM requests
            WHERE idempotency_key = %s OR (idempotency_key = %s AND owner IS NULL)
            ORDER BY owner NULLS LAST LIMIT 1
            """,
            (_key_of_owner(owner, key), key),
        )
        row = cursor.fetchone()
    if row is None:
        return None
    if row.owner is None and not is_admin:
        raise KeyReusedError(f"{key} came before requests had owners; send a new one")
    if row.fingerprint != fingerprint:
        raise KeyReusedError(f"{key} came before with another request; send a new one")
    return row


def _key_of_owner(owner: str, key: str) -> str:
    """Return ``key`` made unique to ``owner``: the database has a single unique column."""
    return "sha256:" + sha256("\n".join((owner, key)).encode()).hexdigest()


def create(connection: Connection, new: NewRecord) -> tuple[Record, bool]:
    """Record a request and the task to submit it; return the record, and whether it is new.

    Raises:
        KeyReusedError: The idempotency key came with another request before.
    """
    query = f"""
        WITH recorded AS (
            INSERT INTO requests (id, owner, idempotency_key, fingerprint, type, urgency, deadline,
                rule, template, namespace, job_name, kind, workloads, objects, notes)
            VALUES (%(id)s, %(owner)s, %(scoped)s, %(fingerprint)s, %(type)s, %(urgency)s,
                %(deadline)s, %(rule)s, %(template)s, %(namespace)s, %(job_name)s, %(kind)s,
                %(workloads)s, %(objects)s, %(notes)s)
            ON CONFLICT (idempotency_key) DO NOTHING
            RETURNING *
        ), task AS (INSERT INTO outbox (request_id) SELECT id FROM recorded)
        SELECT {_COLUMNS} FROM recorded
    """
    with connection.cursor(row_factory=class_row(Record)) as cursor:
        cursor.execute(query, {**asdict(new), "scoped": _key_of_owner(new.owner, new.key)})
        recorded = cursor.fetchone()
    if recorded is not None:
        return recorded, True
    earlier = find_key(connection, new.owner, new.key, new.fingerprint)
    if earlier is None:
        message = f"request {new.id} is neither recorded nor a repetition"
        raise LookupError(message)
    # The record may be from this very call, if its commit succeeded and the answer was lost.
    return earlier, earlier.id == new.id


def find(connection: Connection, request_id: UUID) -> Record | None:
    """Return a request; None if it does not exist."""
    with connection.cursor(row_factory=class_row(Record)) as cursor:
        cursor.execute(f"SELECT {_COLUMNS} FROM requests WHERE id = %s", (request_id,))
        return cursor.fetchone()


def newest(
    connection: Connection,
    *,
    owner: str | None,
    state: State | None,
    after: UUID | None,
    limit: int,
) -> Sequence[Record]:
    """Return requests, the newest first.

    Args:
        connection: Connection to the database.
        owner: Owner of the requests; None for all. An ``after`` of another owner counts as missing.
        state: State of the requests; None for any.
        after: The last request of the previous page; None for the first page.
        limit: Most requests.
    """
    # A separate statement, so that the index of owners serves it.
    owned: LiteralString = "true" if owner is None else "owner = %(owner)s"
    query = f"""
        SELECT {_COLUMNS} FROM requests
        WHERE {owned} AND (%(state)s::text IS NULL OR state = %(state)s)
          AND (%(after)s::uuid IS NULL OR (created_at, id) <
            (SELECT created_at, id FROM requests WHERE id = %(after)s AND {owned}))
        ORDER BY created_at DESC, id DESC LIMIT %(limit)s
    """
    with connection.cursor(row_factory=class_row(Record)) as cursor:
        cursor.execute(query, {"owner": owner, "state": state, "after": after, "limit": limit})
        return cursor.fetchall()


def cancel(connection: Connection, request_id: UUID) -> Record | None:
    """Cancel a request, and return it; None if it does not exist.

    A request that has ended is not changed.
    """
    with connection.transaction():
        cursor = connection.execute(
            """
            UPDATE requests
            SET cancel_requested_at = coalesce(cancel_requested_at, clock_timestamp())
            WHERE id = %s AND state = ANY(%s)
            """,
            (request_id, [*ACTIVE]),
        )
        if cursor.rowcount:
            _enqueue(connection, [request_id])
        return find(connection, request_id)


def claim(connection: Connection) -> Entry | None:
    """Lock and return the unlocked entry that has been due longest; None without one.

    The lock lasts as long as the transaction: a process that dies releases it.
    """
    row = connection.execute(
        """
        SELECT o.request_id, r.namespace, r.objects, r.state, r.cancel_requested_at IS NOT NULL,
            o.attempts
        FROM outbox o JOIN requests r ON r.id = o.request_id
        WHERE o.next_attempt_at <= clock_timestamp()
        ORDER BY o.next_attempt_at LIMIT 1
        FOR UPDATE OF o SKIP LOCKED
        """
    ).fetchone()
    if row is None:
        return None
    return Entry(
        request_id=row[0],
        namespace=row[1],
        objects=row[2],
        state=row[3],
        cancelled=row[4],
        attempts=row[5],
    )


def record_done(connection: Connection, entry: Entry, state: State, reason: str = "") -> None:
    """Record the new state of an entry's request, and delete the entry.

    The entry stays if the request was cancelled meanwhile.
    """
    connection.execute(
        """
        WITH done AS (
            UPDATE requests SET
                -- What was seen of the job in the cluster meanwhile is further.
                state = CASE WHEN state = 'pending' OR %(ended)s THEN %(state)s ELSE state END,
                reason = CASE WHEN state = 'pending' OR %(ended)s THEN %(reason)s ELSE reason END,
                submitted_at = CASE WHEN %(state)s = 'submitted'
                    THEN coalesce(submitted_at, clock_timestamp()) ELSE submitted_at END,
                ended_at = CASE WHEN %(ended)s THEN clock_timestamp() ELSE ended_at END
            WHERE id = %(id)s AND state = ANY(%(active)s)
            RETURNING cancel_requested_at IS NOT NULL AND NOT %(ended)s AS cancelled
        )
        DELETE FROM outbox
        WHERE request_id = %(id)s AND NOT coalesce((SELECT cancelled FROM done), false)
        """,
        {
            "id": entry.request_id,
            "state": state,
            "reason": reason,
            "ended": state not in ACTIVE,
            "active": [*ACTIVE],
        },
    )


def record_later(connection: Connection, entry: Entry, wait: timedelta, reason: str) -> None:
    """Record why an entry failed for now, and when to try it again."""
    connection.execute(
        """
        UPDATE outbox SET attempts = attempts + 1, next_attempt_at = clock_timestamp() + %s
        WHERE request_id = %s
        """,
        (wait, entry.request_id),
    )
    connection.execute(
        "UPDATE requests SET reason = %s WHERE id = %s AND state = ANY(%s)",
        (reason, entry.request_id, [*ACTIVE]),
    )


def record_seen(connection: Connection, seen: Collection[Observation]) -> None:
    """Record observations of requests in the cluster.

    A request that has ended stays ended. A job that was created after its request was cancelled has
    to be deleted: its request gets a new entry.
    """
    with connection.transaction():
        connection.execute(
            """
            WITH seen AS (
                SELECT * FROM unnest(%(ids)s::uuid[], %(states)s::text[], %(reasons)s::text[],
                    %(counts)s::int[]) AS seen (id, state, reason, workloads)
            ), locked AS (
                -- In one order, so that two replicas never wait for each other.
                SELECT r.id FROM requests r JOIN seen USING (id) WHERE r.state = ANY(%(active)s)
                ORDER BY r.id FOR NO KEY UPDATE OF r
            )
            UPDATE requests r SET state = seen.state, reason = seen.reason,
                started_at = CASE WHEN seen.state = 'running'
                    THEN coalesce(r.started_at, clock_timestamp()) ELSE r.started_at END,
                ended_at = CASE WHEN seen.state <> ALL(%(active)s) THEN clock_timestamp() END
            FROM seen JOIN locked USING (id)
            WHERE r.id = seen.id AND r.state = ANY(%(active)s)
              AND (r.state, r.reason) IS DISTINCT FROM (seen.state, seen.reason)
              -- A job of several workloads has succeeded when all of them have.
              AND (seen.state <> 'succeeded' OR r.workloads <= seen.workloads)
            """,
            {
                "ids": [each.request_id for each in seen],
                "states": [each.state for each in seen],
                "reasons": [each.reason for each in seen],
                "counts": [each.seen for each in seen],
                "active": [*ACTIVE],
            },
        )
        late = connection.execute(
            """
            SELECT id FROM requests
            WHERE id = ANY(%s) AND state = 'cancelled' AND cancel_requested_at IS NOT NULL
            """,
            ([each.request_id for each in seen if each.stays],),
        ).fetchall()
        if late:
            _enqueue(connection, [row[0] for row in late])


def submitted(connection: Connection, namespace: str, kind: str) -> set[UUID]:
    """Return the requests whose jobs must exist in the cluster."""
    rows = connection.execute(
        """
        SELECT id FROM requests
        WHERE namespace = %s AND kind = %s AND state IN ('submitted', 'running')
          AND submitted_at IS NOT NULL
        """,
        (namespace, kind),
    ).fetchall()
    return {row[0] for row in rows}


def objects_of(connection: Connection, request_id: UUID) -> list[JsonObject]:
    """Return the objects of a request's job; empty if there is no such request."""
    row = connection.execute("SELECT objects FROM requests WHERE id = %s", (request_id,)).fetchone()
    return row[0] if row is not None else []


def followed(connection: Connection) -> set[tuple[str, str]]:
    """Return the namespaces and kinds of the jobs of requests that have not ended."""
    rows = connection.execute(
        "SELECT DISTINCT namespace, kind FROM requests WHERE state = ANY(%s)", ([*ACTIVE],)
    ).fetchall()
    return {(row[0], row[1]) for row in rows}


def backlog(connection: Connection) -> tuple[Mapping[str, int], float]:
    """Return the number of unfinished requests by state, and the age of the oldest task.

    The age is in seconds, and 0 without a task.
    """
    counts = connection.execute(
        "SELECT state, count(*) FROM requests WHERE state = ANY(%s) GROUP BY state", ([*ACTIVE],)
    ).fetchall()
    oldest = connection.execute(
        """
        SELECT coalesce(extract(epoch FROM clock_timestamp() - min(r.created_at)), 0)
        FROM outbox o JOIN requests r ON r.id = o.request_id
        """
    ).fetchone()
    return {row[0]: row[1] for row in counts}, float(oldest[0]) if oldest else 0.0


def _enqueue(connection: Connection, request_ids: Sequence[UUID]) -> None:
    """Enqueue requests, due now; `record_done` checks entries that a worker has locked again."""
    connection.execute(
        "INSERT INTO outbox (request_id) SELECT unnest(%s::uuid[]) ON CONFLICT DO NOTHING",
        (list(request_ids),),
    )
    connection.execute(
        """
        UPDATE outbox SET next_attempt_at = clock_timestamp() WHERE request_id IN (
            SELECT request_id FROM outbox WHERE request_id = ANY(%s) FOR UPDATE SKIP LOCKED)
        """,
        (list(request_ids),),
    )
