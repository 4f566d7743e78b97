"""Keys of one job in etcd, as they are read and written by single transactions."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import quote

from ultrascale_training.rendezvous.etcd_client import EtcdClient, Range, decoded, encoded

_ROOT = "/ultrascale/rendezvous"
_LONGEST_PART = 200

Operation = Mapping[str, object]
Comparison = Mapping[str, object]


@dataclass(frozen=True, kw_only=True)
class Value:
    """Value of a key in etcd.

    Attributes:
        data: The bytes.
        revision: Revision of etcd at which the key was last written.
        created: Revision at which it came to be.
        version: How often it was written since then.
    """

    data: bytes
    revision: int
    created: int
    version: int


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """Result of a transaction.

    Attributes:
        succeeded: Whether all comparisons held.
        revision: Revision of etcd after it.
        read: What each of its reads found, in their order.
    """

    succeeded: bool
    revision: int
    read: tuple[Value | None, ...]


def job_key(run_id: str, *parts: str) -> str:
    """Return a key of the job ``run_id``: of bounded length, and of no other job."""
    return "/".join((_ROOT, *(_bounded(part) for part in (run_id, *parts))))


def _bounded(part: str) -> str:
    text = quote(part, safe="")
    if len(text) <= _LONGEST_PART:
        return text
    digest = hashlib.sha256(part.encode()).hexdigest()
    return f"{text[: _LONGEST_PART - len(digest) - 1]}~{digest}"


def put(key: str, data: bytes, *, lease: int) -> Operation:
    """Return the operation that writes ``data`` and ties the key to ``lease``."""
    return {
        "request_put": {"key": encoded(key), "value": encoded(data), "lease": str(lease)},
    }


def touch(key: str) -> Operation:
    """Return the operation that counts the version of an existing key up, and no more."""
    return {"request_put": {"key": encoded(key), "ignore_value": True, "ignore_lease": True}}


def read(key: str) -> Operation:
    """Return the operation that reads ``key``."""
    return {"request_range": {"key": encoded(key)}}


def absent(key: str) -> Comparison:
    """Return the condition that nobody has written ``key``."""
    return _compare(key, "VERSION", "EQUAL", version="0")


def less(key: str, data: bytes) -> Comparison:
    """Return the condition that ``key`` is written and holds less than ``data``."""
    return _compare(key, "VALUE", "LESS", value=encoded(data))


def unchanged(key: str, revision: int) -> Comparison:
    """Return the condition that ``key`` was last written at ``revision``; 0 means never."""
    return _compare(key, "MOD", "EQUAL", mod_revision=str(revision))


def _compare(key: str, target: str, result: str, **operand: str) -> Comparison:
    return {"key": encoded(key), "target": target, "result": result, **operand}


def transact(
    client: EtcdClient,
    *,
    compare: Sequence[Comparison] = (),
    success: Sequence[Operation],
    failure: Sequence[Operation] = (),
) -> Outcome:
    """Do ``success`` if all of ``compare`` hold, else ``failure``, in one step.

    Raises:
        EtcdRefusedError: etcd will not do it; `LeaseNotFoundError` if a put's lease is gone.
        RendezvousConnectionError: etcd did not answer.
    """
    body = {"compare": compare, "success": success, "failure": failure}
    answer = client.call("/kv/txn", body)
    reads = [
        each["response_range"] for each in answer.get("responses", ()) if "response_range" in each
    ]
    return Outcome(
        # The gateway leaves out what is false or zero.
        succeeded=answer.get("succeeded", False),
        revision=int(answer["header"]["revision"]),
        read=tuple(_value(each) for each in reads),
    )


def read_at(client: EtcdClient, key: str, revision: int) -> Value | None:
    """Return what ``key`` held at ``revision``."""
    return _value(client.call("/kv/range", {"key": encoded(key), "revision": str(revision)}))


def read_newer(client: EtcdClient, key: str, revision: int) -> tuple[bool, Value | None]:
    """Return whether ``key`` exists, and what it holds if that is newer than ``revision``."""
    body = {"key": encoded(key), "min_mod_revision": str(revision + 1)}
    answer = client.call("/kv/range", body)
    if int(answer["header"]["revision"]) < revision:
        # This etcd lost its data and counts from the start.
        return read_newer(client, key, 0)
    return int(answer.get("count", "0")) > 0, _value(answer)


def _value(answer: Range) -> Value | None:
    for found in answer.get("kvs", ()):
        return Value(
            data=decoded(found.get("value", "")),
            revision=int(found["mod_revision"]),
            created=int(found["create_revision"]),
            version=int(found["version"]),
        )
    return None
