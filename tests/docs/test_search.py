"""The search of the docs site, typed into a browser that opened the site from the disk."""

import json
import shutil
import subprocess
from collections.abc import Sequence

import pytest

from tests.support.folders import ROOT
from ultrascale.node import bundled_node


@pytest.mark.parametrize(
    "names",
    [
        pytest.param(("chromium",), marks=pytest.mark.browser, id="chromium"),
        pytest.param(("firefox", "firefox-esr"), marks=pytest.mark.firefox, id="firefox"),
    ],
)
def test_a_reader_finds_the_word_that_he_typed_and_not_its_last_letter(
    names: Sequence[str],
) -> None:
    browser = next(filter(None, map(shutil.which, names)), "")
    page = (ROOT / "site" / "index.html").as_uri()
    program = ROOT / "tests" / "support" / "browser.mjs"

    command = [str(bundled_node()), str(program), browser, page, "karpenter"]
    answer = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)

    shown = json.loads(answer.stdout)
    assert shown["value"].lstrip("/") == "karpenter"
    assert len(shown["results"]) > 3
    assert all("karpenter" in result.lower() for result in shown["results"][:3])
