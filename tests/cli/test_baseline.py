"""`ultrascale baseline`, as its user sees it."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import yaml

from tests.support.command_line import Ultrascale

ASKED = ("--type", "p5.48xlarge", "--region", "us-east-1", "--at", "2026-11-21T12:00Z")
PRICED = (*ASKED, "--block-price", "31")
_MONDAY = datetime(2026, 1, 5, tzinfo=UTC)


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    return _trace(tmp_path / "jobs.csv", weeks=6)


def _trace(file: Path, weeks: int, *, steady: int = 3) -> Path:
    """Write a trace: nodes that always run, and a job of two nodes each day from 9 to 17."""
    rows = ["job,team,submit,start,end,accelerators,nodes"]
    for day in range(weeks * 7):
        for hour, length, nodes in (*[(0, 24, 1)] * steady, (9, 8, 2)):
            begin = _MONDAY + timedelta(days=day, hours=hour)
            times = (begin, begin, begin + timedelta(hours=length))
            cells = (str(len(rows)), "a", *map(datetime.isoformat, times), str(8 * nodes))
            rows.append(",".join((*cells, str(nodes))))
    file.write_text("\n".join(rows) + "\n", encoding="utf-8")
    return file


def test_an_answer_says_how_many_nodes_and_what_others_cost(
    trace: Path, ultrascale: Ultrascale
) -> None:
    answer = ultrascale("baseline", trace, *PRICED)
    assert (answer.returncode, answer.stderr) == (0, "")
    assert "buy 3 nodes ahead (90 % interval 3 to 3), in use 100% of the time" in answer.stdout
    assert (
        "next: ultrascale advise --workload pre-training --type p5.48xlarge --nodes 3 "
        in answer.stdout
    )
    assert "burst on on-demand: up to 2 nodes" in answer.stdout
    pools = yaml.safe_load(answer.stdout[answer.stdout.index("pools:\n") :])["pools"]
    assert [(pool["role"], pool["purchase"]["option"], pool["nodes"]) for pool in pools] == [
        ("reserved", "capacity-block", {"max": 3}),
        ("burst", "on-demand", {"max": 2}),
    ]


def test_check_accepts_the_cluster_file_and_advise_the_question(
    trace: Path, ultrascale: Ultrascale, tmp_path: Path
) -> None:
    file = tmp_path / "cluster.yaml"
    file.write_text(
        ultrascale("baseline", trace, *PRICED, "--cluster-file").stdout, encoding="utf-8"
    )
    assert ultrascale("check", file).returncode == 0
    document = json.loads(ultrascale("baseline", trace, *PRICED, "--json").stdout)
    assert ultrascale(*document["advise"].split()[1:]).returncode == 0
    assert document["choice"]["costs"].keys() == {"2", "3", "4"}
    assert document["curves"]["wanted"] == pytest.approx([3 + 2 * 8 / 24, 5, 0])


def test_drain_loss_and_a_price_file_change_the_costs(
    trace: Path, ultrascale: Ultrascale, tmp_path: Path
) -> None:
    def usd(*words: str) -> dict[str, float]:
        document = json.loads(ultrascale("baseline", trace, *ASKED, *words, "--json").stdout)
        return document["choice"]["costs"] | document["choice"]["burst_nodes"]

    long, short = (usd("--block-price", "31", "--days", days)["3"] for days in ("28", "1"))
    # 40 minutes before the end of a block its nodes are drained.
    assert (short - long) / (3 * 168 * 31) == pytest.approx(1440 / 1400 - 40320 / 40280, rel=0.01)
    prices = tmp_path / "prices.csv"
    prices.write_text(
        "region,service,item,unit,price,currency,valid_on,source\n"
        "us-east-1,ec2-capacity-block,p5.48xlarge,hour,31,USD,2026-11-01,offer\n"
        "us-east-1,ec2-spot,p5.48xlarge,hour,20,USD,2026-11-01,seen\n",
        encoding="utf-8",
    )
    cheap, lost = (usd("--prices", str(prices), "--spot-loss", loss) for loss in ("0", "20"))
    assert cheap["spot"] == 5  # Spot costs less than a block: nothing is bought ahead.
    assert lost["0"] == pytest.approx(cheap["0"] * 1.2)


@pytest.mark.parametrize(
    ("weeks", "words", "said"),
    [(3, PRICED, "3 whole weeks"), (6, (*ASKED, "--block-price", "99"), "the interval is 0 to 0")],
)
def test_a_trace_without_an_answer_has_a_status_of_its_own(
    weeks: int, words: tuple[str, ...], said: str, ultrascale: Ultrascale, tmp_path: Path
) -> None:
    answer = ultrascale("baseline", _trace(tmp_path / "jobs.csv", weeks), *words)
    assert answer.returncode == 3
    assert answer.stderr.startswith("no answer: ")
    assert said in answer.stderr


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (ASKED, 1, "--block-price: missing"),
        ((*PRICED, "--days", "200"), 1, "--days: no block"),
        ((*PRICED, "--type", "m7g.large"), 1, "no accelerators"),
        ((*PRICED, "--type", "g6.xlarge"), 1, "no EFA"),
        ((*PRICED, "--format", "pbs"), 64, "write one of slurm"),
        ((*PRICED, "--timezone", "Mars/Base"), 64, "no time zone"),
        ((*PRICED, "--spot-loss", "120"), 64, "--spot-loss"),
        ((*PRICED, "--block-price", "0"), 64, "--block-price"),
        ((*PRICED, "--workload", "mining"), 64, "--workload"),
        ((*PRICED, "--format", "helios"), 1, "helios: job_id"),
    ],
)
def test_a_wrong_question_is_refused_with_the_way_out(
    words: tuple[str, ...], status: int, said: str, trace: Path, ultrascale: Ultrascale
) -> None:
    answer = ultrascale("baseline", trace, *words)
    assert answer.returncode == status
    assert said in answer.stderr
    assert not answer.stdout


def test_more_nodes_than_a_date_has_are_told_and_not_written_as_pools(
    ultrascale: Ultrascale, tmp_path: Path
) -> None:
    trace = _trace(tmp_path / "jobs.csv", 4, steady=300)
    answer = ultrascale("baseline", trace, *PRICED)
    assert answer.returncode == 0
    assert "note: no pools: H2: all Capacity Blocks of a date together have 256" in answer.stdout
    assert "pools:\n" not in answer.stdout
