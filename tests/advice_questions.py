"""What the adviser is asked in tests."""

from datetime import UTC, datetime
from typing import Any

from ultrascale.errors import QuestionError
from ultrascale.plan.advice import Advice, Given, Question, advise, read_question

AT = datetime(2026, 11, 21, 12, tzinfo=UTC)
HELD = "id=cr-0feedfeedfeedfee1,type=p5.48xlarge,zone=us-west-2b,count=16"
HELD_BLOCK = f"{HELD},starts=2026-12-01T11:30:00Z,ends=2026-12-08T11:30:00Z"
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
