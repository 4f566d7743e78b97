"""Keys that the values of other projects' charts have, and the values that Helm makes with ours.

`python -m tests.support.chart_values FILE` prints the keys of a chart's `values.yaml`, as
`tests/data/chart_values.jsonl` records them.
"""

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import yaml

from tests.support.folders import ROOT
from ultrascale.catalog.quantities import amount

Values = Mapping[str, Any]

# A template that shows the values it is rendered with.
_SHOWN = "{{ toJson .Values }}\n"
_TYPES: Mapping[str, type] = {"map": dict, "list": list}


@dataclass(frozen=True, kw_only=True)
class Chart:
    """The values of a chart."""

    version: str  # Version that is installed
    free: frozenset[str]  # Paths of maps with keys of its own that take any other as well
    # Maps as they are, and in the place of what they hold ``map`` or ``list`` where it is empty or
    # a list, ``value`` elsewhere; sizes of containers are kept
    keys: Values

    def unknown(self, ours: Values) -> list[str]:
        """Return the paths of values of ours that the chart does not look at, or has otherwise."""
        return [*self._unknown(ours, self.keys, "")]

    def _unknown(self, ours: Values, known: Values, above: str) -> Iterator[str]:
        for key, value in ours.items():
            path = f"{above}{key}"
            if key not in known:
                yield path
                continue
            default: Values | str = known[key]
            kind = "map" if isinstance(default, Mapping) else str(default)
            if not isinstance(value, _TYPES.get(kind, object)):
                yield f"{path}, a {kind} there"
            elif isinstance(default, Mapping) and path not in self.free and not _is_size(value):
                yield from self._unknown(value, default, f"{path}.")


def read_charts() -> Mapping[str, Chart]:
    """Return the recorded charts by name."""
    lines = (ROOT / "tests/data/chart_values.jsonl").read_text().splitlines()
    records = [json.loads(line) for line in lines if not line.startswith("#")]
    return {
        record["chart"]: Chart(
            version=record["version"], free=frozenset(record["free"]), keys=record["keys"]
        )
        for record in records
    }


def keys(value: object, *, kept: bool = False) -> object:
    """Return the keys of values, as `Chart` has them."""
    if isinstance(value, dict) and value:
        entries = cast("dict[str, object]", value).items()
        return {key: keys(each, kept=kept or key == "resources") for key, each in entries}
    if isinstance(value, dict | list):
        return "map" if isinstance(value, dict) else "list"
    return value if kept else "value"


def merged(chart: Chart, ours: Values, *, helm: Path, folder: Path) -> Values:
    """Return what Helm makes of a chart's values and ours."""
    files = {
        "Chart.yaml": {"apiVersion": "v2", "name": "shown", "version": "1.0.0"},
        "values.yaml": _filled(chart.keys),
        "ours.json": ours,
    }
    (folder / "templates").mkdir()
    (folder / "templates" / "values.yaml").write_text(_SHOWN)
    for name, content in files.items():
        (folder / name).write_text(json.dumps(content))
    command = [helm, "template", "shown", folder, "--values", folder / "ours.json"]
    shown = subprocess.run(command, capture_output=True, check=True, text=True).stdout
    return yaml.safe_load(shown)


def _filled(known: object) -> object:
    if isinstance(known, Mapping):
        entries = cast("Mapping[str, object]", known).items()
        return {key: _filled(each) for key, each in entries}
    return _TYPES[known]() if known in ("map", "list") else known


def refused_limits(resources: Values) -> list[str]:
    """Return the limits of a container that are below its request, or zero as a null is."""
    requests = resources.get("requests", {})
    return [
        f"limit of {name} is {limit!r}, its request {requests.get(name, 0)!r}"
        for name, limit in resources.get("limits", {}).items()
        if limit is None or not amount(str(requests.get(name, 0))) <= amount(str(limit)) > 0
    ]


def sizes(values: object) -> Iterator[Values]:
    """Yield the sizes of containers in the values of a chart."""
    if not isinstance(values, dict):
        return
    if values and _is_size(cast("Values", values)):
        yield cast("Values", values)
        return
    for each in cast("Values", values).values():
        yield from sizes(each)


def _is_size(values: Values) -> bool:
    return values.keys() <= {"requests", "limits"}


if __name__ == "__main__":
    print(json.dumps(keys(yaml.safe_load(Path(sys.argv[1]).read_text())), separators=(",", ":")))
