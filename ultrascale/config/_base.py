"""The base type of the cluster file's parts, which keeps what pydantic has read."""

import os
from collections.abc import Collection, Generator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from difflib import get_close_matches
from functools import cache
from typing import TYPE_CHECKING, Self, TypeVar, get_type_hints

import pydantic
from msgspec import field
from pydantic import (
    BaseModel,
    ConfigDict,
    Discriminator,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    ModelWrapValidatorHandler,
    ValidationInfo,
    model_validator,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, PydanticUndefined
from pydantic_core.core_schema import with_info_plain_validator_function

from ultrascale.config._document import is_mapping
from ultrascale.config._schema import documentation
from ultrascale.frozen import Frozen


class Seen(Frozen, kw_only=False):
    """The mappings of a document that pydantic has read, each by its ``id``.

    Pydantic reads all parts of a document but returns nothing where one of them has a mistake. The
    parts that it reads on the way are kept here.
    """

    # Type of each mapping.
    kinds: "dict[int, type[Model]]" = field(default_factory=dict[int, "type[Model]"])
    # The mappings that have the form of their type.
    models: "dict[int, Model]" = field(default_factory=dict[int, "Model"])


# Whether pydantic builds the schema of a type at the moment.
_is_building = ContextVar("_is_building", default=False)


# Pydantic looks for plugins when it first builds a type: it opens a file of each package there is.
_NO_PLUGINS = "PYDANTIC_DISABLE_PLUGINS"


@contextmanager
def _without_plugins() -> Generator[None]:
    before = os.environ.get(_NO_PLUGINS)
    os.environ[_NO_PLUGINS] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ[_NO_PLUGINS]
        else:
            os.environ[_NO_PLUGINS] = before


class Model(BaseModel):
    """Base of the parts of a cluster file: immutable, closed to unknown keys, no conversions.

    A type holds the form of its part. Rules judge how its values fit each other and other parts, so
    that a mistake in one part hides no mistake in another.
    """

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        strict=True,
        validate_by_name=True,
        validate_by_alias=True,
        # Most types are read as a part of another one, whose validator includes theirs.
        defer_build=True,
    )

    @model_validator(mode="wrap")
    @classmethod
    def _keep(
        cls, value: object, handler: ModelWrapValidatorHandler[Self], info: ValidationInfo
    ) -> Self:
        seen: object = info.context
        if not isinstance(seen, Seen) or not is_mapping(value):
            return handler(value)
        seen.kinds[id(value)] = cls
        model = handler(value)
        seen.models[id(value)] = model
        return model

    @classmethod
    def __get_pydantic_core_schema__(
        cls, source: type[BaseModel], handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        """Return the schema of the outermost type; a part of it gets one when a file has the part.

        Building the schemas of all 85 types takes half as long as the rest of `ultrascale check`,
        and a file has parts of a third of them.
        """
        if _is_building.get():
            ref = f"{cls.__module__}.{cls.__qualname__}:{id(cls)}"
            return with_info_plain_validator_function(cls._read_part, ref=ref)
        token = _is_building.set(True)
        try:
            return handler(source)
        finally:
            _is_building.reset(token)

    @classmethod
    def model_rebuild(
        cls,
        *,
        force: bool = False,
        raise_errors: bool = True,
        _parent_namespace_depth: int = 2,
        _types_namespace: Mapping[str, object] | None = None,
    ) -> bool | None:
        with _without_plugins():
            return super().model_rebuild(
                force=force,
                raise_errors=raise_errors,
                _parent_namespace_depth=_parent_namespace_depth + 1,
                _types_namespace=_types_namespace,
            )

    @classmethod
    def _read_part(cls, value: object, info: ValidationInfo) -> Self:
        context: object = info.context
        alone = True if isinstance(context, Seen) else None
        return cls.model_validate(
            value, context=context, by_alias=alone, by_name=None if alone is None else False
        )

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> object:
            if name in type(self).model_fields:
                raise UnreadableKeyError(name)
            return super().__getattr__(name)

    @classmethod
    def __get_pydantic_json_schema__(
        cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        if core_schema["type"] == "function-plain":
            cls.model_rebuild()
            core_schema = cls.__pydantic_core_schema__
        schema = handler(core_schema)
        properties = handler.resolve_ref_schema(schema).get("properties", {})
        for name, text in documentation(cls).items():
            key = cls.model_fields[name].alias or name
            properties[key]["description"] = text
        for key, property_ in properties.items():
            properties[key] = _without_null(property_)
        return schema


def _without_null(schema: JsonSchemaValue) -> JsonSchemaValue:
    """Return ``schema`` without null: a document leaves a key out instead."""
    kept = [option for option in schema.get("anyOf", ()) if option != {"type": "null"}]
    if len(kept) != 1:
        return {**schema, "anyOf": kept} if kept else schema
    other = {key: schema[key] for key in schema if key != "anyOf" and schema[key] is not None}
    return {**other, **kept[0]}


# A mapping with more of them is of another type.
_MOST_UNKNOWN = 50


class UnreadableKeyError(Exception):
    """A rule reads a key with a mistake of form and cannot judge any further."""


M = TypeVar("M", bound=Model)


def read_in_part(kind: type[M], value: Mapping[str, object], broken: Collection[str]) -> M:
    """Return the mapping ``value`` as a ``kind`` without the keys that have mistakes of form.

    Reading one of these keys, or a missing one, raises an `UnreadableKeyError`.

    Args:
        kind: Type of the mapping.
        value: A mapping of a document.
        broken: Keys with mistakes of form.
    """
    found: dict[str, object] = {}
    keys = [info.alias or name for name, info in kind.model_fields.items()]
    # The value of a misspelt key is not known: its default would be judged in its place.
    unknown = [key for key in value if key not in keys][:_MOST_UNKNOWN]
    misspelt = (get_close_matches(key, keys, n=1) for key in unknown)
    unread = {*broken, *(key for matches in misspelt for key in matches)}
    for key, (name, info) in zip(keys, kind.model_fields.items(), strict=True):
        try:
            if key not in value and key not in unread:
                found[name] = info.get_default(call_default_factory=True, validated_data=found)
            elif key not in unread:
                found[name] = _adapter(kind, name).validate_python(value[key], strict=True)
        except (pydantic.ValidationError, KeyError):
            continue
    known = {name: item for name, item in found.items() if item is not PydanticUndefined}
    stated = {name for name, info in kind.model_fields.items() if (info.alias or name) in value}
    part = kind.model_construct(_fields_set=stated, **dict.fromkeys(kind.model_fields))
    object.__setattr__(part, "__dict__", known)
    return part


@cache
def _adapter(kind: type[Model], name: str) -> "pydantic.TypeAdapter[object]":
    annotation: type[object] = get_type_hints(kind, include_extras=True)[name]
    return pydantic.TypeAdapter(annotation)


def read_as(kind: type[M], value: Mapping[str, object], seen: Seen | None = None) -> M:
    """Return the mapping ``value`` of a document as a ``kind``; keep the parts read in ``seen``.

    Raises:
        pydantic.ValidationError: The value does not have the form of a ``kind``.
    """
    context = Seen() if seen is None else seen
    return kind.model_validate(value, by_name=False, by_alias=True, context=context)


class Section(Model):
    """A part that a cluster file has at most once. A rule takes it by its type."""

    @property
    def has_controllers(self) -> bool:
        """Whether one of its programs runs on the nodes of pools with `role: system`."""
        return False

    @property
    def subnet_addresses(self) -> Mapping[str, int]:
        """Single addresses that it takes of each existing subnet of nodes, by purpose."""
        return {}


class _ChosenByKey(Frozen, kw_only=False):
    """The choice of a type, each marked by a `Tag`, by the value of a key."""

    key: str
    tags: tuple[str, ...]

    def __get_pydantic_core_schema__(
        self, source: object, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        chosen = Discriminator(
            self._tag,
            custom_error_type=UNKNOWN_OPTION,
            custom_error_message="unknown value",
            custom_error_context={"key": self.key, "known": " ".join(self.tags)},
        )
        return chosen.__get_pydantic_core_schema__(source, handler)

    def __get_pydantic_json_schema__(
        self, core_schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        schema = handler(core_schema)
        for member in schema["oneOf"]:
            keys = handler.resolve_ref_schema(member)["properties"]
            if keys[self.key]["const"] != self.tags[0]:
                member["required"] = [self.key]
        return schema

    def _tag(self, value: object) -> str | None:
        if is_mapping(value):
            tag = value.get(self.key, self.tags[0])
        else:
            tag = getattr(value, self.key, None)
        return tag if isinstance(tag, str) else None


def chosen_by_key(key: str, *tags: str) -> _ChosenByKey:
    """Return the choice of a type, each marked by a `Tag`, by the value of ``key``.

    Args:
        key: The key.
        tags: Its values; a mapping without the key counts as the first.
    """
    return _ChosenByKey(key, tags)


def chosen_by_form(kind: type[Model]) -> Discriminator:
    """Return the choice between a mapping, a ``kind``, and the other form that a key may have.

    The `Tag`s `mapping` and `plain` mark them. Without the choice, pydantic reports a mistake for
    both forms.

    Args:
        kind: Type of the mapping.
    """

    def form(value: object) -> str:
        return "mapping" if is_mapping(value) or isinstance(value, kind) else "plain"

    return Discriminator(form)


UNKNOWN_OPTION = "unknown_option"
"""Pydantic's error type where the key's value marks no type."""
