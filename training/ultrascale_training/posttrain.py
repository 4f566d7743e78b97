"""Post-training by TRL's own scripts, under torchrun, with checkpoints that survive.

``python -m ultrascale_training.posttrain sft …`` takes the options of TRL's command of that name.
The run resumes by itself from its newest sound checkpoint, refuses other data, models or options,
and reports its progress as all of our programs do. TRL is not replaced in any part.

Sources: https://github.com/huggingface/trl/tree/v1.16.0/trl/scripts and
https://github.com/huggingface/transformers/blob/v5.24.0/src/transformers/trainer_callback.py
"""

# ruff: noqa: ANN401 - the objects of TRL and transformers have no types

import importlib
import json
import logging
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from datetime import timedelta
from pathlib import Path
from typing import Any, Literal, NoReturn

import torch.distributed as dist
import trl
from torch.distributed.elastic.multiprocessing.errors import record
from transformers import TrainerCallback, trainer

from ultrascale_training import fingerprint, process_groups, vote
from ultrascale_training.agreement import agree, check_shared
from ultrascale_training.checkpoints import newest_sound
from ultrascale_training.checkpoints.sealed import SealedStore
from ultrascale_training.errors import TrainingError
from ultrascale_training.failures import FailureLog
from ultrascale_training.hangs import keep_state, report_hang
from ultrascale_training.launch import note_stop
from ultrascale_training.lease import Lease
from ultrascale_training.objects import LocalObjects, is_bucket
from ultrascale_training.progress import Progress
from ultrascale_training.restarts import RestartLedger
from ultrascale_training.stop import STOPPED_EARLY, StopRequest

METHODS = ("sft", "dpo", "grpo", "distillation")
_log = logging.getLogger("ultrascale_training")
_KEPT, _LEAST_KEPT, _HANG_SHARE = 3, 2, 0.5
_ACCEPT = "--accept-new-data"
_FIGURES = ("reward", "rewards/accuracies", "rewards/margins", "kl", "mean_token_accuracy")
_MODEL_FILES = ("config.json", "adapter_config.json")
_PLACES = ("dataset_name", "model_name_or_path", "teacher_model_name_or_path")
# Beginnings of options that change neither the order of the data nor any weight.
_FREE = (
    *("output_dir", "resume_from_checkpoint", "report_to", "run_name", "project", "ddp_timeout"),
    *("disable_tqdm", "logging_", "log_", "save_", "eval_", "push_", "hub_", "trackio_"),
    *("vllm_server_", "vllm_group_", "vllm_gpu_", "vllm_tensor_"),
)


class Run(TrainerCallback):
    """A run on this worker: its callback reports, saves and stops for the trainer."""

    def __init__(self, arguments: Sequence[Any], failures: FailureLog, *, accepts: bool) -> None:
        options = self._options = arguments[1]
        self._timeout = timedelta(seconds=options.ddp_timeout)
        self._group = process_groups.host_group(self._timeout)
        self._failures, self._stop, self._stopped = failures, StopRequest(), False
        self._progress: Progress | None = None
        self._tokens, self._noted = 0.0, time.monotonic()
        self._waited = 0.0  # Seconds of waiting for answers since the last report
        place = Path(options.output_dir)
        self._store = SealedStore(place, keep=options.save_total_limit or _KEPT)
        # Ours goes when a newer one is sealed; the trainer's would go before.
        options.save_total_limit = None
        self._ledger, self._lease = RestartLedger(LocalObjects(place)), Lease(LocalObjects(place))
        agree(self._group, self._lease.take)
        agree(self._group, self._store.prepare)
        check_shared(self._store, self._group, name=f"seen-{os.environ.get('MASTER_PORT')}")
        self._identity = agree(self._group, lambda: identity_of(arguments))
        last = newest_sound(self._store, self._group)
        self._step = 0 if last is None else last.step
        if last is not None:
            parts = fingerprint.differences(last.about["fingerprint"], self._identity)
            if parts and not accepts:
                raise TrainingError(
                    f"{', '.join(parts)}: differs from that of {last.location}; keep it, name "
                    f"another --output_dir, or accept the change with {_ACCEPT}"
                )
            options.resume_from_checkpoint = last.location
            _log.info("resumes from %s", last.location)
        aside = {bad.name: bad.step for bad in self._store.aside()}
        nodes = int(os.environ.get("GROUP_WORLD_SIZE", "1"))
        agree(self._group, lambda: self._ledger.begin(nodes=nodes, step=self._step, aside=aside))

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Begin the reports, and join the vote."""
        if state.is_world_process_zero:
            place, world = self._store.path, {"world": dist.get_world_size()}
            steps = state.max_steps
            self._progress = Progress(place, step=self._step, steps=steps, common=world)
            self._progress.event("start", step=self._step)
        _log.info("starts at step %d of %d", self._step, state.max_steps)
        self._vote = vote.join(
            self._timeout,
            hang_seconds=self._timeout.total_seconds() * _HANG_SHARE,
            on_hang=lambda hang: report_hang(hang, self._failures, self._progress),
            on_asked=lambda suspected: keep_state(self._failures, suspected=suspected),
            on_lost=self._failures.lost,
        )

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Stop all workers at the same step once one was told to stop and steps are left."""
        self._step = state.global_step
        if self._vote.cast(self._stop.requested) and self._step < state.max_steps:
            self._stopped = control.should_save = control.should_training_stop = True

    def on_log(self, args: Any, state: Any, control: Any, logs: Any, **_: Any) -> None:
        """Report the steps since the last report."""
        if self._progress is None or "loss" not in logs:
            return
        seen, now = float(logs.get("num_tokens", state.num_input_tokens_seen)), time.monotonic()
        more = {name: float(logs[name]) for name in _FIGURES if name in logs}
        if self._waited:
            more["rollout_share"] = self._waited / (now - self._noted)
        self._progress.step(
            state.global_step,
            loss=logs["loss"],
            learning_rate=logs["learning_rate"],
            tokens=int(seen - self._tokens),
            **more,
        )
        self._tokens, self._noted, self._waited = seen, now, 0.0

    def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Publish the checkpoint that the trainer has written."""
        with self._vote.resting():
            self._store.seal(state.global_step, {"fingerprint": self._identity}, self._group)
        if self._progress is not None:
            self._progress.event("checkpoint", step=state.global_step)
            self._ledger.saved(state.global_step)

    def on_train_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Leave the vote; where steps are left end here, before TRL writes the model as done."""
        self._vote.close()
        if self._stopped:
            self.leave("stopped")
            note_stop()
            dist.barrier(self._group)
            sys.exit(STOPPED_EARLY)

    def timed(self, generate: Callable[..., Any]) -> Callable[..., Any]:
        """Return the generation of answers, whose time counts as the step's wait for them."""

        def answers(*given: Any) -> Any:
            start = time.monotonic()
            made = generate(*given)
            self._waited += time.monotonic() - start
            return made

        return answers

    def leave(self, event: Literal["stopped", "done"]) -> None:
        """Note the end of the run."""
        if self._progress is not None:
            self._progress.event(event, step=self._step)
            self._progress.close()
            self._ledger.end(event)
            self._lease.release()
            _log.info("%s and saved at step %d", event, self._step)


def identity_of(arguments: Sequence[Any]) -> Mapping[str, str]:
    """Return the fingerprints of data, models, number of workers and each other option."""
    named = {field.name: getattr(part, field.name) for part in arguments for field in fields(part)}
    found = {"number of workers": fingerprint.of_value(dist.get_world_size())}
    for name, value in named.items():
        if name in _PLACES and value:
            found[f"--{name}"] = _of_place(value)
        elif not name.startswith(_FREE):
            text = json.dumps(value, sort_keys=True, default=lambda other: type(other).__name__)
            found[f"--{name}"] = fingerprint.of_value(text)
    return found


def _of_place(place: str) -> str:
    path = Path(place)
    if not path.exists():
        return fingerprint.of_value(place)
    files = path.rglob("*") if path.is_dir() else [path]
    return fingerprint.of_files(
        file for file in files if file.is_file() and "checkpoint-" not in str(file.parent)
    )


def parse(method: str, words: Sequence[str]) -> Sequence[Any]:
    """Return TRL's objects of options, or raise `TrainingError` for options that it refuses."""

    def refuse(message: str) -> NoReturn:
        raise TrainingError(f"{message}; `trl {method} --help` lists the options")

    if method not in METHODS:
        refuse(f"{method!r}: not one of {', '.join(METHODS)}")
    parser = importlib.import_module(f"trl.scripts.{method}").make_parser()
    parser.error, parser.allow_abbrev = refuse, False
    if output := os.environ.get("ULTRASCALE_OUTPUT"):
        words = [f"--output_dir={output}", *words]
    if hosts := os.environ.get("ROLLOUT_HOSTS"):
        words = [f"--vllm_server_host={hosts.split(',')[0]}", *words]
    try:
        parsed = parser.parse_args_and_config(words)
    except ValueError as error:
        refuse(str(error))
    options, place = parsed[1], str(parsed[1].output_dir)
    if is_bucket(place) or place in (getattr(parsed[2], _PLACES[1]), parsed[0].dataset_name):
        refuse(f"--output_dir: a folder of its own that all nodes mount, got {place}")
    for option in _PLACES[1:]:
        model = str(getattr(parsed[2], option, None) or getattr(options, option, ""))
        if model.startswith("/") and not any(Path(model, name).exists() for name in _MODEL_FILES):
            refuse(f"--{option}: {model} is no folder of a model: it has no config.json")
    if (options.save_total_limit or _KEPT) < _LEAST_KEPT:
        refuse(f"--save_total_limit: at least {_LEAST_KEPT}, one to fall back to")
    return parsed


@record
def main(failures: FailureLog | None = None) -> int:
    """Run TRL's script on this worker, and return the exit status."""
    failures = failures or FailureLog()
    method, *words = sys.argv[1:] or [""]
    process_groups.connect_on_demand()
    arguments = parse(method, [word for word in words if word != _ACCEPT])
    failures.output = arguments[1].output_dir
    failures.tell_earlier()
    if not dist.is_initialized():
        dist.init_process_group("gloo")
    run = Run(arguments, failures, accepts=_ACCEPT in words)
    trainer.DEFAULT_CALLBACKS.append(run)
    if method == "grpo":
        trl.GRPOTrainer._generate = run.timed(trl.GRPOTrainer._generate)
    importlib.import_module(f"trl.scripts.{method}").main(*arguments)
    run.leave("done")
    return 0


if __name__ == "__main__":
    rank = os.environ.get("RANK", "0")
    level = logging.INFO if rank == "0" else logging.WARNING
    logging.basicConfig(format=f"%(asctime)s worker {rank}: %(message)s", level=level)
    log = FailureLog()
    sys.excepthook = log.leave
    sys.exit(main(log))
