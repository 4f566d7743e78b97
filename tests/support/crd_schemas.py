"""Judges custom resources offline as an API server would: schema, defaults, pruning, CEL rules.

Transition rules (those that read `oldSelf`) are left out: there is no old object.
"""

import copy
import importlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Self, cast

import pytest
import yaml

from tests.support.folders import ROOT

# None of the three ships type hints.
celpy: Any = importlib.import_module("celpy")
celtypes: Any = importlib.import_module("celpy.celtypes")
jsonschema: Any = importlib.import_module("jsonschema")
# Its first environment raises the recursion limit, which hypothesis takes amiss within a test.
celpy.Environment()

# The CRDs are megabytes of YAML; libyaml reads them ten times faster where it is built in.
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

Document = Mapping[str, Any]
Schema = Mapping[str, Any]
Key = tuple[str, str]

CRD_FOLDERS = ROOT.parent / "shared" / "facts" / "crds"
_KEEP = "x-kubernetes-preserve-unknown-fields"
_INT_OR_STRING = "x-kubernetes-int-or-string"
_NOT_JSON_SCHEMA = ("description", "format", "nullable", "default", "example")
# Keeps an object and everything in it.
_WHOLE: Schema = {_KEEP: True}
_COMBINERS = ("anyOf", "allOf", "oneOf")


class CrdSet:
    """CustomResourceDefinitions, and what they say of an object."""

    def __init__(self, schemas: Mapping[Key, Schema]) -> None:
        self._schemas = dict(schemas)
        self._validators = {
            key: jsonschema.Draft202012Validator(_json_schema(_root(schema)))
            for key, schema in schemas.items()
        }

    @classmethod
    def from_documents(cls, documents: Iterable[Document]) -> Self:
        """Make a set of CRDs that are already parsed. A version that is not served is left out."""
        schemas: dict[Key, Schema] = {}
        for document in documents:
            group, kind = document["spec"]["group"], document["spec"]["names"]["kind"]
            for version in document["spec"]["versions"]:
                if version["served"]:
                    key = (f"{group}/{version['name']}", kind)
                    schemas[key] = version["schema"]["openAPIV3Schema"]
        return cls(schemas)

    @classmethod
    def from_folder(cls, folder: Path) -> Self:
        """Make a set of every CRD in the YAML files of ``folder``."""
        return cls.from_documents(load_folder(folder))

    @property
    def kinds(self) -> frozenset[Key]:
        """The pairs of apiVersion and kind that the set serves."""
        return frozenset(self._schemas)

    def schema(self, manifest: Document) -> Schema:
        """Return the schema that ``manifest`` is judged by, which names every top-level field."""
        return _root(self._schemas[_key(manifest)])

    def validate(self, manifest: Document) -> list[str]:
        """Return why an API server would refuse ``manifest``, or warn of a field it would drop."""
        key = _key(manifest)
        if key not in self._schemas:
            return [f"no CRD serves kind {key[1]} of {key[0]}"]
        schema = self.schema(manifest)
        document = _with_defaults(schema, manifest)
        found = (
            f"{error.json_path}: {error.message}"
            for error in self._validators[key].iter_errors(document)
        )
        mistakes = sorted(found)
        # An API server evaluates rules only on objects whose fields have the right types.
        return mistakes or list(_broken_rules(schema, document, "$"))

    def stored(self, manifest: Document) -> Document:
        """Return ``manifest`` as an API server stores it: completed, and without unknown fields."""
        schema = self.schema(manifest)
        return _pruned(schema, _with_defaults(schema, manifest))


def validate(document: Document, crd: Document) -> list[str]:
    """Return why an API server with only ``crd`` would refuse ``document``."""
    return CrdSet.from_documents([crd]).validate(document)


def load_folder(folder: Path) -> list[Document]:
    """Return every document of the YAML files of ``folder``, in the order of their names."""
    return [
        document
        for path in sorted(folder.glob("*.yaml"))
        for document in yaml.load_all(path.read_text(), Loader=_LOADER)
        if document
    ]


def _key(manifest: Document) -> Key:
    return (manifest["apiVersion"], manifest["kind"])


def _root(schema: Schema) -> Schema:
    """Complete a CRD's schema by what Kubernetes itself knows and checks of every object."""
    implied = {"apiVersion": {"type": "string"}, "kind": {"type": "string"}}
    fields = {
        **schema.get("properties", {}),
        **implied,
        "metadata": {"type": "object", _KEEP: True},
    }
    return {**schema, "properties": fields}


def _json_schema(schema: Schema) -> dict[str, Any]:
    result = {
        key: value
        for key, value in schema.items()
        if key not in _NOT_JSON_SCHEMA and not key.startswith("x-kubernetes-")
    }
    if schema.get(_INT_OR_STRING):
        result.pop("type", None)
        result["anyOf"] = [{"type": "integer"}, {"type": "string"}]
    if "properties" in schema:
        named = schema["properties"].items()
        result["properties"] = {name: _json_schema(field) for name, field in named}
        # An API server drops the fields it does not know; whoever wrote them should hear of it.
        if "additionalProperties" not in schema and not schema.get(_KEEP):
            result["additionalProperties"] = False
    for key in ("items", "additionalProperties", "not"):
        if isinstance(schema.get(key), Mapping):
            result[key] = _json_schema(schema[key])
    for key in _COMBINERS:
        # Inside a combiner a schema is no object of its own, so it forbids no fields.
        if key in result and not schema.get(_INT_OR_STRING):
            result[key] = [_open(_json_schema(branch)) for branch in schema[key]]
    return result


def _open(schema: dict[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in schema.items() if (k, v) != ("additionalProperties", False)}


def _children(schema: Schema, value: Any) -> Iterator[tuple[Any, Schema]]:
    """Yield the keys of ``value`` that the schema describes, with their schemas."""
    named, others = schema.get("properties", {}), schema.get("additionalProperties")
    for name in fields(value):
        child = named.get(name, others)
        if isinstance(child, Mapping):
            yield name, cast(Schema, child)
    if "items" in schema:
        yield from ((index, schema["items"]) for index, _ in enumerate(elements(value)))


def fields(value: Any) -> Document:
    """Return ``value`` if it is an object, and an empty one if it is not."""
    return cast(Document, value) if isinstance(value, Mapping) else {}


def elements(value: Any) -> list[Any]:
    """Return ``value`` if it is a list, and an empty one if it is not."""
    return cast(list[Any], value) if isinstance(value, list) else []


def _with_defaults(schema: Schema, value: Any) -> Any:
    result: Any = copy.copy(value)
    if isinstance(value, Mapping):
        for name, field in schema.get("properties", {}).items():
            if "default" in field and name not in result:
                result[name] = copy.deepcopy(field["default"])
    for key, child in list(_children(schema, result)):
        result[key] = _with_defaults(child, result[key])
    return result


def _pruned(schema: Schema, value: Any) -> Any:
    children = dict(_children(schema, value))
    if isinstance(value, Mapping):
        kept = fields(value) if schema.get(_KEEP) else children
        return {name: _pruned(children.get(name, _WHOLE), value[name]) for name in kept}
    if "items" in schema:
        return [_pruned(schema["items"], element) for element in elements(value)]
    return value


def _broken_rules(schema: Schema, value: Any, path: str) -> Iterator[str]:
    for validation in schema.get("x-kubernetes-validations", []):
        rule = validation["rule"]
        if "oldSelf" not in rule and not _holds(rule, value):
            yield f"{path}: {validation.get('message', rule)}"
    for key, child in _children(schema, value):
        step = f"[{key}]" if isinstance(key, int) else f".{key}"
        yield from _broken_rules(child, value[key], path + step)


def _holds(rule: str, value: Any) -> bool:
    return _answer(rule, json.dumps(value))


@cache
def _answer(rule: str, text: str) -> bool:
    """Evaluate ``rule``: in Python that takes milliseconds, and most values are in many objects."""
    try:
        return bool(_program(rule).evaluate({"self": celpy.json_to_cel(json.loads(text))}))
    except celpy.CELEvalError:
        return False


@cache
def _program(rule: str) -> Any:
    environment = celpy.Environment()
    functions = {"find": _find, "split": _split}
    return environment.program(environment.compile(rule), functions=functions)


def _find(text: Any, pattern: Any) -> Any:
    match = re.search(str(pattern), str(text))
    return celtypes.StringType(match.group(0) if match else "")


def _split(text: Any, separator: Any) -> Any:
    parts = str(text).split(str(separator))
    return celtypes.ListType([celtypes.StringType(part) for part in parts])


# Karpenter 1.15 takes any field of the kubelet there and says which are wrong only once it runs.
# Source: https://karpenter.sh/docs/concepts/nodeclasses/#speckubelet
_KUBELET: Schema = {
    "type": "object",
    "properties": {
        "clusterDNS": {"type": "array", "items": {"type": "string"}},
        "cpuCFSQuota": {"type": "boolean"},
        "evictionMaxPodGracePeriod": {"type": "integer"},
        "imageGCHighThresholdPercent": {"type": "integer"},
        "imageGCLowThresholdPercent": {"type": "integer"},
        "maxPods": {"type": "integer", "minimum": 0},
        "podsPerCore": {"type": "integer", "minimum": 0},
        **{
            name: {"type": "object", "additionalProperties": {"type": "string"}}
            for name in (
                "evictionHard",
                "evictionSoft",
                "evictionSoftGracePeriod",
                "kubeReserved",
                "systemReserved",
            )
        },
    },
}
KARPENTER_FOLDERS = ("karpenter-v1.14.1", "karpenter-v1.15.x")
"""CRDs of the two minors that the product offers, the conservative one first."""


def karpenter_documents(folder: str = KARPENTER_FOLDERS[-1]) -> list[Document]:
    """Return upstream's CRDs of a Karpenter, strict about the kubelet's fields.

    The test is skipped where they are not beside the project.
    """
    path = CRD_FOLDERS / folder
    if not path.is_dir():
        pytest.skip(f"the CRDs of Karpenter are not in {path}")
    documents = load_folder(path)
    for document in documents:
        if document["spec"]["names"]["kind"] == "EC2NodeClass":
            for version in document["spec"]["versions"]:
                spec = version["schema"]["openAPIV3Schema"]["properties"]["spec"]
                if spec["properties"]["kubelet"].get(_KEEP):
                    spec["properties"]["kubelet"] = _KUBELET
    return documents


def karpenter_crds(folder: str = KARPENTER_FOLDERS[-1]) -> CrdSet:
    """Return upstream's CRDs of a Karpenter; skip the test where they are not there."""
    return CrdSet.from_documents(karpenter_documents(folder))
