"""Hosts that files name: templates, manifests, scripts, programs, builds, archives.

Each text is read as it stands, and again decoded, unescaped and put together, until nothing new
comes out of it.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ultrascale.catalog import image_references
from ultrascale.documents import Json
from ultrascale.hosts import clients, commands, encodings, python, templates
from ultrascale.hosts.archives import is_library, members
from ultrascale.hosts.names import UNKNOWN, Form, Name, names_in
from ultrascale.hosts.own_files import is_own
from ultrascale.hosts.parts import documents_in, environment_of, is_api_name, read_json, read_yaml

_DEEPEST = 8
_IMAGE_KEY = re.compile(r"(?:^|_|[a-z])(?:image|Image|IMAGE)(?:_?(?:uri|Uri|URI))?$")
_IMAGE_LINE = re.compile(
    r"^[ \t]*(?:-[ \t]+)?[\"']?image[\"']?:[ \t]*[\"']?([^\s\"',#]+)", re.MULTILINE
)
_HOST_KEY = re.compile(r"(?:host|hostname|endpoint|server|proxy|externalname)s?$", re.IGNORECASE)
# A name that may be a file's, such as `build.sh`, is a host where its key says so.
_BARE_HOST = re.compile(r"[\w-]+(?:\.[\w-]+)+(?::\d+)?")
_SCRIPT_KEY = re.compile(r"command|args|entrypoint|commands|script", re.IGNORECASE)
_IMPORT = re.compile(r"^(?:import|from) \w", re.MULTILINE)
_HEREDOC = re.compile(
    r"<<-?[ \t]*[\"']?(?P<end>\w+)[\"']?[^\n]*\n(?P<body>.*?)\n[ \t]*(?P=end)\b", re.DOTALL
)
_JS_TOKEN = re.compile(
    r"//[^\n]*|/\*.*?\*/|(?P<text>\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*'|`(?:[^`\\]|\\.)*`)",
    re.DOTALL,
)
_JS = (".js", ".mjs", ".cjs", ".ts")
_YAML = (".yaml", ".yml")
# `syntax` in a Dockerfile is no comment: it names an image.
_COMMENT = re.compile(r"^[ \t]*#(?!!|[ \t]*syntax[ \t]*=)[^\n]*$", re.MULTILINE)
_RUN = re.compile(rb"[\x20-\x7e]{8,}")
# A label, an annotation, a resource: the domain tells whose name it is, and is never asked.
_QUALIFIED = re.compile(r"[a-z0-9.-]+/[A-Za-z0-9._-]{1,63}")
# The CDK's notes for itself; nothing of them is deployed.
_NOTES = ("tree.json", "validation-report.json", ".metadata.json")
_ARCHIVES = (".zip", ".whl", ".jar")


@dataclass(frozen=True, slots=True, kw_only=True)
class HostUse:
    """A host that a file names.

    Attributes:
        host: Its name or address, in lower case.
        form: Kind of place: a URL, a reference of an image, a name or an address alone, a command
            that reaches the host unless told otherwise, or one that a build may tell (`index`).
        file: The file, within the folder that was read.
        place: Keys that lead to the text within it, with dots between them.
        through: Forms that the text was read through: "base64", "escaped", …
        text: Some of the text around it.
    """

    host: str
    form: Form
    file: str
    place: str
    through: tuple[str, ...]
    text: str


@dataclass(frozen=True, slots=True)
class _At:
    """A place in a file: keys that lead there, and forms that it was read through."""

    keys: tuple[str, ...] = ()
    through: tuple[str, ...] = ()

    def in_(self, key: str) -> "_At":
        return _At((*self.keys, key), self.through)

    def by(self, form: str) -> "_At":
        return _At(self.keys, (*self.through, form))

    @property
    def key(self) -> str:
        return self.keys[-1] if self.keys else ""


def read_hosts(folder: Path, region: str) -> Iterator[HostUse]:
    """Yield the hosts that the files of a folder name, at any depth, each place once.

    Archives are unpacked. Not read are the programs of the CDK's own layers, and files of the
    product that the backend's image holds unchanged.

    Args:
        folder: A folder that `ultrascale synth` wrote, or any other.
        region: Region that stands for `AWS::Region`.
    """
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        if path.name.endswith(_NOTES) or (path.suffix in _ARCHIVES and is_library(path)):
            continue
        if is_own(path):
            continue
        yield from read_file(path.relative_to(folder).as_posix(), path.read_bytes(), region)


def read_file(name: str, content: bytes, region: str) -> Iterator[HostUse]:
    """Yield the hosts that the content of a file names.

    Args:
        name: Name of the file, which tells the language of its content.
        content: The content, which may be an archive.
        region: Region that stands for `AWS::Region`.
    """
    yield from _Reader(name, region).of_bytes(name, content, _At())


def read_document(document: Json, name: str, region: str) -> Iterator[HostUse]:
    """Yield the hosts that a document names.

    Args:
        document: A template, a manifest, the objects of a job.
        name: Stands for its file.
        region: Region that stands for `AWS::Region`.
    """
    yield from _Reader(name, region).of_tree(document, _At())


class _Reader:
    """Reads one file."""

    def __init__(self, file: str, region: str) -> None:
        self._file = file
        self._region = region
        # Values that a template's functions refer to, and variables where the reader is just now.
        self._values: Mapping[str, str] = {}
        self._environment: Mapping[str, str] = {}
        self._seen: set[tuple[str, tuple[str, ...]]] = set()
        self._found: set[tuple[Name, str, str]] = set()

    def of_bytes(self, name: str, content: bytes, at: _At) -> Iterator[HostUse]:
        if len(at.through) > _DEEPEST:
            return
        if inner := members(content):
            for member, part in inner:
                yield from self.of_bytes(member, part, at.in_(member).by("archive"))
            return
        text = encodings.text_of(content)
        if text is not None:
            yield from self._of_source(name, text, at)
            return
        # A program: its addresses are in it as text.
        text = "\n".join(run.decode() for run in _RUN.findall(content))
        for found in names_in(text):
            if found.form == "URL":
                yield from self._use(found, text, at.by("binary"))

    def of_tree(self, value: Json, at: _At) -> Iterator[HostUse]:
        """Yield the hosts of a document: of texts, of keys, and of what functions make."""
        if not at.keys and isinstance(value, Mapping):
            self._values = templates.known_values(value, self._region)
        joined = templates.resolved(value, self._values)
        if joined is not None:
            yield from self._of_value(joined, at.by("joined"))
        elif isinstance(value, str):
            yield from self._of_value(value, at)
        elif isinstance(value, bytes):
            # YAML's `!!binary`.
            yield from self.of_bytes(at.key, value, at.by("base64"))
        elif isinstance(value, Mapping):
            yield from self._of_mapping(value, at)
        elif isinstance(value, Sequence):
            yield from self._of_sequence(value, at)

    def _of_mapping(self, value: Mapping[str, Json], at: _At) -> Iterator[HostUse]:
        outer, self._environment = self._environment, {**self._environment, **environment_of(value)}
        for key, item in value.items():
            if not _QUALIFIED.fullmatch(str(key)):
                yield from self._of_text(str(key), at.in_("key"))
            yield from self.of_tree(item, at.in_(str(key)))
        for name, stated in environment_of({"env": [value]}).items():
            if _IMAGE_KEY.search(name):
                yield from self._of_image(stated, at.in_(name))
            yield from self._of_settings(f"{name}={stated}", at.in_(name))
            yield from self._of_host(stated, at.in_(name))
        self._environment = outer

    def _of_sequence(self, value: Sequence[Json], at: _At) -> Iterator[HostUse]:
        for number, item in enumerate(value):
            yield from self.of_tree(item, at.in_(str(number)))
        if _SCRIPT_KEY.search(at.key):
            words = [item for item in value if isinstance(item, str)]
            for by in (" ", "\n"):
                yield from self._of_text(by.join(words), at.by("joined"))

    def _of_value(self, text: str, at: _At) -> Iterator[HostUse]:
        if is_api_name(text, at.keys):
            return
        if _IMAGE_KEY.search(at.key):
            yield from self._of_image(text, at)
        yield from self._of_settings(f"{at.key}={text}", at)
        yield from self._of_host(text, at)
        if at.key == "ZipFile" or "." in at.key:
            # The inline code of a function, or a file of a ConfigMap.
            name = "index.py" if at.key == "ZipFile" else at.key
            yield from self._of_source(name, text, at)
        yield from self._of_text(text, at)

    def _of_host(self, text: str, at: _At) -> Iterator[HostUse]:
        if _HOST_KEY.search(at.key) and _BARE_HOST.fullmatch(text):
            for found in names_in(f"https://{text}"):
                yield from self._use(Name(found.host, "name"), text, at)

    def _of_image(self, text: str, at: _At) -> Iterator[HostUse]:
        reference = image_references.parse(text.strip().removeprefix("docker://"))
        if reference is None or UNKNOWN in text.partition("/")[0]:
            return
        host = (reference.host or "docker.io").partition(":")[0]
        if "." in host:
            yield from self._use(Name(host, "image"), text, at)

    def _of_source(self, name: str, text: str, at: _At) -> Iterator[HostUse]:
        """Read a text by the language that the name of its file tells."""
        name = name.lower()
        if name.endswith(".py") and (constants := python.constants(text)) is not None:
            for constant in constants:
                yield from self._of_text(constant, at)
        elif name.endswith(_JS):
            yield from self._of_javascript(text, at)
        elif name.endswith(".json") and (document := read_json(text)) is not None:
            yield from self.of_tree(document, at)
        elif name.endswith(_YAML) and (parts := read_yaml(text)) is not None:
            for part in parts:
                yield from self.of_tree(part, at)
        else:
            if "dockerfile" in name or "containerfile" in name:
                for image in commands.base_images(text):
                    yield from self._of_image(image, at)
            yield from self._of_text(_COMMENT.sub("", text), at)

    def _of_javascript(self, text: str, at: _At) -> Iterator[HostUse]:
        bare = _JS_TOKEN.sub(lambda match: match["text"] or " ", text)
        yield from self._of_settings(bare, at)
        for source, where in ((bare, at), (encodings.assembled(bare), at.by("joined"))):
            for match in _JS_TOKEN.finditer(source):
                if match["text"]:
                    yield from self._of_text(match["text"][1:-1], where)
        for found in encodings.characters(bare):
            yield from self._of_text(found, at.by("character codes"))

    def _of_text(self, text: str, at: _At) -> Iterator[HostUse]:
        """Read a text as a document within the document, or as it stands and in other forms."""
        if len(text) < 4 or (text, at.keys) in self._seen or len(at.through) > _DEEPEST:
            return
        self._seen.add((text, at.keys))
        if (parts := documents_in(text)) is not None:
            for part in parts:
                yield from self.of_tree(part, at.in_("").by("document"))
            return
        yield from self._as_it_stands(text, at)
        for form, other in encodings.decoded(text):
            yield from self._of_text(other, at.by(form))
        if (joined := encodings.assembled(text, self._environment)) != text:
            yield from self._of_text(joined, at.by("joined"))
        for match in _HEREDOC.finditer(text):
            yield from self._of_text(match["body"], at)
        if "\n" in text and _IMPORT.search(text):
            for constant in python.constants(text) or ():
                yield from self._of_text(constant, at.by("joined"))

    def _as_it_stands(self, text: str, at: _At) -> Iterator[HostUse]:
        for found in names_in(text):
            yield from self._use(found, text, at)
        for found, command in commands.implied_hosts(text):
            yield from self._use(found, command, at)
        for host, command in clients.of_commands(text, self._region):
            yield from self._use(Name(host, "command"), command, at)
        yield from self._of_settings(text, at)
        for image in (*commands.pulled_images(text), *_IMAGE_LINE.findall(text)):
            yield from self._of_image(image, at)

    def _of_settings(self, text: str, at: _At) -> Iterator[HostUse]:
        for host, setting in clients.of_settings(text, self._region):
            yield from self._use(Name(host, "command"), setting, at)

    def _use(self, found: Name, text: str, at: _At) -> Iterator[HostUse]:
        place = ".".join(key for key in at.keys if key)
        start = max(0, text.lower().find(found.host) - 40)
        around = text[start : start + 80 + len(found.host)]
        if (found, place, around) in self._found:
            return
        self._found.add((found, place, around))
        yield HostUse(
            host=found.host,
            form=found.form,
            file=self._file,
            place=place,
            through=at.through,
            text=around,
        )
