"""YAML that this product writes: readers of YAML 1.1 and 1.2 agree on it."""

from typing import Any

import yaml
from hypothesis import given
from hypothesis import strategies as st
from ruamel.yaml import YAML

from tests.support.cases import for_each
from tests.support.fuzz.values import HOSTILE_TEXTS
from ultrascale import yaml_reader, yaml_writer

TEXTS = st.one_of(
    st.sampled_from(HOSTILE_TEXTS),
    st.text(st.characters(codec="utf-8"), max_size=12),
    st.text("0123456789_.:eExXoOb+-TZ #\n\t 'yYnN~", max_size=8),
)
VALUES: st.SearchStrategy[Any] = st.recursive(
    TEXTS
    | st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=8,
)


def of_1_2(text: str) -> list[Any]:
    reader = YAML(typ="safe", pure=True)
    reader.version = (1, 2)
    return [*reader.load_all(text)]


@for_each(
    [
        *(
            "1e-4",
            "1e3",
            "y",
            "N",
            "on",
            "0o17",
            "012",
            "1_000",
            "20:00",
            "1:2:3.5",
            "~",
            "=",
            "<<",
        ),
        *(
            "2026-12-01",
            "2026-1-1",
            "2001-12-14t21:59:43.10-05:00",
            ".inf",
            "-.INF",
            ".NaN",
            "0x1F",
        ),
        *("0b11", "+1", ".5", "5.", "1E5", "null", "Yes", "", "1__0", "0O17", "-0x1f"),
    ]
)
def test_a_word_that_some_reader_takes_for_no_text_stands_in_quotes(word: str) -> None:
    assert yaml_writer.dump({word: word}) == f"'{word}': '{word}'\n"


@for_each(["us-west-2b", "10.0.0.0/16", "m7g.2xlarge", "v1.36", "nvidia.com/gpu", "a:b", "1.36.2"])
def test_a_word_that_all_take_for_text_stands_as_it_is(word: str) -> None:
    assert yaml_writer.dump([word]) == f"- {word}\n"


@given(values=st.lists(VALUES, min_size=1, max_size=3), compact=st.booleans())
def test_readers_of_both_versions_and_ours_read_what_was_written(
    values: list[Any], compact: bool
) -> None:
    text = yaml_writer.dump_all(values, compact=compact)

    assert repr([*yaml.load_all(text, yaml.CSafeLoader)]) == repr(values)
    assert repr([*yaml.load_all(text, yaml.SafeLoader)]) == repr(values)
    assert repr(of_1_2(text)) == repr(values)
    assert repr(yaml_reader.load(yaml_writer.dump(values[0], compact=compact))) == repr(values[0])


def test_a_script_stays_the_lines_it_is() -> None:
    assert yaml_writer.dump({"script": "a\nb: 1\n"}) == "script: |\n  a\n  b: 1\n"


def test_what_stands_in_two_places_is_written_twice() -> None:
    labels = {"a": "b"}

    assert yaml_writer.dump([labels, labels]) == "- a: b\n- a: b\n"
