"""A model that does not fit is refused with the way out; one that fits tells when it answers."""

from collections.abc import Mapping
from typing import Any

import pytest

from tests.support.cases import for_each
from tests.support.jobs import container, job_cluster, prepared, refusals, sentences
from tests.support.pools import LUSTRE as FILE_SYSTEM
from tests.support.pools import as_json, loads_own, pool_document
from ultrascale.errors import ConfigError
from ultrascale.plan import plan_cluster

_GPUS = {"instance_types": ["g6e.12xlarge"], "provisioner": "karpenter", "zones": None}
GPU = pool_document(name="gpu", **_GPUS)
TRN2 = pool_document(name="trn2", instance_types=["trn2.48xlarge"])
_FAST = {"namespace": "serving", "name": "fast", "mount_path": "/fast"}
LUSTRE = FILE_SYSTEM | {"name": "fast", "capacity_gib": 4800, "claim": _FAST}
CLUSTER = job_cluster(
    GPU,
    TRN2,
    storage={
        "lustre": [LUSTRE],
        "buckets": [
            {"name": name, "claim": {"namespace": where, "name": name, "mount_path": f"/{name}"}}
            for name, where in (("models", "serving"), ("data", "training"))
        ],
    },
)
NEURON = "public.ecr.aws/neuron/pytorch-inference-vllm-neuronx"
SERVICE: dict[str, Any] = {
    "name": "chat",
    "kind": "service",
    "pool": "gpu",
    "namespace": "serving",
    "image": "public.ecr.aws/deep-learning-containers/vllm:server-cuda-v2.3",
    "port": 8000,
}
LONG = {"name": "Qwen3-8B", "longest_context": 262_144}
LLAMA_70B = {"name": "Llama-3.1-70B", "weights_gb": 71, "dtype": "fp8"}


def service(*args: str, path: str = "/models/chat", **keys: Any) -> dict[str, Any]:
    return SERVICE | {"args": [f"--model={path}", *args], **keys}


def notes(job: Mapping[str, Any]) -> str:
    return "\n".join(prepared(CLUSTER, dict(job)).notes)


FOUR = "--tensor-parallel-size=4"


@pytest.mark.parametrize(
    ("job", "line"),
    [
        pytest.param(
            service(FOUR, model="Llama-3.1-405B"),
            "model: model_fits_its_nodes",
            id="weights",
        ),
        pytest.param(
            service(model=LONG, args=["--model=/models/q", "--max-model-len=200k"]),
            "model: model_fits_its_nodes",
            id="KV cache",
        ),
        pytest.param(
            service(
                FOUR,
                model={"weights_gb": 20, "layers": 8, "heads": 30, "kv_heads": 2, "head_width": 64},
            ),
            "args: model_fits_its_nodes",
            id="heads",
        ),
        pytest.param(
            service(
                FOUR,
                model={"weights_gb": 20, "layers": 8, "heads": 48, "kv_heads": 6, "head_width": 64},
            ),
            "args: model_fits_its_nodes",
            id="heads of keys and values",
        ),
        pytest.param(
            service(path="/data/chat"),
            "args: model_is_mounted",
            id="a claim of another namespace",
        ),
        pytest.param(
            service(volumes=[{"claim": "data", "mount_path": "/models"}]),
            "volumes[0].claim: claims_exist",
            id="a volume of another namespace",
        ),
    ],
)
def test_a_service_that_cannot_start_is_refused_with_the_way_out(
    job: dict[str, Any], line: str
) -> None:
    assert refusals(CLUSTER, job) == [line]


def test_a_file_whose_model_does_not_fit_is_refused_before_it_is_planned() -> None:
    template = {key: value for key, value in SERVICE.items() if key != "name"}
    jobs = {"chat": template | {"args": ["--model=/models/chat", FOUR], "model": "Llama-3.1-405B"}}

    with pytest.raises(ConfigError) as refusal:
        plan_cluster(loads_own(as_json(CLUSTER | {"jobs": jobs})))

    (line,) = refusal.value.diagnostics
    assert line.keyed.startswith("jobs.chat.model: too large: 189.0 GiB of weights on each of 4")


MAY_START: dict[str, dict[str, Any]] = {
    "compressed weights": service(FOUR, model=LLAMA_70B),
    "compressing": service(FOUR, "--quantization=fp8", model="Llama-3.1-70B"),
    "compressed cache": service(
        *(FOUR, "--kv-cache-dtype=fp8", "--max-model-len=256k"),
        model=LLAMA_70B | {"longest_context": 262_144},
    ),
    "any length": service("--max-model-len=auto", model="Qwen3-8B"),
    "two nodes": service(
        *(FOUR, "--pipeline-parallel-size=2"),
        nodes=2,
        node_selector={"topology.kubernetes.io/zone": "us-west-2a"},
        model="Llama-3.1-70B",
    ),
    "other server": service(FOUR, model="Llama-3.1-405B", server="other"),
    "in the image": service(path="/opt/model", model="Qwen3-8B"),
    "by a shell, whose options nobody reads": service(
        command=["sh", "-c", "vllm serve /m -tp 4"], args=[], model=LLAMA_70B
    ),
}


@for_each(MAY_START.values())
def test_a_service_that_may_start_is_not_refused(job: dict[str, Any]) -> None:
    assert not refusals(CLUSTER, job)


def test_a_user_reads_what_each_device_holds() -> None:
    """A sequence takes 1 GiB: 32 layers, keys and values of 2 of 8 heads, 128 values of 16 bits."""
    told = notes(service(FOUR, "--max-model-len=32768", model="Llama-3.1-8B"))
    assert (
        "Llama-3.1-8B (bfloat16) on 4 devices (NVIDIA L40S): 3.7 GiB of weights, about 2.7 of "
        "activations and 34.7 of KV cache, of 41.1 GiB that vLLM takes of each; 34.7 "
        "sequences of 32,768 tokens"
    ) in told
    tight = notes(service(FOUR, "--max-model-len=90k", model="Llama-3.1-70B"))
    assert "Llama-3.1-70B is tight there: vLLM starts only if activations take less" in tight
    slow = notes(service(FOUR, model=LLAMA_70B | {"gb_per_second": 0.5}))
    assert "in about 2 min (71.0 GB / 0.5 GB/s" in slow
    assert "answers about 13 min after its pod is made, where a node is launched for it" in slow
    # A download has no time that anybody knows.
    loaded = notes(service(path="Qwen/Qwen3-8B", model="Qwen3-8B"))
    assert "The time to load Qwen3-8B is not known: Qwen/Qwen3-8B is downloaded" in loaded


ON_NEURON: dict[str, Any] = {
    "pool": "trn2",
    "image": f"{NEURON}:0.24.0.1.1.0-neuronx-py313-sdk2.32.0-ubuntu24.04",
    "resources": {"neuron": 1},
    "model": LLAMA_70B,
}


def test_on_trainium_the_share_of_the_kv_cache_is_told() -> None:
    job = service(FOUR, "--max-model-len=128k", **ON_NEURON)
    (line,) = sentences(CLUSTER, job)
    assert "of which vLLM Neuron gives 30% to the KV cache" in line
    older = job | {"image": f"{NEURON}:0.16.0-neuronx-py312-sdk2.31.1-ubuntu24.04"}
    assert "of which vLLM Neuron" not in "".join(sentences(CLUSTER, older))
    assert not sentences(CLUSTER, job | {"args": [*job["args"], "--max-model-len=8k"]})


@pytest.mark.parametrize(
    ("job", "place", "seconds"),
    [
        # 100 Gbit/s of the node.
        (service(FOUR, model=LLAMA_70B), "bucket models", 71 / 12.5),
        # 4800 GiB are 4.7 TiB, at 250 MB/s each.
        (
            service(FOUR, path="/fast/llama", model=LLAMA_70B),
            "Lustre fast",
            71 / (4800 / 1024 * 0.25),
        ),
        # Measured.
        (service(FOUR, model=LLAMA_70B | {"gb_per_second": 1.42}), "bucket models", 50),
    ],
)
def test_the_time_to_load_a_model_follows_from_where_it_lies(
    job: dict[str, Any], place: str, seconds: float
) -> None:
    assert f"from {place} in about {seconds:,.0f} s" in notes(job)
    probe = container(prepared(CLUSTER, job))["startupProbe"]
    # Ten times the best time, or twice a measured one, and ten minutes.
    times = 2 if "gb_per_second" in job["model"] else 10
    assert 0 <= probe["failureThreshold"] * probe["periodSeconds"] - 600 - times * seconds < 20


def test_a_download_without_a_known_rate_has_hours() -> None:
    job = service(FOUR, path="meta-llama/Llama-3.1-70B", model=LLAMA_70B)
    probe = container(prepared(CLUSTER, job))["startupProbe"]

    assert probe["failureThreshold"] * probe["periodSeconds"] >= 600 + 710


@pytest.mark.parametrize(
    ("model", "seconds", "refused"),
    [
        # 50 s to read, and two minutes for the engine.
        (LLAMA_70B | {"gb_per_second": 1.42}, 169, True),
        (LLAMA_70B | {"gb_per_second": 1.42}, 170, False),
        (LLAMA_70B | {"gb_per_second": 1.42, "start_seconds": 30}, 80, False),
        (LLAMA_70B, 5, True),
    ],
)
def test_a_start_that_is_cut_off_before_the_model_is_read_is_refused(
    model: dict[str, Any], seconds: int, refused: bool
) -> None:
    job = service(FOUR, model=model, startup_seconds=seconds)

    expected = ["startup_seconds: start_outlasts_loading"] if refused else []
    assert refusals(CLUSTER, job) == expected


def test_a_wrong_option_is_told_and_not_what_vllm_would_do_without_it() -> None:
    job = service("--tensor-parallel-size=four", model=LLAMA_70B)

    (line,) = sentences(CLUSTER, job)

    assert line.startswith(
        "job: args: vLLM would not start: argument --tensor-parallel-size/-tp: 'four' is no whole "
        "number above 0"
    )


@pytest.mark.parametrize(
    ("option", "why"),
    [
        ("--cpu-offload-gb=60", "weights lie in the memory of the node"),
        ("--kv-cache-memory=8g", "the KV cache has a size of its own"),
        ("-dcp=4", "devices share the KV cache of a sequence"),
    ],
)
def test_a_model_that_may_fit_by_an_option_is_not_refused(option: str, why: str) -> None:
    told = notes(service(FOUR, option, model="Llama-3.1-405B"))

    assert "Whether Llama-3.1-405B fits is not known: with -" in told
    assert f"{why}." in told


def test_a_misspelt_degree_is_told_and_not_that_the_model_is_too_large() -> None:
    told = notes(service("--tensor-paralel-size=4", model=LLAMA_70B))

    assert "fits is not known: --tensor-paralel-size is not an option of vLLM 0.32.0." in told
    assert "did you mean --tensor-parallel-size?" in told
    # One that a later release may have says nothing of the memory.
    later = service("--tensor-parallel-size=2", "--brand-new-thing", model="Llama-3.1-405B")
    assert any("too large" in line for line in sentences(CLUSTER, later))


@pytest.mark.parametrize(
    ("option", "what"),
    [
        ('--speculative-config={"model": "/models/draft"}', "a model that speculates"),
        ("--speculative-config.model=/models/draft", "a model that speculates"),
        ("--enable-lora", "adapters"),
    ],
)
def test_memory_beside_the_model_is_said_not_to_be_counted(option: str, what: str) -> None:
    """Else a person takes a fit for certain, and pays for nodes on which nothing starts."""
    assert f"The memory of {what} (-" in notes(service(FOUR, option, model=LLAMA_70B))
    assert "is not counted there" not in notes(service(FOUR, model=LLAMA_70B))


def test_files_of_a_bucket_are_read_ahead() -> None:
    ahead = "--safetensors-load-strategy=prefetch"
    assert f"add {ahead}" in notes(service(FOUR, model=LLAMA_70B))
    assert f"add {ahead}" not in notes(service(FOUR, ahead, model=LLAMA_70B))
    neuron = notes(service(FOUR, "--max-model-len=8k", **ON_NEURON))
    assert "reads its weights from bucket models" in neuron
    assert "--safetensors-load-strategy" not in neuron


class TestGraphsForNeuron:
    """AWS: 15 minutes for 15 GB by NxD Inference, and 15 to 20 for 70B by vLLM Neuron."""

    @staticmethod
    def job(**keys: Any) -> dict[str, Any]:
        image = f"{NEURON}:0.16.0-neuronx-py312-sdk2.31.1-ubuntu24.04"
        allowed = [{"id": "CVE-2026-27893", "why": "the last one", "until": "2027-05-31"}]
        stated = {"pool": "trn2", "image": image, "resources": {"neuron": 1}}
        stated |= {} if "image" in keys else {"allow_advisories": allowed}
        sizes = (FOUR, "--max-model-len=8k", "--max-num-seqs=4")
        cache = ("--no-enable-prefix-caching", "--num-gpu-blocks-override=4")
        return service(*sizes, *cache) | stated | keys

    @staticmethod
    def probed(job: dict[str, Any]) -> int:
        probe = container(prepared(CLUSTER, job))["startupProbe"]
        return probe["failureThreshold"] * probe["periodSeconds"]

    def test_a_replica_answers_once_they_are_compiled(self) -> None:
        model = {"name": "Llama-3.1-8B", "weights_gb": 15, "gb_per_second": 5}

        # A node, an image and the engine take eleven minutes.
        assert "answers about 26 min after" in notes(self.job(model=model))
        compiled = {"NEURON_COMPILED_ARTIFACTS": "/models/chat/compiled"}
        assert "answers about 11 min after" in notes(self.job(model=model, env=compiled))
        plugin = f"{NEURON}:0.24.0.1.1.0-neuronx-py313-sdk2.32.0-ubuntu24.04"
        assert "answers about 31 min after" in notes(self.job(model=model, image=plugin))
        own = model | {"start_seconds": 300}
        assert "answers about 5 min after" in notes(self.job(model=own))

    def test_no_probe_ends_a_server_that_compiles(self) -> None:
        model = {"name": "Llama-3.1-8B", "weights_gb": 15, "gb_per_second": 5}

        assert self.probed(self.job(model=model)) >= 600 + 2 * 15 * 60
        # A model whose size nobody states counts as one of 15 GB.
        assert self.probed(self.job()) >= 600 + 2 * 15 * 60
        assert self.probed(self.job(startup_seconds=700)) == 700
        compiled = {"NEURON_COMPILED_ARTIFACTS": "/models/chat/compiled"}
        assert self.probed(self.job(env=compiled)) == 1800
        assert self.probed(service(FOUR)) == 1800
