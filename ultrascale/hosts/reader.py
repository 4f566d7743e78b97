"""Hosts that files name: templates, manifests, scripts, programs, builds, archives.

Each text is read as it stands, and again decoded, unescaped and put together, until nothing new
comes out of it.
"""

import io
import json
import re
import tarfile
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from ultrascale.catalog import image_references
from ultrascale.documents import Json
from ultrascale.hosts import commands, encodings, python, templates
from ultrascale.hosts.libraries import is_library
from ultrascale.hosts.names import UNKNOWN, Form, Name, names_in

_DEEPEST = 8
_IMAGE_KEY = re.compile(r"(?:^|_|[a-z])(?:image|Image|IMAGE)(?:_?(?:uri|Uri|URI))?$")
_SCRIPT_KEY = re.compile(r"command|args|entrypoint|commands|script", re.IGNORECASE)
_IMAGE_LINE = re.compile(
    r"^[ \t]*(?:-[ \t]+)?[\"']?image[\"']?:[ \t]*[\"']?([^\s\"',#]+)", re.MULTILINE
)
_IMPORT = re.compile(r"^(?:import|from) \w", re.MULTILINE)
_HEREDOC = re.compile(
    r"<<-?[ \t]*[\"']?(?P<end>\w+)[\"']?[^\n]*\n(?P<body>.*?)\n[ \t]*(?P=end)\b", re.DOTALL
)
# A label, an annotation, a resource: the domain tells whose name it is, and is never asked.
_QUALIFIED = re.compile(r"[a-z0-9.-]+/[A-Za-z0-9._-]{1,63}")
_API_KEYS = ("apiVersion", "apiGroup", "apiGroups", "group", "key", "topologyKey", "labelKey")
_API_NAME = re.compile(r"[a-z0-9.-]+(?:/[A-Za-z0-9._-]{1,63})?")
_RUN = re.compile(rb"[\x20-\x7e]{8,}")
_JS_TOKEN = re.compile(
    r"//[^\n]*|/\*.*?\*/|(?P<text>\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*'|`(?:[^`\\]|\\.)*`)",
    re.DOTALL,
)
_COMMENT = re.compile(r"^[ \t]*#(?!!|[ \t]*syntax[ \t]*=)[^\n]*$", re.MULTILINE)
# The CDK's notes for itself; nothing of them is deployed.
_NOTES = ("tree.json", "validation-report.json", ".metadata.json")
_JS = (".js", ".mjs", ".cjs", ".ts")
_YAML = (".yaml", ".yml")


@dataclass(frozen=True, slots=True, kw_only=True)
class HostUse:
    """A host that a file names.

    Attributes:
        host: Its name or address, in lower case.
        form: Kind of place: a URL, a reference of an image, a name or an address alone, or a
            command that reaches the host unless told otherwise.
        file: The file, within the folder that was read.
        place: Keys that lead to the text within it, with dots between them.
        through: What the text was read through: "base64", "escaped", …
        text: What stands around it.
    """

    host: str
    form: Form
    file: str
    place: str
    through: tuple[str, ...]
    text: str


def read_hosts(folder: Path, region: str) -> Iterator[HostUse]:
    """Yield the hosts that the files of a folder name, at any depth, each place once.

    Archives are unpacked. The programs of the CDK's own layers are not read.

    Args:
        folder: What `ultrascale synth` wrote, or any other folder.
        region: Region that stands for `AWS::Region`.
    """
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        if not path.name.endswith(_NOTES):
            reader = _Reader(path.relative_to(folder).as_posix(), region)
            yield from reader.of_file(path)


def read_document(document: Json, name: str, region: str) -> Iterator[HostUse]:
    """Yield the hosts that a document names.

    Args:
        document: A template, a manifest, the objects of a job.
        name: Stands for its file.
        region: Region that stands for `AWS::Region`.
    """
    yield from _Reader(name, region).of_tree(document, (), ())


class _Reader:
    """Reads one file."""

    def __init__(self, file: str, region: str) -> None:
        self._file = file
        self._region = region
        self._values: Mapping[str, str] = {}
        self._environment: Mapping[str, str] = {}
        self._seen: set[str] = set()
        self._found: set[tuple[str, str, str]] = set()

    def of_file(self, path: Path) -> Iterator[HostUse]:
        if path.suffix in (".zip", ".whl", ".jar") and is_library(path):
            return
        yield from self._of_bytes(path.name, path.read_bytes(), (), ())

    def _of_bytes(
        self, name: str, content: bytes, place: tuple[str, ...], through: tuple[str, ...]
    ) -> Iterator[HostUse]:
        members = [*_members(content)]
        for member, inner in members:
            yield from self._of_bytes(member, inner, (*place, member), (*through, "archive"))
        if members or len(through) > _DEEPEST:
            return
        text = encodings.bytes_decoded(content)
        if text is None:
            # A program: its addresses are in it as text.
            text = "\n".join(run.decode() for run in _RUN.findall(content))
            for found in names_in(text):
                if found.form == "URL":
                    yield from self._use(found, text, place, (*through, "binary"))
            return
        yield from self._of_source(name, text, place, through)

    def _of_source(
        self, name: str, text: str, place: tuple[str, ...], through: tuple[str, ...]
    ) -> Iterator[HostUse]:
        """Read a text by the language that the name of its file tells."""
        name = name.lower()
        if name.endswith(".py") and (texts := python.constants(text)) is not None:
            for constant in texts:
                yield from self._of_text(constant, place, through)
        elif name.endswith(_JS):
            yield from self._of_javascript(text, place, through)
        elif name.endswith(".json") and (tree := _json(text)) is not None:
            yield from self.of_tree(tree, place, through)
        elif name.endswith(_YAML) and (trees := _yaml(text)) is not None:
            for tree in trees:
                yield from self.of_tree(tree, place, through)
        elif "dockerfile" in name or "containerfile" in name:
            for image in commands.base_images(text):
                yield from self._of_image(image, place, through)
            yield from self._of_script(text, place, through)
        else:
            yield from self._of_script(text, place, through)

    def _of_javascript(
        self, text: str, place: tuple[str, ...], through: tuple[str, ...]
    ) -> Iterator[HostUse]:
        bare = _JS_TOKEN.sub(lambda match: match["text"] or " ", text)
        sources = {bare: through, encodings.assembled(bare): (*through, "joined")}
        for source, way in sources.items():
            for match in _JS_TOKEN.finditer(source):
                if match["text"]:
                    yield from self._of_text(match["text"][1:-1], place, way)

    def _of_script(
        self, text: str, place: tuple[str, ...], through: tuple[str, ...]
    ) -> Iterator[HostUse]:
        yield from self._of_text(_COMMENT.sub("", text), place, through)

    def of_tree(
        self, value: Json, place: tuple[str, ...], through: tuple[str, ...]
    ) -> Iterator[HostUse]:
        """Yield the hosts of a document: of its texts, of its keys, and of what functions make."""
        if not place and isinstance(value, Mapping):
            self._values = templates.known_values(value, self._region)
        text = templates.resolved(value, self._values)
        if isinstance(value, str):
            if not _is_api_name(value, place):
                yield from self._of_value(value, place, through)
        elif text is not None:
            yield from self._of_value(text, place, (*through, "joined"))
        elif isinstance(value, bytes):
            yield from self._of_bytes(place[-1] if place else "", value, place, through)
        elif isinstance(value, Mapping):
            yield from self._of_mapping(value, place, through)
        elif isinstance(value, Sequence):
            yield from self._of_sequence(value, place, through)

    def _of_mapping(
        self, value: Mapping[str, Json], place: tuple[str, ...], through: tuple[str, ...]
    ) -> Iterator[HostUse]:
        outer, self._environment = self._environment, {**self._environment, **_environment(value)}
        for key, item in value.items():
            if not _QUALIFIED.fullmatch(str(key)):
                yield from self._of_text(str(key), (*place, "key"), through)
            yield from self.of_tree(item, (*place, str(key)), through)
        self._environment = outer
        name, stated = value.get("name", value.get("Name")), value.get("value", value.get("Value"))
        if isinstance(name, str) and isinstance(stated, str) and _IMAGE_KEY.search(name):
            yield from self._of_image(stated, (*place, name), through)

    def _of_sequence(
        self, value: Sequence[Json], place: tuple[str, ...], through: tuple[str, ...]
    ) -> Iterator[HostUse]:
        for number, item in enumerate(value):
            yield from self.of_tree(item, (*place, str(number)), through)
        if place and _SCRIPT_KEY.search(place[-1]):
            words = [item for item in value if isinstance(item, str)]
            yield from self._of_text(" ".join(words), place, (*through, "joined"))
            yield from self._of_text("\n".join(words), place, (*through, "joined"))

    def _of_value(
        self, text: str, place: tuple[str, ...], through: tuple[str, ...]
    ) -> Iterator[HostUse]:
        key = place[-1] if place else ""
        if _IMAGE_KEY.search(key):
            yield from self._of_image(text, place, through)
        if key == "ZipFile":
            yield from self._of_source("index.py", text, place, through)
        elif "." in key:
            yield from self._of_source(key, text, place, through)
        yield from self._of_text(text, place, through)

    def _of_image(
        self, text: str, place: tuple[str, ...], through: tuple[str, ...]
    ) -> Iterator[HostUse]:
        reference = image_references.parse(text.strip().removeprefix("docker://"))
        if reference is None or UNKNOWN in text.partition("/")[0]:
            return
        host = (reference.host or "docker.io").partition(":")[0]
        if reference.host is not None and "." not in reference.host:
            return
        yield from self._use(Name(host, "image"), text, place, through)

    def _of_text(
        self, text: str, place: tuple[str, ...], through: tuple[str, ...]
    ) -> Iterator[HostUse]:
        """Read a text as a document within the document, or as it stands and in other forms."""
        if len(text) < 4 or text in self._seen or len(through) > _DEEPEST:
            return
        # The same script may mean another host where other variables are set.
        if "$" not in text:
            self._seen.add(text)
        if (trees := _document(text)) is not None:
            for tree in trees:
                yield from self.of_tree(tree, (*place, ""), (*through, "document"))
            return
        for found in names_in(text):
            yield from self._use(found, text, place, through)
        if "\n" in text and _IMPORT.search(text):
            for constant in python.constants(text) or ():
                yield from self._of_text(constant, place, (*through, "joined"))
        for match in _HEREDOC.finditer(text):
            yield from self._of_text(match["body"], place, through)
        for host in commands.implied_hosts(text):
            yield from self._use(Name(host, "command"), text, place, through)
        for image in (*commands.pulled_images(text), *_IMAGE_LINE.findall(text)):
            yield from self._of_image(image, place, through)
        for form, other in encodings.decoded(text):
            yield from self._of_text(other, place, (*through, form))
        if (joined := encodings.assembled(text, self._environment)) != text:
            yield from self._of_text(joined, place, (*through, "joined"))

    def _use(
        self, found: Name, text: str, place: tuple[str, ...], through: tuple[str, ...]
    ) -> Iterator[HostUse]:
        where = ".".join(part for part in place if part)
        if (found.host, found.form, where) in self._found:
            return
        self._found.add((found.host, found.form, where))
        start = max(0, text.lower().find(found.host) - 40)
        yield HostUse(
            host=found.host,
            form=found.form,
            file=self._file,
            place=where,
            through=through,
            text=text[start : start + 80 + len(found.host)],
        )


def _members(content: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield the files of an archive; nothing where ``content`` is none."""
    if content[:4] == b"PK\x03\x04":
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            for entry in archive.infolist():
                if not entry.is_dir():
                    yield entry.filename, archive.read(entry)
        return
    if content[:2] == b"\x1f\x8b" or content[257:262] == b"ustar":
        try:
            with tarfile.open(fileobj=io.BytesIO(content)) as archive:
                for member in archive:
                    if (file := archive.extractfile(member)) is not None:
                        yield member.name, file.read()
        except tarfile.TarError:
            return


def _json(text: str) -> Json:
    try:
        return json.loads(text)
    except ValueError:
        return None


def _yaml(text: str) -> Sequence[Json] | None:
    try:
        return [*yaml.load_all(text, Loader=yaml.CSafeLoader)]
    except (yaml.YAMLError, ValueError):
        return None


def _document(text: str) -> Sequence[Json] | None:
    """Return the documents that a text is; None where it is no JSON or YAML with keys."""
    stripped = text.strip()
    if stripped[:1] in ("{", "[", '"') and (tree := _json(stripped)) is not None:
        return None if isinstance(tree, str) and tree == text else [tree]
    if "\n" in stripped and re.search(r"^[\w./-]+:(?:\s|$)", text, re.MULTILINE):
        trees = _yaml(text)
        if trees is not None and any(isinstance(tree, Mapping | list) for tree in trees):
            return trees
    return None


def _is_api_name(text: str, place: Sequence[str]) -> bool:
    """Return whether a text is the name of an API or of a label, by where it stands."""
    keys = [part for part in place[-2:] if not part.isdecimal()]
    return bool(keys) and keys[-1] in _API_KEYS and _API_NAME.fullmatch(text) is not None


def _environment(value: Mapping[str, Json]) -> Mapping[str, str]:
    """Return the variables that a container, a function, a build or its buildspec sets."""
    found: dict[str, str] = {}
    for key in ("env", "Environment", "environment"):
        inner = value.get(key)
        if isinstance(inner, Mapping):
            inner = (
                inner.get("variables")
                or inner.get("Variables")
                or inner.get("EnvironmentVariables")
            )
        if isinstance(inner, Mapping):
            found |= {name: item for name, item in inner.items() if isinstance(item, str)}
        elif isinstance(inner, list):
            for item in inner:
                if isinstance(item, Mapping):
                    name = item.get("name", item.get("Name"))
                    stated = item.get("value", item.get("Value"))
                    if isinstance(name, str) and isinstance(stated, str):
                        found[name] = stated
    return found
