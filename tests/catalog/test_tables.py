"""The loader of data files: a cell that is no value of its field is refused, never passed on."""

from pathlib import Path

import msgspec
import pytest

from ultrascale.catalog import tables


class Thing(tables.Row, frozen=True, kw_only=True):
    """A row with a field of each form."""

    name: str
    words: tuple[str, ...] = ()
    number: int | None = None
    truth: bool = False


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tables.read_table, "__defaults__", (tmp_path,))
    return tmp_path


def test_cells_become_values_of_their_fields(folder: Path) -> None:
    (folder / "things.csv").write_text("name,words,number,truth\none,a b,5,yes\ntwo,,,no\n")

    one, two = tables.read_rows("things.csv", Thing)

    assert one == Thing(name="one", words=("a", "b"), number=5, truth=True)
    assert two == Thing(name="two")


@pytest.mark.parametrize("text", ["name,number\none,many\n", "name,nmber\none,5\n", "number\n5\n"])
def test_a_table_that_does_not_fit_its_type_is_refused(folder: Path, text: str) -> None:
    (folder / "things.csv").write_text(text)

    with pytest.raises(msgspec.ValidationError):
        tables.read_rows("things.csv", Thing)
