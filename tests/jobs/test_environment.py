"""Variables of a job's libraries: as today's PyTorch, NCCL, EFA and Neuron ask."""

from typing import Any

import pytest

from tests.support.jobs import (
    SERVICE,
    VOLCANO,
    environment,
    job_cluster,
    make_job,
    objects,
    prepared,
)
from tests.support.pools import HYPERPOD_POOL, POOL, SYSTEM_POOL, make_document

GPUS = job_cluster(POOL)
AUTO_MODE = make_document(
    pools=[SYSTEM_POOL, {**POOL, "provisioner": "auto-mode", "nodes": {"max": 4}}],
    scheduling=VOLCANO,
)
HYPERPOD = make_document(pools=[SYSTEM_POOL, HYPERPOD_POOL])
HUGE_PAGES = "FI_EFA_USE_HUGE_PAGE"


def test_a_process_ends_after_a_failed_collective_as_torch_does_by_default() -> None:
    """Torchrun itself sets a way that waits for NCCL, and hangs."""
    trained, served = environment(prepared(GPUS)), environment(prepared(GPUS, SERVICE))
    assert trained["TORCH_NCCL_ASYNC_ERROR_HANDLING"] == "3"
    # The trace of a hang covers a step of a large model; of its older name each process warns.
    assert int(trained["TORCH_FR_BUFFER_SIZE"]) == 20_000
    assert "TORCH_NCCL_TRACE_BUFFER_SIZE" not in trained
    # vLLM's own pool of memory does not work with expandable segments.
    assert trained["PYTORCH_CUDA_ALLOC_CONF"] == "expandable_segments:True"
    assert not {name for name in served if "ALLOC_CONF" in name or name.startswith("TORCH_")}
    assert served["NCCL_DEBUG"] == "WARN"


def test_roles_can_give_each_other_tensors_of_a_gpu() -> None:
    """With expandable segments torch asks for a call that a container has only with SYS_PTRACE."""
    # A role may set a variable that its job allows.
    roles = {"actor": {"env": {"NCCL_PROTO": "simple"}}, "learner": {}}
    job = make_job(nodes=None, roles=roles, allow_env=["NCCL_PROTO"])
    (sent,) = objects(prepared(GPUS, job), "Job")
    assert "NCCL_DEBUG" in str(sent)
    assert "NCCL_PROTO" in str(sent)
    assert "ALLOC_CONF" not in str(sent)


@pytest.mark.parametrize(
    ("cluster", "job", "value"),
    [
        (GPUS, make_job(), None),
        (AUTO_MODE, make_job(), "0"),
        (HYPERPOD, make_job(pool="hp"), "0"),
        (GPUS, make_job(resources={"efa": 0}), None),
        # As the job says.
        (AUTO_MODE, make_job(env={HUGE_PAGES: "1"}), "1"),
    ],
)
def test_efa_takes_no_huge_pages_where_its_pod_has_none(
    cluster: dict[str, Any], job: dict[str, Any], value: str | None
) -> None:
    """The first touch of one would end the process."""
    assert environment(prepared(cluster, job)).get(HUGE_PAGES) == value


def test_a_variable_that_is_allowed_knowingly_is_set() -> None:
    env = {"NCCL_BUFFSIZE": "8388608", "NCCL_PROTO": "simple", "NCCL_SOCKET_IFNAME": "^lo"}
    env |= {"FI_PROVIDER": "tcp"}
    found = environment(prepared(GPUS, make_job(env=env, allow_env=[*env])))
    assert env.items() <= found.items()
