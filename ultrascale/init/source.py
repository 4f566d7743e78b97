"""The place that a repository's CI installs this product from.

The place is never a name on a package index: no public index has the name registered, so anybody
could register it and run code in the CI.
"""

import re
from collections.abc import Mapping
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from urllib.parse import unquote, urlsplit

from ultrascale import config, release
from ultrascale.documents import mapping, parse_json, text
from ultrascale.errors import UsageError
from ultrascale.frozen import Frozen

OPTION = "--source"
PLACES = (
    "a wheel as WHEEL, s3://BUCKET/KEY.whl#sha256=DIGEST, https://HOST/NAME.whl#sha256=DIGEST, or "
    "git+https://HOST/REPOSITORY@COMMIT"
)
"""Allowed values of the option, in words."""
_COMMIT = re.compile(
    r"git\+(https|ssh)://[\w.@:/~+-]+@([0-9a-f]{40}|[0-9a-f]{64})(#subdirectory=[\w./-]+)?",
    re.ASCII,
)
# The user in an SSH address is no secret; in an HTTPS address, it may be a token.
_SECRET = re.compile(r"git\+(https://[^/@]*@|ssh://[^/@:]*:[^/@]*@)")
_HASH = "#sha256="


class Source(Frozen):
    """The place that the machines of a repository install this product from."""

    requirement: str  # Its line in requirements.txt, with the libraries that it was tested with
    wheel: str = ""  # Name of the wheel that has to lie beside requirements.txt; empty for none
    sha256: str = ""  # Digest of that wheel
    bucket_object: str = ""  # URL of the object in Amazon S3 that is the wheel; empty for none
    # The wheel to copy into the repository; None where no copy is needed.
    content: bytes | None = None


def given_source(given: str, folder: Path) -> Source:
    """Return the place that the option's value names.

    Args:
        given: The option's value.
        folder: The repository.

    Raises:
        UsageError: The value names no such place, or a place whose content can change.
    """
    if given.startswith("git+"):
        return _commit(given)
    place, _, digest = given.partition(_HASH)
    local = Path(place).expanduser()
    if "://" not in given and place.endswith(".whl") and not local.is_file():
        raise _source_error("no such file", given, f"write {PLACES}")
    name = given if "://" in given else f"{local.name}{given[len(place) :]}"
    try:
        found = config.release_of(name)
    except ValueError as error:
        raise _source_error(str(error), given, f"write {PLACES}") from None
    if found.source == "address":
        return Source(requirement=_requirement(given))
    if found.source == "bucket":
        if not digest:
            todo = f"write {_HASH}DIGEST after it, as sha256sum prints it"
            raise _source_error("an object, which may be another wheel tomorrow", given, todo)
        return _local_source(place.rsplit("/", 1)[-1], digest, bucket_object=place)
    if found.source != "wheel":
        raise _source_error("no place of a wheel", given, f"write {PLACES}")
    content = local.read_bytes()
    if digest and sha256(content).hexdigest() != digest:
        todo = "write it if you trust this wheel, or take the right wheel"
        raise _source_error(f"its digest is {sha256(content).hexdigest()}", given, todo)
    is_there = local.parent.resolve() == folder.resolve()
    return _wheel_source(local.name, content, is_there=is_there)


def _commit(given: str) -> Source:
    if _COMMIT.fullmatch(given) is None:
        todo = "write git+https://HOST/REPOSITORY@COMMIT, with all 40 digits of the commit"
        raise _source_error("no commit of a Git repository", given, todo)
    if _SECRET.match(given):
        todo = "leave it out, and let git ask its credential helper"
        shown = _SECRET.sub("git+…@", given)
        raise _source_error("a login, which the repository would hold", shown, todo)
    return Source(requirement=_requirement(given))


def recorded_source(folder: Path) -> Source | None:
    """Return the place that this product was installed from, by pip's record.

    None if other machines lack the place, or may find another wheel there.

    Source: https://packaging.python.org/en/latest/specifications/direct-url/

    Args:
        folder: The repository.
    """
    origin = _origin()
    if not origin:
        return None
    if (wheel := local_wheel()) is not None:
        if wheel.parent.resolve() != folder.resolve():
            return None
        return _wheel_source(wheel.name, wheel.read_bytes(), is_there=True)
    address = text(origin, "url")
    if "vcs_info" in origin:
        commit = text(origin, "vcs_info", "commit_id")
        address = f"{text(origin, 'vcs_info', 'vcs')}+{address}@{commit}"
        if "subdirectory" in origin:
            address = f"{address}#subdirectory={text(origin, 'subdirectory')}"
    else:
        address = f"{address}{_HASH}{text(origin, 'archive_info', 'hashes', 'sha256')}"
    try:
        return given_source(address, folder)
    except UsageError:
        return None


def local_wheel() -> Path | None:
    """Return this machine's wheel that the product was installed from; None if it was no wheel."""
    origin = _origin()
    address = urlsplit(text(origin, "url")) if origin else None
    if address is None or address.scheme != "file":
        return None
    place = Path(unquote(address.path))
    return place if place.suffix == ".whl" and place.is_file() else None


def _origin() -> Mapping[str, object]:
    """Return pip's record of the product's origin; empty if it was installed from an index."""
    try:
        record = distribution(release.PRODUCT).read_text("direct_url.json")
    except PackageNotFoundError:
        record = None
    return mapping(parse_json(record)) if record else {}


def _wheel_source(name: str, content: bytes, *, is_there: bool) -> Source:
    digest = sha256(content).hexdigest()
    return _local_source(name, digest, content=None if is_there else content)


def _local_source(
    name: str, digest: str, *, bucket_object: str = "", content: bytes | None = None
) -> Source:
    return Source(
        requirement=f"./{name}[tested]",
        wheel=name,
        sha256=digest,
        bucket_object=bucket_object,
        content=content,
    )


def _requirement(address: str) -> str:
    return f"{release.PRODUCT}[tested] @ {address}"


def _source_error(wrong: str, given: str, todo: str) -> UsageError:
    return UsageError([f"{OPTION}: {wrong}, got {given!r}; {todo}"])
