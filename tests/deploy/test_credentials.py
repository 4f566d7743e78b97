"""Checks and deployment use the same account."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from ultrascale.deploy.cdk import refuse_two_sources
from ultrascale.errors import AccountError

KEYS = {"AWS_ACCESS_KEY_ID": "x", "AWS_SECRET_ACCESS_KEY": "x"}
PROFILES = {"AWS_PROFILE": "one", "AWS_DEFAULT_PROFILE": "two"}


@pytest.mark.parametrize(
    ("environment", "told"),
    [
        (PROFILES, "the CDK takes the first"),
        ({"CDK_PROFILE": "one"}, "CDK_PROFILE is set"),
        ({"CDK_PROFILE": "one", "AWS_PROFILE": "one", **KEYS}, "CDK_PROFILE is set"),
        ({"AMAZON_ACCESS_KEY_ID": "x", "AMAZON_SECRET_ACCESS_KEY": "x"}, "AMAZON_SECRET_ACCESS"),
        ({"AMAZON_SESSION_TOKEN": "x", **KEYS}, "AMAZON_SESSION_TOKEN is set"),
    ],
)
def test_what_the_cdk_takes_and_we_do_not_is_refused(
    environment: Mapping[str, str], told: str
) -> None:
    refuse_two_sources(environment, "named", ())
    with pytest.raises(AccountError, match=told):
        refuse_two_sources(environment, None, ())


@pytest.mark.parametrize(
    "environment",
    [
        {},
        KEYS,
        {"AWS_PROFILE": "one"},
        {"AWS_PROFILE": "one", **KEYS},
        {"AWS_PROFILE": "one", "AWS_DEFAULT_PROFILE": "one"},
        {**PROFILES, **KEYS},
        {"AMAZON_ACCESS_KEY_ID": "x", **KEYS},
    ],
)
def test_what_both_take_is_left_alone(environment: Mapping[str, str], tmp_path: Path) -> None:
    settings = tmp_path / "cdk.json"
    settings.write_text('{"app": "python app.py"}')
    refuse_two_sources(environment, None, (settings, tmp_path / "none"))


@pytest.mark.parametrize(
    ("text", "told"), [('{"profile": "one"}', "has the profile one"), ("{,}", "is no JSON")]
)
def test_a_profile_in_the_settings_of_the_cdk_is_refused(
    tmp_path: Path, text: str, told: str
) -> None:
    settings = tmp_path / ".cdk.json"
    settings.write_text(text)
    refuse_two_sources({}, "named", (settings,))
    with pytest.raises(AccountError, match=f"cdk.json: {told}"):
        refuse_two_sources({}, None, (settings,))
