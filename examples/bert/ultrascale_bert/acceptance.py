"""The job of an acceptance: ``torchrun … -m ultrascale_bert.acceptance``.

It writes and reads a folder of each volume, makes a small dataset on each node, and trains a model
on it by `ultrascale_bert.pretrain`, whose flags it passes on. ``--delete`` deletes the folders, and
the output in a bucket.
"""

import argparse
import os
import runpy
import shutil
import sys
import tempfile
import time
import uuid
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from ultrascale_bert import prepare_data
from ultrascale_bert.shards import INDEX
from ultrascale_training.objects import is_bucket, open_objects

PARENT = "accept"
"""Folder of a volume with a folder of each acceptance."""
_BYTES = 1 << 20
_PATIENCE_SECONDS = 300
_ROWS = ("--documents", "100", "--shards", "4", "--seq-len", "32", "--max-pred-len", "5")


def main(arguments: Sequence[str] | None = None) -> int:
    """Try the volumes, then train; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m ultrascale_bert.acceptance")
    parser.add_argument("--folder", type=Path, action="append", default=[])
    parser.add_argument("--read-only", type=Path, action="append", default=[])
    parser.add_argument("--delete", action="store_true")
    asked, rest = parser.parse_known_args(arguments)
    for folder in asked.folder:
        if folder.parent.name != PARENT:
            parser.error(f"--folder: {folder} is no folder of an acceptance, .../{PARENT}/NAME")
    is_first = os.environ.get("LOCAL_RANK", "0") == "0"
    if asked.delete:
        if is_first:
            _delete(asked.folder, os.environ.get("ULTRASCALE_OUTPUT", ""))
        return 0
    data = Path(tempfile.gettempdir()) / "ultrascale-acceptance"
    if is_first:
        for folder in asked.folder:
            _write_and_read(folder)
        for folder in asked.read_only:
            print(f"volume {folder}: {len([*folder.iterdir()])} entries read", flush=True)
        if status := prepare_data.main(["--synthetic", "--output-dir", str(data), *_ROWS]):
            return status
    else:
        _wait_for(data / INDEX)
    sys.argv = ["pretrain", f"--data-dir={data}", *rest]
    runpy.run_module("ultrascale_bert.pretrain", run_name="__main__", alter_sys=True)
    return 0


def _write_and_read(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    file, content = folder / f"{uuid.uuid4().hex}.bin", os.urandom(_BYTES)
    with file.open("wb") as writer:
        writer.write(content)
        writer.flush()
        os.fsync(writer.fileno())
    if file.read_bytes() != content:
        sys.exit(f"volume {folder}: other bytes are read than were written")
    print(f"volume {folder}: {_BYTES} bytes written and read", flush=True)


def _wait_for(file: Path) -> None:
    """Wait for the dataset, which the first process of the node makes."""
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while not file.exists():
        if time.monotonic() > deadline:
            sys.exit(f"{file}: the first process of this node did not write it")
        time.sleep(0.1)


def _delete(folders: Sequence[Path], output: str) -> None:
    for folder in folders:
        if folder.exists():
            shutil.rmtree(folder)
        # It stays while other acceptances have folders there.
        with suppress(OSError):
            folder.parent.rmdir()
        print(f"volume {folder}: deleted", flush=True)
    if is_bucket(output) and f"/{PARENT}/" in output:
        objects = open_objects(output)
        for name in objects.names():
            objects.delete(name)
        print(f"{output}: deleted", flush=True)


if __name__ == "__main__":
    sys.exit(main())
