"""The NodeOverlay of Karpenter as a CRD, from the fields and rules that its guide names.

Sources:
    https://karpenter.sh/docs/concepts/nodeoverlays/
    https://github.com/aws/karpenter-provider-aws/tree/main/charts/karpenter-crd
"""

from collections.abc import Mapping
from typing import Any

from tests.support.crd_schemas import CrdSet, Document

Schema = Mapping[str, Any]

_KNOWN_RESOURCES = ("cpu", "memory", "ephemeral-storage", "pods")
_LABELS = (
    "node.kubernetes.io/instance-type",
    "topology.kubernetes.io/zone",
    "karpenter.sh/capacity-type",
    "karpenter.sh/nodepool",
)
_REQUIREMENT: Schema = {
    "type": "object",
    "required": ["key", "operator", "values"],
    "properties": {
        "key": {"type": "string", "enum": [*_LABELS]},
        "operator": {"type": "string", "enum": ["In", "NotIn"]},
        "values": {"type": "array", "items": {"type": "string"}, "minItems": 1},
    },
}
_SPEC: Schema = {
    "type": "object",
    "required": ["requirements"],
    "properties": {
        "requirements": {"type": "array", "items": _REQUIREMENT, "maxItems": 100},
        "weight": {"type": "integer", "minimum": 1, "maximum": 10_000},
        "price": {"type": "string"},
        "priceAdjustment": {"type": "string"},
        "capacity": {
            "type": "object",
            "additionalProperties": {"type": "string", "pattern": r"^[0-9]+([KMGTPE]i)?$"},
            "x-kubernetes-validations": [
                {
                    "rule": f"self.all(x, !(x in {[*_KNOWN_RESOURCES]}))",
                    "message": "a resource that Karpenter knows",
                }
            ],
        },
    },
}
CRD: Document = {
    "spec": {
        "group": "karpenter.sh",
        "names": {"kind": "NodeOverlay"},
        "versions": [
            {
                "name": "v1alpha1",
                "served": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "required": ["spec"],
                        "properties": {"spec": _SPEC},
                    }
                },
            }
        ],
    }
}
NODE_OVERLAY = CrdSet.from_documents([CRD])
