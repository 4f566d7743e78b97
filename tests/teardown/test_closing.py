"""A cluster that fills again while it is taken down: whoever fills it is closed, or named."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from tests.support.estate.account import Estate
from tests.support.estate.cluster import ALL, estate, ids, research, stack, volume
from tests.support.estate.doubles import FakeClock
from tests.support.job_manifests import JOBSETS, RAY_JOBS, VOLCANO_JOBS
from ultrascale.parts.backend.model import IdentityPlan, Plan
from ultrascale.teardown.model import StoppedError

BACKEND = "/apis/apps/v1/namespaces/training/deployments/backend"
POOL = "/apis/karpenter.sh/v1/nodepools/burst"
IDENTITY = IdentityPlan(
    accounts_audience="ultrascale-backend",
    issuer=None,
    audience="ultrascale-backend",
    groups_claim="groups",
    admins=(),
    rights=(),
    priorities={},
)


def with_backend() -> Estate:
    """Return the account of a cluster whose backend runs, beside a Deployment of somebody else."""
    cluster = estate()
    backend = Plan(
        namespace="training",
        database=None,
        job_namespaces=("training",),
        team_namespaces=(),
        rights=(),
        cluster_rights=(),
        allow_from=(),
        identity=IDENTITY,
        application=None,
    )
    cluster.plan = replace(research(), parts=(backend,))
    for name, account in (("backend", "backend"), ("web", "default")):
        spec = {"replicas": 2, "template": {"spec": {"serviceAccountName": account}}}
        path = BACKEND.replace("backend", name)
        cluster.api.put(path, {"kind": "Deployment", "spec": spec, "status": {"replicas": 2}})
    return cluster


def test_the_backend_is_closed_before_jobs_are_drained(tmp_path: Path) -> None:
    cluster = with_backend()
    teardown = cluster.planned(ALL)

    cluster.carry_out(teardown, tmp_path)

    assert "training/backend" in ids(teardown)
    assert "training/web" not in ids(teardown)
    found: Any = cluster.api.find(BACKEND)
    assert found["spec"]["replicas"] == 0
    asked = (tmp_path / "journal.jsonl").read_text().splitlines()
    (closed,) = (at for at, line in enumerate(asked) if '"asks": "Deployment' in line)
    (drained,) = (at for at, line in enumerate(asked) if '"asks": "Job' in line)
    assert closed < drained


def test_a_backend_that_is_scaled_up_again_stops_before_a_node_goes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = with_backend()
    found: Any = cluster.api.find(BACKEND)

    put = cluster.api.put

    def scaled_up(path: str, _: object) -> object:
        return put(path, found)

    monkeypatch.setattr(cluster.api, "put", scaled_up)

    with pytest.raises(StoppedError, match="not gone after 60 minutes: its pods still run"):
        cluster.run(tmp_path)

    assert cluster.deleted == []


@pytest.mark.parametrize("path", [RAY_JOBS, JOBSETS, VOLCANO_JOBS])
def test_a_job_of_any_kind_ends_before_its_nodes_and_the_controller_that_ends_it(
    path: str, tmp_path: Path
) -> None:
    cluster = estate(stack("ray-operator"))
    cluster.api.groups.add(path.partition("/namespaces/")[0])
    cluster.api.put(f"{path}/align", {})
    planned = ids(cluster.planned(ALL))

    cluster.run(tmp_path, ALL)

    assert "training/align" in planned
    order = [cluster.deleted.index(name) for name in ("align", "burst", "research-ray-operator")]
    assert order == sorted(order)


def new_job(cluster: Estate) -> None:
    cluster.api.put("/apis/batch/v1/namespaces/training/jobs/late", {"kind": "Job"})


def new_pool(cluster: Estate) -> None:
    cluster.api.put(POOL.replace("burst", "late"), {"kind": "NodePool"})


def new_service(cluster: Estate) -> None:
    service = {"kind": "Service", "spec": {"type": "LoadBalancer"}}
    cluster.api.put("/api/v1/namespaces/other/services/late", service)


def new_volume(cluster: Estate) -> None:
    volume(cluster, "late", "vol-9", "Delete")


@pytest.mark.parametrize(
    ("comes", "last"),
    [(new_job, "bert"), (new_pool, "burst"), (new_service, "web"), (new_volume, "db")],
)
def test_what_comes_meanwhile_stops_the_step_that_would_leave_it(
    comes: Callable[[Estate], None], last: str, tmp_path: Path
) -> None:
    cluster = estate()
    teardown = cluster.planned(ALL)
    comes(cluster)
    with pytest.raises(StoppedError, match=r"since the plan was printed came .*(late|vol-9)"):
        cluster.carry_out(teardown, tmp_path)
    assert cluster.deleted[-1] == last
    cluster.run(tmp_path, ALL)
    assert "research-network" in cluster.deleted


def test_a_node_pool_that_is_made_anew_is_told_at_once(tmp_path: Path) -> None:
    cluster, clock = estate(), FakeClock()
    teardown = cluster.planned(ALL)
    made = {"metadata": {"creationTimestamp": "2026-12-01T00:00:09Z"}}
    cluster.api.remove(POOL)
    cluster.api.put(POOL, {"kind": "NodePool", **made})
    begun = clock.time

    with pytest.raises(StoppedError, match=r"made it anew .* at 2026-12-01T00:00:09Z.*Argo CD"):
        cluster.carry_out(teardown, tmp_path, clock)

    assert (clock.time - begun).total_seconds() < 120
    assert "research-node-pools" not in cluster.deleted
