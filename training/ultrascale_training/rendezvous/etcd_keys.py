"""Keys of a job in etcd, all attached to one lease."""

import base64
import hashlib
import random
import time
from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import quote

from ultrascale_training.rendezvous.etcd_client import Answer, EtcdClient, EtcdRefusedError, Range

_ROOT = "/ultrascale/rendezvous"
_ATTEMPTS = 5


class Value(NamedTuple):
    """Value of a key in etcd, with the revisions of its last write and of its creation."""

    data: bytes
    revision: int
    created: int


class JobKeys:
    """Keys of a job in etcd.

    All keys belong to one lease that every node of the job keeps alive; the lease's number follows
    from the job's id. So the keys live while any node of the job lives, for weeks or for a minute,
    and are gone ``ttl`` seconds after the last node. A lease for each node would end with that
    node, and with it would go keys that other nodes still read.

    Nothing renews the lease in the background: torchrun asks its rendezvous for waiting nodes every
    second and sends heartbeats; both call `renew`, which renews the lease when that is due.

    Args:
        client: Client of etcd.
        run_id: The job's rendezvous id.
        ttl: Seconds that the keys outlive the last node.

    Source: https://etcd.io/docs/v3.5/learning/api/#lease-api
    """

    def __init__(self, client: EtcdClient, run_id: str, *, ttl: int = 600) -> None:
        self.client = client
        self._folder = f"{_ROOT}/{quote(run_id, safe='')}"
        # A positive number of at most 63 bits; 0 would let etcd choose.
        self._lease = 1 + int.from_bytes(hashlib.sha256(run_id.encode()).digest()[:7])
        self._ttl = ttl
        self._due = 0.0

    def read(self, *key: str, known: Value | None = None) -> Value | None:
        """Return the value of a key; None if nobody has written it.

        Args:
            key: Parts of the key.
            known: An earlier value; if it is unchanged, etcd does not send it again.
        """
        body = {"key": _base64(self._path(*key).encode())}
        if known is not None:
            body["min_mod_revision"] = str(known.revision + 1)
        answer = self.client.call("/kv/range", body)
        if known is not None and int(answer["header"]["revision"]) < known.revision:
            # This etcd has lost its data, and counts revisions from the start again.
            return self.read(*key)
        return _value(answer) or (known if int(answer.get("count", "0")) else None)

    def write(
        self, *key: str, data: bytes, revision: int | None = None
    ) -> tuple[bool, Value | None]:
        """Write a key, and return whether it was written, and its value afterwards.

        Args:
            key: Parts of the key.
            data: Its new value.
            revision: Write only if this is the revision of the last write; 0: if there was no
                write.

        Raises:
            EtcdRefusedError: etcd refused the write.
            RendezvousConnectionError: etcd did not answer.
        """
        name = _base64(self._path(*key).encode())
        compare: list[Mapping[str, str]] = []
        if revision is not None:
            compare = [{"key": name, "target": "MOD", "mod_revision": str(revision)}]
        put = {"key": name, "value": _base64(data), "lease": str(self._lease)}
        revisions = {"key": name, "keys_only": True}
        answer = self._transact(
            {
                "compare": compare,
                "success": [{"request_put": put}, {"request_range": revisions}],
                "failure": [{"request_range": {"key": name}}],
            }
        )
        # The gateway leaves out values that are false.
        written = answer.get("succeeded", False)
        held = _value(answer["responses"][-1].get("response_range", {}))
        return written, held._replace(data=data) if held is not None and written else held

    def count_at(self, revision: int, *key: str) -> int:
        """Return the number of keys below a key at a revision."""
        path = self._path(*key).encode()
        body = {
            "key": _base64(path + b"/"),
            # This character follows the slash.
            "range_end": _base64(path + b"0"),
            "revision": str(revision),
            "count_only": True,
        }
        return int(self.client.call("/kv/range", body)["count"])

    def renew(self) -> None:
        """Renew the lease once a third of its time has passed."""
        if time.monotonic() < self._due:
            return
        # At random times, so that the nodes of a large job do not call at the same time.
        self._due = time.monotonic() + self._ttl / 3 * random.uniform(0.7, 1.0)
        # If the lease is already gone, the next write notices it.
        self.client.call("/lease/keepalive", {"ID": str(self._lease)})

    def _transact(self, body: Mapping[str, object]) -> Answer:
        """Return the answer to a transaction; if the lease is gone, make it anew."""
        for _ in range(_ATTEMPTS - 1):
            try:
                return self.client.call("/kv/txn", body)
            except EtcdRefusedError as error:
                if "requested lease not found" not in str(error):
                    raise
            try:
                grant = {"ID": str(self._lease), "TTL": str(self._ttl)}
                self.client.call("/lease/grant", grant)
            except EtcdRefusedError as error:
                # Another node was faster, or this call arrived twice.
                if "lease already exists" not in str(error):
                    raise
        return self.client.call("/kv/txn", body)

    def _path(self, *key: str) -> str:
        return "/".join((self._folder, *(quote(part, safe="") for part in key)))


def _base64(data: bytes) -> str:
    """Return ``data`` in base64, in which the gateway takes keys and values."""
    return base64.b64encode(data).decode()


def _value(answer: Range) -> Value | None:
    for held in answer.get("kvs", ()):
        return Value(
            data=base64.b64decode(held.get("value", "")),
            revision=int(held["mod_revision"]),
            created=int(held["create_revision"]),
        )
    return None
