"""The JSON Schemas: what an editor says of a file is what `check` says of it."""

import json
import math
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, get_args

import jsonschema
import pytest
import yaml
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from tests.support import known_bad
from tests.support.folders import DATA, ROOT
from tests.support.pools import as_text, make_document
from tests.support.rich_documents import RICH, VALUES, places, replaced
from ultrascale import config, yaml_reader
from ultrascale.config._document import is_mapping, parse_yaml
from ultrascale.config._reading import read_document
from ultrascale.documents import Json, JsonObject, mapping, sequence
from ultrascale.documents import text as text_at

STARTS = ROOT / "ultrascale" / "init" / "starts"
CLUSTERS = sorted([*(ROOT / "clusters").glob("*.yaml"), *STARTS.glob("*.yaml")])
JOBS = sorted([*(ROOT / "jobs").glob("*.yaml"), *STARTS.glob("*/*.yaml")])
EXAMPLES: list[tuple[Path, config.SchemaKind]] = [
    *((path, "cluster") for path in CLUSTERS),
    *((path, "job") for path in JOBS),
]
BLIND = yaml.safe_load((DATA / "schema-blind.yaml").read_text())
DRAFT_7 = jsonschema.Draft7Validator
DRAFT_2020 = jsonschema.Draft202012Validator
# Keywords with one meaning in draft 7 and in 2020-12.
# Sources: https://json-schema.org/draft-07, https://json-schema.org/draft/2020-12
KNOWN_TO_BOTH = {
    *("$schema", "$id", "$ref", "definitions", "description", "default"),
    *("type", "enum", "const", "allOf", "anyOf", "oneOf", "not"),
    *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
    *("minLength", "maxLength", "pattern"),
    *("items", "minItems", "maxItems", "uniqueItems"),
    *("properties", "patternProperties", "additionalProperties", "propertyNames", "required"),
    "minProperties",
}
OF_SCHEMAS = ("properties", "patternProperties", "definitions")


@cache
def schema(kind: config.SchemaKind) -> Any:
    return json.loads(config.schema_text(kind))


@cache
def validator(kind: config.SchemaKind, draft: Any = DRAFT_7) -> Any:
    return draft(schema(kind))


def parts(value: Json) -> Iterator[JsonObject]:
    """Yield ``value``, a schema or a list of some, and each schema within it."""
    for item in sequence(value):
        yield from parts(item)
    if not mapping(value):
        return
    yield mapping(value)
    for key, inner in mapping(value).items():
        if key in OF_SCHEMAS:
            yield from (part for named in mapping(inner).values() for part in parts(named))
        elif key not in ("default", "enum", "const", "required"):
            yield from parts(inner)


def is_valid(text: str, kind: config.SchemaKind = "cluster") -> bool:
    return validator(kind).is_valid(yaml_reader.load(text))


def is_blind_to(mistake: config.Mistake) -> bool:
    return any(mistake.wrong.startswith(each["says"]) for each in BLIND)


@pytest.mark.parametrize("kind", get_args(config.SchemaKind))
class TestSchema:
    def test_both_drafts_take_it(self, kind: config.SchemaKind) -> None:
        DRAFT_7.check_schema(schema(kind))
        DRAFT_2020.check_schema(schema(kind) | {"$schema": DRAFT_2020.META_SCHEMA["$id"]})

    def test_it_says_nothing_that_a_draft_reads_otherwise(self, kind: config.SchemaKind) -> None:
        for part in parts(schema(kind)):
            assert part.keys() <= KNOWN_TO_BOTH, part.keys() - KNOWN_TO_BOTH
            assert "$ref" not in part or len(part) == 1, "draft 7 ignores what is beside $ref"

    def test_every_mapping_is_closed_but_those_of_names_of_the_users(
        self, kind: config.SchemaKind
    ) -> None:
        for part in parts(schema(kind)):
            if "properties" in part or "patternProperties" in part:
                assert part["additionalProperties"] is False

    def test_every_key_is_documented_by_its_own_words(self, kind: config.SchemaKind) -> None:
        for part in parts(schema(kind)):
            for key in mapping(part, "properties"):
                assert text_at(part, "properties", key, "description"), key
            assert "Attributes:" not in text_at(part, "description")

    def test_the_copy_for_editors_is_current(self, kind: config.SchemaKind) -> None:
        file = ROOT / "schema" / config.schema_file_name(kind)

        assert file.read_text() == config.schema_text(kind), "run `make docs`"

    def test_no_pattern_is_read_otherwise_in_another_language(
        self, kind: config.SchemaKind
    ) -> None:
        found = [*parts(schema(kind))]
        patterns = {text_at(part, "pattern") for part in found}
        patterns |= {key for part in found for key in mapping(part, "patternProperties")}

        assert patterns
        for pattern in patterns:
            re.compile(pattern)
            assert not re.search(r"\\[wdsbAZ]|\(\?[^:=!]", pattern), pattern


@pytest.mark.parametrize(("path", "kind"), EXAMPLES, ids=lambda value: getattr(value, "stem", ""))
def test_each_example_is_valid_and_names_its_schema(path: Path, kind: config.SchemaKind) -> None:
    text = path.read_text()
    value = yaml_reader.load(text)

    assert not [*validator(kind).iter_errors(value)]
    assert validator(kind, DRAFT_2020).is_valid(value)
    line = text.partition("\n")[0]
    named = line.removeprefix(config.modeline(""))
    assert line == config.modeline(named)
    assert (path.parent / named).resolve() == ROOT / "schema" / config.schema_file_name(kind)


@cache
def mistakes_of_cases() -> dict[str, tuple[tuple[config.Mistake, ...], str]]:
    """Return the mistakes of each known-bad file, and its text, by the case's name."""
    by_name: dict[str, tuple[tuple[config.Mistake, ...], str]] = {}
    for name, case in known_bad.cases().items():
        text = as_text(known_bad.document_of(case))
        reading = read_document(parse_yaml(text, source="f", own=True))
        by_name[name] = reading.mistakes, text
    return by_name


def test_every_known_bad_form_is_refused_by_the_schema_too() -> None:
    told, refused = set[str](), 0
    for name, (mistakes, text) in mistakes_of_cases().items():
        forms = [mistake for mistake in mistakes if mistake.code == "form"]
        seen = [mistake for mistake in forms if not is_blind_to(mistake)]
        told |= {each["says"] for each in BLIND for m in forms if m.wrong.startswith(each["says"])}
        assert not seen or not is_valid(text), (name, seen)
        refused += bool(seen)

    assert refused > 100
    assert told == {each["says"] for each in BLIND}, "no known-bad file needs this entry any more"


def test_what_a_schema_cannot_say_has_a_reason() -> None:
    assert all(each["why"] for each in BLIND)


def test_what_the_schema_refuses_of_the_known_bad_check_refuses() -> None:
    for name, (mistakes, text) in mistakes_of_cases().items():
        assert mistakes or is_valid(text), name


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(at=st.sampled_from(places(RICH)), new=VALUES)
def test_the_schema_and_the_reader_agree_on_the_form_of_any_file(
    at: tuple[Any, ...], new: object
) -> None:
    # JSON has no other numbers, and the reader refuses a text with one.
    assume(not isinstance(new, float) or math.isfinite(new))
    document = replaced(RICH, at, new)
    if not is_mapping(document):
        return
    text = as_text(document)
    value = yaml_reader.load(text)
    reading = read_document(parse_yaml(text, source="f", own=True))
    seen = [each for each in reading.mistakes if each.code == "form" and not is_blind_to(each)]

    if validator("cluster").is_valid(value):
        assert not seen or _is_whole_number_with_a_point(value, seen)
    else:
        assert reading.mistakes


def _is_whole_number_with_a_point(value: object, mistakes: list[config.Mistake]) -> bool:
    """Return whether the reader alone tells 2.0 from 2: JSON has one kind of number."""
    return all(mistake.wrong == "not a whole number" for mistake in mistakes)


class TestJobFiles:
    def test_keys_of_a_file_alone_are_known(self) -> None:
        text = "$schema: x.json\nrequires: '>=0.1'\nname: a\npool: gpu\nimage: a\n"

        assert is_valid(text, "job")

    def test_the_kind_says_which_keys_there_are(self) -> None:
        assert is_valid("kind: service\nport: 80\n", "job")
        assert not is_valid("kind: batch\nport: 80\n", "job")
        assert not is_valid("port: 80\n", "job")


def test_a_cluster_file_may_name_its_schema_by_a_key_too() -> None:
    assert is_valid(as_text(make_document(**{"$schema": "x.json", "requires": ">=0.1"})))
