"""Mistakes in file systems, buckets and claims that would lose data or be found at deploy time."""

from typing import Any

import pytest

from tests.support.config_documents import mistakes_in, with_lustre
from tests.support.pools import make_document

CLAIM = {"namespace": "training", "name": "data", "mount_path": "/data"}


def exporting(prefix: str, **changes: Any) -> dict[str, Any]:
    return {"s3": {"bucket": "datasets", "prefix": prefix, "export": ["new"], **changes}}


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "claim among the cluster's own": (
        with_lustre({"claim": CLAIM | {"namespace": "kube-system"}}),
        "storage.lustre[scratch].claim.namespace: a namespace in which no jobs run, got "
        "'kube-system'; "
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
}
GOOD = {
    "prefixes that only begin alike": with_lustre(
        exporting("run"), {"name": "other", **exporting("run-2")}
    ),
    "one exports, both import": with_lustre(
        exporting("a"), {"name": "other", **exporting("a", export=[], **{"import": ["new"]})}
    ),
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
