"""A live run: its checkpoint, what it owns, and its way to an empty account."""

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from tools.live import actions
from tools.live.actions import ACTIONS, Action

DESCRIPTION = "Part of the cluster {name}, made by ultrascale"
"""Description of each stack of a cluster: with its random name it is the mark of a run."""
# Records of tags outlive their resources.
_LOOKS, _SECONDS = 12, 300.0
_BUILD_SECONDS = 30.0
_ATTEMPTS, _STACK_FAILED = 3, 4
Shell = Callable[[Sequence[str]], tuple[int, str]]


class LiveError(Exception):
    """A reason to go to destroy and inventory."""


@dataclass
class State:
    """The checkpoint of a run, which is its report as well."""

    identity: dict[str, str]  # Run, account, Region, profile, commit, actions, digest of the file
    done: dict[str, str] = field(default_factory=dict[str, str])  # Outcome of each action
    stacks: dict[str, str] = field(default_factory=dict[str, str])  # Id of each stack of the run
    baseline: list[str] = field(default_factory=list[str])  # What the account had before
    left: list[str] = field(default_factory=list[str])  # What it has more than before
    # Keys of the run that wait for their deletion, free of charge.
    ending_keys: list[str] = field(default_factory=list[str])
    failure: str = ""  # Why it went to destroy before its last action
    deploying: bool = False  # Whether an action may make stacks anew, with other ids

    def save(self, path: Path) -> None:
        """Write the state, for nobody else to read."""
        new = path.with_suffix(".new")
        new.touch(mode=0o600)
        new.write_text(json.dumps({**asdict(self), "ending": self.ending}, indent=2))
        new.replace(path)

    @property
    def ending(self) -> str:
        """``PASSED``, ``FAILED``, or ``PARTIAL`` where some actions were left out."""
        if self.failure or self.left or {*self.done.values()} - {"passed"}:
            return "FAILED"
        whole = [*(action.name for action in ACTIONS), *actions.CLEANUP]
        return "PASSED" if [*self.done] == whole else "PARTIAL"


def load(path: Path, identity: Mapping[str, str]) -> State:
    """Return the state of a run that goes on.

    Raises:
        LiveError: The identity is another one.
    """
    known: dict[str, Any] = json.loads(path.read_text())  # Any: what `save` wrote
    known.pop("ending")
    if others := [key for key in identity if identity[key] != known["identity"].get(key)]:
        raise LiveError(f"another {', '.join(others)} than this run's: begin a new run")
    return State(**known)


@dataclass
class Run:
    """A live run."""

    state: State
    names: Mapping[str, str]  # Values of the names in commands
    shell: Shell  # Runs a command; returns its exit status and what it prints
    save: Callable[[State], None]  # Writes the checkpoint
    vary: Callable[[], None]  # Writes the files of later deployments from the recorded one
    sleep: Callable[[float], None] = time.sleep

    def go(self, chosen: Sequence[str], shield: Callable[[], None] = lambda: None) -> str:
        """Run the chosen actions, then destroy and inventory; return the ending.

        Args:
            chosen: Names of actions.
            shield: Is called before destroy: signals end nothing from then on.
        """
        state = self.state
        try:
            for action in ACTIONS:
                if action.name in chosen and action.name not in state.done and not state.failure:
                    self._perform(action)
        except (Exception, KeyboardInterrupt) as error:
            state.failure = f"{type(error).__name__} {error}"
        shield()
        for name, act in (("destroy", self._destroy), ("inventory", self._take_inventory)):
            self.save(state)
            try:
                act()
                state.done[name] = "passed"
            except Exception as error:
                state.done[name] = "failed"
                state.failure += f" {name}: {error}"
        self.save(state)
        return state.ending

    def _perform(self, action: Action) -> None:
        state = self.state
        if missing := [name for name in action.needs.split() if state.done.get(name) != "passed"]:
            raise LiveError(f"{action.name} needs {', '.join(missing)}")
        print(f"{action.name}: begun", flush=True)
        state.deploying = True
        self.save(state)
        try:
            if action.name == "identity":
                self._identify()
            if action.name in ("identity", "baseline"):
                state.baseline = self._inventory()
            if action.fails:
                self._ask(action.fails, _STACK_FAILED)
            if action.builds:
                self._build()
            for command in action.commands:
                self._ask(command)
            if action.name == "preflight":
                self.vary()
            self._own()
        except (Exception, KeyboardInterrupt):
            state.done[action.name] = "failed"
            raise
        state.done[action.name] = "passed"
        self.save(state)

    def _identify(self) -> None:
        names = self.names
        if (own := self._json(actions.CALLER)["Account"]) != names["account"]:
            raise LiveError(f"the credentials belong to {own}, and ACCOUNT is {names['account']}")
        mark, _, end = DESCRIPTION.partition("{name}")
        described = [(one["StackName"], one.get("Description", "")) for one in self._stacks()]
        if there := [name for name, text in described if text[: len(mark)] == mark and end in text]:
            raise LiveError(f"the account has stacks of clusters: {', '.join(there)}")
        budgets = [each["BudgetName"] for each in self._json(actions.BUDGETS).get("Budgets", ())]
        if not any(self._json(actions.ALARMS, of=name).get("Notifications") for name in budgets):
            raise LiveError("the account has no budget with an alarm in AWS Budgets: make one")
        self._ask(actions.PRICES)
        usd = self._json(actions.MONEY)["answer"]["money"]["usd_per_hour"]
        if usd["value"] is None or usd["without"]:
            raise LiveError(f"no price is known of {', '.join(usd['without']) or 'it'}")
        most = usd["value"] * float(names["hours"]) + float(names["accept_usd"])
        print(f"{names['hours']} hours at {usd['value']:.2f} USD, with jobs {most:.2f} USD at most")
        if most > float(names["budget"]):
            raise LiveError(f"{most:.2f} USD are more than BUDGET={names['budget']}")

    def _build(self) -> None:
        id = self._json(actions.BUILD)["build"]["id"]
        while (build := self._json(actions.BUILDS, of=id)["builds"][0])["buildStatus"] == (
            "IN_PROGRESS"
        ):
            self.sleep(_BUILD_SECONDS)
        if build["buildStatus"] != "SUCCEEDED":
            raise LiveError(f"the build of images ended as {build['buildStatus']}")

    def _own(self) -> None:
        """Note the ids of the stacks with the run's mark.

        A stack that failed when it was made is made again, with another id: while an action
        deploys, and only then, a new id counts.
        """
        state = self.state
        for stack in self._stacks():
            if self._is_marked(stack) and (
                state.deploying or stack["StackName"] not in state.stacks
            ):
                state.stacks[stack["StackName"]] = stack["StackId"]
        state.deploying = False
        self.save(state)

    def _is_marked(self, stack: Mapping[str, str]) -> bool:
        return stack.get("Description") == DESCRIPTION.format(name=self.names["name"])

    def _destroy(self) -> None:
        if self.state.done.get("preflight") is None:
            return  # nothing was deployed
        for _ in range(_ATTEMPTS):
            self._own()
            # Read again before each attempt: with another id or mark it is somebody else's.
            foreign = [
                name
                for stack in self._stacks()
                if (name := stack["StackName"]).startswith(f"{self.names['name']}-")
                if not self._is_marked(stack) or self.state.stacks.get(name) != stack["StackId"]
            ]
            if foreign:
                raise LiveError(f"stacks of somebody else have our names: {', '.join(foreign)}")
            if not self.shell(self._words(actions.DESTROY))[0]:
                self._end_keys()
                return
        raise LiveError("it did not end; the inventory lists what is left")

    def _end_keys(self) -> None:
        """Have our keys deleted, which outlive their stacks and would be paid for."""
        state = self.state
        for item in self._json(actions.TAGGED)["ResourceTagMappingList"]:
            tags = {tag["Key"]: tag["Value"] for tag in item.get("Tags", ())}
            arn, stack = item["ResourceARN"], tags.get("aws:cloudformation:stack-name")
            is_ours = stack in state.stacks and arn not in (*state.baseline, *state.ending_keys)
            if ":kms:" in arn and is_ours:
                # A run that was killed may have scheduled it before.
                key = self._json(actions.KEY, of=arn)["KeyMetadata"]
                if key["KeyState"] != "PendingDeletion":
                    self._ask(actions.END_KEY, of=arn)
                state.ending_keys.append(arn)
                self.save(state)

    def _take_inventory(self) -> None:
        if self.state.done.get("identity") != "passed":
            return  # nothing was made
        for look in range(_LOOKS):
            self.state.left = sorted({*self._inventory()} - {*self.state.baseline})
            if not self.state.left:
                return
            if look + 1 < _LOOKS:
                self.sleep(_SECONDS)
        raise LiveError(f"{len(self.state.left)} things more than before")

    def _inventory(self) -> list[str]:
        tagged = self._json(actions.TAGGED)["ResourceTagMappingList"]
        ids = [*(each["ResourceARN"] for each in tagged), *(s["StackId"] for s in self._stacks())]
        return sorted({*ids} - {*self.state.ending_keys})

    def _stacks(self) -> Sequence[Mapping[str, str]]:
        return self._json(actions.STACKS)["Stacks"]

    def _words(self, command: str, of: str = "") -> Sequence[str]:
        now = f"{time.time():.0f}"  # a folder of evidence is written once
        return [word.format_map({**self.names, "of": of, "time": now}) for word in command.split()]

    def _ask(self, command: str, status: int = 0, *, of: str = "") -> str:
        words = self._words(command, of)
        ended, printed = self.shell(words)
        if ended != status:
            raise LiveError(f"`{' '.join(words)}` ended with {ended}, and {status} is right")
        return printed

    def _json(self, command: str, of: str = "") -> Any:  # noqa: ANN401 Any: what a command prints
        return json.loads(self._ask(command, of=of))
