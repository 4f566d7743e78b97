"""The loop of `docs/jobs-commands.md` sends a job for each line of a table."""

import os
import subprocess
import sys
from pathlib import Path

from tests.support.folders import ROOT

PAGE = ROOT / "docs" / "jobs-commands.md"
# Nothing is sent: the command of the page prints the names, variables and words of its jobs.
DRY_RUN = """
cd "$ROOT"
ultrascale() {
    "$PYTHON" -m ultrascale "$1" "$2" "$3" --dry-run --account 111122223333 "${@:4}" |
        grep -A1 -e "^  name:" -e "name: SEED" -e "- --model"
}
"""


def test_the_loop_of_the_page_sends_a_job_for_each_line(tmp_path: Path) -> None:
    table = tmp_path / "params.csv"
    table.write_text("a1,0.1,1\na2,0.01,2\n")
    section = PAGE.read_text().split("### A job for each row of a table\n")[1]
    loop = section.split("```sh\n")[1].split("```")[0].replace("params.csv", str(table))

    answer = subprocess.run(
        ["bash", "-eu", "-c", DRY_RUN + loop],
        env={**os.environ, "PYTHON": sys.executable, "ROOT": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )

    words = [line.strip("- ") for line in answer.stdout.splitlines()]
    told = [word for word in words if word.startswith(("name: bert-", "value: ", "model", "lr="))]
    assert told == [
        *("name: bert-a1", "value: '1'", "model=large", "lr=0.1"),
        *("name: bert-a2", "value: '2'", "model=large", "lr=0.01"),
    ]
