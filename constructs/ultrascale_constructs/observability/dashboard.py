"""CloudWatch dashboards."""

import re
from collections.abc import Iterator, Mapping, Sequence

from aws_cdk import Stack
from aws_cdk import aws_cloudwatch as cloudwatch
from constructs import Construct

from ultrascale.parts.observability.model import SectionPlan
from ultrascale.plan.model import GraphPlan, LinePlan, MetricPlan

_COLUMNS = 24
_GRAPHS_IN_A_ROW = 2
_GRAPH_HEIGHT = 6
_TEXT_HEIGHT = 1
_INTRODUCTION_HEIGHT = 5


class Dashboard(Construct):
    """Defines a dashboard."""

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        name: str,
        sections: Sequence[SectionPlan],
        period_seconds: int,
        placeholders: Mapping[str, str],
    ) -> None:
        """Define the dashboard.

        Args:
            scope: Parent.
            id: Construct id.
            name: Name of the dashboard.
            sections: Sections of the dashboard.
            period_seconds: Shortest period of its graphs.
            placeholders: Values of placeholders among the dimensions' values.
        """
        super().__init__(scope, id)
        stack = Stack.of(self)
        widgets = [*_widgets(sections, stack.region, period_seconds, placeholders)]
        cloudwatch.CfnDashboard(
            self,
            "Resource",
            dashboard_name=name,
            dashboard_body=stack.to_json_string({"widgets": widgets}),
        )


def _widgets(
    sections: Sequence[SectionPlan],
    region: str,
    period_seconds: int,
    placeholders: Mapping[str, str],
) -> Iterator[Mapping[str, object]]:
    """Yield the widgets, from top to bottom.

    Source: https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/CloudWatch-Dashboard-Body-Structure.html
    """
    y = 0
    width = _COLUMNS // _GRAPHS_IN_A_ROW
    for section in sections:
        height = _INTRODUCTION_HEIGHT if y == 0 else _TEXT_HEIGHT
        yield {
            "type": "text",
            "x": 0,
            "y": y,
            "width": _COLUMNS,
            "height": height,
            "properties": {"markdown": section.text},
        }
        y += height
        for index, graph in enumerate(section.graphs):
            row, column = divmod(index, _GRAPHS_IN_A_ROW)
            yield {
                "type": "metric",
                "x": column * width,
                "y": y + row * _GRAPH_HEIGHT,
                "width": width,
                "height": _GRAPH_HEIGHT,
                "properties": {
                    "region": region,
                    "period": period_seconds,
                    **_graph(graph, placeholders),
                },
            }
        y += -(-len(section.graphs) // _GRAPHS_IN_A_ROW) * _GRAPH_HEIGHT


def _graph(graph: GraphPlan, placeholders: Mapping[str, str]) -> Mapping[str, object]:
    marks = [
        {"label": label, "value": f"{moment:%Y-%m-%dT%H:%M:%SZ}"}
        for label, moment in graph.marks.items()
    ]
    limits = [{"label": label, "value": value} for label, value in graph.limits.items()]
    annotations = {
        **({"vertical": marks} if marks else {}),
        **({"horizontal": limits} if limits else {}),
    }
    return {
        "title": graph.title,
        "view": "timeSeries",
        "stacked": graph.stacked,
        "metrics": [
            entry
            for number, line in enumerate(graph.lines)
            for entry in _line_metrics(line, number, placeholders)
        ],
        "yAxis": {"left": {"label": graph.unit, "showUnits": False, "min": 0}},
        **({"annotations": annotations} if annotations else {}),
    }


def _line_metrics(
    line: LinePlan, number: int, placeholders: Mapping[str, str]
) -> Iterator[Sequence[object]]:
    """Yield the metrics of a line and the expression over them; ids are unique in the graph."""
    shown = line.expression is None
    for name, metric in line.metrics.items():
        options = {"id": f"{name}{number}", "stat": metric.statistic}
        yield [
            *_metric(metric, placeholders),
            {**options, "label": line.label} if shown else {**options, "visible": False},
        ]
    if line.expression is not None:
        names = "|".join(line.metrics)
        expression = re.sub(rf"\b({names})\b", rf"\g<1>{number}", line.expression)
        yield [{"expression": expression, "label": line.label, "id": f"e{number}"}]


def _metric(metric: MetricPlan, placeholders: Mapping[str, str]) -> Iterator[str]:
    yield metric.namespace
    yield metric.name
    for key, value in metric.dimensions.items():
        yield key
        yield placeholders.get(value, value)
