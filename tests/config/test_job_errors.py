"""Mistakes in jobs, each with its key, its value and a way out."""

from typing import Any

import pytest

from tests.support.config_documents import mistakes_in, with_job
from tests.support.config_jobs import G6, LUSTRE, VOLCANO, gpus, job, own, trn
from tests.support.pools import (
    SPOT,
    make_document,
    pool_document,
)

GOOD = {
    "a check before the job as a word": with_job(kind="training", preflight="fabric"),
    "zero of a device": gpus(resources={"gpu": 0, "cpu": 4, "memory": "8Gi"}, kind="batch"),
    "on-demand nodes of a pool that falls back": job(
        pool_document(
            provisioner="karpenter",
            instance_types=G6,
            purchase=SPOT | {"fallback": "on-demand"},
        ),
        pool="train",
        kind="service",
        capacity="on-demand",
    )
    | {"karpenter": {"version": "1.15.2"}},
    "one Neuron device": trn(resources={"neuron": 1}),
    "Volcano's own queue": trn(queue="default") | {"scheduling": VOLCANO},
    "fixed ranks beside etcd": trn(nodes=2, rendezvous="static", restarts={"workers": 0})
    | {"scheduling": VOLCANO | {"rendezvous": {"backend": "etcd", "replicas": 1}}},
    "c10d beside etcd": trn(rendezvous="c10d")
    | {"scheduling": VOLCANO | {"rendezvous": {"backend": "etcd", "replicas": 1}}},
    "a claim of the user's own": trn(volumes=[own("/x")]),
    "one claim at two paths": trn(
        volumes=[{"claim": "data", "mount_path": "/a"}, {"claim": "data", "mount_path": "/b"}]
    )
    | {"storage": LUSTRE},
    "a job of the longest name": make_document(jobs={"n" * 40: {"pool": "train"}}),
    "a role of the longest name": trn(role="w" * 13),
    "an image by its digest": trn(image=f"docker.io/a/b@sha256:{'0' * 64}"),
    "numbers as arguments": trn(script="train.py", args=[1, 2.5, "x"]),
    "a batch job beside controllers": job(
        pool="system", kind="batch", command=["a"], resources={"cpu": 1, "memory": "1Gi"}
    ),
}


@pytest.mark.parametrize("document", GOOD.values(), ids=list(GOOD))
def test_what_is_right_is_taken(document: dict[str, Any]) -> None:
    assert mistakes_in(document) == []


def test_all_mistakes_of_a_job_are_named_at_once() -> None:
    of_form = trn(image="x:latest", role="A", grace_period_seconds=0)
    beside_others = trn(nodes=64, queue="a", priority="top", env={"RANK": "0"})

    assert keys_of(of_form) == ["image", "role", "grace_period_seconds"]
    assert keys_of(beside_others) == ["nodes", "queue", "priority", "env.RANK"]


def test_annotations_of_a_megabyte_are_refused() -> None:
    """Its file is larger than a cluster file may be: no case of the known bad ones."""
    document = with_job(annotations={"a": "x" * 2**20})

    assert mistakes_in(document) == ["jobs.tune.annotations: annotations_are_not_too_large"]


def keys_of(document: dict[str, Any]) -> list[str]:
    return [line.partition(": ")[0].removeprefix("jobs.tune.") for line in mistakes_in(document)]
