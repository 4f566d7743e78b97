"""Volcano's CRDs, ours against upstream's: the same API, and nothing of a user's is ever pruned."""

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any

import cdk8s
import pytest

from tests.support.crd_schemas import CRD_FOLDERS, CrdSet, Document, elements, fields, load_folder
from tests.support.kubernetes_schemas import MINORS, payload_bytes, validate_core
from tests.support.volcano_objects import BAD, GOOD
from ultrascale_k8s.volcano.chart import VolcanoCrdsChart, crds

UPSTREAM_FOLDER = CRD_FOLDERS / "volcano-v1.15.1"
SIZE_LIMIT_BYTES = 10_000
CRDS: Sequence[Document] = crds()
DEFINITIONS = {crd["spec"]["names"]["kind"]: crd for crd in CRDS}
OURS = CrdSet.from_documents(CRDS)

each_kind = pytest.mark.parametrize("kind", DEFINITIONS)


@pytest.fixture(scope="session")
def upstream() -> CrdSet:
    return CrdSet.from_documents(upstream_documents())


@cache
def upstream_documents() -> list[Document]:
    if not UPSTREAM_FOLDER.is_dir():
        pytest.skip(f"the CRDs of Volcano are not in {UPSTREAM_FOLDER}")
    return load_folder(UPSTREAM_FOLDER)


def upstream_crd(kind: str) -> Document:
    return next(d for d in upstream_documents() if d["spec"]["names"]["kind"] == kind)


def version_of(definition: Document) -> dict[str, Any]:
    (version,) = definition["spec"]["versions"]
    return version


def schema_of(definition: Document) -> dict[str, Any]:
    return version_of(definition)["schema"]["openAPIV3Schema"]


each_good = pytest.mark.parametrize("document", GOOD.values(), ids=list(GOOD))
each_bad = pytest.mark.parametrize("document", BAD.values(), ids=list(BAD))

# --- verdicts -----------------------------------------------------------------------------------


@each_good
def test_good_object_is_accepted_and_nothing_of_a_user_is_pruned(document: Document) -> None:
    strange = with_strange_fields(document, OURS.schema(document))

    assert OURS.validate(document) == OURS.validate(strange) == []
    assert missing(strange, OURS.stored(strange)) == []


@each_good
def test_good_object_is_accepted_and_completed_by_upstream_as_by_us(
    document: Document, upstream: CrdSet
) -> None:
    assert upstream.validate(document) == []
    assert without_pods(OURS.stored(document)) == without_pods(upstream.stored(document))


def test_objects_of_every_kind_are_judged() -> None:
    assert {each["kind"] for each in GOOD.values()} == {*DEFINITIONS}


@each_bad
def test_bad_object_is_refused(document: Document) -> None:
    assert OURS.validate(document)


@each_bad
def test_bad_object_is_one_that_upstream_refuses(document: Document, upstream: CrdSet) -> None:
    assert upstream.validate(document)


def without_pods(value: Any) -> Any:
    """Drop pod templates and volume claims, which upstream completes and Kubernetes does anyway."""
    if isinstance(value, Mapping):
        kept = {k: v for k, v in fields(value).items() if k not in ("template", "volumeClaim")}
        return {key: without_pods(child) for key, child in kept.items()}
    return [without_pods(child) for child in elements(value)] or value


def with_strange_fields(value: Any, schema: Mapping[str, Any]) -> Any:
    """Add a field nobody knows to each object of ``value`` whose fields the schema may name."""
    if isinstance(value, Mapping):
        named, others = schema.get("properties", {}), schema.get("additionalProperties", {})
        grown = {k: with_strange_fields(v, named.get(k, others)) for k, v in fields(value).items()}
        return grown if others else {**grown, "fieldOfTheFuture": {"deep": [1]}}
    items = schema.get("items", {})
    return [with_strange_fields(child, items) for child in elements(value)] or value


def missing(before: Any, after: Any, path: str = "$") -> list[str]:
    """Return the paths of ``before`` that ``after`` lacks or changes."""
    if isinstance(before, Mapping):
        pairs = [
            (f".{key}", value, fields(after).get(key)) for key, value in fields(before).items()
        ]
    elif elements(before) and len(elements(before)) == len(elements(after)):
        both = zip(elements(before), elements(after), strict=True)
        pairs = [(f"[{index}]", *pair) for index, pair in enumerate(both)]
    else:
        return [] if before == after else [path]
    return [found for step, b, a in pairs for found in missing(b, a, path + step)]


# --- definitions --------------------------------------------------------------------------------


@each_kind
def test_api_server_takes_the_definition_which_a_tool_keeps_that_deletes_the_chart(
    kind: str,
) -> None:
    definition = DEFINITIONS[kind]
    annotations = definition["metadata"]["annotations"]

    assert [found for minor in MINORS for found in validate_core(definition, minor)] == []
    assert [*not_structural(schema_of(definition))] == []
    # It fits a manifest many times.
    assert payload_bytes([definition]) < SIZE_LIMIT_BYTES
    assert annotations["helm.sh/resource-policy"] == "keep"
    assert "Prune=false" in annotations["argocd.argoproj.io/sync-options"]


@each_kind
def test_names_and_columns_are_those_of_upstream(kind: str) -> None:
    ours = DEFINITIONS[kind]
    theirs = upstream_crd(kind)

    assert {**ours["spec"], "versions": None} == {**theirs["spec"], "versions": None}
    assert ours["metadata"]["name"] == theirs["metadata"]["name"]
    for fact in ("name", "served", "storage", "additionalPrinterColumns"):
        assert version_of(ours).get(fact) == version_of(theirs).get(fact)
    assert (version_of(ours).get("subresources") or {}) == (
        version_of(theirs).get("subresources") or {}
    )


def test_every_kind_of_upstream_is_served(upstream: CrdSet) -> None:
    assert OURS.kinds == upstream.kinds


@each_kind
def test_fields_are_bounded_and_completed_as_upstream_does(kind: str) -> None:
    ours = dict(facts(schema_of(DEFINITIONS[kind])))
    theirs = dict(facts(schema_of(upstream_crd(kind))))

    assert ours == theirs


def test_chart_renders_each_definition_as_it_is() -> None:
    chart = VolcanoCrdsChart(cdk8s.Testing.app(), "volcano-crds")

    assert cdk8s.Testing.synth(chart) == CRDS


_FORBIDDEN = frozenset(
    {
        *("$ref", "definitions", "dependencies", "deprecated", "discriminator", "id", "xml"),
        *("patternProperties", "readOnly", "uniqueItems", "writeOnly"),
    }
)


def not_structural(schema: Mapping[str, Any], path: str = "$") -> Iterator[str]:
    """Yield what makes ``schema`` one that an API server refuses as not structural.

    Source: https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/#specifying-a-structural-schema
    """
    if "type" not in schema and not schema.get("x-kubernetes-int-or-string"):
        yield f"{path}: no type"
    yield from (f"{path}: {key} is forbidden" for key in sorted(_FORBIDDEN & schema.keys()))
    if "properties" in schema and "additionalProperties" in schema:
        yield f"{path}: both properties and additionalProperties"
    if schema.get("type") == "array" and "items" not in schema:
        yield f"{path}: no items"
    for required in schema.get("required", ()):
        if required not in schema.get("properties", {}):
            yield f"{path}: requires {required}, which it does not describe"
    for key, child in children(schema):
        yield from not_structural(child, path + key)


def children(schema: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    yield from ((f".{name}", field) for name, field in schema.get("properties", {}).items())
    for key, step in (("items", "[]"), ("additionalProperties", "{}")):
        if key in schema:
            yield step, schema[key]


_OWNED_ELSEWHERE = (
    "$.status",
    "$.apiVersion",
    "$.kind",
    "$.metadata",
    "$.spec.jobTemplate.metadata",
)
_COMPARED = (
    *("type", "format", "default", "enum", "required", "minimum", "maximum", "minItems"),
    *("minLength", "maxLength", "pattern", "x-kubernetes-int-or-string"),
    *("x-kubernetes-list-type", "x-kubernetes-map-type", "x-kubernetes-validations"),
)
_OWNED_SUFFIXES = (".template.metadata", ".template.spec", ".volumeClaim")


def facts(schema: Mapping[str, Any], path: str = "$") -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield what the schema says of each field, by path, down to what other kinds own."""
    if path in _OWNED_ELSEWHERE:
        return
    said = {key: schema[key] for key in _COMPARED if key in schema}
    for unordered in ("enum", "required"):
        if unordered in said:
            said[unordered] = sorted(said[unordered])
    yield path, said
    if not path.endswith(_OWNED_SUFFIXES):
        for step, child in children(schema):
            yield from facts(child, path + step)
