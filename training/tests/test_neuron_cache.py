"""No node of a Trainium job starts to compile while all others wait and are paid for."""

import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.support.neuron_compiler import (
    GRAPHS,
    NOTHING_LEFT,
    VERSION,
    NeuronImage,
    report,
    summary,
)

SCRIPT = ("-m", "ultrascale_bert.pretrain")
ONE_NODE = ("torchrun", "--standalone", "--nproc-per-node=32", *SCRIPT, "--batch-size", "16")


def two_nodes(*arguments: str, run: str = "bert-0") -> list[str]:
    options = ("--nnodes=2", "--nproc-per-node=32", f"--rdzv-id={run}")
    return ["torchrun", *options, *SCRIPT, "--batch-size", "16", *arguments]


@pytest.fixture
def image(tmp_path: Path) -> NeuronImage:
    return NeuronImage(tmp_path)


@pytest.fixture
def compiled(image: NeuronImage) -> NeuronImage:
    """An image whose cache holds the graphs of `ONE_NODE`."""
    image.compiler_prints(summary(6, 6, 0), graphs=6)
    done = image.run("compile", [*ONE_NODE, "--steps-this-run=10"])
    assert done.returncode == 0, done.stderr
    return image


class TestCompile:
    """Success is what the compiler's summary says, and nothing else."""

    def test_graphs_go_into_the_one_cache_of_model_compiler_and_cores(
        self, compiled: NeuronImage
    ) -> None:
        cache = compiled.root / f"bert-large-{VERSION}-64"

        assert compiled.seen()["cache"] == str(cache)
        assert compiled.seen()["argv"] == [*ONE_NODE, "--steps-this-run=10"]
        (marker,) = compiled.markers()
        assert (marker["total"], marker["nodes"]) == (6, 1)
        assert marker["versions"]["neuronx-cc"] == VERSION
        assert marker["date"].startswith("20")

    def test_what_the_compiler_prints_is_seen_at_once(self, image: NeuronImage) -> None:
        """It prints dots for minutes and ends the line when a graph is done."""
        image.compiler_prints(summary(6, 6, 0), graphs=6, runs=True)
        with subprocess.Popen(
            image.arguments("compile", [*ONE_NODE, "--wait"]),
            env=image.environment(),
            stdout=subprocess.PIPE,
        ) as process:
            assert process.stdout is not None
            start = time.monotonic()
            seen = b""
            while not seen.endswith(b"...."):
                byte = process.stdout.read(1)
                assert byte, seen
                seen += byte
            # The line goes on when torchrun has waited for half a minute.
            assert time.monotonic() - start < 15
            wait_for(image.bin / "torchrun.json")
            process.terminate()
            rest = process.stdout.read().decode()

        assert "stopped by signal 15 before the graphs were compiled" in rest

    @pytest.mark.parametrize(
        ("prints", "status", "says"),
        [
            (report(**dict.fromkeys(GRAPHS, False)) + summary(6, 4, 2), 2, ", ".join(GRAPHS)),
            (NOTHING_LEFT, 0, "the script gave no graph to compile"),
        ],
    )
    def test_a_failure_leaves_no_marker_and_says_what_to_do(
        self, image: NeuronImage, prints: str, status: int, says: str
    ) -> None:
        image.compiler_prints(prints, status=status)

        done = image.run("compile", ONE_NODE)

        assert done.returncode == 1
        assert says in done.stderr
        assert "add --retry_failed_compilation to NEURON_CC_FLAGS" in done.stderr
        assert image.markers() == []

    def test_a_second_run_finds_nothing_left_to_compile(self, compiled: NeuronImage) -> None:
        compiled.compiler_prints(NOTHING_LEFT)

        done = compiled.run("compile", ONE_NODE)

        assert done.returncode == 0
        assert compiled.run("run", ONE_NODE).returncode == 0

    def test_a_failed_run_takes_back_what_an_earlier_one_said(self, compiled: NeuronImage) -> None:
        compiled.compiler_prints(summary(6, 5, 1), status=1, graphs=6)

        compiled.run("compile", ONE_NODE)

        assert compiled.markers() == []
        assert compiled.run("run", ONE_NODE).returncode == 2

    def test_a_stopped_pod_stops_torchrun_and_leaves_no_marker(self, image: NeuronImage) -> None:
        image.compiler_prints(summary(6, 6, 0), graphs=6, runs=True)
        with subprocess.Popen(
            image.arguments("compile", [*ONE_NODE, "--wait"]),
            env=image.environment(),
            stdout=subprocess.DEVNULL,
        ) as process:
            wait_for(image.bin / "torchrun.json")

            process.send_signal(signal.SIGTERM)

            assert process.wait(timeout=10) == 128 + signal.SIGTERM
        assert (image.bin / "torchrun-stopped").exists()
        assert image.markers() == []


class TestNodes:
    """Several nodes of a job share the work, and each of them knows its own part only."""

    def test_a_job_is_warm_when_all_of_its_nodes_are_done(self, image: NeuronImage) -> None:
        image.compiler_prints(summary(6, 6, 0), graphs=6)
        image.run("compile", two_nodes("--steps-this-run=10"), "--node=bert-0")
        alone = image.run("run", two_nodes())
        # This node met only graphs that the other one had in hand.
        image.compiler_prints(summary(0, 0, 0))
        image.run("compile", two_nodes("--steps-this-run=10"), "--node=bert-1")

        both = image.run("run", two_nodes(run="bert-7"))

        assert alone.returncode == 2
        assert "of 2 nodes that compiled only 1 succeeded: bert-0" in alone.stderr
        assert both.returncode == 0
        assert image.trained()

    def test_a_node_that_failed_keeps_the_job_cold(self, image: NeuronImage) -> None:
        image.compiler_prints(summary(3, 3, 0), graphs=3)
        image.run("compile", two_nodes(), "--node=bert-0")
        image.compiler_prints(summary(3, 2, 1), status=1, graphs=2, failed=1)
        image.run("compile", two_nodes(), "--node=bert-1")

        assert image.run("run", two_nodes()).returncode == 2
        assert not image.trained()

    def test_nodes_of_different_tries_are_not_added_up(self, image: NeuronImage) -> None:
        image.compiler_prints(summary(3, 3, 0), graphs=3)
        image.run("compile", two_nodes(run="first"), "--node=a-0")
        image.run("compile", two_nodes(run="second"), "--node=b-1")

        assert image.run("run", two_nodes()).returncode == 2

    def test_nodes_that_cannot_be_told_to_belong_together_are_refused(
        self, image: NeuronImage
    ) -> None:
        done = image.run("compile", ["torchrun", "--nnodes", "2", "train.py"])

        assert done.returncode == 2
        assert "several nodes need --rdzv-id" in done.stderr


class TestRun:
    """A job starts with its graphs, or says what to do."""

    def test_a_warm_job_becomes_torchrun(self, compiled: NeuronImage) -> None:
        command = [*ONE_NODE, "--max-steps", "9", "--output-dir=/data/o"]
        with subprocess.Popen(
            compiled.arguments("run", command), env=compiled.environment()
        ) as process:
            assert process.wait(timeout=10) == 0

        seen = compiled.seen("torchrun")
        assert seen["pid"] == process.pid
        assert seen["argv"] == command[1:]
        assert seen["cache"] == compiled.seen()["cache"]

    @pytest.mark.parametrize("options", [(), ("--allow-cold",)])
    def test_a_cold_job_starts_only_when_told_to(
        self, image: NeuronImage, options: tuple[str, ...]
    ) -> None:
        done = image.run("run", ONE_NODE, *options)

        assert image.trained() == bool(options)
        assert done.returncode == (0 if options else 2)
        if not options:
            assert "holds no compiled graph; submit the job with --precompile first" in done.stderr
            assert "compile_cache.allow_cold" in done.stderr
            assert done.stderr.count("\n") == 1

    def test_the_run_is_stopped_by_the_pods_signal(self, image: NeuronImage) -> None:
        arguments = image.arguments("run", [*ONE_NODE, "--wait"], "--allow-cold")
        with subprocess.Popen(
            arguments, env=image.environment(), stdout=subprocess.DEVNULL
        ) as process:
            wait_for(image.bin / "torchrun.json")

            process.terminate()

            assert process.wait(timeout=10) == 0
        assert (image.bin / "torchrun-stopped").exists()

    def test_other_graphs_are_not_taken_for_these(self, compiled: NeuronImage) -> None:
        done = compiled.run("run", [*ONE_NODE[:-1], "32"])

        assert done.returncode == 2
        assert "compiled with --batch_size 16, now --batch_size 32" in done.stderr
        assert not compiled.trained()

    def test_an_emptied_cache_is_cold(self, compiled: NeuronImage) -> None:
        for neff in compiled.root.rglob("model.neff"):
            neff.unlink()

        assert compiled.run("run", ONE_NODE).returncode == 2

    def test_another_compiler_has_another_cache(
        self, compiled: NeuronImage, tmp_path: Path
    ) -> None:
        newer = NeuronImage(tmp_path / "newer", version="2.25.0")
        newer.root = compiled.root

        assert newer.run("run", ONE_NODE).returncode == 2


@pytest.mark.parametrize(
    ("flags", "left"),
    [
        ("--cache_dir=/data/one", ""),
        ("--model-type=transformer --cache_dir /data/one -O1", "--model-type=transformer -O1"),
    ],
)
def test_a_flag_that_would_win_over_the_shared_cache_is_taken_out(
    image: NeuronImage, flags: str, left: str
) -> None:
    image.compiler_prints(summary(6, 6, 0), graphs=6)

    compiling = image.run("compile", ONE_NODE, NEURON_CC_FLAGS=flags)
    training = image.run("run", ONE_NODE, NEURON_CC_FLAGS=flags)

    for done, by in ((compiling, "seen"), (training, "torchrun")):
        assert done.returncode == 0, done.stderr
        assert "--cache_dir=/data/one taken out of NEURON_CC_FLAGS" in done.stdout
        assert image.seen(by)["flags"] == left


@pytest.mark.parametrize("what", ["compile", "run"])
def test_an_image_without_the_compiler_is_named(tmp_path: Path, what: str) -> None:
    image = NeuronImage(tmp_path, version=None)

    done = image.run(what, ONE_NODE, "--allow-cold")

    assert done.returncode == 2
    assert "neuronx-cc is not installed" in done.stderr
    assert "use a Neuron image" in done.stderr


@pytest.mark.parametrize(
    ("command", "says"),
    [
        (["python3", "train.py"], "must be torchrun and its arguments"),
        (["torchrun", "--nnodes=2"], "names no script"),
        (["torchrun", "--nnodes=two", "train.py"], "--nnodes: must be a number or a range"),
    ],
)
def test_a_command_that_is_no_torchrun_is_refused(
    image: NeuronImage, command: list[str], says: str
) -> None:
    done = image.run("compile", command)

    assert done.returncode == 2
    assert says in done.stderr


def wait_for(path: Path) -> None:
    deadline = time.monotonic() + 10
    while not path.exists():
        assert time.monotonic() < deadline, f"{path} did not come to be"
        time.sleep(0.02)
