"""Options of vLLM that contradict their service are refused before a pod starts."""

from pathlib import Path
from typing import Any

import pytest

from tests.support.jobs import SERVICE, environment, job_cluster, prepared, refusals, sentences
from tests.support.pools import as_text, pool_document
from ultrascale.jobs.checked_file import check_file

# Four GPUs, two Inferentia2 devices of two NeuronCores each, and eight GPUs.
GPUS = pool_document(name="gpu", instance_types=["g6e.12xlarge"], provisioner="karpenter")
LARGE = pool_document(name="large", instance_types=["p5.48xlarge"], provisioner="karpenter")
NEURON = pool_document(name="neuron", instance_types=["inf2.24xlarge"], provisioner="karpenter")
CLUSTER = job_cluster(GPUS, LARGE, NEURON)


def service(*args: str, pool: str = "gpu", **keys: Any) -> dict[str, Any]:
    stated = {"pool": pool, "server": "vllm", "command": [], "args": ["m", *args], "port": 8000}
    return SERVICE | stated | keys


@pytest.mark.parametrize(
    "job",
    [
        service("-tp=4"),
        service("-tp=2", "--pipeline-parallel-size", "2"),
        service("-tp=2", resources={"gpu": 2}),
        service("-dp=4"),
        service("-tp=8", "-pp=2", pool="large", nodes=2),
        service("-tp=12", pool="neuron"),
        service("-tp=4", port=8080),
        service("--config=/models/vllm.yaml", port=8080),
        service("-dp=4", "--data-parallel-size-local=4", "--api-server-count=2"),
        service("-tp=4", "--no-data-parallel-external-lb", "--nnodes=1"),
        service("-tp=4", '--hf-overrides={"a": 1}'),
        service("-tp=4", "--max-model-len=40K", model="Qwen3-8B"),
        service("-tp=4", "--max-model-len=64K", "--hf-overrides={}", model="Qwen3-8B"),
        service(
            *("-tp=4", "--max-model-len=64K"),
            model="Qwen3-8B",
            env={"VLLM_ALLOW_LONG_MAX_MODEL_LEN": "1"},
        ),
        service(command=["serve.sh"]),
        service(server="other"),
    ],
)
def test_sizes_that_take_all_devices_of_a_replica_are_right(job: dict[str, Any]) -> None:
    assert not refusals(CLUSTER, job)


@pytest.mark.parametrize(
    ("job", "told"),
    [
        (
            service("-tp=3"),
            "tensor 3 x pipeline 1 takes 3 GPUs, where a replica has 4; write "
            "--tensor-parallel-size=4",
        ),
        (
            service("-tp=8", "-dp=2"),
            "tensor 8 x pipeline 1 x data 2 takes 16 GPUs, where a replica has 4; write "
            "--tensor-parallel-size=4",
        ),
        (
            service("-tp=1", pool="large", nodes=2),
            "tensor 1 x pipeline 1 takes 1 GPUs, where a replica has 16; write "
            "--tensor-parallel-size=8 and --pipeline-parallel-size=2",
        ),
        (
            service("-tp=8", pool="neuron"),
            "tensor 8 x pipeline 1 takes 8 logical NeuronCores, where a replica has 12; write "
            "--tensor-parallel-size=12",
        ),
    ],
)
def test_sizes_that_do_not_divide_the_devices_are_refused(job: dict[str, Any], told: str) -> None:
    (refused,) = [each for each in sentences(CLUSTER, job) if "where a replica has" in each]
    assert refused == f"job: args: {told}"


@pytest.mark.parametrize(
    ("job", "told"),
    [
        (
            service(),
            "vLLM takes 1 of the 4 GPUs of a replica, by tensor 1 x pipeline 1: write "
            "--tensor-parallel-size=4, or resources: {gpu: 1}.",
        ),
        (
            service("-tp=2", pool="neuron"),
            "vLLM takes 2 of the 12 logical NeuronCores of a replica, by tensor 2 x pipeline 1: "
            "write --tensor-parallel-size=12, or resources: {neuron: 1}.",
        ),
        (service("-tp=4"), None),
    ],
)
def test_devices_that_would_stand_idle_are_told(job: dict[str, Any], told: str | None) -> None:
    notes = [each for each in prepared(CLUSTER, job).notes if each.startswith("vLLM takes")]
    assert notes == ([] if told is None else [told])


@pytest.mark.parametrize(
    ("job", "told"),
    [
        (
            service("-tp=4", "--port=9000"),
            "port: options_suit_the_service",
        ),
        (
            service(args=[], command=["vllm", "serve", "m", "-tp=4"], port=8080),
            "port: options_suit_the_service",
        ),
        (
            service(port=8080) | {"args": ["vllm", "serve", "m", "-tp=4"]},
            "port: options_suit_the_service",
        ),
        (
            service("--tensor-parallel-size 4"),
            "args: options_suit_the_service",
        ),
        (
            service("-tp=4", "--host=localhost"),
            "args: options_suit_the_service",
        ),
        (
            service("-tp=4", "--max-model-len=4.5K"),
            "args: options_suit_the_service",
        ),
        (
            service("-tp=4", "--max-model-len=41k", model="Qwen3-8B"),
            "args: length_suits_model",
        ),
        (
            service("-tp=4", "--ssl-keyfile=/tls/key"),
            "args: options_suit_the_service",
        ),
        *(
            (service("-tp=4", *words), "args: options_suit_the_service")
            for words in (
                ["--uds=/tmp/x.sock"],
                ["--grpc"],
                ["--ssl-certfile=/tls/cert"],
                ["--host=127.0.0.2"],
                ["--data-parallel-external-lb"],
                ["--data-parallel-hybrid-lb"],
                ["--data_parallel_rank", "0"],
                ["-dpr=0"],
                ["--data-parallel-multi-port-external-lb"],
                ["--data-parallel-size-local=1", "-dp=2"],
                ["--nnodes=2"],
                ["--api-server-count=0"],
            )
        ),
        (
            service() | {"args": ["-tp=4"]},
            "args: options_suit_the_service",
        ),
        (
            service("-tp=4", "--headless"),
            "args: options_suit_the_service",
        ),
        (
            service("-tp=8", "-pp=2", "--distributed-executor-backend=ray", pool="large", nodes=2),
            "args: options_suit_the_service",
        ),
    ],
)
def test_a_server_that_nobody_would_reach_is_refused(job: dict[str, Any], told: str) -> None:
    assert told in refusals(CLUSTER, job)


@pytest.mark.parametrize(
    ("keys", "told"),
    [
        ({}, True),
        ({"service_account": "models"}, False),
        ({"secrets": {"AWS_SECRET_ACCESS_KEY": "s3"}}, False),
    ],
)
def test_a_model_that_vllm_reads_from_s3_itself_needs_permissions(
    keys: dict[str, Any], *, told: bool
) -> None:
    job = service("-tp=4") | {"args": ["s3://models/chat", "-tp=4"]} | keys
    assert told == any("no permissions in AWS" in note for note in prepared(CLUSTER, job).notes)


@pytest.mark.parametrize(("replicas", "value", "told"), [(2, "1", 1), (1, "1", 0), (2, "0", 0)])
def test_adapters_of_one_replica_are_told(replicas: int, value: str, told: int) -> None:
    env = {"VLLM_ALLOW_RUNTIME_LORA_UPDATING": value}
    notes = prepared(CLUSTER, service("-tp=4", replicas=replicas, env=env)).notes
    assert len([note for note in notes if "answer 404" in note]) == told


NXD = "public.ecr.aws/neuron/pytorch-inference-vllm-neuronx:0.16.0-neuronx-py312-sdk2.31.1"
ALLOWED = [{"id": "CVE-2026-27893", "why": "the last for this chip", "until": "2027-05-31"}]
PLUGIN = "public.ecr.aws/neuron/pytorch-inference-vllm-neuronx:0.24.0.1.1.0-neuronx-py313"
CUDA = "public.ecr.aws/deep-learning-containers/vllm:server-cuda-v2.3"
BLOCKS = "--num-gpu-blocks-override"
UNCACHED = "--no-enable-prefix-caching"
CACHED = ("--max-num-seqs=4", UNCACHED, "--num-gpu-blocks-override=4")


@pytest.mark.parametrize(
    ("args", "todo"),
    [
        (["--max-num-seqs=4"], f"add {UNCACHED} --num-gpu-blocks-override=4"),
        (["--max-num-seqs=4", UNCACHED], "add --num-gpu-blocks-override=4"),
        (
            ["--max-num-seqs=4", UNCACHED, "--num-gpu-blocks-override=16"],
            "write --num-gpu-blocks-override=4",
        ),
        (["--num-gpu-blocks-override=4"], f"add {UNCACHED} --max-num-seqs=4"),
        ([], f"add {UNCACHED} --max-num-seqs=N --num-gpu-blocks-override=N"),
        (["--max-num-seqs=4", "--block-size=32"], "add --num-gpu-blocks-override=N"),
    ],
)
def test_a_cache_that_graphs_for_inferentia_do_not_have_is_refused(
    args: list[str], todo: str
) -> None:
    """AWS's plugin stops without a size of blocks, and reads beyond the cache without a number."""
    job = service("-tp=12", *args, pool="neuron", image=NXD, allow_advisories=ALLOWED)

    (told,) = sentences(CLUSTER, job)

    assert "the KV cache for which NxD Inference compiles graphs is not stated" in told
    assert told.endswith(todo)


@pytest.mark.parametrize(
    "job",
    [
        {"args": ["m", "-tp=12", "--max-num-seqs=4", UNCACHED, "--num-gpu-blocks-override=4"]},
        {"args": ["m", "-tp=12", "--max-num-seqs=4", "--block-size=32", f"{BLOCKS}=512"]},
        {"args": ["m", "-tp=12", "--config=/models/vllm.yaml"]},
        {"args": ["m", "-tp=12"], "image": PLUGIN, "allow_advisories": []},
    ],
)
def test_a_cache_that_is_stated_or_not_asked_for_is_right(job: dict[str, Any]) -> None:
    stated = service(pool="neuron", image=NXD, allow_advisories=ALLOWED) | job
    assert not refusals(CLUSTER, stated)


@pytest.mark.parametrize(
    ("image", "pool", "told"),
    [
        (PLUGIN, "large", "vLLM for Neuron, on nodes without NeuronCores"),
        (CUDA, "neuron", "vLLM for NVIDIA GPUs, on nodes with NeuronCores"),
        (
            "111122223333.dkr.ecr.us-east-1.amazonaws.com/docker-hub/vllm/vllm-openai:v0.33.0",
            "neuron",
            "vLLM for NVIDIA GPUs, on nodes with NeuronCores",
        ),
    ],
)
def test_an_image_that_finds_no_device_of_its_own_is_refused(
    image: str, pool: str, told: str
) -> None:
    """A node of $10 an hour starts, loads an image of 10 GB, and its server ends at once."""
    size = {"gpu": 4, "large": 8, "neuron": 12}[pool]
    job = service(f"-tp={size}", *CACHED, pool=pool, image=image)

    (refused,) = sentences(CLUSTER, job)

    assert refused.startswith("job: image: ")
    assert told in refused
    assert "name a pool of" in refused


@pytest.mark.parametrize("image", [CUDA, "registry.example.com/models/vllm-cpu:1"])
def test_an_image_for_gpus_or_of_ones_own_runs_on_gpus(image: str) -> None:
    assert not refusals(CLUSTER, service("-tp=4", image=image))


def told_of_options(*args: str, **keys: Any) -> list[str]:
    notes = prepared(CLUSTER, service("-tp=4", *args, **keys)).notes
    return [note for note in notes if "not an option" in note]


def test_a_misspelt_option_is_told_before_its_nodes_are_paid_for() -> None:
    """The pods would end at once, and be started anew for ever."""
    assert told_of_options("--max-modl-len=4096", "--zzz") == [
        "--max-modl-len is not an option of vLLM 0.32.0: it would not start; did you mean "
        "--max-model-len? `vllm serve --help=all` in the image says what another release has.",
        "--zzz is not an option of vLLM 0.32.0: it would not start; `vllm serve --help=all` in "
        "the image says what another release has.",
    ]
    (short,) = told_of_options("--max-num=4")
    assert short.startswith("--max-num is not an option")
    # Options that vLLM or another program takes are not told.
    assert not told_of_options("--max_num_seqs=4", "--gpu-memory-util", "0.8")
    assert not told_of_options("--compilation-config.mode=3", "--hf-overrides", '{"--x": 1}', "-O3")
    assert not told_of_options("--theirs", command=["serve.sh"])
    assert not told_of_options("--theirs", server="other")


def test_check_names_the_word_that_vllm_does_not_know(tmp_path: Path) -> None:
    command = ["vllm", "serve", "m", "-tp=4", "--max-num-seq=4"]
    template = {key: value for key, value in service(command=command).items() if key != "name"}
    file = tmp_path / "cluster.yaml"
    file.write_text(as_text(CLUSTER | {"jobs": {"chat": template | {"args": ["--sed=1"]}}}))

    told = [(each.key, each.value) for each in check_file(file).warnings]

    assert ("jobs.chat.args[0]", "--sed") in told
    assert ("jobs.chat.command[4]", "--max-num-seq") not in told


def test_graphs_for_neuron_are_compiled_beside_the_model_whose_folder_is_read_only() -> None:
    """By default vLLM Neuron writes them into the folder of the model, and would not start."""
    folder = "NEURON_COMPILED_ARTIFACTS"
    own = {folder: "/models/m/compiled"}

    def stated(**keys: Any) -> tuple[dict[str, Any], bool]:
        job = prepared(CLUSTER, service(**keys))
        told = any("Each start compiles graphs for Neuron" in note for note in job.notes)
        return environment(job), told

    made, told = stated(args=["m", "-tp=12"], pool="neuron")
    theirs, told_theirs = stated(args=["m", "-tp=12"], pool="neuron", env=own)
    assert (made[folder], told) == ("/tmp/neuron-compiled-artifacts", True)
    assert (theirs[folder], told_theirs) == ("/models/m/compiled", False)
    assert folder not in stated(args=["m", "-tp=4"])[0]
    # AWS: those of large models can exceed vLLM Neuron's default of 600 seconds.
    assert made["VLLM_NEURON_COMPILATION_TIMEOUT"] == "3600"
    assert made["NEURON_LIBTORCH_COMPILATION_TIMEOUT"] == "3600"
    assert made["VLLM_EXECUTE_MODEL_TIMEOUT_SECONDS"] == "1200"


@pytest.mark.parametrize(
    ("script", "told"),
    [
        ("pip list && python3 train.py && echo done", True),
        ("cd /work; python3 train.py", True),
        ("pip list\npython3 train.py | tee log", True),
        ("pip list && exec python3 train.py", False),
        ("trap 'kill %1' TERM; python3 train.py & wait", False),
        # A shell becomes a single program by itself.
        ("python3 train.py --steps 10", False),
    ],
)
@pytest.mark.parametrize("shell", [["bash", "-c"], ["/bin/sh", "-ec"]])
def test_a_shell_that_keeps_sigterm_to_itself_is_told(
    shell: list[str], script: str, *, told: bool
) -> None:
    """A drain would kill the program without a last checkpoint."""
    job = service(server="other", command=[*shell, script], args=[])
    notes = [note for note in prepared(CLUSTER, job).notes if "SIGTERM" in note]
    assert bool(notes) == told


def test_a_name_at_which_the_pods_of_a_replica_meet_is_refused_of_either_job() -> None:
    large = LARGE | {"zones": ["us-west-2a"]}
    group = service("-tp=8", "-pp=2", pool="large", nodes=2)
    both = {"chat": group, "chat-0": service("-tp=4"), "chat-x": service("-tp=4")}
    cluster = job_cluster(
        GPUS,
        large,
        jobs={name: {k: v for k, v in job.items() if k != "name"} for name, job in both.items()},
    )

    for name, job in both.items():
        expected = [] if name == "chat-x" else ["name: replicas_can_meet"]
        assert refusals(cluster, job | {"name": name}) == expected
