"""Evaluation by lm-evaluation-harness, with results beside the model and as a line of progress.

``python -m ultrascale_training.evaluate --model=FOLDER --tasks=NAME`` takes the other options of
``lm_eval run``. Nothing is asked of a hub: tasks and their data come from ``--include_path``.

Source: https://github.com/EleutherAI/lm-evaluation-harness/tree/v0.4.13
"""

import argparse
import json
import logging
import os
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ultrascale_training.errors import TrainingError
from ultrascale_training.failures import FailureLog

_log = logging.getLogger("ultrascale_training")
RESULTS = "evaluation.json"
"""File in the folder of a model with the results of its last evaluation."""
_OFFLINE = ("HF_HUB_OFFLINE", "HF_DATASETS_OFFLINE", "HF_EVALUATE_OFFLINE")


def main(words: Sequence[str] | None = None) -> int:
    """Run lm-evaluation-harness, and return the exit status."""
    parser = argparse.ArgumentParser(prog="evaluate", allow_abbrev=False)
    output = os.environ.get("ULTRASCALE_OUTPUT", ".")
    parser.add_argument("--model", required=True, help="folder of a model, or URL of a service")
    parser.add_argument("--engine", default="vllm", help="vllm or hf, for a folder")
    parser.add_argument("--served-model", default="", help="name of the model at a service")
    parser.add_argument("--output_path", default=f"{output}/evaluation", help="folder of results")
    values, more = parser.parse_known_args(words)
    os.environ |= dict.fromkeys(_OFFLINE, "1")
    # Imported late: the import takes ten seconds, and reads the variables.
    from lm_eval.__main__ import cli_evaluate

    place = f"--output_path={values.output_path}"
    start = time.time()
    sys.argv = ["lm_eval", "run", *engine_of(values), place, *more]
    cli_evaluate()
    written = sorted(Path(values.output_path).rglob("results_*.json"), key=_changed)
    if not written or _changed(written[-1]) < start - 1:
        raise TrainingError(f"--tasks: no results were written below {values.output_path}")
    results = figures(json.loads(written[-1].read_text()))
    print(" ".join(["progress step=1/1", *(f"{n}={v:.4g}" for n, v in results.items())]))
    if Path(values.model).is_dir():
        try:
            text = json.dumps({"time": round(start), "results": results})
            Path(values.model, RESULTS).write_text(text)
        except OSError as error:
            _log.warning("%s cannot be written beside the model: %s", RESULTS, error)
    return 0


def engine_of(values: argparse.Namespace) -> Sequence[str]:
    """Return the options of the harness that name the model.

    Raises:
        TrainingError: It is no model, or adapters alone.
    """
    if values.model.startswith(("http://", "https://")):
        address = f"{values.model.rstrip('/')}/v1/chat/completions"
        arguments = f"base_url={address},model={values.served_model}"
        return ["--model=local-chat-completions", f"--model_args={arguments}"]
    folder = Path(values.model)
    if not (folder / "config.json").is_file():
        adapters = (folder / "adapter_config.json").is_file()
        what = "adapters alone; merge them into their base model" if adapters else "no model"
        raise TrainingError(f"--model: {folder} has no config.json: {what}")
    arguments = f"pretrained={folder}"
    if values.engine == "vllm":
        import torch

        arguments += f",tensor_parallel_size={max(1, torch.cuda.device_count())}"
    return [f"--model={values.engine}", f"--model_args={arguments}"]


def figures(document: Mapping[str, Any]) -> Mapping[str, float]:
    """Return the figures of the harness's results, such as ``gsm8k.exact_match``."""
    return {
        f"{task}.{metric.partition(',')[0]}": float(value)
        for task, metrics in document["results"].items()
        for metric, value in metrics.items()
        if isinstance(value, float) and "_stderr" not in metric
    }


def _changed(path: Path) -> float:
    return path.stat().st_mtime


if __name__ == "__main__":
    logging.basicConfig(format="%(asctime)s %(message)s", level=logging.INFO)
    sys.excepthook = FailureLog().leave
    sys.exit(main())
