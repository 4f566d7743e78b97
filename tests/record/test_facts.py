"""Rows of `facts` in a user's file: a row replaces its own, and not a character besides."""

from collections.abc import Sequence
from datetime import date
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from ultrascale import yaml_reader
from ultrascale.errors import QuestionError
from ultrascale.record import record_facts
from ultrascale.yaml_writer import dump_flow

DAY = date(2026, 11, 21)
HEAD = "name: research   # ours\npools:\n- {name: a}\n"
TAIL = "scheduling: {}  # theirs\n# the end"
START: dict[str, object] = {"fact": "start-time", "of": "a", "value": 300}
OTHER = START | {"of": "b"}
SEEN: dict[str, object] = {"seen": DAY}
ROW = "{fact: start-time, of: a, value: 1, seen: 2026-01-01}"
FORMS = {
    "none": "",
    "flow": f"facts: [{ROW}]  # seen\n",
    "empty": "facts: []\n",
    "lines": f"facts:\n# by hand\n- {ROW}  # seen\n",
    "blocks": (
        "facts:\n  # by hand\n  - fact: start-time\n    of: a\n    value: 1\n"
        "    seen: 2026-01-01\n\n  # below\n"
    ),
}


def recorded(text: str, *rows: dict[str, object], seen: date = DAY) -> tuple[str, Sequence[str]]:
    with TemporaryDirectory() as folder:
        path = Path(folder, "x.yaml")
        path.write_text(text)
        lines = record_facts(path, rows, seen)
        return path.read_text(), lines


@pytest.mark.parametrize("form", FORMS)
def test_a_row_is_replaced_or_added_in_any_form(form: str) -> None:
    text = HEAD + FORMS[form] + TAIL
    after, lines = recorded(text, START, OTHER)
    assert yaml.safe_load(after)["facts"] == [START | SEEN, OTHER | SEEN]
    assert after.startswith(HEAD)
    assert TAIL in after
    assert len(lines) == 2
    assert recorded(after, START, OTHER) == (after, ())
    for comment in ("# by hand", "# below", "# seen"):
        assert (comment in text) == (comment in after)


def test_a_form_that_cannot_be_kept_is_refused_and_nothing_is_written(tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    path.write_text(f"row: &row {ROW}\nfacts: [*row]\n")
    before = path.read_bytes()
    with pytest.raises(QuestionError, match="cannot be replaced; write each row as"):
        record_facts(path, [START], DAY)
    assert path.read_bytes() == before


ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "fact": st.sampled_from(["start-time", "tier"]),
            "of": st.sampled_from(["a", "b", "c"]),
            "value": st.one_of(st.integers(1, 9), st.just({"api_seats": 1})),
        },
    ),
    max_size=5,
    unique_by=lambda row: (row["fact"], row["of"]),
)


@given(old=ROWS, new=ROWS, is_flow=st.booleans(), comments=st.booleans())
def test_any_rows_end_as_the_newer_of_each_subject(
    old: list[dict[str, object]], new: list[dict[str, object]], is_flow: bool, comments: bool
) -> None:
    day: dict[str, object] = {"seen": date(2026, 1, 1)}
    lines = [dump_flow(row | day) for row in old]
    mark = "  # kept\n" if comments else "\n"
    if is_flow or not old:
        text = f"{HEAD}facts: [{', '.join(lines)}]{mark}{TAIL}"
    else:
        text = f"{HEAD}facts:\n{''.join(f'  - {line}{mark}' for line in lines)}{TAIL}"

    after, _ = recorded(text, *new)

    wanted = {(row["fact"], row["of"]): row | day for row in old}
    wanted |= {(row["fact"], row["of"]): row | SEEN for row in new}
    assert yaml.safe_load(after)["facts"] == [*wanted.values()]
    assert after.count("# kept") == text.count("# kept")
    assert yaml_reader.load(after)
