"""Volcano's three programs: highly available, hardened, and able to start."""

from typing import Any

import pytest

from tests.support.kubernetes_schemas import findings, payload_bytes
from tests.support.volcano_charts import (
    PROGRAMS,
    Documents,
    container,
    keyed,
    make_plan,
    pod,
    render_volcano,
)
from ultrascale.parts.volcano.facts import NAMESPACE as VOLCANO_NAMESPACE
from ultrascale.parts.volcano.model import NodeScoringPlan
from ultrascale.parts.volcano.scale import SCALES
from ultrascale.plan.scale import ROWS
from ultrascale_k8s.volcano.admission import CERTIFICATE_SECRET
from ultrascale_k8s.volcano.chart import controller_configuration, scheduler_configuration

ELECTED = PROGRAMS[:2]
IMAGES_OF = dict(zip(PROGRAMS, ("scheduler", "controllers", "webhook"), strict=True))
SIZE_LIMIT_BYTES = 60_000
# The Job of k8s/volcano/admission.py makes the Secret, the namespaces chart the namespace.
KNOWN = (("Namespace", "", VOLCANO_NAMESPACE), ("Secret", VOLCANO_NAMESPACE, CERTIFICATE_SECRET))

each_program = pytest.mark.parametrize("program", PROGRAMS)


@pytest.fixture(scope="session")
def volcano() -> list[dict[str, Any]]:
    return render_volcano()


@pytest.fixture(scope="session")
def by_name(volcano: list[dict[str, Any]]) -> Documents:
    return keyed(volcano)


def test_programs_read_the_configuration_that_is_rendered(by_name: Documents) -> None:
    pod_volumes = pod(by_name, PROGRAMS[0])["volumes"]
    (mounted,) = [each["configMap"]["name"] for each in pod_volumes if "configMap" in each]
    scheduler = by_name["ConfigMap", mounted]["data"]
    controllers = by_name["ConfigMap", "volcano-controller-configmap"]["data"]

    assert scheduler == {"volcano-scheduler.conf": scheduler_configuration(make_plan())}
    assert controllers == {"volcano-controller.conf": controller_configuration(make_plan())}
    mounts = {m["name"]: m["mountPath"] for m in container(by_name, PROGRAMS[0])["volumeMounts"]}
    wanted = f"--scheduler-conf={mounts['config']}/volcano-scheduler.conf"
    assert wanted in container(by_name, PROGRAMS[0])["args"]


def test_every_object_keeps_the_rules_of_the_house_and_all_fit_one_manifest(
    volcano: list[dict[str, Any]],
) -> None:
    assert findings(volcano, known=KNOWN) == []
    assert payload_bytes(volcano) < SIZE_LIMIT_BYTES


def test_programs_run_the_images_that_the_plan_names() -> None:
    images = {f"{name}_image": f"mirror.example/{name}:1" for name in IMAGES_OF.values()}

    mirrored = keyed(render_volcano(**images))

    for program, name in IMAGES_OF.items():
        assert container(mirrored, program)["image"] == f"mirror.example/{name}:1"


@each_program
def test_program_is_hardened_probed_and_survives_the_loss_of_a_node(
    program: str, by_name: Documents
) -> None:
    made, own = container(by_name, program), pod(by_name, program)
    security = made["securityContext"]
    spread = {c["topologyKey"]: c for c in own["topologySpreadConstraints"]}
    mounts = {m["mountPath"]: m["name"] for m in made["volumeMounts"]}
    volumes = {volume["name"]: volume for volume in own["volumes"]}

    assert by_name["Deployment", program]["spec"]["replicas"] == 2
    assert by_name["PodDisruptionBudget", program]["spec"]["maxUnavailable"] == 1
    assert spread["kubernetes.io/hostname"]["whenUnsatisfiable"] == "DoNotSchedule"
    # It stays when nodes run out of room.
    assert own["priorityClassName"] == "system-cluster-critical"
    assert security["readOnlyRootFilesystem"] is True
    assert security["allowPrivilegeEscalation"] is False
    assert security["capabilities"] == {"drop": ["ALL"]}
    assert own["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    # It can write where it keeps its socket and dumps.
    assert volumes[mounts["/tmp"]]["emptyDir"] == {}
    assert {"livenessProbe", "readinessProbe"} <= made.keys()
    # Its policy selects its pods.
    labels = by_name["Deployment", program]["spec"]["template"]["metadata"]["labels"]
    policy = by_name["NetworkPolicy", f"{program}-ingress"]["spec"]
    assert policy["podSelector"]["matchLabels"].items() <= labels.items()
    assert policy["policyTypes"] == ["Ingress"]


def test_programs_grow_with_the_cluster() -> None:
    grown = keyed(render_volcano(scale=SCALES[ROWS[-1].nodes]))

    scheduler, controllers, admission = (container(grown, program) for program in PROGRAMS)
    assert {"--resource-sync-timeout=60s", "-v=2"} <= {*scheduler["args"]}
    assert scheduler["resources"] == {
        "requests": {"cpu": "8", "memory": "24Gi"},
        "limits": {"memory": "64Gi"},
    }
    assert {"--kube-api-qps=2000", "--kube-api-burst=4000"} <= {*controllers["args"]}
    assert {"--worker-threads=50", "--worker-threads-for-podgroup=50"} <= {*controllers["args"]}
    assert admission["resources"]["limits"] == {"memory": "4Gi"}
    assert [grown["Deployment", each]["spec"]["replicas"] for each in PROGRAMS] == [2, 2, 3]


def test_the_scheduler_does_not_wait_a_minute_for_a_node_that_it_has_missed(
    by_name: Documents,
) -> None:
    """It did in 6 of 24 starts: with more workers it is likelier to miss that it has them all."""
    args = container(by_name, PROGRAMS[0])["args"]
    left = NodeScoringPlan(percent=None, least=None, left_out=())
    others = str(container(keyed(render_volcano(scoring=left)), PROGRAMS[0])["args"])

    assert {"--resource-sync-timeout=15s", "--node-worker-threads=4"} <= {*args}
    # How many nodes it looks at is left to Volcano unless the plan says it.
    assert "-nodes-to-find" not in others
    assert "-feasible-nodes" not in others


@pytest.mark.parametrize(("program", "port"), list(zip(ELECTED, (8080, 8081), strict=True)))
def test_replicas_elect_a_leader_are_probed_and_can_be_scraped(
    program: str, port: int, by_name: Documents
) -> None:
    (rule,) = by_name["Role", program]["rules"]
    made = container(by_name, program)
    probe = made["livenessProbe"]["httpGet"]
    service = by_name["Service", f"{program}-service"]
    (ingress,) = by_name["NetworkPolicy", f"{program}-ingress"]["spec"]["ingress"]

    assert {*made["args"]} >= {
        "--leader-elect=true",
        f"--leader-elect-resource-namespace={VOLCANO_NAMESPACE}",
        "--enable-healthz=true",
        "--enable-metrics=true",
    }
    assert rule["resources"] == ["leases"]
    assert {"get", "create", "update"} <= set(rule["verbs"])
    assert by_name["Role", program]["metadata"]["namespace"] == VOLCANO_NAMESPACE
    assert (probe["path"], probe["port"]) == ("/healthz", 11251)
    assert {"name": "metrics", "containerPort": port} in made["ports"]
    assert service["spec"]["ports"] == [{"name": "metrics", "port": port, "targetPort": "metrics"}]
    assert service["metadata"]["annotations"]["prometheus.io/port"] == str(port)
    # A selector of all pods would make EKS list every pod of the cluster for every node.
    assert "from" not in ingress
    assert [allowed["port"] for allowed in ingress["ports"]] == [port]


@each_program
def test_program_may_not_change_definitions_or_read_every_secret(
    program: str, by_name: Documents
) -> None:
    allowed = {
        (resource, verb)
        for rule in by_name["ClusterRole", program]["rules"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }

    assert not [pair for pair in allowed if pair[0] == "customresourcedefinitions"]
    secrets = {verb for resource, verb in allowed if resource == "secrets"}
    assert secrets <= ({"create", "get", "patch"} if program == "volcano-admission" else set())
    assert not [pair for pair in allowed if "*" in pair]
