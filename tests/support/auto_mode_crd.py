"""The NodeClass of EKS Auto Mode as a CRD, from the fields that its guide names.

AWS installs the real one in the cluster and publishes it nowhere. Ours is as strict as the page: a
field that the page does not name is refused.

Source: https://docs.aws.amazon.com/eks/latest/userguide/create-node-class.html
"""

from collections.abc import Mapping
from typing import Any

from tests.support.crd_schemas import CrdSet, Document

Schema = Mapping[str, Any]

_TEXT = {"type": "string", "minLength": 1}
_TAGS = {"type": "object", "additionalProperties": {"type": "string"}, "minProperties": 1}
_COUNT = {"type": "integer", "minimum": 0}
_OWN_TAGS = (
    "kubernetes.io/cluster/",
    "karpenter.sh/provisioner-name",
    "karpenter.sh/nodepool",
    "karpenter.sh/nodeclaim",
    "karpenter.sh/managed-by",
    "eks.amazonaws.com/nodeclass",
)


def _object(*required: str, **properties: Schema) -> Schema:
    return {"type": "object", "properties": properties, "required": [*required]}


def _list(items: Schema) -> Schema:
    return {"type": "array", "items": items, "minItems": 1}


def _one_of(*values: str) -> Schema:
    return {"type": "string", "enum": [*values]}


def _rule(schema: Schema, rule: str, message: str) -> Schema:
    return {**schema, "x-kubernetes-validations": [{"rule": rule, "message": message}]}


_INTERFACE = _rule(
    _object(
        "networkCardIndex",
        "deviceIndex",
        "interfaceType",
        networkCardIndex=_COUNT,
        deviceIndex=_COUNT,
        interfaceType=_one_of("interface", "efa-only"),
        secondaryIPv4PrefixCount=_COUNT,
        secondaryIPv4Count=_COUNT,
    ),
    "(self.networkCardIndex == 0 && self.interfaceType == 'interface')"
    " || !(has(self.secondaryIPv4PrefixCount) || has(self.secondaryIPv4Count))",
    "addresses are for interfaces of card 0",
)
_SPEC = _object(
    "role",
    "subnetSelectorTerms",
    "securityGroupSelectorTerms",
    role=_TEXT,
    subnetSelectorTerms=_list(_object(tags=_TAGS, id=_TEXT)),
    securityGroupSelectorTerms=_list(_object(tags=_TAGS, id=_TEXT, name=_TEXT)),
    capacityReservationSelectorTerms=_list(
        _rule(
            _object(id=_TEXT, tags=_TAGS, owner=_TEXT),
            "has(self.id) != has(self.tags)",
            "a reservation is named by id or tags",
        )
    ),
    placementGroupSelector=_object(name=_TEXT, id=_TEXT),
    snatPolicy=_one_of("Random", "Disabled"),
    networkPolicy=_one_of("DefaultAllow", "DefaultDeny"),
    networkPolicyEventLogs=_one_of("Disabled", "Enabled"),
    ephemeralStorage=_object(
        size={"type": "string", "pattern": r"^[1-9]\d{0,4}Gi$"},
        iops={"type": "integer", "minimum": 3000, "maximum": 16000},
        throughput={"type": "integer", "minimum": 125, "maximum": 1000},
        kmsKeyID=_TEXT,
    ),
    advancedNetworking=_object(
        networkInterfaces=_rule(
            _list(_INTERFACE),
            "self.exists(x, x.networkCardIndex == 0 && x.deviceIndex == 0"
            " && x.interfaceType == 'interface')",
            "the primary interface is missing",
        ),
        ipv4PrefixSize=_one_of("Auto", "32"),
    ),
    tags=_rule(
        _TAGS,
        " && ".join(f"self.all(k, !k.startsWith('{tag}'))" for tag in _OWN_TAGS),
        "a tag that EKS sets itself",
    ),
)
CRD: Document = {
    "spec": {
        "group": "eks.amazonaws.com",
        "names": {"kind": "NodeClass"},
        "versions": [
            {
                "name": "v1",
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
AUTO_MODE = CrdSet.from_documents([CRD])
