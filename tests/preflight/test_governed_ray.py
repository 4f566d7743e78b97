"""Whether task governance takes jobs of Ray is read from the cluster, never guessed."""

from pathlib import Path

import pytest

from tests.support.fake_aws import ID
from tests.support.known_bad import document_of
from tests.support.pools import as_text, loads_own
from tests.support.preflight_context import found
from tests.support.stub_api_http import kubeconfig, serve
from tests.support.stub_api_server import StubApiServer
from ultrascale.parts.ray.preflight import CHECKS
from ultrascale.plan import plan_cluster
from ultrascale.plan.model import ClusterPlan

CONFIGURATION = """
apiVersion: config.kueue.x-k8s.io/v1beta2
kind: Configuration
integrations:
  frameworks: [batch/job, {kinds}]
"""


def governed(*, ray: bool = True) -> ClusterPlan:
    change = {"name": "research", "scheduling": {"ray": ray}}
    return plan_cluster(loads_own(as_text(document_of({"over": "governed", "change": change}))))


@pytest.mark.parametrize(
    ("kinds", "cluster", "state", "told"),
    [
        ("ray.io/rayjob", "research", "pass", "ray.io/rayjob is one of its Kueue's frameworks"),
        ("ray.io/raycluster", "research", "pass", "ray.io/rayjob is not one"),
        ("ray.io/rayjob", "other", "warn", "not research"),
    ],
)
def test_the_kueue_of_this_cluster_alone_is_asked(
    kinds: str, cluster: str, state: str, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (check,) = CHECKS
    data = {"settings": "a: 1", "kueue.yaml": CONFIGURATION.replace("{kinds}", kinds)}
    with serve(StubApiServer()) as stub:
        stub.put("/api/v1/namespaces/kueue-system/configmaps/its-own-name", {"data": data})
        arn = f"arn:aws:eks:us-east-1:{ID}:cluster/{cluster}"
        monkeypatch.setenv("KUBECONFIG", str(kubeconfig(tmp_path, stub.url, cluster=arn)))
        (finding,) = found(check, governed())
        asked = len(stub.requests)
    assert (finding.state, told in finding.evidence) == (state, True), finding
    assert (asked > 0) == (state == "pass")


def test_without_a_kubeconfig_it_warns_and_without_ray_nobody_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (check,) = CHECKS
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    assert [each.state for each in found(check, governed())] == ["warn"]
    assert found(check, governed(ray=False)) == []
