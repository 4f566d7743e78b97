"""Ceilings of measures of the code base, which `make house-check` holds."""

import tomllib

import pytest

from tools import house


def test_a_measure_above_its_ceiling_fails_the_check(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ceilings = tomllib.loads(house.CEILINGS.read_text())
    measured = [
        house.Measure(key, ceiling + (key == "keda"), None, key)
        for key, ceiling in ceilings.items()
    ]
    monkeypatch.setattr(house, "measures", lambda: measured)

    assert house.main(["--check"]) == 1
    assert capsys.readouterr().out.startswith(f"keda: {ceilings['keda'] + 1:,}, and the ceiling")


def test_measures_at_their_ceilings_and_those_without_one_pass() -> None:
    measured = [house.Measure("lines", 10, 5, "lines"), house.Measure("modules", 9, 1)]

    assert house.exceeded(measured, {"lines": 10}) == []


def test_a_measure_whose_ceiling_was_taken_out_fails_the_check() -> None:
    measured = [house.Measure("lines", 10, None, "lines")]

    assert house.exceeded(measured, {}) == ["lines: no ceiling lines in tools/house.toml"]
