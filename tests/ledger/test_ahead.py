"""`ultrascale ledger --ahead`: hours and money that lie ahead, and the ways out by option."""

import io
import json
import re
from dataclasses import replace
from itertools import product
from pathlib import Path
from string import Template
from typing import Any, cast

import boto3
import pytest
from botocore import xform_name

from tests.support.account import connects
from tests.support.command_line import NOW, Ultrascale
from tests.support.ledgers import (
    BLOCK,
    FILE,
    POOL,
    busy,
    idle,
    next_state,
    node,
    reservation,
    utc,
    write,
)
from tests.support.stub_api_server import Object
from ultrascale.lambdas.ledger import STATE, ReservationRow
from ultrascale.lambdas.ledger_state import State
from ultrascale.ledger.ahead import ways

HOUR, TODAY = 3600, int(NOW.timestamp())
WINDOW = utc("2026-10-22T11:30"), utc("2026-11-29T11:30")
FEE = 38 * 24 * 2 * 30.0  # 30 USD for each node-hour
OPTIONS = ("capacity-block", "training-plan", "odcr", "future-dated")
PRICES = f"""region,service,item,unit,price,currency,valid_on,source
us-east-2,ec2-capacity-block,{BLOCK},fee,{FEE},USD,2026-10-20,invoice
us-east-2,ec2,p5en.48xlarge,hour,60,USD,2026-10-20,page
"""


def state_of(
    weeks: int, *rows: ReservationRow, waiting: int = 0, used: int = 8, of_three: int = 2
) -> bytes:
    """Return the state after weeks; the reservations were in use ``of_three`` of three hours."""
    job = {"kind": "waiting", "namespace": "training", "job": "llm", "n": waiting, "pools": [POOL]}
    there: list[Any] = [*rows, job] if waiting else [*rows]
    state: State | None = None
    for now in range(TODAY - weeks * 168 * HOUR, TODAY, HOUR):
        # Jobs of two hours.
        count = used * (now // HOUR % 3 < of_three)
        state = next_state(state, there, now, HOUR, {row["reservation"]: count for row in rows})
    assert state is not None
    return replace(state, at=TODAY, files={}).text()


def folder_of(path: Path, state: bytes, **reserved: Any) -> Path:
    rows = [
        reservation(WINDOW[0], TODAY, WINDOW, **reserved),
        node(WINDOW[0], TODAY, 1, [busy("a")]),
        node(
            utc("2026-11-20"), utc("2026-11-21"), 9, [busy("b")], purchase="on-demand", pool="burst"
        )
        | {"reservation": ""},
        node(WINDOW[0], TODAY, 2, [idle()]),
    ]
    write(path, rows)  # pyright: ignore[reportArgumentType]
    (path / "prices.csv").write_text(PRICES)
    (path / STATE).write_bytes(state)
    return path


def output(ultrascale: Ultrascale, folder: Path, *words: str, status: int = 0) -> str:
    own = ("--source", folder, "--prices", folder / "prices.csv", *words)
    answer = ultrascale("ledger", FILE, *own)
    assert answer.returncode == status, answer.stderr
    return answer.stdout + answer.stderr


def outlook(ultrascale: Ultrascale, folder: Path, days: str = "3") -> list[Object]:
    return json.loads(output(ultrascale, folder, "--ahead", days, "--json"))


def test_hours_that_will_go_unused_are_shown_with_their_cost_and_ways_out(
    ultrascale: Ultrascale, tmp_path: Path
) -> None:
    folder = folder_of(tmp_path, state_of(4, reservation(0, 0, WINDOW)))

    text = output(ultrascale, folder, "--ahead", "3")
    (pool,) = outlook(ultrascale, folder)

    # Two nodes for three days; 8 accelerators were in use for two hours of three.
    assert pool["node_hours"] == 144
    assert pool["unused"] == pytest.approx([96, 96, 96], abs=0.1)
    assert pool["usd"] == pytest.approx([96 * 30] * 3, abs=5)
    assert re.search(rf"^ *{POOL} +144 +4,320 +96 \(96 to 96\) +2,880 ", text, re.MULTILINE)
    assert "burst jobs: yes: 3.4 node-hours a day" in text
    assert "saves 60.00 USD for each node-hour that moves" in text
    assert "smaller: no: a block cannot be modified" in text
    # Nothing waits, and Volcano's queues have no such limit.
    assert "queued jobs: no: 0 accelerators" in text
    assert "limit of another queue: no: with Kueue" in text
    assert f"capacity-reservation/{BLOCK} --principals CONSUMER" in text
    assert len(pool["ways"]) == len(ways()) / len(OPTIONS)


def test_hours_of_an_extension_have_its_price(ultrascale: Ultrascale, tmp_path: Path) -> None:
    begins = utc("2026-11-20T11:30")
    usd = (WINDOW[1] - begins) / HOUR * 2 * 45.0
    fees = [{"usd": f"{usd:.2f}", "since": begins, "until": WINDOW[1]}]
    folder = folder_of(tmp_path, state_of(4, reservation(0, 0, WINDOW, fees=fees)), fees=fees)
    (pool,) = outlook(ultrascale, folder)
    assert pool["usd"] == pytest.approx([96 * 45] * 3, abs=5)


# EC2 keeps one instance where none is used.
@pytest.mark.parametrize(("used", "left"), [(16, 2), (0, 1)])
def test_only_nodes_without_a_user_in_any_hour_are_offered_away(
    used: int, left: int, ultrascale: Ultrascale, tmp_path: Path
) -> None:
    named = {"gpu-a": "cr-0dd", "gpu-b": "arn:aws:resource-groups:us-east-2:111122223333:group/b"}
    rows = [
        reservation(0, 0, None, 4, reservation=name, purchase="odcr", pool=pool)
        for pool, name in named.items()
    ]
    pools = outlook(ultrascale, folder_of(tmp_path, state_of(4, *rows, used=used, of_three=1)), "7")
    # Of four nodes two are used in each third hour, and none in others.
    for pool, id in zip(pools, ("cr-0dd", "RESERVATION"), strict=True):
        (way,) = (way for way in pool["ways"] if way["way"] == "smaller")
        assert way["command"].endswith(f"--capacity-reservation-id {id} --instance-count {left}")
        # Nothing of this type ran in the week before.
        assert "--prices" in way["price"]


def test_a_queue_takes_idle_hours_for_as_long_as_jobs_run(
    ultrascale: Ultrascale, tmp_path: Path
) -> None:
    state = state_of(4, reservation(0, 0, WINDOW), waiting=16)
    (pool,) = outlook(ultrascale, folder_of(tmp_path, state))
    assert "16 accelerators are wanted" in pool["ways"][0]["note"]
    assert pool["unused"][0] == pytest.approx(96 - 2 * 2, abs=0.1)


def test_a_reservation_before_its_start_has_ways_out_and_no_hours(
    ultrascale: Ultrascale, tmp_path: Path
) -> None:
    row = reservation(0, 0, None, purchase="odcr", reservation="cr-0dd", state="scheduled")
    (pool,) = outlook(ultrascale, folder_of(tmp_path, state_of(4, row)))
    assert [pool[name] for name in ("node_hours", "cost", "unused", "usd")] == [0, None, [], []]
    allowed = {way["way"]: way["allowed"] for way in pool["ways"]}
    assert (allowed["another date"], allowed["smaller"]) == ("yes", "no")


def test_a_pool_that_is_used_for_too_short_says_so_instead_of_a_number(
    ultrascale: Ultrascale, tmp_path: Path
) -> None:
    folder = folder_of(tmp_path, state_of(1, reservation(0, 0, WINDOW)))
    # The hours and their price are known all the same.
    text = output(ultrascale, folder, "--ahead", "3")
    assert re.search(rf"{POOL} +144 +4,320 +under 2 weeks of use", text)
    (folder / STATE).unlink()
    assert "has no state.json.gz" in output(ultrascale, folder, "--ahead", "3", status=64)


def test_the_bucket_is_looked_at_where_the_ledger_lies(
    ultrascale: Ultrascale, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = folder_of(tmp_path, state_of(4, reservation(0, 0, WINDOW)))
    own = ("ledger", FILE, "--prices", folder / "prices.csv", "--ahead", "3", "--source")
    files = {str(file.relative_to(folder)): file for file in folder.glob("ledger/**/*.gz")}

    def list_keys(asked: Object) -> Object:
        return {"Contents": [{"Key": key} for key in files if key.startswith(asked["Prefix"])]}

    def read(asked: Object) -> Object:
        return {"Body": io.BytesIO(files[asked["Key"]].read_bytes())}

    connects(monkeypatch, {"s3:ListBucket": list_keys, "s3:GetObject": read}, region="us-east-2")

    answer = ultrascale(*own, "s3://bucket/ledger")

    assert answer.returncode == 0, answer.stderr
    assert answer.stdout == ultrascale(*own, folder).stdout


# --- The table ------------------------------------------------------------------------------------


def test_each_way_out_of_each_option_has_a_page_or_is_unknown() -> None:
    cells = {(cell["way"], cell["option"]): cell for cell in ways()}
    names = dict.fromkeys(way for way, _ in cells)
    assert len(names) == 9
    assert {*cells} == {*product(names, OPTIONS)}
    assert len(cells) == len(ways())
    for name, cell in cells.items():
        assert cell["allowed"] in ("yes", "no", "unknown"), name
        assert cell["source"].startswith("https://") or cell["allowed"] == "unknown", name
        # Money and a command stand where a way is open.
        assert bool(cell["price"]) == (cell["allowed"] == "yes"), name
        assert not cell["command"] or cell["allowed"] == "yes", name
        assert cell["note"], name


@pytest.mark.parametrize(
    "command", sorted({cell["command"] for cell in ways() if cell["command"].startswith("aws ")})
)
def test_a_printed_command_is_one_that_aws_takes(command: str) -> None:
    _, service, verb, *words = Template(command).safe_substitute().split()
    client = cast("Any", boto3).client(service, region_name="us-east-2")
    model = client.meta.service_model
    operation = {xform_name(name, "-"): name for name in list[str](model.operation_names)}[verb]
    shape = model.operation_model(operation).input_shape
    options = {word.removeprefix("--") for word in words if word.startswith("--")} - {"region"}
    members = {xform_name(name, "-"): name for name in list[str](shape.members)}
    assert options <= {*members}
    assert {*shape.required_members} <= {members[option] for option in options}
