"""Clusters whose pools are shared by queues of Kueue, and the mistakes of their files."""

from typing import Any

from tests.support.pools import ODCR, SPOT, SYSTEM_POOL, as_json, make_document, pool_document
from tests.support.verdicts import verdicts
from ultrascale.config import Reading
from ultrascale.config._document import parse_yaml
from ultrascale.config._reading import read_document
from ultrascale.errors import Diagnostic
from ultrascale.parts.kueue.model import Plan as KueuePlan
from ultrascale.plan.cluster import assemble
from ultrascale.plan.mistakes import all_mistakes
from ultrascale.plan.model import ClusterPlan

KARPENTER = {"version": "1.15.2"}
RESERVED = pool_document(
    name="reserved", role="reserved", provisioner="karpenter", purchase=ODCR, nodes={"static": 16}
)
BURST = pool_document(name="burst", provisioner="karpenter", nodes={"max": 8})
SPOT_POOL = pool_document(name="spot", provisioner="karpenter", purchase=SPOT, nodes={"max": 4})
NEURON = pool_document(
    name="neuron", instance_types=["trn1.32xlarge"], provisioner="karpenter", nodes={"max": 2}
)
CPU = pool_document(
    name="cpu", instance_types=["m7i.8xlarge", "m7i.16xlarge"], provisioner="karpenter"
)
POOLS = (RESERVED, BURST, SPOT_POOL)


def queued_document(
    *queues: dict[str, Any], pools: tuple[dict[str, Any], ...] = POOLS, **changes: Any
) -> dict[str, Any]:
    """Return a cluster file of ``pools`` with ``queues`` of Kueue."""
    scheduling = {"queueing": "kueue", **({"queues": [*queues]} if queues else {})}
    return make_document(
        **{
            "pools": [SYSTEM_POOL, *pools],
            "karpenter": KARPENTER,
            "scheduling": scheduling,
            **changes,
        }
    )


def planned(document: dict[str, Any]) -> ClusterPlan:
    """Return the plan of a cluster file.

    Raises:
        ConfigError: The file is wrong.
    """
    reading = _read(document)
    mistakes = all_mistakes(reading)
    if mistakes or reading.cluster is None:
        raise reading.refusal(mistakes)
    return assemble(reading.cluster)


def _read(document: dict[str, Any]) -> Reading:
    return read_document(parse_yaml(as_json(document), source="", own=True))


def kueue_of(*queues: dict[str, Any], **changes: Any) -> KueuePlan:
    """Return Kueue's part of the plan of `queued_document`."""
    found = planned(queued_document(*queues, **changes)).part(KueuePlan)
    assert found is not None
    return found


def mistakes_of(document: dict[str, Any]) -> list[str]:
    """Return the key and the rule of each mistake in a cluster file."""
    return verdicts(_diagnostics_of(document))


def sentences_of(document: dict[str, Any]) -> list[str]:
    """Return the sentence of each mistake in a cluster file, for tests of what words say."""
    return [each.keyed for each in _diagnostics_of(document)]


def _diagnostics_of(document: dict[str, Any]) -> list[Diagnostic]:
    reading = _read(document)
    return [each.diagnostic(reading.document) for each in all_mistakes(reading)]
