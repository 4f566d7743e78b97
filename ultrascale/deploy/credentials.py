"""Refusal of credentials that boto3 and the CDK CLI would resolve to different accounts."""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from ultrascale.documents import text
from ultrascale.errors import AccountError

_KEYS = ("ACCESS_KEY_ID", "SECRET_ACCESS_KEY", "SESSION_TOKEN")


def refuse_two_sources(
    environment: Mapping[str, str], profile: str | None, files: Sequence[Path]
) -> None:
    """Refuse credentials that boto3 and the CDK CLI would take from different sources.

    The command would check one account and deploy to another. In both, keys in the
    environment take precedence over AWS_PROFILE.

    Args:
        environment: Variables of the process.
        profile: Profile that the user named; it takes precedence in both.
        files: Configuration files of the CDK CLI; they may be missing.

    Raises:
        AccountError: There are two sources, or a file is no JSON.

    Sources:
        https://docs.aws.amazon.com/boto3/latest/guide/credentials.html
        https://github.com/boto/botocore/blob/develop/botocore/configprovider.py
        https://github.com/aws/aws-cdk-cli (aws-auth/awscli-compatible.ts, user-configuration.ts)
    """
    if profile is not None:
        return
    sources = [*_variables(environment), *_settings(files)]
    if sources:
        todo = "take that away, or name the profile by --profile"
        raise AccountError("\n".join(f"{source}; {todo}" for source in sources))


def _variables(environment: Mapping[str, str]) -> Iterator[str]:
    if environment.get("CDK_PROFILE"):
        yield "CDK_PROFILE is set, which the CDK takes and AWS's Python SDK does not"
    for key in _KEYS:
        if environment.get(f"AMAZON_{key}") and not environment.get(f"AWS_{key}"):
            yield f"AMAZON_{key} is set, which the CDK takes and AWS's Python SDK does not"
    one, other = (environment.get(name) for name in ("AWS_PROFILE", "AWS_DEFAULT_PROFILE"))
    keys = all(environment.get(f"AWS_{key}") for key in _KEYS[:2])
    if one and other and one != other and not keys:
        yield (
            "AWS_PROFILE and AWS_DEFAULT_PROFILE are two profiles: the CDK takes the first, and "
            "AWS's Python SDK the second"
        )


def _settings(files: Sequence[Path]) -> Iterator[str]:
    for file in files:
        if file.is_file() and (profile := _profile_in(file)):
            yield f"{file}: has the profile {profile}, which AWS's Python SDK does not read"


def _profile_in(file: Path) -> str:
    """Return the profile that a configuration file of the CDK CLI names; empty if it names none."""
    try:
        return text(json.loads(file.read_text(encoding="utf-8")), "profile")
    except ValueError as error:
        raise AccountError(f"{file}: is no JSON, and the CDK reads it: {error}") from error
