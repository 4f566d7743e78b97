"""Files of which all are written, or none."""

import signal
from pathlib import Path

import pytest

from ultrascale import new_files


def test_ctrl_c_at_the_last_moment_leaves_all_files_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    replace = Path.replace

    def interrupted(self: Path, target: Path) -> Path:
        done = replace(self, target)
        signal.raise_signal(signal.SIGINT)
        return done

    monkeypatch.setattr(new_files.Path, "replace", interrupted)

    with pytest.raises(KeyboardInterrupt):
        new_files.write_new_files(tmp_path, {"new/a": b"1"}, replaced={"b": b"2"})

    files = {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*")}
    assert files == {"new", "new/a", "b"}
