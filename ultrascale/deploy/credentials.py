"""Credentials of which boto3 and the CDK CLI would each take others."""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import cast

from ultrascale.errors import AccountError

_KEYS = ("ACCESS_KEY_ID", "SECRET_ACCESS_KEY", "SESSION_TOKEN")


def refuse_two_sources(
    environment: Mapping[str, str], profile: str | None, files: Sequence[Path]
) -> None:
    """Refuse credentials that boto3 finds elsewhere than the CDK CLI.

    What was looked at would be one account, and what is deployed to another. Of keys in the
    environment beside AWS_PROFILE both take the keys.

    Args:
        environment: The variables of the process.
        profile: Profile that the user named; it wins in both.
        files: Configuration files of the CDK CLI, which need not be there.

    Raises:
        AccountError: There are two sources, or a file is no JSON.

    Sources:
        https://docs.aws.amazon.com/boto3/latest/guide/credentials.html
        https://github.com/boto/botocore/blob/develop/botocore/configprovider.py
        https://github.com/aws/aws-cdk-cli (aws-auth/awscli-compatible.ts, user-configuration.ts)
    """
    if profile is not None:
        return
    found = [*_variables(environment), *_settings(files)]
    if found:
        todo = "take that away, or name the profile by --profile"
        raise AccountError("\n".join(f"{each}; {todo}" for each in found))


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
        if file.is_file() and (named := _read(file).get("profile")):
            yield f"{file}: has the profile {named}, which AWS's Python SDK does not read"


def _read(file: Path) -> Mapping[str, object]:
    try:
        return cast("Mapping[str, object]", json.loads(file.read_text(encoding="utf-8")))
    except ValueError as error:
        raise AccountError(f"{file}: is no JSON, and the CDK reads it: {error}") from error
