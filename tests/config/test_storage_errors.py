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


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "claim among the cluster's own": (
        with_lustre({"claim": CLAIM | {"namespace": "kube-system"}}),
        "storage.lustre[scratch].claim.namespace: a namespace in which no jobs run, got "
        "'kube-system'; "
        "use training, or a name of your own",
    ),
    "claim among the autoscaler's own": (
        with_lustre({"claim": CLAIM | {"namespace": "keda"}}),
        "storage.lustre[scratch].claim.namespace: a namespace in which no jobs run, got 'keda'; "
        "use training, or a name of your own",
    ),
    "claims of nothing": (
        make_document(storage={"default_claims": True, "buckets": ["results"]}),
        "storage.default_claims: no file system and no bucket to claim, got true; "
        "add one to lustre, or a bucket named datasets or checkpoints, or leave it out",
    ),
    "a bucket as a name and as a mapping": (
        make_document(storage={"buckets": ["data", {"name": "data", "claim": CLAIM}]}),
        "storage.buckets[data]: stands in the list twice, got 'data'; keep one",
    ),
    "a mapping of no bucket": (
        make_document(storage={"buckets": [{"nam": "data"}]}),
        "storage.buckets[0].nam: unknown key 'nam'; did you mean name?",
    ),
    "two buckets behind one claim": (
        make_document(
            storage={"buckets": [{"name": "a-1", "claim": CLAIM}, {"name": "b-2", "claim": CLAIM}]}
        ),
        "storage.buckets[b-2].claim.name: a second claim of that name in namespace training, got "
        "'data'; choose another",
    ),
    "two file systems that export the same objects": (
        with_lustre(exporting("a"), {"name": "other", **exporting("a/b/")}),
        "storage.lustre[other].s3.export: objects that storage.lustre[scratch].s3 exports to "
        "too, got [new]; "
        "choose another prefix, or export: []",
    ),
    "two file systems that export a whole bucket": (
        with_lustre(exporting(""), {"name": "other", **exporting("a")}),
        "storage.lustre[other].s3.export: objects that storage.lustre[scratch].s3 exports to "
        "too, got [new]; "
        "choose another prefix, or export: []",
    ),
    "relative directory of linked objects": (
        with_lustre({"s3": {"bucket": "datasets", "path": "sets"}}),
        "storage.lustre[scratch].s3.path: not an absolute path, got 'sets'; "
        "write it as /datasets, or / for all of it",
    ),
    "a new file system without a size": (
        with_lustre({"capacity_gib": None}),
        "storage.lustre[scratch].capacity_gib: missing; add it, or existing",
    ),
    "a size of an existing file system": (
        existing(capacity_gib=1200),
        "storage.lustre[scratch].capacity_gib: nothing of an existing file system is set, got 1200;"
        " leave it out: its owner decides that",
    ),
    "a link of an existing file system": (
        existing(s3={"bucket": "datasets"}),
        "storage.lustre[scratch].s3: nothing of an existing file system is set, got "
        "{bucket: datasets}; "
        "leave it out: its owner decides that",
    ),
    "an existing file system in a zone without subnets": (
        existing(zone="us-west-2d"),
        "storage.lustre[scratch].zone: not one of network.zones, got 'us-west-2d'; "
        "use one of us-west-2a, us-west-2b, us-west-2c, or add it there",
    ),
    "a name of a file system as its id": (
        existing(existing=EXISTING | {"id": "scratch"}),
        "storage.lustre[scratch].existing.id: not the id of a file system, got 'scratch'; "
        "write fs- and its digits of 0-9 and a-f, as the console shows it",
    ),
    "a path as a mount name": (
        existing(existing=EXISTING | {"mount_name": "/fsx"}),
        "storage.lustre[scratch].existing.mount_name: not the mount name of a Lustre file system, "
        "got '/fsx'; write what `aws fsx describe-file-systems` shows as MountName, such as "
        "abcdefgh",
    ),
    "one existing file system twice": (
        with_lustre(
            {"existing": EXISTING, "capacity_gib": None, "throughput_mbps_per_tib": None},
            {
                "name": "other",
                "existing": EXISTING,
                "capacity_gib": None,
                "throughput_mbps_per_tib": None,
            },
        ),
        "storage.lustre[other].existing.id: the file system of storage.lustre[scratch] too, got "
        "'fs-0a1b2c3d4e5f60001'; keep one; default_claims mounts it in further namespaces",
    ),
    "a key of a bucket that is made": (
        bucket(key=KEY),
        f"storage.buckets[corpus].key: the key of a bucket that does not exist yet, got '{KEY}'; "
        "leave it out, or name the bucket in existing; keys.storage is for what is made",
    ),
    "an owner of a bucket that is made": (
        bucket(owner="444455556666"),
        "storage.buckets[corpus].owner: the owner of a bucket that does not exist yet, got "
        "'444455556666'; leave it out, or name the bucket in existing",
    ),
    "a key of another Region": (
        bucket(existing="corp", key=KEY.replace("us-west-2", "us-east-1")),
        "storage.buckets[corpus].key: a key of us-east-1, got "
        f"'{KEY.replace('us-west-2', 'us-east-1')}'; bucket and cluster lie in one Region, and the "
        "key of a bucket in the bucket's",
    ),
    "an alias of a key": (
        bucket(existing="corp", key="arn:aws:kms:us-west-2:444455556666:alias/corp"),
        "storage.buckets[corpus].key: an alias, which may come to name another key, got "
        "'arn:aws:kms:us-west-2:444455556666:alias/corp'; "
        "write the key's ARN, arn:aws:kms:REGION:ACCOUNT:key/ID",
    ),
    "an address as the name of a bucket": (
        bucket(existing="s3://corp"),
        "storage.buckets[corpus].existing: not the name of a general purpose bucket, got "
        "'s3://corp'; write its name alone, without s3:// and without a prefix",
    ),
    "one existing bucket twice": (
        make_document(
            storage={
                "buckets": [
                    {"name": "a-1", "existing": "corp"},
                    {"name": "b-2", "existing": "corp"},
                ]
            }
        ),
        "storage.buckets[b-2].existing: the bucket of a-1 too, got 'corp'; keep one",
    ),
    "checkpoints that nobody may write": (
        make_document(storage={"buckets": [{"name": "checkpoints", "read_only": True}]}),
        "storage.buckets[checkpoints].read_only: the bucket that jobs write their checkpoints to, "
        "got true; use false, or another name",
    ),
    "notifications in somebody else's bucket": (
        make_document(
            storage={
                "lustre": with_lustre({"s3": {"bucket": "corpus", "import": ["new"]}})["storage"][
                    "lustre"
                ],
                "buckets": [{"name": "corpus", "existing": "corp"}],
            }
        ),
        "storage.lustre[scratch].s3.import: FSx writes event notifications into the bucket for it, "
        "and this one is not ours, got [new]; "
        "use import: []; objects that are there when the link is made are shown",
    ),
}
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


@pytest.mark.parametrize(("document", "line"), BAD.values(), ids=list(BAD))
def test_a_mistake_is_named_with_its_key_its_value_and_a_way_out(
    document: dict[str, Any], line: str
) -> None:
    assert line in mistakes_in(document)


@pytest.mark.parametrize("document", GOOD.values(), ids=list(GOOD))
def test_what_disturbs_nothing_is_not_refused(document: dict[str, Any]) -> None:
    assert mistakes_in(document) == []
