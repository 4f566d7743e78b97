"""The journal of a teardown, for whoever continues it."""

from pathlib import Path
from unittest.mock import Mock

import pytest

from tests.support.estate.cluster import estate
from tests.support.estate.doubles import FakeClock, KilledError
from ultrascale.documents import sequence, text
from ultrascale.errors import UltrascaleError
from ultrascale.teardown.model import StoppedError
from ultrascale.teardown.runner import Journal


def test_each_request_stands_in_the_journal_before_it_is_sent(tmp_path: Path) -> None:
    cluster = estate()
    cluster.kill_at = 5
    with pytest.raises(KilledError):
        cluster.run(tmp_path)
    past = Journal.opened(tmp_path / "journal.jsonl", FakeClock()).past
    assert past[-1]["asks"] == "Service other/web"
    agreed = {str(each) for line in past for each in sequence(line, "agreed")}
    assert {text(line, "asks") for line in past if "asks" in line} <= agreed


def test_the_journal_of_another_cluster_is_refused(tmp_path: Path) -> None:
    cluster = estate()
    Journal.opened(tmp_path / "journal.jsonl", FakeClock()).write(run={"cluster": "other"})
    with pytest.raises(UltrascaleError, match="name another file by --journal"):
        cluster.run(tmp_path)
    assert cluster.deleted == []


def test_a_line_that_a_run_was_killed_at_keeps_nobody_from_going_on(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    path.write_text('{"gone": "a"}\n{"asks": "b')
    estate().run(tmp_path)
    assert Journal.opened(path, FakeClock()).past[0] == {"gone": "a"}


def test_a_disk_that_is_full_amid_a_teardown_stops_it_and_is_no_mistake_of_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    full = UltrascaleError("journal.jsonl: No space left on device")
    monkeypatch.setattr(Journal, "gone", Mock(side_effect=full))
    with pytest.raises(StoppedError, match="No space left on device; mend that, then run"):
        estate().run(tmp_path)


def test_a_journal_that_nobody_may_cut_is_refused_without_a_traceback(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = estate()
    (tmp_path / "journal.jsonl").touch()
    refusal = Mock(side_effect=PermissionError(13, "Permission denied"))
    monkeypatch.setattr("os.truncate", refusal)
    with pytest.raises(UltrascaleError, match="Permission denied; name another file"):
        cluster.run(tmp_path)
    assert cluster.deleted == []
