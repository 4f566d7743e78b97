"""Mistakes in file systems, buckets and claims that would lose data or be found at deploy time."""

from typing import Any

import pytest

from tests.support.config_documents import mistakes_in, with_lustre
from tests.support.pools import make_document

CLAIM = {"namespace": "training", "name": "data", "mount_path": "/data"}


def exporting(prefix: str, **changes: Any) -> dict[str, Any]:
    return {"s3": {"bucket": "datasets", "prefix": prefix, "export": ["new"], **changes}}


EXISTING = {"id": "fs-0a1b2c3d4e5f60001", "mount_name": "abc", "security_group": "sg-0a1b2c3d"}
KEY = "arn:aws:kms:us-west-2:444455556666:key/11111111-2222-4333-8444-555555555503"


def existing(**changes: Any) -> dict[str, Any]:
    system = {"name": "scratch", "zone": "us-west-2b", "existing": EXISTING} | changes
    return make_document(storage={"lustre": [system], "buckets": ["datasets"]})


def bucket(**keys: Any) -> dict[str, Any]:
    return make_document(storage={"buckets": [{"name": "corpus"} | keys]})


GOOD = {
    "prefixes that only begin alike": with_lustre(
        exporting("run"), {"name": "other", **exporting("run-2")}
    ),
    "one exports, both import": with_lustre(
        exporting("a"), {"name": "other", **exporting("a", export=[], **{"import": ["new"]})}
    ),
    "an existing file system": existing(),
    "an existing bucket with its owner and key": bucket(
        existing="corp", key=KEY, owner="444455556666"
    ),
    "a bucket that pods only read": bucket(read_only=True, claim=CLAIM),
    "claims of a bucket alone": make_document(
        storage={"default_claims": True, "buckets": ["checkpoints"]}
    ),
}


@pytest.mark.parametrize("document", GOOD.values(), ids=list(GOOD))
def test_what_disturbs_nothing_is_not_refused(document: dict[str, Any]) -> None:
    assert mistakes_in(document) == []
