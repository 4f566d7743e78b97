"""The sweep of the change guard has an opinion on every key that `check` knows."""

from tests.support.guard_changes import files, kind_of
from tests.support.guard_opinions import Reached, mistakes, surprises
from tests.support.pools import as_text, loads_own


def test_each_key_has_an_opinion_and_each_opinion_a_key() -> None:
    assert [*mistakes()] == []


def test_the_files_of_the_sweep_are_right() -> None:
    for name, document in files().items():
        assert loads_own(as_text(document)).name == document["name"], name


def test_a_verdict_that_nobody_expects_and_one_that_never_comes_are_told() -> None:
    key = "kubernetes.version"
    nothing: Reached = {(key, "down"): {}}
    told: Reached = {(key, "up"): {"cannot be deployed": "a file"}}

    (line,) = (line for line in surprises(nothing, whole=True) if line.startswith(f"{key}: down"))
    assert "the guard never says 'cannot be deployed'" in line
    (line,) = surprises(told, whole=False)
    assert "the guard says 'cannot be deployed' of a file; mend it, or say so" in line


def test_kinds_of_changes_are_told_apart() -> None:
    assert kind_of(True, False) == "off"
    assert kind_of(1, 2) == kind_of("1.34", "1.35") == kind_of(["a"], ["a", "b"]) == "up"
    assert kind_of("17.9", "17.6") == "down"
    assert kind_of(["a"], ["b"]) == kind_of("spot", "odcr") == "other"
