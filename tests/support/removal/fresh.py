"""Tests in a new process without a part: `python -m tests.support.removal.fresh PART FILE…`."""

import json
import sys
import tempfile
from collections.abc import Sequence
from importlib.machinery import SourceFileLoader
from types import CodeType

import pytest

from tests.support.removal.parts import Part, lacking, path_of
from tests.support.removal.recording import OPTIONS, SameExamples


def main(part: Part, files: Sequence[str]) -> int:
    """Return the status of pytest where imports lack the part from the beginning on."""
    changed, path = lacking(part), str(path_of(part.module))
    load = SourceFileLoader.get_code

    def get_code(loader: SourceFileLoader, fullname: str) -> CodeType | None:
        is_part = loader.get_filename(fullname) == path
        return changed if is_part else load(loader, fullname)

    SourceFileLoader.get_code = get_code  # pyright: ignore[reportAttributeAccessIssue]
    with tempfile.TemporaryDirectory() as folder:
        return pytest.main(["-x", *OPTIONS, f"--basetemp={folder}", *files], [SameExamples()])


if __name__ == "__main__":
    sys.exit(main(Part(**json.loads(sys.argv[1])), sys.argv[2:]))
