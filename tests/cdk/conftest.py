"""Fixtures of the tests of constructs."""

import pytest

from tests.support.public_constructs import Resources, resources


@pytest.fixture(scope="session")
def plain() -> Resources:
    """Every construct of the library in an app without a feature flag."""
    return resources()
