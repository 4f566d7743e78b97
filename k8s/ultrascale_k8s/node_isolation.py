"""Admission policy that keeps pods without accelerators off nodes that cannot have taints."""

import json
from collections.abc import Mapping

from ultrascale.documents import JsonObject
from ultrascale.plan.model import IsolationPlan
from ultrascale.plan.names import NODE_ISOLATION_POLICY as NAME
from ultrascale_k8s._admission import API_VERSION, NAMESPACE_LABEL, asks_for
from ultrascale_k8s.objects import labels

# Exempt: a DaemonSet is for all nodes, and a named node was chosen, for example by `kubectl debug`.
_IS_SCHEDULED = """\
!has(object.spec.nodeName) && (!has(object.metadata.ownerReferences) ||
!object.metadata.ownerReferences.exists(owner, owner.kind == "DaemonSet"))"""

_BY_SELECTOR = """\
has(object.spec.nodeSelector) && object.spec.nodeSelector.exists(key,
key in variables.isolated && !(object.spec.nodeSelector[key] in variables.isolated[key]))"""

# Node selector terms are alternatives, so every term must exclude these nodes.
_BY_AFFINITY = """\
has(object.spec.affinity) && has(object.spec.affinity.nodeAffinity) &&
has(object.spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution) &&
object.spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution
.nodeSelectorTerms.all(term, has(term.matchExpressions) && term.matchExpressions.exists(wanted,
wanted.key in variables.isolated && (
(wanted.operator == "DoesNotExist") ||
(wanted.operator == "In" &&
!wanted.values.exists(value, value in variables.isolated[wanted.key])) ||
(wanted.operator == "NotIn" &&
variables.isolated[wanted.key].all(value, value in wanted.values)))))"""


def node_isolation_objects(plan: IsolationPlan) -> list[JsonObject]:
    """Return the admission policy and its binding.

    The policy guards against accidents: a user who may create pods can request an accelerator, or
    imitate a DaemonSet. Running pods, and pods of exempt namespaces, are not affected.

    Source: https://kubernetes.io/docs/reference/access-authn-authz/validating-admission-policy/
    """
    return [policy_manifest(plan), _binding_manifest()]


def policy_manifest(plan: IsolationPlan) -> JsonObject:
    """Return the policy: a pod without accelerators must select other nodes."""
    prefixes = json.dumps(list(plan.accelerator_prefixes))
    accelerator = f"{prefixes}.exists(prefix, name.startsWith(prefix))"
    return {
        "apiVersion": API_VERSION,
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"labels": labels(NAME), "name": NAME},
        "spec": {
            # The API server itself evaluates the policy, so no webhook can be down.
            "failurePolicy": "Fail",
            "matchConstraints": {
                "namespaceSelector": {
                    "matchExpressions": [
                        {
                            "key": NAMESPACE_LABEL,
                            "operator": "NotIn",
                            "values": list(plan.exempt_namespaces),
                        }
                    ]
                },
                "resourceRules": [
                    {
                        "apiGroups": [""],
                        "apiVersions": ["v1"],
                        "operations": ["CREATE"],
                        "resources": ["pods"],
                    }
                ],
            },
            "matchConditions": [
                {"name": "is-scheduled", "expression": _IS_SCHEDULED},
                {
                    "name": "has-no-accelerator",
                    "expression": f"!{asks_for('object.spec', accelerator)}",
                },
            ],
            "variables": [{"name": "isolated", "expression": _literal(plan.node_labels)}],
            "validations": [
                {
                    "expression": f"({_BY_SELECTOR}) || ({_BY_AFFINITY})",
                    "message": _message(plan),
                    "reason": "Invalid",
                }
            ],
        },
    }


def _binding_manifest() -> JsonObject:
    return {
        "apiVersion": API_VERSION,
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"labels": labels(NAME), "name": NAME},
        "spec": {"policyName": NAME, "validationActions": ["Deny"]},
    }


def _literal(values: Mapping[str, tuple[str, ...]]) -> str:
    """Return the CEL literal of a map; CEL's literals are JSON's."""
    return json.dumps({key: list(each) for key, each in values.items()})


def _message(plan: IsolationPlan) -> str:
    elsewhere = ", ".join(f"{key}: {value}" for key, value in plan.suggested_labels.items())
    return (
        "this pod asks for no accelerator and could take the place of one that does on a HyperPod "
        f"node, which can have no taints; add nodeSelector {{{elsewhere}}}, or a required node "
        "affinity for other nodes in each of its terms"
    )
