"""Exit status of a pod, by which the controller of a job restarts it or ends it."""

# Checked where torch is installed and where it is not.
# pyright: reportMissingImports=false

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.support.folders import ROOT
from tests.support.no_torch import NO_TORCH

_LAUNCH = (sys.executable, "-m", "ultrascale_training.launch")
_ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT / "training")}
_WORKERS_WITH_A_MISTAKE = """
import os, sys, time
from ultrascale_training.errors import TrainingError
from ultrascale_training.failures import FailureLog
sys.excepthook = FailureLog().leave
if os.environ["RANK"] == "1":
    raise TrainingError("the disk is full")
time.sleep(60)
"""


def start(command: Sequence[str]) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*_LAUNCH, *command],
        env=_ENVIRONMENT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def status_of(command: Sequence[str]) -> int:
    launched = start(command)
    launched.communicate()
    return launched.returncode


@pytest.mark.training
def test_mistake_that_one_worker_finds_ends_the_job_instead_of_restarting_it(
    tmp_path: Path,
) -> None:
    pytest.importorskip("torch", reason=NO_TORCH)
    program = tmp_path / "train.py"
    program.write_text(_WORKERS_WITH_A_MISTAKE)
    torchrun = (sys.executable, "-m", "torch.distributed.run")

    assert status_of([*torchrun, "--standalone", "--nproc-per-node=2", str(program)]) == 2


@pytest.mark.parametrize(
    ("error", "ends_the_job"),
    [
        ("errors.TrainingError('--lr: must be above 0')", True),
        # S3 that does not answer, a mount or a GPU that is gone: another start may find it mended.
        ("errors.OutsideError('3 workers do not see it')", False),
        # One worker alone, while a part of the job may go on; the next start tells all of them.
        ("OSError(28, 'No space left on device')", False),
        ("ValueError('a bug')", False),
    ],
)
def test_only_a_mistake_of_the_run_itself_ends_the_job(error: str, ends_the_job: bool) -> None:
    program = (
        "import sys; from ultrascale_training import errors, failures\n"
        f"sys.excepthook = failures.FailureLog().leave\nraise {error}\n"
    )
    worker = (sys.executable, "-c", program)

    # torchrun's status is 1 whatever that of its workers is.
    status = status_of(["sh", "-c", '"$@" || exit 1', "sh", *worker])

    assert status == (2 if ends_the_job else 1)


@pytest.mark.training
def test_kind_of_mistake_that_the_first_worker_finds_reaches_the_others() -> None:
    torch = pytest.importorskip("torch", reason=NO_TORCH)
    from ultrascale_training.agreement import agree
    from ultrascale_training.errors import OutsideError

    def unreachable() -> None:
        raise OutsideError("the bucket does not answer")

    torch.distributed.init_process_group(
        "gloo", store=torch.distributed.HashStore(), rank=0, world_size=1
    )
    try:
        with pytest.raises(OutsideError, match="does not answer"):
            agree(torch.distributed.group.WORLD, unreachable)
    finally:
        torch.distributed.destroy_process_group()


@pytest.mark.parametrize(
    ("script", "status"), [("exit 0", 0), ("exit 1", 1), ("exit 2", 2), ("kill -9 $$", 137)]
)
def test_other_ends_are_those_of_torchrun(script: str, status: int) -> None:
    assert status_of(["sh", "-c", script]) == status


def test_notice_of_kubernetes_reaches_torchrun() -> None:
    script = "trap 'echo saved; exit 75' TERM; echo ready; while :; do sleep 0.01; done"
    launched = start(["sh", "-c", script])
    assert launched.stdout is not None
    assert launched.stdout.readline() == "ready\n"

    launched.send_signal(signal.SIGTERM)

    said, _ = launched.communicate(timeout=60)
    assert (said, launched.returncode) == ("saved\n", 75)


def test_notice_while_torchrun_starts_reaches_it_as_well() -> None:
    """The pod would end alone, and leave workers that nobody tells to save."""
    script = "trap 'exit 75' TERM; echo ready; for i in $(seq 500); do sleep 0.01; done"
    program = f"""if True:
        import os, signal, subprocess, sys
        from ultrascale_training import launch

        popen = subprocess.Popen

        def noticed(*arguments, **options):
            child = popen(*arguments, **options, stdout=subprocess.PIPE)
            child.stdout.readline()
            os.kill(os.getpid(), signal.SIGTERM)
            return child

        subprocess.Popen = noticed
        sys.exit(launch.launch(["sh", "-c", {script!r}], os.environ))
    """

    launched = subprocess.run([sys.executable, "-c", program], env=_ENVIRONMENT, timeout=60)

    assert launched.returncode == 75


def test_a_run_that_was_told_to_stop_and_has_saved_is_told_from_a_failed_one() -> None:
    """torchrun ends with 1 either way."""
    stopped = "from ultrascale_training.launch import note_stop; note_stop(); raise SystemExit(1)"

    assert status_of([sys.executable, "-c", stopped]) == 75
    assert status_of([sys.executable, "-c", "raise SystemExit(1)"]) == 1
    assert status_of([sys.executable, "-c", stopped.replace("SystemExit(1)", "SystemExit(0)")]) == 0
