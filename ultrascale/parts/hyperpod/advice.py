"""Capacity that the adviser does not seek on HyperPod."""

from collections.abc import Iterator

from ultrascale.catalog import eks, hyperpod
from ultrascale.plan.advice.model import Candidate, Question, Reason


def refusals(question: Question, candidate: Candidate) -> Iterator[Reason]:
    """Yield why HyperPod's nodes do not suit a question."""
    newest = eks.LATEST_HYPERPOD_VERSION
    if eks.SUPPORTED_VERSIONS.index(question.kubernetes_version) > eks.SUPPORTED_VERSIONS.index(
        newest
    ):
        text = f"HyperPod knows Kubernetes up to {newest}, got {question.kubernetes_version}"
        yield Reason(code="H8", text=text)
    if question.region not in hyperpod.REGIONS:
        text = f"CloudFormation makes no HyperPod clusters in {question.region}"
        yield Reason(code="H8", text=text)
    for name in candidate.instance_types:
        if not hyperpod.has(name):
            yield Reason(code="H8", text=f"HyperPod has no {name}")
