"""Docstrings begin with a noun or a verb."""

from tools import house


def test_no_docstring_begins_with_a_question_word() -> None:
    assert house.questions().files == ()
