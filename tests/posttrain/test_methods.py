"""Each method on a toy, in two processes: what it is for is reached, not only its end."""

import re
from pathlib import Path
from statistics import fmean

import toys
import worlds

COMMON = ("--logging_steps=20", "--save_steps=1000", "--seed=3")


def test_sft_reaches_answers_that_need_the_prompt(model: Path, tuned: Path) -> None:
    assert toys.answers(model) < 0.3
    assert toys.answers(tuned) > 0.9


def test_grpo_raises_its_reward(model: Path, tmp_path: Path) -> None:
    data = toys.write(tmp_path / "data", toys.prompts(500))
    words = [
        *(f"--model_name_or_path={model}", f"--dataset_name={data}", "--max_steps=120"),
        *("--reward_funcs=toys.reward", "--learning_rate=5e-4", "--num_generations=8"),
        *("--per_device_train_batch_size=8", "--max_completion_length=5", "--logging_steps=1"),
    ]
    running = worlds.run(2, "grpo", words, tmp_path / "grpo")
    rewards = worlds.figures(tmp_path / "grpo", "reward")
    first, last = fmean(list(rewards.values())[:4]), fmean(list(rewards.values())[-10:])
    print(f"reward: {first:.2f}, then {last:.2f}")
    assert first < 0.4
    assert last > 0.9
    assert re.search(r"progress step=120/120 .*reward=.* rollout_share=0\.\d\d", running.text())


def test_dpo_prefers_what_was_chosen_on_pairs_that_were_held_out(
    tuned: Path, tmp_path: Path
) -> None:
    data = toys.write(tmp_path / "data", toys.pairs(2000))
    toys.write(data, toys.pairs(100, seed=9), split="test")
    words = [
        *(f"--model_name_or_path={tuned}", f"--dataset_name={data}", "--max_steps=150"),
        *("--learning_rate=1e-3", "--per_device_train_batch_size=8", "--eval_strategy=steps"),
        *("--eval_steps=150", "--eval_on_start=True", *COMMON),
    ]
    running = worlds.run(2, "dpo", words, tmp_path / "dpo")
    first, last = map(float, re.findall(r"'eval_rewards/accuracies': '([\d.]+)'", running.text()))
    assert first < 0.6
    assert last > 0.85


def test_distillation_brings_a_student_nearer_to_its_teacher(tuned: Path, tmp_path: Path) -> None:
    student = toys.model(tmp_path / "student", hidden=48, seed=5)
    data = toys.write(tmp_path / "data", toys.prompts(500))
    before = toys.distance(student, tuned)
    words = [
        *(f"--model_name_or_path={student}", f"--teacher_model_name_or_path={tuned}"),
        *(f"--dataset_name={data}", "--max_steps=200", "--learning_rate=3e-3"),
        *("--per_device_train_batch_size=8", "--max_completion_length=3", *COMMON),
    ]
    worlds.run(2, "distillation", words, tmp_path / "distilled")
    after = toys.distance(tmp_path / "distilled", tuned)
    print(f"divergence from the teacher: {before:.2f}, then {after:.2f}")
    assert after < before / 2
