"""The catalog's versions and feature gates of Karpenter."""

import pytest

from ultrascale.catalog import eks, karpenter

NEWEST = karpenter.release(karpenter.NEWEST_VERSION)


def test_releases_compare_by_number_and_not_by_letter() -> None:
    assert karpenter.release("1.9.3") < karpenter.release("1.13.0") < karpenter.release("1.13.1")


@pytest.mark.parametrize("minor", eks.SUPPORTED_VERSIONS)
def test_every_kubernetes_version_has_a_karpenter_that_is_known(minor: str) -> None:
    assert karpenter.release(karpenter.OLDEST_VERSIONS[minor]) <= NEWEST


@pytest.mark.parametrize("feature", karpenter.FEATURES.values(), ids=karpenter.FEATURES)
def test_every_feature_is_in_the_newest_version(feature: str) -> None:
    assert karpenter.release(feature) <= NEWEST


def test_the_newest_version_was_not_retracted() -> None:
    assert karpenter.NEWEST_VERSION not in karpenter.RETRACTED_VERSIONS


@pytest.mark.parametrize("gate", karpenter.FEATURE_GATES.values(), ids=karpenter.FEATURE_GATES)
def test_alpha_gates_are_off_by_default(gate: karpenter.FeatureGate) -> None:
    assert gate.default is (gate.stage != "alpha")
