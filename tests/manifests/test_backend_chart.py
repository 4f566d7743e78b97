"""The backend's manifests: one replica at a time may go, and nobody else's pods reach it."""

from collections.abc import Mapping
from typing import Any

import pytest
from msgspec.structs import replace

from tests.support.applied import applied
from tests.support.kubernetes_schemas import findings
from tests.support.plugin_placement import node_terms
from ultrascale.parts.backend.model import ApplicationPlan, IdentityPlan, Plan
from ultrascale.plan.model import RightPlan
from ultrascale.plan.names import ROLE_LABEL, SYSTEM_ROLE
from ultrascale_k8s.backend import backend_objects, backend_rights_objects
from ultrascale_stacks.platform import fill

Documents = Mapping[tuple[str, str], dict[str, Any]]

APPLICATION = ApplicationPlan(
    image="${AWS_ACCOUNT_ID}.dkr.ecr.us-west-2.amazonaws.com/research/backend:1",
    replicas=2,
    port=8080,
    folder="/etc/ultrascale",
    files={"cluster.yaml": "name: research\n", "rules.yaml": "rules: []\n"},
    environment={
        "ULTRASCALE_CLUSTER_FILE": "/etc/ultrascale/cluster.yaml",
        "DATABASE_HOST": "${DATABASE_HOST}",
        "PORT": "8080",
    },
    grace_period_seconds=60,
)
IDENTITY = IdentityPlan(
    accounts_audience="ultrascale-backend",
    issuer=None,
    audience="ultrascale-backend",
    groups_claim="groups",
    admins=(),
    rights=(),
    priorities={},
)
PLAN = Plan(
    namespace="apps",
    database=None,
    job_namespaces=("training",),
    team_namespaces=(),
    rights=(RightPlan(group="batch", resources=("jobs",), verbs=("create",)),),
    cluster_rights=(RightPlan(group="", resources=("namespaces",), verbs=("get",)),),
    allow_from=("web",),
    identity=IDENTITY,
    application=APPLICATION,
)


def render(plan: Plan) -> Documents:
    objects = applied(backend_objects(plan))
    return {(each["kind"], each["metadata"]["name"]): each for each in objects}


@pytest.fixture(scope="module")
def documents() -> Documents:
    return render(PLAN)


@pytest.fixture(scope="module")
def template(documents: Documents) -> dict[str, Any]:
    return documents["Deployment", "backend"]["spec"]["template"]


@pytest.fixture(scope="module")
def container(template: dict[str, Any]) -> dict[str, Any]:
    (container,) = template["spec"]["containers"]
    return container


def test_api_server_takes_the_backend(documents: Documents) -> None:
    rights = backend_rights_objects(PLAN, PLAN.job_namespaces)
    every = [*documents.values(), *applied(rights)]

    known = [("Namespace", "", "apps"), ("Namespace", "", "training")]
    assert findings(every, known=known, also_pinned=[APPLICATION.image]) == []


def test_the_users_own_application_finds_account_rights_and_policy_there() -> None:
    found = render(replace(PLAN, application=None))

    assert {kind for kind, _ in found} == {
        "ServiceAccount",
        "ClusterRole",
        "ClusterRoleBinding",
        "NetworkPolicy",
    }
    assert found["ServiceAccount", "backend"]["metadata"]["namespace"] == "apps"


def test_pods_of_no_other_namespace_reach_it_than_those_of_the_file(documents: Documents) -> None:
    spec = documents["NetworkPolicy", "allow-callers"]["spec"]

    assert spec["podSelector"] == {}
    assert spec["ingress"] == [
        {
            "from": [
                {"podSelector": {}},
                {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "web"}}},
            ]
        }
    ]


class TestDeployment:
    """Its pods."""

    def test_a_drain_or_a_new_version_takes_one_replica_at_a_time(
        self, documents: Documents, template: dict[str, Any]
    ) -> None:
        spec = documents["Deployment", "backend"]["spec"]
        service = documents["Service", "backend"]["spec"]

        assert spec["replicas"] == 2
        assert spec["strategy"]["rollingUpdate"] == {"maxUnavailable": 0, "maxSurge": 1}
        assert documents["PodDisruptionBudget", "backend"]["spec"]["maxUnavailable"] == 1
        apart = template["spec"]["topologySpreadConstraints"]
        assert apart[0]["topologyKey"] == "kubernetes.io/hostname"
        assert apart[0]["whenUnsatisfiable"] == "DoNotSchedule"
        # Callers find it at port 80.
        assert service["ports"] == [{"name": "http", "port": 80, "targetPort": "http"}]
        assert "type" not in service

    def test_its_pods_are_hardened_off_nodes_that_come_and_go_and_read_the_files_of_the_plan(
        self, documents: Documents, template: dict[str, Any], container: dict[str, Any]
    ) -> None:
        pod = template["spec"]
        mounts = {each["name"]: each for each in container["volumeMounts"]}
        volumes = {each["name"]: each for each in pod["volumes"]}

        assert node_terms(pod) == [{"key": ROLE_LABEL, "operator": "In", "values": [SYSTEM_ROLE]}]
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
        }
        # It writes to a folder of its own alone.
        assert (mounts["tmp"]["mountPath"], volumes["tmp"]["emptyDir"]) == ("/tmp", {})
        assert (mounts["files"]["mountPath"], mounts["files"]["readOnly"]) == (
            "/etc/ultrascale",
            True,
        )
        name = volumes["files"]["configMap"]["name"]
        assert documents["ConfigMap", name]["data"] == APPLICATION.files
        # A database that is away restarts nobody.
        assert container["livenessProbe"]["httpGet"]["path"] == "/healthz"
        assert container["readinessProbe"]["httpGet"]["path"] == "/readyz"
        # It has time to finish what it has begun.
        assert pod["terminationGracePeriodSeconds"] >= 30
        assert pod["serviceAccountName"] == "backend"
        assert ("ServiceAccount", "backend") in documents

    def test_a_changed_cluster_file_takes_new_pods(self, template: dict[str, Any]) -> None:
        changed = replace(APPLICATION, files={"cluster.yaml": "name: other\n"})
        other = render(replace(PLAN, application=changed))

        assert other["Deployment", "backend"]["spec"]["template"] != template

    def test_what_cloudformation_alone_knows_is_filled_in(self, documents: Documents) -> None:
        values = {"${DATABASE_HOST}": "db.example", "${AWS_ACCOUNT_ID}": "111122223333"}

        filled = fill(documents["Deployment", "backend"], values)

        assert "${" not in str(filled)
        assert "'value': 'db.example'" in str(filled)
        assert "'image': '111122223333.dkr.ecr." in str(filled)
