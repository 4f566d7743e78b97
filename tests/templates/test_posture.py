"""Security of a cluster that neither cdk-nag nor checkov judges: secrets, doors, rights.

Security contexts, namespaces, images and node classes are asserted by the tests of their charts.
"""

import re
from collections.abc import Iterator
from typing import cast

import pytest

from tests.support.assembly import Assembly, Document
from tests.support.kubernetes_schemas import named, pod_spec

# Credentials of AWS, GitHub, Hugging Face, APIs and Slack, keys, tokens, passwords in addresses.
CREDENTIAL = re.compile(
    r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b|-----BEGIN (?:[A-Z]+ )*PRIVATE KEY-----"
    r"|\b(?:gh[pousr]_\w{36,}|github_pat_\w{22,}|hf_\w{30,}|sk-[\w-]{32,}|xox[abprs]-[\w-]{10,})"
    r"|\beyJ[\w-]{10,}\.eyJ[\w-]{10,}\.[\w-]{10,}"
    r"|\b[a-z][a-z0-9+.-]*://[^\s/:@${}<]+:[^\s/@${}<]{3,}@"
)
SECRET_NAME = re.compile(
    r"(?:passw(?:or)?d|secret(?:string)?|(?:access|private|api)_?key|token)$", re.IGNORECASE
)
REFERENCE = re.compile(r"\{\{resolve:|\$\{|arn:|/|.*-secret$|$")
POLICIES = {
    "AWS::S3::BucketPolicy": "PolicyDocument",
    "AWS::SQS::QueuePolicy": "PolicyDocument",
    "AWS::SNS::TopicPolicy": "PolicyDocument",
    "AWS::KMS::Key": "KeyPolicy",
}
# EventBridge tells SNS and KMS neither its rule nor its account.
# Source: https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-troubleshooting.html
SAYS_NOTHING = "events.amazonaws.com"
SOURCES = re.compile("aws:SourceAccount|aws:SourceArn|kms:CallerAccount")
# They apply manifests and install a chart: CRDs, roles and namespaces among them.
APPLIERS = re.compile("ProviderHandlerServiceRole|ChartRole")
# The kubelet's sockets, and devices with their state, as vendors' manifests mount them.
HOST_PATHS = {
    "neuron-device-plugin": {"/var/lib/kubelet/device-plugins", "/run", "/opt/aws"},
    "nvidia-device-plugin": {"/var/lib/kubelet/device-plugins"},
    "dcgm-exporter": {"/var/lib/kubelet/pod-resources"},
    "aws-efa-k8s-device-plugin": {
        *("/var/lib/kubelet/device-plugins", "/dev/infiniband", "/opt/aws/neuron")
    },
}
# Source: https://kubernetes.io/docs/concepts/security/rbac-good-practices/
SENSITIVE = re.compile(
    r"\*|secrets|pods/(?:exec|attach|portforward|ephemeralcontainers)|nodes/proxy|impersonate"
    r"|serviceaccounts/token|(?:cluster)?role(?:binding)?s|bind|escalate"
)
RIGHTS = {
    # AWS's chart grants it, and nobody has shown the plugin to work without.
    ("neuron-device-plugin", "nodes/proxy"),
    # The ssh plugin keeps a job's keys in a Secret of the job's namespace.
    ("volcano-controllers", "secrets"),
    # Makes the certificate of the webhooks, in Volcano's own namespace.
    ("volcano-admission-init", "secrets"),
}


@pytest.fixture(params=["trainium", "mixed", "auto", "hybrid", "ultra", "llm", "estate"])
def assembly(request: pytest.FixtureRequest) -> Assembly:
    """Everything that each of the cluster files becomes."""
    return request.getfixturevalue(request.param)


def named_values(value: object) -> Iterator[tuple[str, str]]:
    """Yield each text of a document with its key, or with the name of its variable."""
    if isinstance(value, dict):
        mapping = cast("dict[str, object]", value)
        variable = [mapping.get(key, mapping.get(key.title())) for key in ("name", "value")]
        pairs = [*mapping.items(), (str(variable[0]), variable[1])]
        yield from ((key, text) for key, text in pairs if isinstance(text, str))
        value = [*mapping.values()]
    if isinstance(value, list):
        for item in cast("list[object]", value):
            yield from named_values(item)


def test_no_secret_stands_in_plain_text(assembly: Assembly) -> None:
    values = [*named_values([*assembly.templates.values(), *assembly.documents])]
    files = [file for file in (assembly.folder / "cdk.out").glob("asset.*/**/*") if file.is_file()]

    assert len(values) > 500
    assert len(files) > 10
    assert [name for name, text in values if CREDENTIAL.search(text)] == []
    assert [file for file in files if CREDENTIAL.search(file.read_text(errors="ignore"))] == []
    secrets = {(name, text) for name, text in values if SECRET_NAME.search(name)}
    assert {pair for pair in secrets if not REFERENCE.match(pair[1])} == set()
    for document in assembly.documents:
        assert document["kind"] != "Secret" or not {"data", "stringData"} & {*document}


def test_a_service_is_let_in_for_this_account_alone(assembly: Assembly) -> None:
    for kind, key in POLICIES.items():
        for stack, body in assembly.resources(kind):
            for statement in body["Properties"][key]["Statement"]:
                principal = str(statement.get("Principal"))
                if statement["Effect"] == "Allow" and "'Service'" in principal:
                    bound = SAYS_NOTHING in principal or SOURCES.search(str(statement))
                    assert bound, (stack, statement)


def test_nobody_administers_the_cluster_but_whom_the_file_names(assembly: Assembly) -> None:
    for _, body in assembly.resources("AWS::EKS::AccessEntry"):
        if re.search("AdminPolicy|system:masters", str(body)):
            role = body["Properties"]["PrincipalArn"]
            assert role in assembly.plan.control_plane.admins or APPLIERS.search(str(role))


def test_pods_mount_no_folder_of_their_node_without_a_reason(assembly: Assembly) -> None:
    for document in assembly.documents:
        volumes = (pod_spec(document) or {}).get("volumes", ())
        paths = {volume["hostPath"]["path"] for volume in volumes if "hostPath" in volume}
        assert paths <= HOST_PATHS.get(document["metadata"]["name"], set()), named(document)


def words_of(role: Document) -> set[str]:
    """Return each verb, group, resource and name in the rules of a role."""
    return {word for rule in role.get("rules") or () for words in rule.values() for word in words}


def test_no_role_reaches_secrets_or_other_roles_without_a_reason(assembly: Assembly) -> None:
    for document in assembly.documents:
        name = document["metadata"]["name"]
        if document["kind"] in ("Role", "ClusterRole"):
            rights = {(name, word) for word in words_of(document) if SENSITIVE.fullmatch(word)}
            assert rights <= RIGHTS
        if document["kind"] in ("RoleBinding", "ClusterRoleBinding"):
            assert document["roleRef"]["name"] not in ("cluster-admin", "admin", "edit")
            assert not re.search("'system:(?!serviceaccounts)", str(document.get("subjects")))
