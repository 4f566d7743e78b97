"""Rules for the objects of a large cluster: each breach costs the API server or a node."""

from collections.abc import Iterator, Sequence
from ipaddress import ip_address, ip_network

from tests.support.kubernetes_schemas import Document, named, pod_spec

# The program reads it under a name that it knows, and follows its changes.
READ_BY_NAME = frozenset({"volcano-controller-configmap", "amazon-vpc-cni"})
# The two pods of JobSet's controller mount it, and write it themselves.
_OF_ONE_PROGRAM = frozenset({"jobset-webhook-server-cert"})
_WITH_HISTORY = ("Deployment", "DaemonSet", "StatefulSet")
_MOST_SECONDS = 30
_CACHE = ip_address("169.254.20.10")
_ALL, _NOWHERE = {"ipBlock": {"cidr": "0.0.0.0/0"}}, "192.0.2.0/32"


def scale_findings(documents: Sequence[Document]) -> Iterator[str]:
    """Yield what is wrong with ``documents``."""
    for document in documents:
        yield from _object_findings(document)
        yield from _pod_findings(document)


def _leads_to_cache(policy: Document) -> bool:
    """Return whether pods may ask the cache of names on their node, which is no pod's address."""
    return "Egress" not in policy["policyTypes"] or any(
        _CACHE in ip_network(block["cidr"])
        and not any(_CACHE in ip_network(each) for each in block.get("except", []))
        for rule in policy["egress"]
        for block in (peer.get("ipBlock", {"cidr": _NOWHERE}) for peer in rule.get("to", [_ALL]))
    )


def _object_findings(document: Document) -> Iterator[str]:
    kind, name = document["kind"], document["metadata"]["name"]
    few = READ_BY_NAME | _OF_ONE_PROGRAM
    mounted = kind in ("ConfigMap", "Secret") and name not in few
    if mounted and document.get("immutable") is not True:
        yield f"{named(document)}: every kubelet that mounts it watches it"
    if kind in _WITH_HISTORY and not 1 <= document["spec"].get("revisionHistoryLimit", 10) <= 3:
        yield f"{named(document)}: keeps too many of its old versions"
    if kind == "Job" and "ttlSecondsAfterFinished" not in document["spec"]:
        yield f"{named(document)}: stays when it is done"
    for webhook in document.get("webhooks", []):
        if not 1 <= webhook.get("timeoutSeconds", 0) <= _MOST_SECONDS:
            yield f"{named(document)}: holds requests up without an end"
    if kind == "NetworkPolicy" and not _leads_to_cache(document["spec"]):
        yield f"{named(document)}: keeps pods from the cache of names on their node"


def _pod_findings(document: Document) -> Iterator[str]:
    pod = pod_spec(document)
    if pod is None:
        return
    account = pod.get("serviceAccountName")
    if account is None and pod.get("automountServiceAccountToken") is not False:
        yield f"{named(document)}: its pods get a token for nothing"
    if document["kind"] == "DaemonSet" and pod.get("enableServiceLinks") is not False:
        yield f"{named(document)}: has every Service in the environment of every node's pod"
    mounted = {v["configMap"]["name"] for v in pod.get("volumes", []) if "configMap" in v}
    if mounted & READ_BY_NAME:
        yield f"{named(document)}: mounts what changes under it"
