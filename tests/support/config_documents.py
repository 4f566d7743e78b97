"""Cluster files with one part changed, and the mistakes that are found in one."""

from typing import Any

from tests.support.pools import SYSTEM_POOL, as_text, loads_own, make_document, pool_document
from tests.support.verdicts import verdicts
from ultrascale.errors import ConfigError, Diagnostic


def mistakes_in(document: object) -> list[str]:
    """Return the key and the rule of each mistake in ``document``."""
    return verdicts(_diagnostics_of(document))


def sentences_in(document: object) -> list[str]:
    """Return the sentence of each mistake in ``document``, for tests of what words say."""
    return [each.keyed for each in _diagnostics_of(document)]


def _diagnostics_of(document: object) -> tuple[Diagnostic, ...]:
    try:
        loads_own(as_text(document), source="f")
    except ConfigError as error:
        return error.diagnostics
    return ()


def with_pool(**changes: Any) -> dict[str, Any]:
    """Return a cluster file whose pool 1 is a valid one with ``changes``."""
    return make_document(pools=[SYSTEM_POOL, pool_document(**changes)])


def with_network(**changes: Any) -> dict[str, Any]:
    return make_document(network=make_document()["network"] | changes)


def with_lustre(*file_systems: dict[str, Any], **changes: Any) -> dict[str, Any]:
    valid = {
        "name": "scratch",
        "zone": "us-west-2b",
        "capacity_gib": 1200,
        "throughput_mbps_per_tib": 250,
    }
    systems = [valid | other for other in file_systems]
    return make_document(storage={"lustre": systems, "buckets": ["datasets"]}, **changes)


def with_job(**job: Any) -> dict[str, Any]:
    return make_document(jobs={"tune": job})


KARPENTER = {"version": "1.15.2"}
GOVERNANCE = {"task_governance": {"teams": [{"name": "research", "fair_share_weight": 40}]}}
TWO_ZONES = ["us-west-2a", "us-west-2b"]
