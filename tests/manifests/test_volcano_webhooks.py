"""Volcano's webhooks: registered last, served by what is registered, in nobody's way."""

from typing import Any

import pytest

from tests.support.kubernetes_schemas import MINORS, validate_core
from tests.support.volcano_charts import (
    Documents,
    container,
    keyed,
    render_volcano,
    render_webhooks,
)
from ultrascale.parts.volcano.facts import NAMESPACE as VOLCANO_NAMESPACE
from ultrascale_k8s.volcano.admission import webhook_paths

each_webhook = pytest.mark.parametrize("path", webhook_paths())


@pytest.fixture(scope="session")
def by_name() -> Documents:
    return keyed(render_volcano())


@pytest.fixture(scope="session")
def webhooks() -> list[dict[str, Any]]:
    return render_webhooks()


@pytest.mark.parametrize("minor", MINORS)
def test_api_server_takes_the_webhooks(minor: str, webhooks: list[dict[str, Any]]) -> None:
    assert [finding for w in webhooks for finding in validate_core(w, minor)] == []


def test_server_answers_for_every_webhook_that_is_registered(by_name: Documents) -> None:
    args = container(by_name, "volcano-admission")["args"]

    assert f"--enabled-admission={','.join(webhook_paths())}" in args
    assert webhook_paths() == [
        "/jobs/mutate",
        "/jobs/validate",
        "/podgroups/validate",
        "/queues/mutate",
        "/queues/validate",
        "/hypernodes/validate",
        "/cronjobs/validate",
    ]


@each_webhook
def test_webhook_reaches_the_service_which_may_give_it_a_certificate(
    path: str, webhooks: list[dict[str, Any]], by_name: Documents
) -> None:
    configuration = webhook_of(webhooks, path)
    (hook,) = configuration["webhooks"]
    service = hook["clientConfig"]["service"]
    found = by_name["Service", service["name"]]
    name = f"volcano-admission-service{path.replace('/', '-')}"
    writable = [
        resource_name
        for rule in by_name["ClusterRole", "volcano-admission"]["rules"]
        if "update" in rule["verbs"]
        for resource_name in rule["resourceNames"]
    ]

    assert service["namespace"] == found["metadata"]["namespace"]
    assert service["port"] in [port["port"] for port in found["spec"]["ports"]]
    assert service["path"] == path
    assert configuration["metadata"]["name"] == name
    assert name in writable
    # Applying again leaves the certificate in place.
    assert "caBundle" not in hook["clientConfig"]


@each_webhook
def test_webhook_never_stands_in_the_way_of_what_keeps_the_cluster_up(
    path: str, webhooks: list[dict[str, Any]]
) -> None:
    (hook,) = webhook_of(webhooks, path)["webhooks"]

    made_by_volcano = path == "/hypernodes/validate"
    if not made_by_volcano:  # HyperNodes are in no namespace.
        (excluded,) = hook["namespaceSelector"]["matchExpressions"]
        assert excluded["operator"] == "NotIn"
        assert set(excluded["values"]) == {"kube-system", VOLCANO_NAMESPACE}
    policy = ("Ignore", 2) if made_by_volcano else ("Fail", 10)
    assert (hook["failurePolicy"], hook["timeoutSeconds"]) == policy


def webhook_of(webhooks: list[dict[str, Any]], path: str) -> dict[str, Any]:
    _, resource, verb = path.split("/")
    kind = "Mutating" if verb == "mutate" else "Validating"
    name = f"volcano-admission-service-{resource}-{verb}"
    return keyed(webhooks)[f"{kind}WebhookConfiguration", name]


def test_control_plane_reaches_the_webhook_server_from_outside_the_cluster(
    by_name: Documents,
) -> None:
    (ingress,) = by_name["NetworkPolicy", "volcano-admission-ingress"]["spec"]["ingress"]

    assert ingress == {"ports": [{"port": 8443, "protocol": "TCP"}]}
    assert "--port=8443" in container(by_name, "volcano-admission")["args"]


def test_server_is_given_time_to_find_its_webhooks_at_the_first_deploy(by_name: Documents) -> None:
    startup = container(by_name, "volcano-admission")["startupProbe"]

    assert startup["tcpSocket"] == {"port": 8443}
    assert startup["periodSeconds"] * startup["failureThreshold"] > 7 * 5 * 60
