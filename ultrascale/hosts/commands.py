"""Hosts that commands reach without naming them, and images that they pull."""

import re
from collections.abc import Iterator, Mapping
from types import MappingProxyType

from ultrascale.hosts.names import Name

_END = r"[^\n;&|]*"
# A command, and no sentence that advises one.
_START = (
    r"(?:^[ \t]*(?:RUN[ \t]+(?:--\S+[ \t]+)*)?|[;&|(!{`\"'][ \t]*"
    r"|\b(?:then|do|else|exec|sudo|env)[ \t]+)"
    r"(?:sudo[ \t]+|env[ \t]+|\w+=\S*[ \t]+)*(?:/[\w./-]+/)?"
)
# Package managers' own hosts.
# Source: https://pip.pypa.io/en/stable/cli/pip_install/#cmdoption-i
# Source: https://docs.npmjs.com/cli/v11/using-npm/registry
# Source: https://wiki.debian.org/SourcesList
# Source: https://wiki.alpinelinux.org/wiki/Repositories
# Source: https://docs.conda.io/projects/conda/en/stable/user-guide/configuration/settings.html
# Source: https://guides.rubygems.org/command-reference/
# Source: https://doc.rust-lang.org/cargo/reference/registries.html
# Source: https://go.dev/ref/mod#environment-variables
_COMMANDS: Mapping[str, re.Pattern[str]] = MappingProxyType(
    {
        host: re.compile(rf"{_START}(?P<command>{pattern}{_END})", re.MULTILINE)
        for host, pattern in {
            "pypi.org": r"(?:pip3?|python3? -m pip|uv(?: pip| tool)?|pipx) "
            r"(?:install|wheel|download|sync)\b",
            "registry.npmjs.org": r"(?:(?:npm|pnpm|yarn) (?:ci|install|i|add)|npx)\b",
            "deb.debian.org": r"apt(?:-get)? (?:-\S+ )*(?:install|update|upgrade)\b",
            "dl-cdn.alpinelinux.org": r"apk (?:-\S+ )*(?:add|update)\b",
            "conda.anaconda.org": r"(?:conda|mamba) (?:install|create)\b",
            "rubygems.org": r"gem install\b",
            "index.crates.io": r"cargo (?:install|build|fetch)\b",
            "proxy.golang.org": r"go (?:install|get|mod download)\b",
        }.items()
    }
)
_VERB = re.compile(r"\b(?:install|wheel|download|ci|npx|add|update|get|build|fetch|create)\b")
_TOLD = re.compile(
    r"--no-index|--index-url|(?<!\w)-i[ =]|--registry|GOPROXY|PIP_INDEX_URL|npm_config_registry"
)
# An instruction of a Dockerfile, up to its last line, which continues no further.
_WITH_SETTINGS = re.compile(
    r"^RUN[ \t]+--mount=type=secret,id=pip\.conf,target=/etc/pip\.conf\b(?:[^\n]*\\\n)*[^\n]*",
    re.MULTILINE,
)
_PULL = re.compile(
    r"(?<![\w./-])(?:docker|podman|nerdctl|crictl|finch|ctr) (?:image )?(?:pull|run|create)\s+"
    r"(?P<rest>[^\n;&|]+)"
)
_COPIED = re.compile(r"(?<![\w./-])(?:crane|skopeo) (?:pull|copy|export|cp)\s+(?P<rest>[^\n;&|]+)")
_FROM = re.compile(
    r"^[ \t]*FROM\s+(?:--\S+\s+)*(?P<image>\S+)(?:\s+AS\s+(?P<stage>\S+))?", re.I | re.M
)
_COPY = re.compile(r"(?:COPY|ADD|RUN)\s[^\n]*?(?:--from=|from=)(?P<image>[^\s,]+)", re.I)
_SYNTAX = re.compile(r"^#[ \t]*syntax[ \t]*=[ \t]*(?P<image>\S+)", re.I | re.M)
_ARGUMENT = re.compile(r"^[ \t]*ARG\s+(?P<name>\w+)=(?P<value>\S+)", re.I | re.M)


def implied_hosts(text: str) -> Iterator[tuple[Name, str]]:
    """Yield the hosts of package managers that commands reach unless told otherwise, with these.

    The form is `index` where every such command of a Dockerfile reads pip's settings from the
    build, which may name another index.
    """
    if not _VERB.search(text):
        return
    for host, pattern in _COMMANDS.items():
        found = [match for match in pattern.finditer(text) if not _TOLD.search(match[0])]
        if not found:
            continue
        settings = [match.span() for match in _WITH_SETTINGS.finditer(text)]
        is_set = all(
            any(start <= match.start("command") < end for start, end in settings) for match in found
        )
        form = "index" if is_set and host == "pypi.org" else "command"
        for match in found:
            yield Name(host, form), match["command"]


def pulled_images(text: str) -> Iterator[str]:
    """Yield the images that commands of container runtimes pull."""
    for match in _PULL.finditer(text):
        words = [word for word in match["rest"].split() if not word.startswith("-")]
        yield from words[:1]
    for match in _COPIED.finditer(text):
        words = [word for word in match["rest"].split() if not word.startswith("-")]
        yield from words[:1]


def base_images(dockerfile: str) -> Iterator[str]:
    """Yield the images that a Dockerfile builds on or copies from, without its own stages."""
    arguments = {
        match["name"]: match["value"].strip("\"'") for match in _ARGUMENT.finditer(dockerfile)
    }
    joined = re.sub(r"\\\n", " ", dockerfile)
    stages = {match["stage"] for match in _FROM.finditer(joined)} | {"scratch"}
    for pattern in (_FROM, _COPY, _SYNTAX):
        for match in pattern.finditer(joined):
            image = match["image"]
            for name, value in arguments.items():
                image = image.replace(f"${{{name}}}", value).replace(f"${name}", value)
            if image not in stages and not image.isdecimal() and "$" not in image:
                yield image
