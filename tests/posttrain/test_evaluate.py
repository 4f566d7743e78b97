"""Evaluation by lm-evaluation-harness: it tells a trained model from one of random weights."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import toys

from ultrascale_training import evaluate
from ultrascale_training.errors import TrainingError

TASK = """
task: repeat
dataset_path: json
dataset_kwargs: {data_files: {test: DATA}}
test_split: test
output_type: multiple_choice
doc_to_text: "<user> {{word}} <end> <assistant>"
doc_to_choice: WORDS
doc_to_target: "{{number}}"
metric_list: [{metric: acc}]
"""


@pytest.fixture
def tasks(tmp_path: Path) -> Path:
    """Return a folder with a task of its own: which word does the user say?"""
    folder = tmp_path / "tasks"
    rows = [{"word": word, "number": number} for number, word in enumerate(toys.WORDS)]
    toys.write(folder, rows, split="test")
    text = TASK.replace("DATA", str(folder / "test.jsonl"))
    (folder / "repeat.yaml").write_text(text.replace("WORDS", json.dumps(toys.WORDS)))
    return folder


def test_evaluation_tells_the_trained_from_the_untrained(
    model: Path, tuned: Path, tasks: Path, tmp_path: Path
) -> None:
    scores: list[float] = []
    for folder in (model, tuned):
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(sys.path),
            "ULTRASCALE_OUTPUT": str(tmp_path / "out"),
        }
        command = [
            *(sys.executable, "-m", "ultrascale_training.evaluate", f"--model={folder}"),
            *("--engine=hf", "--device=cpu", "--tasks=repeat", f"--include_path={tasks}"),
        ]
        done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
        assert done.returncode == 0, done.stderr[-3000:]
        assert "progress step=1/1 repeat.acc=" in done.stdout
        scores.append(json.loads((folder / evaluate.RESULTS).read_text())["results"]["repeat.acc"])
    assert scores[0] < 0.3
    assert scores[1] > 0.9


def test_adapters_alone_are_refused_as_no_model(tmp_path: Path) -> None:
    (tmp_path / "adapter_config.json").write_text("{}")
    with pytest.raises(TrainingError, match="adapters alone"):
        evaluate.main([f"--model={tmp_path}", "--tasks=repeat"])


def test_a_service_is_asked_at_its_address() -> None:
    words = ["--model=http://chat.serving:8000", "--served-model=chat"]
    with pytest.MonkeyPatch.context() as patch:
        sent: list[list[str]] = []
        patch.setattr("lm_eval.__main__.cli_evaluate", lambda: sent.append(sys.argv))
        with pytest.raises(TrainingError, match="no results"):
            evaluate.main([*words, "--output_path=/nowhere"])
    assert sent[0][2:4] == [
        "--model=local-chat-completions",
        "--model_args=base_url=http://chat.serving:8000/v1/chat/completions,model=chat",
    ]
