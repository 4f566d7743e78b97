"""A live run against a double of an account: it ends with the inventory, and takes only its own."""

import json
import os
import random
import signal
import string
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.cases import for_each
from tests.support.folders import ROOT
from tools.live import __main__ as program
from tools.live import actions
from tools.live.actions import ACTIONS, HOURS, with_needs
from tools.live.run import DESCRIPTION, LiveError, Run, State, load
from ultrascale import plan
from ultrascale.accept import levels
from ultrascale.accept.model import NEEDS
from ultrascale.jobs.checked_file import check_file
from ultrascale.plan import names as plan_names

NAME = "live-0a1b2c3d"
WHOLE = [action.name for action in ACTIONS]
NAMES = {
    **{"name": NAME, "account": "111122223333", "region": "us-west-2", "budget": "60"},
    **{"hours": "4", "accept_usd": "20", "folder": "/f", "prices": "/f/prices"},
    **{name: f"/f/{name}.yaml" for name in ("file", "broken", "upgraded")},
}
FOREIGN = {"other-network": "arn:other/1", "live-0a1b2c3d-else": "arn:else/1"}


class Killed(BaseException):
    """SIGKILL: no line of the run follows."""


@dataclass
class Account:
    """An account with stacks of others, and of the run once it deploys."""

    stacks: dict[str, tuple[str, str]] = field(default_factory=dict[str, tuple[str, str]])
    things: set[str] = field(default_factory=lambda: {"arn:bucket/of-others"})
    account: str = "111122223333"
    alarms: int = 1
    usd: float = 2.0
    sticks: bool = False  # Whether a bucket stays behind
    keys: dict[str, str] = field(default_factory=dict[str, str])  # Stack of each key
    ended_keys: set[str] = field(default_factory=set[str])
    build: str = "SUCCEEDED"  # How a build ends
    made: int = 0
    log: list[str] = field(default_factory=list[str])
    # Calls at which it is killed, interrupted, or refuses
    at: dict[int, BaseException | int] = field(default_factory=dict[int, BaseException | int])
    dead: bool = False
    shielded: bool = False  # Signals end nothing from destroy on

    def shield(self) -> None:
        self.shielded = True

    def __call__(self, words: Sequence[str]) -> tuple[int, str]:
        fault = self.at.pop(len(self.log), None)
        self.log.append(" ".join(words[:3]))
        if self.dead:
            raise Killed
        late = random.Random(len(self.log)).random() < 0.5
        if fault is not None and late:
            self._do(words)
        if isinstance(fault, KeyboardInterrupt) and self.shielded:
            fault = None
        if isinstance(fault, Killed):
            self.dead = True
        if isinstance(fault, BaseException):
            raise fault
        return (fault, "") if fault is not None else self._do(words)

    def _do(self, words: Sequence[str]) -> tuple[int, str]:
        verb = words[words.index("--") + 2] if "--" in words else words[1]
        if words[0] == "ultrascale":
            return self._ultrascale(verb, words)
        answers: Mapping[str, Any] = {
            "get-caller-identity": {"Account": self.account},
            "describe-budgets": {"Budgets": [{"BudgetName": "b"}]},
            "describe-notifications-for-budget": {"Notifications": [1] * self.alarms},
            "get-resources": {
                "ResourceTagMappingList": [
                    *({"ResourceARN": arn} for arn in self.things),
                    *(
                        {
                            "ResourceARN": arn,
                            "Tags": [{"Key": "aws:cloudformation:stack-name", "Value": stack}],
                        }
                        for arn, stack in self.keys.items()
                    ),
                ]
            },
            "start-build": {"build": {"id": "b:1"}},
            "batch-get-builds": {"builds": [{"buildStatus": self.build}]},
            "describe-key": {"KeyMetadata": {"KeyState": self._key_state(words)}},
            "schedule-key-deletion": {},
            "describe-stacks": {
                "Stacks": [
                    {"StackName": name, "StackId": id, "Description": text}
                    for name, (id, text) in self.stacks.items()
                ]
            },
        }
        if words[2] == "schedule-key-deletion":
            if self._key_state(words) == "PendingDeletion":
                return 254, ""  # KMSInvalidStateException
            self.ended_keys.add(words[words.index("--key-id") + 1])
        return 0, json.dumps(answers[words[2]])

    def _key_state(self, words: Sequence[str]) -> str:
        return "PendingDeletion" if {*words} & self.ended_keys else "Enabled"

    def _ultrascale(self, verb: str, words: Sequence[str]) -> tuple[int, str]:
        if verb == "cdk":
            self.stacks["CDKToolkit"] = ("arn:toolkit", "")
        elif verb == "plan":
            money: object = {"usd_per_hour": {"value": self.usd, "without": []}}
            return 0, json.dumps({"answer": {"money": money}})
        elif verb == "deploy":
            for layer in ("network", "cluster"):
                # A stack that was rolled back is made again.
                if f"{NAME}-{layer}" not in self.stacks or not self.made % 5:
                    self.made += 1
                    id = f"arn:{layer}/{self.made}"
                    self.stacks[f"{NAME}-{layer}"] = id, DESCRIPTION.format(name=NAME)
            self.things.add("arn:bucket/checkpoints")
            self.keys["arn:aws:kms:us-west-2:1:key/own"] = f"{NAME}-cluster"
            return (4 if "broken" in words[2] else 0), ""
        elif verb == "destroy":
            own = DESCRIPTION.format(name=NAME)
            self.stacks = {name: each for name, each in self.stacks.items() if each[1] != own}
            self.things -= set() if self.sticks else {"arn:bucket/checkpoints"}
        return 0, ""


def run(
    aws: Account, state: State | None = None, chosen: Sequence[str] = WHOLE
) -> tuple[str, State]:
    """Run to the end; after each kill go on from the checkpoint."""
    disk = [json.dumps(asdict(state or State({"run": "0a1b2c3d"})))]

    def save(now: State) -> None:
        if not aws.dead:
            disk.append(json.dumps(asdict(now)))

    for _ in range(5):
        now = State(**json.loads(disk[-1]))
        try:
            live = Run(now, NAMES, aws, save, vary=lambda: None, sleep=lambda _: None)
            aws.shielded = False
            return live.go(chosen, aws.shield), now
        except Killed:
            aws.dead = False
    raise AssertionError("it is killed at most four times")


def is_clean(aws: Account, foreign: Mapping[str, str], state: State) -> bool:
    """Whether nothing of others is gone, and what is left of ours is listed."""
    there = {id for id, _ in aws.stacks.values()} | aws.things
    before = {*state.baseline} | {*foreign.values(), "arn:bucket/of-others"}
    return {*foreign.values(), "arn:bucket/of-others"} <= there and (
        there - before - {"arn:toolkit"} <= {*state.left}
    )


def account(**changes: Any) -> Account:
    stacks = {name: (id, "of others") for name, id in FOREIGN.items() if NAME not in name}
    return Account(stacks=stacks, **changes)


def test_a_whole_run_passes_and_leaves_what_was_there() -> None:
    aws = account()
    ending, state = run(aws)
    assert ending == "PASSED"
    assert [*state.done] == [*WHOLE, *actions.CLEANUP]
    assert aws.log[-1].startswith("aws cloudformation describe-stacks")
    assert "CDKToolkit" in aws.stacks
    assert is_clean(aws, {"other-network": "arn:other/1"}, state)


def test_a_subset_is_partial_and_has_what_it_needs() -> None:
    order = with_needs({"scale"})
    assert order == ["identity", "bootstrap", "baseline", "preflight", "deploy", "scale"]
    assert run(account(), chosen=order)[0] == "PARTIAL"
    assert with_needs({"upgrade"}) == [name for name in WHOLE if name != "scale"]


@for_each({f"{seed}": seed for seed in range(200)})
def test_whatever_ends_it_the_inventory_is_last_and_only_its_own_goes(seed: int) -> None:
    draw = random.Random(seed)
    faults: Sequence[Callable[[], BaseException | int]] = (Killed, KeyboardInterrupt, lambda: 3)
    at = {draw.randrange(60): draw.choice(faults)() for _ in range(draw.randint(1, 3))}
    aws = account(at=at)
    ending, state = run(aws)
    assert [*state.done][-2:] == [*actions.CLEANUP]
    assert is_clean(aws, {"other-network": "arn:other/1"}, state)
    if state.done["inventory"] == "passed":
        assert {name for name in aws.stacks if name.startswith(NAME)} == set()
    else:
        assert ending == "FAILED"


def test_each_command_may_be_the_last_before_a_kill() -> None:
    calls = len((whole := account()).log) or (run(whole) and len(whole.log))
    for number in range(calls):
        aws = account(at={number: Killed()})
        ending, state = run(aws)
        assert state.done["inventory"] == "passed", number
        assert is_clean(aws, {"other-network": "arn:other/1"}, state), number
        assert ending == "PASSED", number


def test_a_stack_of_somebody_else_with_our_name_ends_the_deletion() -> None:
    aws = account()
    _, state = run(aws, chosen=with_needs({"deploy"}))
    aws.stacks |= {"live-0a1b2c3d-else": ("arn:else/1", "of others")}
    again = State({"run": "0a1b2c3d"}, done={"identity": "passed", "preflight": "passed"})
    ending, state = run(aws, again, chosen=[])
    assert ending == "FAILED"
    assert "somebody else have our names: live-0a1b2c3d-else" in state.failure
    assert "ultrascale destroy /f/file.yaml" not in aws.log[-6:]
    assert "live-0a1b2c3d-else" in aws.stacks


def test_keys_of_the_run_are_deleted_once_all_else_is_gone_and_no_others() -> None:
    others = "arn:aws:kms:us-west-2:1:key/others"
    aws = account(keys={others: "other-network"})
    assert (run(aws)[0], aws.ended_keys) == ("PASSED", {"arn:aws:kms:us-west-2:1:key/own"})
    for number in range(len(aws.log)):
        refused = account(keys={others: "other-network"}, at={number: 3})
        run(refused)
        assert others not in refused.ended_keys


def test_an_image_that_is_not_built_stops_the_run_before_nodes_are_paid() -> None:
    aws = account(build="FAILED")
    ending, state = run(aws)
    assert (ending, state.done["images"]) == ("FAILED", "failed")
    assert "the build of images ended as FAILED" in state.failure
    assert "ultrascale connect /f/file.yaml" not in aws.log


def test_what_is_left_is_listed_and_fails() -> None:
    ending, state = run(account(sticks=True))
    assert (ending, state.left) == ("FAILED", ["arn:bucket/checkpoints"])


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"account": "999999999999"}, "the credentials belong to 999999999999"),
        ({"alarms": 0}, "no budget with an alarm"),
        ({"usd": 11.0}, "64.00 USD are more than BUDGET=60"),
        ({"usd": None}, "no price is known"),
    ],
)
def test_nothing_is_made_in_another_account_or_beyond_the_budget(
    changes: dict[str, Any], why: str
) -> None:
    aws = account(**changes)
    ending, state = run(aws)
    assert ending == "FAILED"
    assert why in state.failure
    assert not {"ultrascale cdk bootstrap", "ultrascale destroy /f/file.yaml"} & {*aws.log}


def test_an_account_with_a_cluster_is_refused() -> None:
    text = plan_names.stack_description("theirs")
    aws = Account(stacks={"theirs-network": ("arn:theirs", text)})
    assert "has stacks of clusters: theirs-network" in run(aws)[1].failure
    assert text == DESCRIPTION.format(name="theirs")


def test_a_checkpoint_is_for_its_owner_and_its_identity_alone(tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    identity = {"run": "a", "commit": "1"}
    State(identity, done={"identity": "passed"}).save(path)
    assert path.stat().st_mode & 0o777 == 0o600
    assert load(path, identity).done == {"identity": "passed"}
    with pytest.raises(LiveError, match="another commit"):
        load(path, identity | {"commit": "2"})


@pytest.mark.parametrize("profile", HOURS)
def test_its_files_pass_check_in_each_of_their_forms(profile: str, tmp_path: Path) -> None:
    names = {name: str(tmp_path / f"{name}.yaml") for name in ("file", "broken", "upgraded")}
    values = {"name": NAME, "region": "us-west-2", "account": "123456781234"}
    values["admin"] = "arn:aws:iam::123456781234:role/Admin"
    text = (ROOT / "tools" / "live" / f"live-{profile}.yaml").read_text()
    Path(names["file"]).write_text(string.Template(text).substitute(values))
    program.write_variants(names)
    assert not check_file(Path(names["file"])).warnings
    # A check that cannot run would fail each live run.
    checks = levels.checks(plan.load(Path(names["file"])), [*NEEDS], grows=True)
    assert {check.level for check in checks} >= {"objects", "nodes", "storage"}
    assert all(check.costs for check in checks if check.level in ("storage", "queue"))
    assert "fabric" not in {check.level for check in checks}
    for name in names:
        check_file(Path(names[name]))
    assert yaml.safe_load(Path(names["upgraded"]).read_text())["kubernetes"]["version"] == "1.36"


def test_no_pipeline_starts_it() -> None:
    started = {
        path
        for folder in (".ci", ".github", "ultrascale", "constructs")
        for path in (ROOT / folder).rglob("*")
        if path.is_file() and path.suffix in ("", ".py", ".yml", ".yaml", ".toml")
        if "make live" in (text := path.read_text(errors="replace")) or "tools.live" in text
    }
    assert started == set()


def test_a_command_is_logged_and_ends_before_the_run(tmp_path: Path) -> None:
    assert program.run_logged(["sh", "-c", "echo one; exit 3"], tmp_path) == (3, "one\n")
    assert (tmp_path / "log.txt").read_text() == "$ sh -c echo one; exit 3\none\n-> 3\n"


AWS = """\
case "$2" in
get-caller-identity) echo '{"Account": "111122223333"}' ;;
describe-budgets) echo '{"Budgets": [{"BudgetName": "b"}]}' ;;
describe-notifications-for-budget) echo '{"Notifications": [1]}' ;;
get-resources) echo '{"ResourceTagMappingList": []}' ;;
describe-stacks) echo '{"Stacks": []}' ;;
esac
"""
ULTRASCALE = """\
case "$1" in
plan) echo '{"answer": {"money": {"usd_per_hour": {"value": 1, "without": []}}}}' ;;
deploy) trap 'touch ended; exit 130' INT; kill -TERM $PPID; sleep 20 >/dev/null & wait ;;
esac
"""


def commit(*words: str) -> str:
    return "" if words[0] == "status" else "c0ffee"


def test_a_signal_ends_the_running_command_and_destroy_and_inventory_follow(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, text in (("aws", AWS), ("ultrascale", ULTRASCALE)):
        path = tmp_path / "bin" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\n{text}")
        path.chmod(0o755)
    settings = {"ACCOUNT": "111122223333", "REGION": "us-west-2", "BUDGET": "60"}
    settings |= {"ADMIN": "arn:aws:iam::111122223333:role/Admin", "PROFILE": "cpu"}
    for name, value in (*settings.items(), ("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")):
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(program, "ROOT", tmp_path)
    monkeypatch.setattr(program, "git", commit)
    before = {number: signal.getsignal(number) for number in program.SIGNALS}
    try:
        assert program.main() == 3
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)

    (folder,) = (tmp_path / ".make" / "live").iterdir()
    report = json.loads((folder / "report.json").read_text())
    assert (folder / "ended").exists()
    assert report["done"] | {"deploy": "failed", "inventory": "passed"} == report["done"]
    log = [line for line in (folder / "log.txt").read_text().splitlines() if line[0] == "$"]
    assert [line.split()[2] for line in log[-4:]][-1] == "cloudformation"
    assert any(line.startswith("$ ultrascale destroy") for line in log)
    modes = {path.stat().st_mode & 0o077 for path in (folder, *folder.iterdir())}
    assert modes == {0}
    assert "FAILED: KeyboardInterrupt" in capsys.readouterr().out

    monkeypatch.setenv("RESUME", folder.name)
    monkeypatch.setenv("REGION", "us-east-2")
    with pytest.raises(SystemExit, match="another region than this run's"):
        program.main()
