"""Questions for the adviser."""

from datetime import UTC, datetime
from typing import Any

from ultrascale.errors import QuestionError
from ultrascale.plan.advice import Advice, Given, Question, advise, read_question

AT = datetime(2026, 11, 21, 12, tzinfo=UTC)
HELD = "id=cr-0feedfeedfeedfee1,type=p5.48xlarge,zone=us-west-2b,count=16"
HELD_BLOCK = f"{HELD},starts=2026-12-01T11:30:00Z,ends=2026-12-08T11:30:00Z"
G_TYPES = ["g6e.12xlarge", "g6e.24xlarge", "g6.12xlarge"]
TWO_ZONES = {"region": "us-east-1", "zone": ["us-east-1a", "us-east-1b"]}
G: dict[str, Any] = {"type": G_TYPES, **TWO_ZONES}
P4D: dict[str, Any] = {"type": ["p4d.24xlarge"], **TWO_ZONES}
CPU: dict[str, Any] = {"type": ["m7g.8xlarge", "c7g.8xlarge", "r7g.8xlarge"], **TWO_ZONES}
STEADY: dict[str, Any] = {"days": "steady"}
EC2_ALONE: dict[str, Any] = {"outside_account": False, "tolerance": "none"}
BASE: dict[str, Any] = {
    "at": AT,
    "workload": "pre-training",
    "type": ["p5.48xlarge"],
    "nodes": 16,
    "region": "us-west-2",
    "zone": ["us-west-2b"],
    "days": "7",
    "starts": "2026-12-01T00:00Z",
}


def question(**changes: Any) -> Question:
    """Return a question in which ``changes`` replace what is given."""
    return read_question(Given(**BASE | changes))


def advice(**changes: Any) -> Advice:
    return advise(question(**changes))


def mistakes(**changes: Any) -> tuple[str, ...]:
    """Return the lines that refuse a question."""
    try:
        question(**changes)
    except QuestionError as error:
        return error.mistakes
    return ()


def warned(answer: Advice) -> dict[str, list[str]]:
    """Return what is to be known before anybody pays, by code."""
    found: dict[str, list[str]] = {}
    for reason in answer.warnings:
        found.setdefault(reason.code, []).append(reason.text)
    return found
