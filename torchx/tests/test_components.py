"""Components of `lib/`, and the jobs that they become."""

from typing import Any

import pytest

pytest.importorskip("torchx.specs", reason="the extra `torchx` is not installed")

from torchx.specs import macros

from tests.support import torchx_apps as apps
from tests.support.folders import ROOT
from tests.support.jobs import container, environment, make_job, prepared
from ultrascale.torchx import components as former_components
from ultrascale.torchx import errors as former_errors
from ultrascale_torchx import components
from ultrascale_torchx.components import METADATA
from ultrascale_torchx.errors import AppError

TRAINIUM = "lib/trn_dist_ddp.py"
NVIDIA = "lib/nvidia_dist_ddp.py"
OURS = "ultrascale_bert.pretrain"
ROUNDING = "NEURON_RT_STOCHASTIC_ROUNDING_EN"
TYPED = {"name": "tune", "script": "train.py", "image": apps.IMAGE, "nnodes": "2"}


def described(path: str = TRAINIUM, **parameters: str) -> dict[str, Any]:
    """Return the job description that an app carries, beside what `TYPED` makes of it."""
    given = {"instance_type": "p5.48xlarge"} if path == NVIDIA else {}
    (role,) = apps.component(path, **{**TYPED, **given, **parameters}).roles
    job = role.metadata[METADATA]["job"]
    same: dict[str, Any] = {"nodes": 2, "role": "worker", "script": "train.py", "args": []}
    return {key: value for key, value in job.items() if same.get(key) != value}


PARAMETERS: dict[str, tuple[dict[str, str], dict[str, Any]]] = {
    "nothing more": ({}, {}),
    "processes": ({"nproc_per_node": "32"}, {"processes_per_node": 32}),
    "fewer nodes": ({"min_nnodes": "1"}, {"min_nodes": 1}),
    "restarts": ({"max_retries": "3"}, {"restarts": {"job": 3}}),
    "no restart": ({"max_retries": "0"}, {"restarts": {"job": 0}}),
    "rendezvous": ({"rdzv_backend": "c10d"}, {"rendezvous": "c10d"}),
    "cache": ({"cacheset": "bert-large"}, {"compile_cache": {"model": "bert-large"}}),
    "a module": ({"script": OURS}, {"script": OURS}),
    "bf16 for our program": (
        {"script": OURS, "bf16": "True"},
        {"script": OURS, "args": ["--bf16"]},
    ),
    "bf16 for our program, said twice": (
        {"script": OURS, "bf16": "True", "script_args": "--bf16 --lr 1"},
        {"script": OURS, "args": ["--bf16", "--lr", "1"]},
    ),
    "no bf16 for our program": ({"script": OURS, "bf16": "False"}, {"script": OURS}),
    "bf16 for a script that casts its model": ({"bf16": "true"}, {}),
    "arguments": (
        {"script_args": "--batch_size 16 \\\n  --name 'two words' \\\r\n --price '$5'"},
        {"args": ["--batch_size", "16", "--name", "two words", "--price", "$5"]},
    ),
}


@pytest.mark.parametrize(("typed", "job"), PARAMETERS.values(), ids=list(PARAMETERS))
def test_each_parameter_says_one_thing_of_the_job(
    typed: dict[str, str], job: dict[str, Any]
) -> None:
    assert described(**typed) == job


def test_a_script_that_casts_its_model_rounds_as_neuron_advises() -> None:
    variables = environment(apps.job_of(apps.component(TRAINIUM, **TYPED, bf16="True")))

    assert variables[ROUNDING] == "1"
    assert not any("XLA" in name for name in variables)


def test_variables_that_are_typed_win() -> None:
    typed = TYPED | {"bf16": "True", "env": f"{ROUNDING}=0,A=b"}
    variables = environment(apps.job_of(apps.component(TRAINIUM, **typed)))

    assert (variables[ROUNDING], variables["A"]) == ("0", "b")


def test_graphs_are_compiled_by_a_job_of_their_own() -> None:
    typed = TYPED | {"cacheset": "bert", "precompile": "True"}
    job = apps.job_of(apps.component(TRAINIUM, **typed))

    assert job.name == "tune-precompile"
    assert "compile" in container(job)["command"][2]


def test_arguments_are_no_templates_of_torchx() -> None:
    app = apps.component(TRAINIUM, **TYPED, script_args="'$$5' '${app_id}'")
    job = make_job(pool="trn1", image=apps.IMAGE, args=["$$5", "${app_id}"], durable=True)

    assert (
        container(apps.job_of(app))["command"] == container(prepared(apps.CLUSTER, job))["command"]
    )


def test_a_job_without_a_number_of_processes_has_one_for_each_core() -> None:
    job = apps.job_of(apps.component(TRAINIUM, **TYPED))

    assert "--nproc-per-node=32" in container(job)["command"][2]


def test_the_tutorials_own_name_is_the_same_component() -> None:
    assert (ROOT / "lib" / "trn1_dist_ddp.py").read_bytes() == (ROOT / TRAINIUM).read_bytes()


def test_the_components_are_files_that_a_pipeline_keeps() -> None:
    """A link comes out of CodePipeline as a file that holds the path of its target.

    Source: https://github.com/aws/aws-cdk/pull/14520
    """
    assert not [path for path in (ROOT / "lib").iterdir() if path.is_symlink()]


REFUSED: dict[str, tuple[str, dict[str, str], list[str]]] = {
    "all at once": (
        TRAINIUM,
        {
            "script_args": "--name 'two",
            "instance_type": "trn1.32xlrge",
            "bf16": "yes",
            "precompile": "1",
            "nnodes": "0",
        },
        [
            'script_args: no closing quotation, got "--name \'two"; close it',
            "instance_type: unknown instance type 'trn1.32xlrge'; did you mean trn1.32xlarge?",
            "bf16: neither True nor False, got 'yes'; write one of them",
            "precompile: neither True nor False, got '1'; write one of them",
            "nnodes: less than 1, got 0; ask for 1 or more",
        ],
    ),
    "GPUs for Trainium": (
        TRAINIUM,
        {"instance_type": "p5.48xlarge"},
        [
            "instance_type: a type without Neuron devices, got 'p5.48xlarge'; use the type of one "
            "of your pools"
        ],
    ),
    "Trainium for GPUs": (
        NVIDIA,
        {"instance_type": "trn1.32xlarge"},
        [
            "instance_type: a type without NVIDIA GPUs, got 'trn1.32xlarge'; use the type of one "
            "of your pools"
        ],
    ),
    "devices that no source counts": (
        TRAINIUM,
        {"instance_type": "trn3.48xlarge"},
        ["instance_type: trn3.48xlarge: efa_cards is not known; no source states it"],
    ),
    "bf16 that nothing would do": (
        NVIDIA,
        {"instance_type": "p5.48xlarge", "bf16": "True"},
        ["bf16: only programs of ours take it; use --script_args"],
    ),
}


@pytest.mark.parametrize(("path", "typed", "lines"), REFUSED.values(), ids=list(REFUSED))
def test_wrong_parameters_are_refused(path: str, typed: dict[str, str], lines: list[str]) -> None:
    with pytest.raises(AppError) as error:
        apps.component(path, **(TYPED | typed))

    assert [*error.value.mistakes] == lines


@pytest.mark.parametrize(
    ("typed", "meeting"),
    [
        ({"nnodes": "1"}, "--standalone"),
        ({}, f"--rdzv-endpoint=$${{{macros.rank0_env}:=localhost}}:29500"),
    ],
    ids=["alone", "two nodes"],
)
def test_other_schedulers_get_torchruns_own_command(typed: dict[str, str], meeting: str) -> None:
    parameters = TYPED | {"instance_type": "p5.48xlarge", "script_args": "--price '$5'"} | typed
    (role,) = apps.component(NVIDIA, **parameters).roles

    assert role.args[1].startswith("exec torchrun ")
    assert meeting in role.args[1]
    # Their macros take `$$` for `$`.
    assert role.args[1].endswith("train.py --price '$$5'")


def test_components_of_users_still_find_what_they_import_by_its_former_name() -> None:
    assert former_components.ddp is components.ddp
    assert former_components.Launch is components.Launch
    assert former_errors.AppError is AppError
