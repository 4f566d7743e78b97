"""Rewards that the examples name: TRL imports the parser of some only when they are called."""

import yaml
from trl import rewards

from tests.support.folders import ROOT


def test_the_reward_of_the_example_tells_a_right_answer_from_another() -> None:
    job = yaml.safe_load((ROOT / "jobs/flow-grpo.yaml").read_text())
    (name,) = (
        word.partition("=")[2]
        for word in job["roles"]["trainer"]["args"]
        if word.startswith("--reward_funcs=")
    )
    answers = [[{"role": "assistant", "content": rf"\boxed{{{n}}}"}] for n in (4, 5)]

    assert getattr(rewards, name)(completions=answers, solution=["4", "4"]) == [1.0, 0.0]
