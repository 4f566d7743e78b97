"""Options of vLLM that a plan reads, and the command that serves a model."""

import pytest

from ultrascale import config
from ultrascale.plan.jobs import vllm


def _service(*args: str, command: tuple[str, ...] = (), port: int = 8000) -> config.ServiceJob:
    return config.ServiceJob(command=command, args=args, port=port)


@pytest.mark.parametrize(
    "words",
    [
        ["--tensor-parallel-size=4"],
        ["--tensor-parallel-size", "4"],
        ["--tensor_parallel_size=4"],
        ["--tensor-parallel=4"],
        ["-tp", "4"],
        ["-tp=4"],
        ["vllm", "serve", "m", "-tp", "4"],
        ["/opt/venv/bin/vllm", "serve", "m", "-tp", "4"],
        ["python3", "-m", "vllm.entrypoints.openai.api_server", "--model=m", "-tp=4"],
        ["-tp", "2", "-tp", "4"],
    ],
)
def test_a_size_is_read_however_it_is_spelt(words: list[str]) -> None:
    assert vllm.read_options(words).tensor_parallel_size == 4


@pytest.mark.parametrize(
    ("words", "model"),
    [
        (["/models/chat", "--port=1"], "/models/chat"),
        (["--model", "/models/chat"], "/models/chat"),
        (["vllm", "serve", "/models/chat"], "/models/chat"),
        (["--enforce-eager"], None),
        ([], None),
    ],
)
def test_the_model_is_the_first_argument_or_an_option(words: list[str], model: str | None) -> None:
    assert vllm.read_options(words).model == model


@pytest.mark.parametrize(
    ("stated", "tokens"),
    [("32768", 32768), ("32K", 32768), ("32k", 32000), ("25.6k", 25600), ("auto", -1), ("-1", -1)],
)
def test_lengths_have_the_units_of_vllm(stated: str, tokens: int | None) -> None:
    assert vllm.read_options([f"--max-model-len={stated}"]).max_model_len == tokens


@pytest.mark.parametrize(
    ("word", "option"),
    [
        ("-tp=four", "--tensor-parallel-size"),
        ("--pipeline-parallel-size=0", "--pipeline-parallel-size"),
        ("--gpu-memory-utilization=90", "--gpu-memory-utilization"),
        ("--max-model-len=2.5K", "--max-model-len"),
        ("--max-model-len=0", "--max-model-len"),
        ("--max-model-len=" + 400 * "9", "--max-model-len"),
        ("--gpu-memory-utilization=most", "--gpu-memory-utilization"),
    ],
)
def test_a_value_that_vllm_refuses_is_named_with_its_option(word: str, option: str) -> None:
    refused = vllm.read_options(["--model=m", word]).refused
    assert refused.startswith(f"argument {option}")
    assert repr(word.partition("=")[2]) in refused


def test_values_that_a_plan_does_not_read_may_be_those_of_another_release() -> None:
    options = vllm.read_options(["m", "--seed=x", "--enable-eplb=2", "-cc.mode", "x", "-tp=2"])
    assert (options.refused, options.unknown, options.tensor_parallel_size) == ("", (), 2)
    assert vllm.read_options(["m", "--cpu-offload-gb=0", "--no-enable-lora"]).uncounted == ()
    assert vllm.read_options(["m", "--port"]).refused == "argument --port: expected one argument"
    # A replica takes the product of all sizes.
    sizes = vllm.read_options(["-tp=8", "-pp=2", "-dp=3"])
    assert (sizes.accelerators, sizes.refused) == (48, "")


@pytest.mark.parametrize(
    ("words", "names"),
    [
        ([], ("m",)),
        (["--served-model-name", "a", "b"], ("a", "b")),
        (["--lora-modules", "sql=/models/sql", "fr=/models/fr"], ("m", "sql", "fr")),
        (["--lora-modules=sql=/models/sql"], ("m", "sql")),
        (["--lora-modules", '{"name": "sql", "path": "/models/sql"}'], ("m", "sql")),
    ],
)
def test_clients_ask_by_the_served_names_or_the_model_and_its_adapters(
    words: list[str], names: tuple[str, ...]
) -> None:
    assert vllm.read_options(["m", *words, "-tp=1"]).names == names


@pytest.mark.parametrize(
    ("job", "words"),
    [
        (_service("--model=m", "-tp=4"), ["vllm", "serve", "m", "-tp=4"]),
        (_service("--host=::", "--model", "m"), ["vllm", "serve", "m", "--host=::"]),
        (_service("vllm", "serve", "m"), ["vllm", "serve", "m"]),
        (_service("m", port=8080), ["vllm", "serve", "m", "--port=8080"]),
        (_service("m", "--port=9000", port=9000), ["vllm", "serve", "m", "--port=9000"]),
        (_service("--model=m", command=("serve.sh",)), ["serve.sh", "--model=m"]),
    ],
)
def test_a_server_is_its_containers_first_process_and_listens_on_the_services_port(
    job: config.ServiceJob, words: list[str]
) -> None:
    assert vllm.serve_command(job) == tuple(words)
