"""Charts of no registry by way of a mirror: AWS's HyperPod chart with what it needs, and KEDA's."""

import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from tests.support.helm_tools import HELM, unpack_tools
from tests.support.hyperpod import hyperpod_of, with_hyperpod
from tests.support.hyperpod_chart_build import (
    FOLDER,
    NEURON,
    REMOTE,
    REMOTE_VERSION,
    Upstream,
    build,
)
from tests.support.pools import HYPERPOD_POOL, SYSTEM_POOL, make_cluster
from tests.support.registries import needs_registries, registry
from ultrascale.core.part import HelmChart
from ultrascale.errors import UltrascaleError
from ultrascale.parts import services
from ultrascale.parts.mirror.charts import (
    chart_pushers,
    pull_and_push,
    push_archive,
    repository_pushers,
    run_program,
)
from ultrascale.parts.mirror.contents import Copy, mirror_of
from ultrascale.parts.mirror.copying import copy_all
from ultrascale.parts.mirror.tools import find_tool
from ultrascale.plan.cluster import assemble
from ultrascale.plan.model import ChartCopyPlan, ClusterPlan, RemoteChartPlan

VERSION = "0.0.0-gabc"


@pytest.fixture(scope="module")
def upstream(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Upstream]:
    with Upstream.serve(tmp_path_factory.mktemp("upstream")) as served:
        yield served


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with registry(tmp_path_factory.mktemp("mirror") / "registry") as served:
        yield served


def planned(upstream: Upstream, host: str, **changes: Any) -> ClusterPlan:
    """Return the plan of a cluster whose chart is the one of ``upstream``."""
    cluster = make_cluster(pools=[SYSTEM_POOL, HYPERPOD_POOL], images={"mirror": f"{host}/mirror"})
    plan = assemble(cluster)
    own = hyperpod_of(plan).chart_release
    assert own.copy is not None
    remote = RemoteChartPlan(name=REMOTE, version=REMOTE_VERSION, sha256=upstream.archive_sha256)
    copy = replace(
        own.copy,
        repository=f"oci://{host}/mirror/charts.example.com/parent",
        version=VERSION,
        images={"ours:1": f"{host}/mirror/docker.io/library/ours:1"},
        renamed={},
        **changes,
    )
    chart = replace(
        own,
        repository=upstream.repository.as_uri(),
        commit=upstream.commit,
        folder=FOLDER,
        folder_sha256=None,
        remote_charts=(remote,),
        values={"global": {"image": "ours:1"}},
        daemon_set_types={NEURON: ("ml.trn1.32xlarge",)},
        copy=copy,
    )
    return with_hyperpod(plan, chart_release=chart)


def the_copy(plan: ClusterPlan) -> ChartCopyPlan:
    copy = hyperpod_of(plan).chart_release.copy
    assert copy is not None
    return copy


def push(plan: ClusterPlan, upstream: Upstream, monkeypatch: pytest.MonkeyPatch) -> str:
    """Copy the chart into the mirror, and return its digest."""
    monkeypatch.setenv("PATH", f"{upstream.tools / 'helm'}:{os.environ['PATH']}")
    source = f"oci://charts.example.com/parent:{VERSION}"
    copy = Copy(source=source, target=f"{the_copy(plan).repository}:{VERSION}", used_by=("it",))
    pushers = chart_pushers(mirror_of(plan.copies), plan.git_charts, {})
    assert [*pushers] == [source]
    (outcome,) = copy_all([copy], {}, find_tool({}), packed=pushers)
    assert outcome.why == ""
    return str(outcome.digest)


@needs_registries
def test_the_chart_is_installed_from_the_mirror_with_the_images_of_the_mirror(
    upstream: Upstream, host: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    digest = push(planned(upstream, host), upstream, monkeypatch)
    plan = planned(upstream, host, digest=digest)

    outcome = build(upstream, tmp_path, hyperpod_of(plan).chart_release)

    assert outcome.code == 0, outcome.output
    assert "helm upgrade" in " ".join(outcome.calls)
    images = {
        container["image"]
        for each in outcome.objects
        for container in each["spec"]["template"]["spec"]["containers"]
    }
    # The remote chart is in it as well.
    assert REMOTE in {each["metadata"]["name"] for each in outcome.objects}
    assert images == {f"{host}/mirror/docker.io/library/ours:1"}


@needs_registries
def test_a_copy_with_another_digest_or_another_image_is_not_installed(
    upstream: Upstream, host: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    digest = push(planned(upstream, host), upstream, monkeypatch)
    other, elsewhere = (
        hyperpod_of(planned(upstream, host, digest=each)).chart_release
        for each in ("sha256:" + "0" * 64, digest)
    )
    values = {"global": {"image": "quay.io/other/image:1"}}

    refused = build(upstream, tmp_path, other)
    foreign = build(upstream, tmp_path / "foreign", replace(elsewhere, values=values))

    assert refused.code == foreign.code == 1
    assert f"{digest}, recorded is sha256:0000" in refused.output
    assert "an image that is not in the mirror: quay.io/other/image:1" in foreign.output
    assert not any(call.startswith("helm upgrade") for call in (*refused.calls, *foreign.calls))


@needs_registries
def test_a_chart_of_a_helm_repository_is_copied_as_it_is_pinned(
    upstream: Upstream, host: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """KEDA's publisher has its chart in no registry."""
    monkeypatch.setenv("PATH", f"{upstream.tools / 'helm'}:{os.environ['PATH']}")
    version = f"v{REMOTE_VERSION}"
    chart = HelmChart(
        location=f"{upstream.url}/{REMOTE}",
        version=version,
        images=(),
        sha256=upstream.archive_sha256,
    )
    source, other = f"oci://charts.io/{REMOTE}:{version}", f"oci://other.io/{REMOTE}:{version}"
    copies = [
        Copy(source=each, target=f"oci://{host}/mirror/{each[6:]}", used_by=("it",))
        for each in (source, other)
    ]
    moved = replace(chart, sha256="0" * 64)
    environment = dict(os.environ)
    pushers = {
        source: partial(pull_and_push, chart, environment=environment),
        other: partial(pull_and_push, moved, environment=environment),
    }

    first, refused = copy_all(copies, {}, find_tool({}), packed=pushers)
    again, _ = copy_all(copies, {source: str(first.digest)}, find_tool({}), packed=pushers)

    assert (first.state, again.state, first.why) == ("copied", "there", "")
    assert first.digest == again.digest
    assert refused.state == "failed"
    assert f"pinned is {moved.sha256}" in refused.why


def test_charts_of_services_come_from_their_helm_repositories() -> None:
    keys = {"controllers": ["keda"], "front": {"exposure": "internal"}}
    plan = assemble(make_cluster(serving=keys, images={"mirror": "r.io/mirror"}))
    serving = plan.part(services.Plan)
    assert serving is not None
    assert serving.keda is not None

    ray, charts, balancer = repository_pushers(plan.copies, {})

    assert ray.startswith("oci://ray-project.github.io/kuberay-helm/kuberay-operator:")
    assert charts == f"oci://kedacore.github.io/charts/keda:{serving.keda.version}"
    assert balancer.startswith("oci://aws.github.io/eks-charts/aws-load-balancer-controller:")
    assert serving.keda.chart == "oci://r.io/mirror/kedacore.github.io/charts/keda"


def test_helm_knows_the_command_that_copies_a_chart(tmp_path: Path) -> None:
    """Without a registry it fails at the connection, and at nothing before."""
    environment = {"PATH": str(unpack_tools(tmp_path, (HELM,)) / "helm"), "HOME": str(tmp_path)}
    (tmp_path / "it").mkdir()
    (tmp_path / "it/Chart.yaml").write_text("{apiVersion: v2, name: it, version: 1.0.0}")
    run_program(["helm", "package", f"{tmp_path}/it", "--destination", f"{tmp_path}"], environment)
    copy = Copy(source="oci://charts.io/it:1.0.0", target="oci://127.0.0.1:1/it:1.0.0", used_by=())

    with pytest.raises(UltrascaleError, match="connection refused"):
        push_archive(tmp_path / "it-1.0.0.tgz", copy, environment)
