"""The objects of a job as people read them."""

from collections.abc import Iterable

import yaml

from ultrascale.jobs.manifests import Manifest

# Long enough for every line of an argument to stay one.
_WIDTH = 1_000


class _Dumper(yaml.SafeDumper):
    """Writes scripts as the lines they are, and what stands in two places twice."""

    def ignore_aliases(self, data: object) -> bool:
        return True


def _represent_text(dumper: _Dumper, text: str) -> yaml.ScalarNode:
    style = "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _represent_text)


def as_yaml(objects: Iterable[Manifest], *, compact: bool = False) -> str:
    """Return ``objects`` as one YAML document each.

    Args:
        objects: The objects.
        compact: Whether a mapping or list that holds no other stands on one line.
    """
    return yaml.dump_all(
        [dict(each) for each in objects],
        Dumper=_Dumper,
        sort_keys=False,
        allow_unicode=True,
        width=_WIDTH,
        default_flow_style=None if compact else False,
    )
