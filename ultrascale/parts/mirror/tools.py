"""The programs that copy images between registries: crane and skopeo, whichever is on PATH.

Both copy an index with the images of all platforms as they are, so that digests stay, and take
charts as they take images.

Sources:
    https://github.com/google/go-containerregistry/blob/main/cmd/crane/doc/crane_copy.md
    https://github.com/containers/skopeo/blob/main/docs/skopeo-copy.1.md
"""

import hashlib
import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from typing import Literal

from msgspec import field

from ultrascale.errors import UltrascaleError
from ultrascale.frozen import Frozen

Program = Literal["crane", "skopeo"]
PROGRAMS: tuple[Program, ...] = ("crane", "skopeo")
# Errors of a registry without such an image, in the words of the specification, of ECR and of
# answers without a body, such as those to HEAD.
# Source: https://github.com/opencontainers/distribution-spec/blob/v1.1.1/spec.md#error-codes
_ABSENT = re.compile(
    r"MANIFEST_UNKNOWN|NAME_UNKNOWN|manifest unknown|name unknown|repository name not known"
    r"|status code 404|StatusCode: 404|RepositoryNotFoundException|\b404 Not Found",
    re.IGNORECASE,
)
_DIGEST = re.compile("sha256:[0-9a-f]{64}")
# A line of skopeo's log.
_LOGGED = re.compile(r'level=fatal msg="(.*)"$')
# Names of platforms for crane and Docker.
_LOCAL = re.compile(r"(?:localhost|127(?:\.\d+){3}|\[::1\])(?::\d+)?/")


class CopyTool(Frozen):
    """One of the programs."""

    program: Program  # Its name
    path: str  # Its path
    # Environment variables that it gets beside those of this process, such as the place of
    # credentials.
    environment: Mapping[str, str] = field(default_factory=dict[str, str])

    def copy(self, source: str, target: str) -> None:
        """Copy an image or a chart with all platforms.

        Args:
            source: Reference with a tag or a digest.
            target: Reference with a tag.

        Raises:
            UltrascaleError: It cannot be copied; what the program printed is in it.
        """
        if self.program == "crane":
            words = ["copy", source, target]
        else:
            words = ["copy", "--all", "--preserve-digests"]
            words += [*_plain("src-", source), *_plain("dest-", target)]
            words += [f"docker://{source}", f"docker://{target}"]
        answer = self._run(words)
        if answer.returncode:
            raise UltrascaleError(f"{source}: cannot be copied to {target}: {_last_line(answer)}")

    def digest(self, reference: str) -> str | None:
        """Return the digest of ``reference``; None where the registry has no such image.

        Raises:
            UltrascaleError: The registry cannot be asked; what the program printed is in it.
        """
        if self.program == "crane":
            words = ["digest", reference]
        else:
            words = ["inspect", "--raw", *_plain("", reference), f"docker://{reference}"]
        answer = self._run(words)
        if answer.returncode:
            if _ABSENT.search(_text(answer.stderr)):
                return None
            raise UltrascaleError(
                f"{reference}: the registry cannot be asked: {_last_line(answer)}"
            )
        if self.program == "skopeo":
            # A digest is the hash of the manifest's bytes.
            return f"sha256:{hashlib.sha256(answer.stdout).hexdigest()}"
        match = _DIGEST.search(_text(answer.stdout))
        if match is None:
            raise UltrascaleError(
                f"{reference}: {self.path} printed no digest: {_last_line(answer)}"
            )
        return match[0]

    def _run(self, words: Sequence[str]) -> "subprocess.CompletedProcess[bytes]":
        try:
            return subprocess.run(
                [self.path, *words],
                env={**os.environ, **self.environment},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                check=False,
            )
        except OSError as error:
            raise UltrascaleError(f"{self.path}: cannot be run: {error.strerror}") from error


def find_tool(environment: Mapping[str, str]) -> CopyTool:
    """Return the first of the programs that is on PATH.

    Args:
        environment: Environment variables that it gets beside those of this process.

    Raises:
        UltrascaleError: None is.
    """
    for program in PROGRAMS:
        path = shutil.which(program)
        if path is not None:
            return CopyTool(program=program, path=path, environment=environment)
    raise UltrascaleError(
        f"neither {' nor '.join(PROGRAMS)} is on PATH, which ask and copy registries; install one: "
        "https://github.com/google/go-containerregistry/releases or your system's package skopeo"
    )


def pinned(reference: str, digest: str) -> str:
    """Return ``reference`` by digest alone: skopeo refuses one with a tag as well."""
    return f"{untagged(reference)}@{digest}"


def tagged(reference: str) -> str:
    """Return ``reference`` by its tag, or by one that stands for its digest.

    Rules of a registry that clean up take images without a tag.
    """
    name, _, digest = reference.partition("@")
    has_tag = ":" in name.rpartition("/")[2]
    return name if has_tag or not digest else f"{name}:{digest.replace(':', '-')}"


def untagged(reference: str) -> str:
    """Return the registry and the repository of ``reference``."""
    head, slash, last = reference.partition("@")[0].rpartition("/")
    return f"{head}{slash}{last.partition(':')[0]}"


def _plain(side: str, reference: str) -> Sequence[str]:
    """Return the option of skopeo for plain HTTP; elsewhere the user's own settings hold."""
    return [f"--{side}tls-verify=false"] if is_local(reference) else []


def is_local(reference: str) -> bool:
    """Return whether ``reference`` is of a registry on this machine, which speaks plain HTTP."""
    return _LOCAL.match(reference) is not None


def _last_line(answer: "subprocess.CompletedProcess[bytes]") -> str:
    lines = [line for line in _text(answer.stderr or answer.stdout).splitlines() if line.strip()]
    if not lines:
        return f"status {answer.returncode}"
    logged = _LOGGED.search(lines[-1])
    return lines[-1].strip() if logged is None else logged[1].replace('\\"', '"')


def _text(output: bytes) -> str:
    return output.decode("utf-8", errors="replace")
