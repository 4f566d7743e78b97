"""Hosts that a cluster without a way to the internet names and cannot reach.

The scan reads templates, with their manifests, user data and buildspecs, and the files of their
assets, in plain text and decoded from base64. It does not see texts that a program puts together.
"""

import base64
import gzip
import ipaddress
import json
import re
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path

from msgspec.structs import astuple

from ultrascale.catalog import registries
from ultrascale.catalog.endpoints import service_of_host
from ultrascale.documents import mapping, read_json
from ultrascale.errors import UltrascaleError
from ultrascale.frozen import Frozen
from ultrascale.plan.model import ClusterPlan
from ultrascale.resources import resource

# User data is base64 of base64 of gzip.
_DEEPEST = 4
# Endings of hosts outside of URLs: with every top-level domain, `metadata.name` would be a host.
_NAME = (
    r"(?P<name>(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+"
    r"(?:ai|app|cloud|cn|co|com|de|dev|edu|eu|fr|gov|io|jp|net|org|uk|us))"
)
_URL = (
    r"(?<![a-z0-9+.-])(?!s3:)[a-z][a-z0-9+.-]{1,20}://(?:[^\s/@\"'<>|\\]{0,256}@)?"
    r"(?P<host>\[[0-9a-f:.]+\]|[^\s/:?#\"'<>|\\`(){}\[\],;&$!*=%]+\.[a-z0-9-]*[a-z0-9])"
    r"(?=[\s/:?#\"'<>|\\`)\],;&]|$)"
)
_ADDRESS = (
    r"(?<![\w.-])(?<![=~<>]=)(?<!\w:)(?P<four>(?:\d{1,3}\.){3}\d{1,3})(?![\w-]|\.\w|/\d)"
    # Source: https://www.iana.org/assignments/ipv6-unicast-address-assignments
    r"|(?<![\w:.])(?P<six>[23][0-9a-f]{3}(?::[0-9a-f]{0,4}){2,7})(?![\w:]|/\d)"
)
_IN_TEXTS = re.compile(
    rf"{_URL}|(?<![\w.%$~/-]){_NAME}(?![\w-]|\.[\w-]|\()"
    rf"|(?<=\w@)(?P<remote>(?:[\w-]+\.)+[a-z]{{2,}})(?=:)|{_ADDRESS}",
    re.IGNORECASE,
)
# Fields of a program's objects look like hosts.
_IN_PROGRAMS = re.compile(
    rf"{_URL}|[\"'](?:[\w+-]+@)?{_NAME}(?::\d+)?(?:/[^\"'\s]*)?[\"']|{_ADDRESS}", re.IGNORECASE
)
_PROGRAMS = (".py", ".js")
_IMAGE = re.compile(r"\bimage\"?:\s*\"?(?P<image>[\w.:/@-]+)")
_BASE64 = re.compile(r"[A-Za-z0-9+/]{16,}(?:\s*\n\s*[A-Za-z0-9+/]+)*={0,2}")
_ESCAPE = re.compile(r"\\+(?:u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|([nrt])|([\"'/]))")
_COMMENT = re.compile(
    r'"""(?:.|\n)*?"""|/\*(?:.|\n)*?\*/|(?:^|(?<=\s))(?:#(?!!)|//).*$', re.MULTILINE
)

# Services in policies, and names of images that kustomize replaces by copies.
_UNUSED = re.compile(
    r"\"(?:Service|kms:ViaService|iam:PassedToService|ec2:AuthorizedService|sts:AWSServiceName"
    r"|aws:CalledVia|aws:SourceService)\": (?:\"[^\"]*\"|\[[^\]]*\])"
    r"|\"name\":\s*\"[^\"]*\",(?=\s*\"newName\")"
)
# API groups, objects named after them, and domains of labels and of resources.
_API = re.compile(
    r"(?:.+\.)?(?:argoproj\.io|csi\.aws\.com|envoyproxy\.io|kubeflow\.org|kubernetes\.io"
    r"|sigs\.k8s\.io|ultrascale\.dev|x-k8s\.io)|(?!(?:registry|pkgs|dl)\.)(?:[a-z.]+\.)?k8s\.io"
    r"|(?:[\w.]+\.resources\.)?(?:aws\.amazon\.com|nvidia\.com|vpc\.amazonaws\.com)|prometheus\.io"
    r"|ray\.io|[a-z0-9-]+\.amazonaws\.com(?:\.cn)?"
)
_INSIDE = re.compile(
    r".+\.(?:svc|local|internal|in-addr\.arpa|ip6\.arpa)|fs-[0-9a-f]+\.(?:fsx|efs)\..+"
)
# A link in messages of the CDK's functions, and their pattern of charts in Amazon ECR Public.
_OF_THE_CDK = ("https://github.com/aws/aws-cdk/issues/", "oci://(?P<registry>public.ecr.aws)*")
# These files hold names of assets, a mail address, and links for people.
_UNREAD = ("AWS::IAM::Policy", "AWS::SNS::Subscription", "AWS::CloudWatch::Dashboard")
# Tables in the image of the backend name their sources.
_OWN = re.compile(r"asset\.[0-9a-f]+/(?P<path>(?:ultrascale|backend)/.+)$")


class Use(Frozen, kw_only=False):
    """A host in a text."""

    host: str  # Its name or address, in lower case, without the port
    is_pulled: bool = False  # Whether it is the registry of a pod's image
    file: str = ""  # File within the assembly; empty for the template


def hosts_in(text: str, depth: int = 0, pattern: re.Pattern[str] = _IN_TEXTS) -> Iterator[Use]:
    """Yield the hosts of a text and of its base64 contents, encoded up to ``depth`` times."""
    plain = _UNUSED.sub("", _ESCAPE.sub(_character, text))
    for match in pattern.finditer(plain):
        host = (match.group(match.lastgroup or 0)).lower().strip("[]")
        with suppress(ValueError):
            if not ipaddress.ip_address(host).is_global:
                continue
        yield Use(host)
    for match in _IMAGE.finditer(plain):
        if (reference := registries.parse_reference(match["image"])) is not None:
            yield Use((reference.host or "docker.io").partition(":")[0], is_pulled=True)
    if depth < _DEEPEST:
        for match in _BASE64.finditer(plain):
            yield from hosts_in(_decoded(match[0]), depth + 1)


def _character(escape: re.Match[str]) -> str:
    code = escape[1] or escape[2]
    return chr(int(code, 16)) if code else "\n" if escape[3] else escape[4]


def _decoded(text: str) -> str:
    """Return the text encoded in base64; empty for other bytes."""
    text = re.sub(r"\s|=", "", text)
    with suppress(ValueError, OSError, EOFError):
        content = base64.b64decode(text + "=" * (-len(text) % 4))
        is_packed = content.startswith(b"\x1f\x8b")
        return (gzip.decompress(content) if is_packed else content).decode()
    return ""


@cache
def _hosts_of_asset(folder: Path) -> frozenset[Use]:
    """Return the hosts in the files of an asset, apart from comments."""
    uses: set[Use] = set()
    for path in (path for path in folder.rglob("*") if path.is_file() and not _is_own(path)):
        with suppress(UnicodeDecodeError):
            text = _COMMENT.sub("", path.read_text(encoding="utf-8"))
            for known in _OF_THE_CDK:
                text = text.replace(known, "")
            pattern = _IN_PROGRAMS if path.suffix in _PROGRAMS else _IN_TEXTS
            file = path.relative_to(folder.parent).as_posix()
            # Messages of scripts contain `image:` as well.
            uses |= {
                Use(use.host, file=file)
                for use in hosts_in(text, pattern=pattern)
                if not use.is_pulled
            }
    return frozenset(uses)


def _is_own(path: Path) -> bool:
    """Return whether a file is, byte by byte, the product's own in the image of the backend."""
    match = _OWN.search(path.as_posix())
    with suppress(UltrascaleError, OSError):
        return match is not None and resource(match["path"]).read_bytes() == path.read_bytes()
    return False


class ClosedNetwork:
    """The hosts that a cluster with ``network.egress: none`` reaches, or never connects to."""

    def __init__(self, plan: ClusterPlan, file: Path) -> None:
        """Collect the ways of a cluster, and the hosts in its file, also in comments."""
        self._region = plan.region
        self._endpoints = {
            endpoint.service for endpoint in plan.network.endpoints if endpoint.state != "missing"
        }
        self._copies_host = plan.copies and plan.copies.location.partition("/")[0].partition(":")[0]
        text = file.read_text(encoding="utf-8")
        self._named = {use.host for use in hosts_in(text) if not use.is_pulled}

    def unreached(self, template: Path) -> Iterator[tuple[str, Use]]:
        """Yield the hosts of a template without a way, each with its resource's logical id."""
        resources = mapping(read_json(template), "Resources")
        for logical_id, body in resources.items():
            if mapping(body).get("Type") not in _UNREAD:
                uses = sorted({*self._hosts_of(json.dumps(body), template.parent)}, key=astuple)
                yield from ((logical_id, use) for use in uses if not self._is_reached(use))

    def _hosts_of(self, resource: str, assembly: Path) -> Iterator[Use]:
        for name, value in {"URLSuffix": "amazonaws.com", "Region": self._region}.items():
            resource = resource.replace(f'", {{"Ref": "AWS::{name}"}}, "', value)
        yield from hosts_in(resource)
        for digest in {*re.findall(r"\b[0-9a-f]{64}\b", resource)}:
            yield from _hosts_of_asset(assembly / f"asset.{digest}")

    def _is_reached(self, use: Use) -> bool:
        service = service_of_host(use.host.removesuffix(".cn"), self._region)
        if use.host == self._copies_host or service in self._endpoints:
            return True
        is_known = use.host in self._named or _API.fullmatch(use.host) is not None
        return not use.is_pulled and (is_known or _INSIDE.fullmatch(use.host) is not None)
