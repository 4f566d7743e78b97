"""Command lines of services are taken by vLLM's own parser, and read by a plan as vLLM does."""

import re
import shlex
from collections.abc import Sequence
from dataclasses import fields
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("vllm", reason="no vLLM here: `make serving` runs these tests")

from vllm.config.cache import CacheConfig
from vllm.entrypoints.cli.serve import ServeSubcommand
from vllm.utils.argparse_utils import FlexibleArgumentParser

from tests.serving.recorded_options import FILE, recorded_options, vllm_parser
from ultrascale import config
from ultrascale.catalog import vllm as catalog
from ultrascale.plan.jobs import vllm as plan

ROOT = Path(__file__).parents[2]
OURS = {"uncounted", "unreached", "unknown", "refused"}
READ = {field.name for field in fields(plan.VllmOptions)} - OURS
# Attributes whose default, or reading of JSON, is another one in a plan.
OTHERWISE = {"port", "served_model_name", "lora_modules", "api_key", "hf_overrides", "nnodes"}


@pytest.fixture(scope="session")
def parser() -> FlexibleArgumentParser:
    return vllm_parser()


def parse(parser: FlexibleArgumentParser, words: Sequence[str]) -> Any:
    """Return what `vllm` makes of ``words``, which begin with its name."""
    assert words[0] == "vllm"
    parsed = parser.parse_args(list(words[1:]))
    ServeSubcommand().validate(parsed)
    parsed.model = parsed.model_tag or parsed.model
    return parsed


def services() -> list[tuple[str, config.ServiceJob]]:
    """Return the services of vLLM in all cluster files, under a name of their own."""
    found = []
    for file in sorted((ROOT / "clusters").glob("*.yaml")):
        for name, job in (config.load(file).jobs or {}).items():
            if isinstance(job, config.ServiceJob) and config.server_of(job) == "vllm":
                found.append((f"{file.stem}-{name}", job))
    return found


def agree(parser: FlexibleArgumentParser, words: Sequence[str]) -> None:
    """Hold the plan's reading of ``words`` against vLLM's."""
    parsed, read = parse(parser, words), plan.read_options(words)
    for name in READ - OTHERWISE:
        assert getattr(read, name) == getattr(parsed, name), name
    assert (read.port or catalog.PORT) == parsed.port
    assert list(read.served_model_name) == (parsed.served_model_name or [])
    assert not read.refused


SERVICES = services()


@pytest.mark.parametrize("job", [job for _, job in SERVICES], ids=[name for name, _ in SERVICES])
def test_vllm_takes_the_command_of_each_service(
    parser: FlexibleArgumentParser, job: config.ServiceJob
) -> None:
    words = plan.serve_command(job)

    agree(parser, words)
    parsed = parse(parser, words)
    assert parsed.port == job.port
    assert parsed.host not in catalog.LOCAL_HOSTS


@pytest.mark.parametrize(
    "line",
    [
        "m -tp=4 -pp 2 --data_parallel_size=3 -pcp 2",
        "m --tensor-parallel 4 --gpu-memory-util 0.8",
        "m --served-model-name a b --max-model-len 32K --max-num-seqs=7",
        "m --max-model-len=auto --kv-cache-dtype fp8 --dtype bfloat16 -q fp8",
        "--model m --host :: --port 9000 --headless",
        "--tensor-parallel-size=2 --model=m --disable-log-stats --shutdown-timeout 5",
        "m -tp 2 -tp 4 --no-enable-prefix-caching --enforce-eager",
        "m --compilation-config.mode 3 -O1 --additional-config '{\"neuron_config\": {}}'",
        "m --hf-overrides={} --ssl-keyfile /k --nnodes 2 --node-rank 1 --master-addr a",
    ],
)
def test_a_plan_reads_a_command_as_vllm_does(parser: FlexibleArgumentParser, line: str) -> None:
    agree(parser, ["vllm", "serve", *shlex.split(line)])


@pytest.mark.parametrize(
    "option", ["-tp=four", "--max-model-len=2.5K", "--gpu-memory-utilization=x", "--port=x"]
)
def test_vllm_refuses_what_a_plan_refuses(parser: FlexibleArgumentParser, option: str) -> None:
    words = ["vllm", "serve", "m", option]

    assert plan.read_options(words).refused
    with pytest.raises(SystemExit):
        parse(parser, words)


def test_the_recorded_options_are_those_of_vllms_parser() -> None:
    assert version("vllm").partition("+")[0] == catalog.VERSION
    assert recorded_options() == FILE.read_text(encoding="utf-8")


def test_a_plan_reads_options_that_vllm_has() -> None:
    attributes = {option.attribute for option in catalog.options()}

    assert {*READ, *catalog.UNCOUNTED, *catalog.BESIDE_MODEL} <= attributes


@pytest.mark.parametrize(
    ("words", "unknown"),
    [
        ("m --max_model_len 4K --no-enable-prefix-caching --compilation-config.mode 3", []),
        ("m --tensor-paralel-size=4", ["--tensor-paralel-size"]),
        ("m --max-num 7", ["--max-num"]),
        ("m --enable-chunked-prefil", []),
    ],
)
def test_a_plan_knows_the_options_that_vllm_takes(
    parser: FlexibleArgumentParser, words: str, unknown: list[str]
) -> None:
    read = plan.read_options(words.split())

    assert [word.partition("=")[0] for _, word in read.unknown] == unknown
    if unknown:
        with pytest.raises(SystemExit):
            parse(parser, ["vllm", "serve", *words.split()])
    else:
        parse(parser, ["vllm", "serve", *words.split()])


def test_the_defaults_of_the_catalog_are_vllms(parser: FlexibleArgumentParser) -> None:
    parsed = parse(parser, ["vllm", "serve", "m"])

    assert parsed.port == catalog.PORT
    assert parsed.host is None
    assert parsed.gpu_memory_utilization == catalog.GPU_MEMORY_UTILIZATION
    assert CacheConfig.gpu_memory_utilization == catalog.GPU_MEMORY_UTILIZATION


def test_command_lines_of_the_docs_are_vllms(parser: FlexibleArgumentParser) -> None:
    texts = "\n".join(file.read_text() for file in sorted((ROOT / "docs").glob("*.md")))
    for listed in re.findall(r"^\s*args: \[(.*--.*parallel.*)\]", texts, re.MULTILINE):
        agree(parser, ["vllm", "serve", *listed.split(", ")])
