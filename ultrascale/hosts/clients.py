"""Endpoints of AWS that clients of its SDK and commands of its CLI mean by a Region.

Sources:
    https://docs.aws.amazon.com/boto3/latest/reference/core/session.html#boto3.session.Session.client
    https://docs.aws.amazon.com/cli/latest/userguide/cli-configure-options.html#cli-configure-options-list
    https://docs.aws.amazon.com/sdkref/latest/guide/feature-region.html
"""

import re
from collections.abc import Iterator

from ultrascale.catalog.endpoints import SERVICES, services_of_action
from ultrascale.catalog.regions import REGIONS

_COMMAND = re.compile(
    r"(?<![\w./-])aws\s+(?P<words>(?:[^\s;&|]+[ \t]+){0,40}?)"
    r"--region(?:=|\s+)[\"']?(?P<region>[a-z0-9-]+)(?P<rest>[^\n;&|]*)"
)
_SERVICE = re.compile(r"(?:--\S+(?:=\S+|\s+\S+)\s+)*(?P<name>[a-z][a-z0-9-]+)")

# A variable, or an option of a client in JavaScript.
_SETTING = re.compile(
    r"\b(?:AWS_(?:DEFAULT_)?REGION[\"']?\s*[=:]|region\s*:(?=\s*[\"'`]))\s*[\"'`]?"
    r"(?P<region>[a-z]{2}(?:-[a-z]+)+-\d)\b"
)


def endpoint(service: str, region: str) -> str | None:
    """Return the host that answers for a service in a Region; None where there is no such Region.

    Args:
        service: Its name in the SDK or the CLI.
        region: Name of the Region.
    """
    if region not in REGIONS:
        return None
    known = next(iter(services_of_action(service)), None)
    pattern = SERVICES[known].hosts[0] if known else f"{service}.REGION.amazonaws.com"
    suffix = ".cn" if region.startswith("cn-") else ""
    return f"{pattern.replace('REGION', region)}{suffix}"


def of_commands(text: str, region: str) -> Iterator[tuple[str, str]]:
    """Yield the hosts of other Regions that commands of the AWS CLI call, with these.

    Args:
        text: A script.
        region: The Region whose endpoints answer in any case.
    """
    if "--region" not in text:
        return
    for match in _COMMAND.finditer(text):
        words = _SERVICE.match(match["words"] or match["rest"].lstrip("\"' \t"))
        if words is None or match["region"] == region:
            continue
        if (host := endpoint(words["name"], match["region"])) is not None:
            yield host, match[0]


def of_settings(text: str, region: str) -> Iterator[tuple[str, str]]:
    """Yield the domain of each other Region that clients are set to, with the setting.

    Args:
        text: A script, a program, or a variable with its value.
        region: The Region whose endpoints answer in any case.
    """
    for match in _SETTING.finditer(text):
        if match["region"] != region and match["region"] in REGIONS:
            suffix = ".cn" if match["region"].startswith("cn-") else ""
            yield f"{match['region']}.amazonaws.com{suffix}", match[0]
