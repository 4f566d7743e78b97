"""Typed attributes over the cells of a table, which raise where no source states a value."""

from collections.abc import Callable, Mapping
from typing import Generic, Self, TypeVar, overload

from ultrascale.catalog._sources import Source, sources_of_cell
from ultrascale.errors import CatalogError, UnknownFactError
from ultrascale.frozen import Frozen

T = TypeVar("T")


class Fact(Generic[T]):
    """An attribute that reads as its value, or raises where no source states one.

    The cell stays text until it is read, so that importing the catalog parses nothing.
    """

    def __init__(self, parse: Callable[[str], T], *, column: str | None = None) -> None:
        self._parse = parse
        self._column = column
        self._name = ""

    def __set_name__(self, owner: type["Entry"], name: str) -> None:
        self._name = name

    @property
    def column(self) -> str:
        """The column that holds it."""
        return self._column or self._name

    @overload
    def __get__(self, entry: None, owner: type["Entry"]) -> Self: ...
    @overload
    def __get__(self, entry: "Entry", owner: type["Entry"]) -> T: ...
    def __get__(self, entry: "Entry | None", owner: type["Entry"]) -> Self | T:
        if entry is None:
            return self
        cell = entry.cells[self.column]
        if not cell:
            raise entry.unknown(self._name)
        return self._parse(cell)


class Entry(Frozen, kw_only=False, eq=False):
    """The row of an instance type, or the part of one that describes its accelerators."""

    instance_type: str  # EC2 name of the type
    cells: Mapping[str, str]  # The row, by column

    @classmethod
    def facts(cls) -> tuple[str, ...]:
        """Return the names of all attributes that may be unknown."""
        return tuple(name for name, value in vars(cls).items() if isinstance(value, Fact))

    def knows(self, name: str) -> bool:
        """Return whether reading the attribute ``name`` gives a value."""
        return bool(self.cells[self._column(name)])

    def sources_of(self, name: str) -> tuple[Source, ...]:
        """Return the sources that agree on the attribute ``name``; none where it is unknown."""
        return sources_of_cell(self.instance_type, self._column(name))

    def unknown(self, name: str) -> CatalogError:
        """Return the error of reading the attribute ``name``."""
        text = f"{self.instance_type}: {name} is not known; no source states it"
        return UnknownFactError(text, entry=self.instance_type, fact=name)

    def _column(self, name: str) -> str:
        fact: object = vars(type(self)).get(name)
        if not isinstance(fact, Fact):
            raise AttributeError(f"{type(self).__name__} has no fact {name!r}")
        return fact.column

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other.instance_type == self.instance_type

    def __hash__(self) -> int:
        return hash(self.instance_type)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.instance_type!r})"
