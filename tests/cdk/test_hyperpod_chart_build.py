"""The build that installs AWS's HyperPod chart: nothing but what was pinned may be installed."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from tests.support.chart_registry import serve_chart
from tests.support.hyperpod_chart_build import (
    FOLDER,
    NEURON,
    REMOTE,
    REMOTE_VERSION,
    Outcome,
    Upstream,
    build,
)
from ultrascale.catalog.build_environment import CHART_BUILD_ENVIRONMENT
from ultrascale.parts.hyperpod.model import HyperPodChartPlan
from ultrascale.plan.model import BuildLoginPlan, ChartCopyPlan, RemoteChartPlan
from ultrascale_constructs.hyperpod.chart import chart_variables

PENDING = "status in (pending-install,pending-upgrade,pending-rollback)"


@pytest.fixture(scope="module")
def upstream(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Upstream]:
    with Upstream.serve(tmp_path_factory.mktemp("upstream")) as served:
        yield served


@pytest.fixture(scope="module")
def plan(upstream: Upstream) -> HyperPodChartPlan:
    remote = RemoteChartPlan(name=REMOTE, version=REMOTE_VERSION, sha256=upstream.archive_sha256)
    return HyperPodChartPlan(
        repository=upstream.repository.as_uri(),
        commit=upstream.commit,
        folder=FOLDER,
        folder_sha256=upstream.folder_sha256,
        remote_charts=(remote,),
        release="hyperpod-dependencies",
        namespace="kube-system",
        operator_namespace="kubeflow",
        values={"global": {"image": "ours"}},
        controller_node_selector={"ultrascale.dev/role": "system"},
        daemon_set_types={NEURON: ("ml.trn1.32xlarge",)},
        governance_addon=None,
        build=CHART_BUILD_ENVIRONMENT,
        log_retention_days=90,
        plugin_taints=("dedicated",),
    )


@pytest.fixture(scope="module")
def built(
    upstream: Upstream, plan: HyperPodChartPlan, tmp_path_factory: pytest.TempPathFactory
) -> Outcome:
    outcome = build(upstream, tmp_path_factory.mktemp("built"), plan)
    assert outcome.code == 0, outcome.output
    return outcome


def pod(outcome: Outcome, name: str) -> dict[str, Any]:
    (found,) = (each for each in outcome.objects if each["metadata"]["name"] == name)
    return found["spec"]["template"]["spec"]


class TestInstalled:
    """Objects that reach the cluster, and their order."""

    def test_the_release_is_upgraded_once_the_cluster_lets_the_build_in(
        self, built: Outcome
    ) -> None:
        verbs = [" ".join(call.split()[:2]) for call in built.calls]
        (dropped,) = (call for call in built.calls if call.startswith("kubectl delete"))

        assert verbs == [
            *("aws eks", "kubectl auth", "kubectl delete"),
            *("helm upgrade", "kubectl get", "kubectl rollout"),
        ]
        # An upgrade that was cut off does not lock the release.
        assert dropped.startswith("kubectl delete secret --namespace kube-system")
        assert f"owner=helm,name=hyperpod-dependencies,{PENDING}" in dropped
        # Helm knows every flag and fails for want of a cluster alone.
        assert "unknown flag" not in built.output
        assert "cluster unreachable" in built.output
        # What matches its pin is said to.
        assert f"{REMOTE} {REMOTE_VERSION}: sha256" in built.output
        assert built.output.count("as pinned") == 2

    def test_every_chart_is_rendered_with_our_values_and_controllers_run_on_system_nodes(
        self, built: Outcome
    ) -> None:
        names = {each["metadata"]["name"] for each in built.objects}

        assert names == {"agent", NEURON, "op", REMOTE}
        assert pod(built, "agent")["containers"][0]["image"] == "ours"
        assert pod(built, "op")["nodeSelector"] == {"ultrascale.dev/role": "system"}

    def test_plugins_run_on_tainted_nodes_and_one_without_a_value_on_hyperpods_types_alone(
        self, built: Outcome
    ) -> None:
        affinity = pod(built, NEURON)["affinity"]["nodeAffinity"]
        (term,) = affinity["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]

        # They tolerate what they did.
        keys = ("CriticalAddonsOnly", "dedicated")
        for name in ("agent", NEURON, REMOTE):
            tolerated = pod(built, name)["tolerations"]
            assert tolerated == [{"key": key, "operator": "Exists"} for key in keys]
        key = "node.kubernetes.io/instance-type"
        (rule,) = term["matchExpressions"]
        assert rule == {"key": key, "operator": "In", "values": ["ml.trn1.32xlarge"]}
        assert "affinity" not in pod(built, "agent")


def test_what_nobody_pinned_is_printed_to_be_pinned(
    upstream: Upstream, plan: HyperPodChartPlan, tmp_path: Path
) -> None:
    (remote,) = plan.remote_charts
    open_plan = replace(plan, folder_sha256=None, remote_charts=(replace(remote, sha256=None),))

    outcome = build(upstream, tmp_path, open_plan)

    assert outcome.code == 0
    assert f"{FOLDER}: sha256 {upstream.folder_sha256}, not pinned" in outcome.output
    assert f"{REMOTE} {REMOTE_VERSION}: sha256 {upstream.archive_sha256}, not pinned" in (
        outcome.output
    )


WRONG = "0" * 64


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"CHART_COMMIT": "1" * 40}, "not our ref"),
        ({"CHART_FOLDER": "helm_chart"}, "no chart in helm_chart"),
        ({"CHART_SHA256": WRONG}, f"pinned is {WRONG}"),
        ({"REMOTE_CHARTS": f"{REMOTE}:{REMOTE_VERSION}:{WRONG}"}, f"pinned is {WRONG}"),
        ({"REMOTE_CHARTS": f"{REMOTE}:0.5.21:"}, "pinned are efa-plugin:0.5.21"),
        ({"REMOTE_CHARTS": f"{REMOTE}:{REMOTE_VERSION}: more:1.0.0:"}, "its remote charts are"),
        # A chart that lacks what is placed by name.
        ({"PLACED": "renamed"}, "the chart has no renamed"),
    ],
    ids=[
        "a commit that is not there",
        "a folder without a chart",
        "other files",
        "another archive",
        "another version",
        "a chart less",
        "an object less",
    ],
)
def test_what_is_not_as_pinned_never_reaches_the_cluster(
    upstream: Upstream, plan: HyperPodChartPlan, tmp_path: Path, changes: dict[str, str], said: str
) -> None:
    outcome = build(upstream, tmp_path, plan, **changes)

    assert outcome.code != 0
    assert said in outcome.output
    assert outcome.calls == []


def test_a_remote_chart_that_nobody_pinned_never_reaches_the_cluster(
    upstream: Upstream, plan: HyperPodChartPlan, tmp_path: Path
) -> None:
    remote = [(REMOTE, REMOTE_VERSION), ("unheard-of", REMOTE_VERSION)]
    commit = upstream.commits(remote=remote)

    outcome = build(upstream, tmp_path, plan, CHART_COMMIT=commit, CHART_SHA256="")

    assert outcome.code != 0
    assert f"its remote charts are {REMOTE}:{REMOTE_VERSION} unheard-of" in outcome.output
    assert outcome.calls == []


class TestCopy:
    """A chart in a mirror: where nothing leads to GitHub."""

    MIRROR = "111122223333.dkr.ecr.us-east-1.amazonaws.com/mirror"

    @pytest.fixture(scope="class")
    @staticmethod
    def copied(
        upstream: Upstream, plan: HyperPodChartPlan, tmp_path_factory: pytest.TempPathFactory
    ) -> Iterator[HyperPodChartPlan]:
        """Return a plan whose chart lies in a mirror, and comes from nowhere else."""
        archive = upstream.packed(tmp_path_factory.mktemp("packed"), "0.0.0-g1")
        with serve_chart(archive, "parent", "0.0.0-g1") as (location, digest):
            copy = ChartCopyPlan(
                repository=location,
                version="0.0.0-g1",
                digest=digest,
                images={"ours:1": f"{TestCopy.MIRROR}/ours:1"},
                renamed={},
                login=BuildLoginPlan(
                    host="", account="111122223333", region="us-east-1", prefix="mirror"
                ),
                registries=(TestCopy.MIRROR,),
            )
            yield replace(
                plan,
                copy=copy,
                repository="file:///nowhere",
                values={"global": {"image": "ours:1"}},
            )

    def test_it_is_installed_from_there_with_its_images(
        self, upstream: Upstream, copied: HyperPodChartPlan, tmp_path: Path
    ) -> None:
        outcome = build(upstream, tmp_path, copied)

        assert outcome.code == 0, outcome.output
        assert {each["metadata"]["name"] for each in outcome.objects} == {
            *("agent", NEURON, "op", REMOTE)
        }
        assert pod(outcome, "agent")["containers"][0]["image"] == f"{self.MIRROR}/ours:1"
        assert "aws ecr get-login-password --region us-east-1" in outcome.calls
        (login,) = (call for call in outcome.calls if call.startswith("helm registry login"))
        assert "--password-stdin 127.0.0.1:" in login

    @pytest.mark.parametrize(
        ("changes", "said"),
        [
            ({"CHART_COPY_DIGEST": f"sha256:{WRONG}"}, f"recorded is sha256:{WRONG}"),
            ({"CHART_COPY_VERSION": "0.0.0-g2"}, "0.0.0-g2"),
            ({"IMAGE_REGISTRIES": "*.dkr.ecr.eu-west-1.amazonaws.com"}, "is not in the mirror"),
        ],
        ids=["another digest", "another version", "an image of elsewhere"],
    )
    def test_what_is_not_as_recorded_never_reaches_the_cluster(
        self,
        upstream: Upstream,
        copied: HyperPodChartPlan,
        tmp_path: Path,
        changes: dict[str, str],
        said: str,
    ) -> None:
        outcome = build(upstream, tmp_path, copied, **changes)

        assert outcome.code != 0
        assert said in outcome.output
        assert not any("upgrade" in call for call in outcome.calls)

    def test_it_is_told_of_no_public_host(self, copied: HyperPodChartPlan) -> None:
        told = chart_variables(copied)

        assert not {"CHART_REPOSITORY", "CHART_COMMIT", "REMOTE_CHARTS"} & told.keys()


class TestCluster:
    """Answers of the cluster that the build must handle."""

    def test_an_access_entry_that_works_late_is_waited_for(
        self, upstream: Upstream, plan: HyperPodChartPlan, tmp_path: Path
    ) -> None:
        outcome = build(upstream, tmp_path, plan, LATE="2")

        assert outcome.code == 0
        assert [call for call in outcome.calls if call.startswith("sleep")] == ["sleep 5"] * 2

    def test_no_access_fails_the_build_before_it_changes_anything(
        self, upstream: Upstream, plan: HyperPodChartPlan, tmp_path: Path
    ) -> None:
        outcome = build(upstream, tmp_path, plan, LATE="9", ACCESS_SECONDS="0")

        assert outcome.code != 0
        assert "no access to research" in outcome.output
        assert not any("upgrade" in call or "delete" in call for call in outcome.calls)

    def test_operators_that_do_not_start_fail_the_build(
        self, upstream: Upstream, plan: HyperPodChartPlan, tmp_path: Path
    ) -> None:
        assert build(upstream, tmp_path, plan, ROLLOUT="1").code != 0


class TestKueue:
    """Two Kueues in one cluster: the second fails a deploy after HyperPod is paid for."""

    CRD = "customresourcedefinition.apiextensions.k8s.io/workloads.kueue.x-k8s.io"
    ABSENT = "An error occurred (ResourceNotFoundException): No addon: governance"

    @pytest.mark.parametrize(
        ("kueue", "error", "wrong"),
        [
            ("", ABSENT, None),
            (CRD, "", None),
            (CRD, ABSENT, "research has a Kueue of its own, and governance brings another"),
            (CRD, "An error occurred (AccessDeniedException)", "AccessDeniedException"),
        ],
        ids=["none", "the add-on's", "one's own", "unknown"],
    )
    def test_one_of_the_users_own_is_refused_before_anything_is_installed(
        self,
        upstream: Upstream,
        plan: HyperPodChartPlan,
        tmp_path: Path,
        kueue: str,
        error: str,
        wrong: str | None,
    ) -> None:
        governed = replace(plan, governance_addon="governance")

        outcome = build(upstream, tmp_path, governed, KUEUE=kueue, ADDON_ERROR=error)

        assert (outcome.code == 0) == (wrong is None), outcome.output
        assert (wrong or "") in outcome.output
        assert any("upgrade" in call for call in outcome.calls) == (wrong is None)

    def test_without_task_governance_it_is_the_users_own_to_have(
        self, upstream: Upstream, plan: HyperPodChartPlan, tmp_path: Path
    ) -> None:
        assert build(upstream, tmp_path, plan, KUEUE=self.CRD, ADDON_ERROR=self.ABSENT).code == 0
