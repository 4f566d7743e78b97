"""The tutorials: each of their commands runs, and prints what the page shows.

`python -m tests.docs.test_tutorial [NAME ...]` writes the outputs into the pages anew.
"""

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.support.command_line import NOW
from tests.support.folders import ROOT

PAGES = {page.stem: page for page in sorted((ROOT / "docs").glob("tutorial*.md"))}
# Facts expire, and windows end: the pages show what a day of their own shows.
_AT_ONE_TIME = f"""\
from datetime import datetime
from ultrascale.cli import main, options
options.now = lambda: datetime.fromisoformat("{NOW.isoformat()}")
main()
"""
_BLOCK = re.compile(r"```console\n(.*?)```", re.DOTALL)


def run(command: str, folder: Path, environment: Mapping[str, str]) -> str:
    answer = subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return answer.stdout


def page_with_outputs(page: Path, folder: Path) -> str:
    """Return a page with the outputs of its commands, which run in ``folder`` in order."""
    (folder / "bin").mkdir()
    program = folder / "bin" / "ultrascale"
    program.write_text(f"#!{sys.executable}\n{_AT_ONE_TIME}")
    program.chmod(0o755)
    work = folder / "lab"
    work.mkdir()
    roots = [ROOT, *(ROOT / name for name in ("constructs", "stacks", "k8s", "training", "torchx"))]
    environment = {name: value for name, value in os.environ.items() if "AWS" not in name} | {
        "PATH": f"{program.parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": os.pathsep.join(map(str, roots)),
    }

    def filled(match: re.Match[str]) -> str:
        commands = [line for line in match[1].splitlines() if line.startswith("$ ")]
        shown = [f"{each}\n{run(each[2:], work, environment)}" for each in commands]
        return f"```console\n{''.join(shown)}```"

    return _BLOCK.sub(filled, page.read_text())


# Each takes half a minute: whoever has installed no more than `make test` needs does without them.
@pytest.mark.setup
@pytest.mark.parametrize("page", PAGES.values(), ids=PAGES.keys())
def test_each_command_of_a_tutorial_prints_what_the_page_shows(page: Path, tmp_path: Path) -> None:
    assert page_with_outputs(page, tmp_path).splitlines() == page.read_text().splitlines()


if __name__ == "__main__":
    for chosen in sys.argv[1:] or PAGES:
        with TemporaryDirectory() as name:
            PAGES[chosen].write_text(page_with_outputs(PAGES[chosen], Path(name)))
