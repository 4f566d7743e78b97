"""YAML that every reader takes for the same values, whatever version of YAML it knows.

PyYAML reads YAML 1.1, ruamel.yaml 1.2; kubectl, Helm and nodeadm something between the two. A word
that one of them does not take for text is quoted.

Sources:
    https://yaml.org/type/
    https://yaml.org/spec/1.2.2/#1032-tag-resolution
    https://github.com/kubernetes-sigs/yaml/blob/master/goyaml.v2/resolve.go
"""

import re
from collections.abc import Iterable
from functools import cache

import yaml

# Every line of an argument stays one line.
_WIDTH = 1_000_000

_NUMBER = (
    r"[-+]?(?:"
    r"0[bB][01_]+|0[oO][0-7_]+|0[xX][0-9a-fA-F_]+"
    r"|[0-9_]+(?::[0-9_]+)+(?:\.[0-9_]*)?"  # of base 60
    r"|(?:[0-9_]+(?:\.[0-9_]*)?|\.[0-9_]+)(?:[eE][-+]?[0-9_]+)?"
    r"|\.inf"
    r")|\.nan"
)
_WORD = r"y|n|yes|no|on|off|true|false|null|~|=|<<|"
_TIME = r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}(?:[Tt \t].*)?"
_NO_TEXT_TO_SOME = re.compile(rf"(?:{_NUMBER}|{_WORD}|{_TIME})\Z", re.IGNORECASE)
# Characters that only one version takes for line breaks, or some emitters keep out of blocks.
_ESCAPED = "[^\n\x20-\x7e\xa0-\u2027\u202f-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]"


@cache
def _escaped() -> re.Pattern[str]:
    # It takes 5 ms to compile, and a program that only reads files does not need it.
    return re.compile(_ESCAPED)


class _Writer(yaml.CSafeDumper):
    """Writer that keeps the lines of scripts and writes repeated values twice, without aliases."""

    def ignore_aliases(self, data: object) -> bool:
        return True


def _represent_text(writer: _Writer, text: str) -> yaml.ScalarNode:
    style = None
    if _escaped().search(text) or (text[:1].isspace() and "\n" in text):
        style = '"'
    elif "\n" in text:
        style = "|"
    return writer.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Writer.add_representer(str, _represent_text)
# A text that this resolver matches gets quotes; PyYAML asks its own resolvers first.
_Writer.add_implicit_resolver("tag:ultrascale,2026:other", _NO_TEXT_TO_SOME, None)


def dump(value: object, *, compact: bool = False) -> str:
    """Return ``value`` as a YAML document.

    Args:
        value: Mappings and lists, texts, numbers, truth values and None.
        compact: Whether a mapping or list without collections inside stands on one line.
    """
    return _yaml_text([value], compact=compact, explicit=False)


def dump_flow(value: object) -> str:
    """Return a mapping or list as YAML on one line, without the line's end."""
    return yaml.dump(
        value,
        Dumper=_Writer,
        sort_keys=False,
        allow_unicode=True,
        width=_WIDTH,
        default_flow_style=True,
    ).rstrip("\n")


def dump_all(values: Iterable[object], *, compact: bool = False) -> str:
    """Return each of ``values`` as a YAML document of one stream, as `dump` does."""
    return _yaml_text(values, compact=compact, explicit=None)


def _yaml_text(values: Iterable[object], *, compact: bool, explicit: bool | None) -> str:
    return yaml.dump_all(
        values,
        Dumper=_Writer,
        sort_keys=False,
        allow_unicode=True,
        width=_WIDTH,
        explicit_start=explicit,
        default_flow_style=None if compact else False,
    )
