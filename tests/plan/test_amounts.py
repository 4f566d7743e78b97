"""A sum stands without "at least" only where every part of it has a price."""

import re

from hypothesis import given
from hypothesis import strategies as st

from tests.support.cases import for_each
from tests.support.folders import ROOT
from ultrascale.catalog.eks import TIER_LIMITS
from ultrascale.plan import load
from ultrascale.plan.amounts import amount, cell
from ultrascale.plan.model import Figure
from ultrascale.plan.needs.pools import total
from ultrascale.plan.needs.report import plan_needs
from ultrascale.plan.needs.tables import Datum, daily_total, figure_at, plain
from ultrascale.report.calendar import calendar_drawing
from ultrascale.teardown.prices import of_cluster

PARTS = st.dictionaries(
    st.sampled_from(["system", "train", "burst", "EKS cluster"]),
    st.none() | st.floats(0.01, 1e6),
    min_size=1,
)


@for_each(
    {
        "all of it": (7.5, (), "7.50"),
        "nothing of it": (None, ("a",), "unknown"),
        "a part": (7.5, ("a",), "at least 7.50"),
        "free parts beside one of no price": (0, ("a",), "unknown"),
        "free parts alone": (0, (), "7.50"),
    }
)
def test_the_words_of_a_sum(value: float | None, without: tuple[str, ...], words: str) -> None:
    assert amount(value, "7.50", without=without) == words


@given(parts=PARTS)
def test_only_a_sum_of_known_prices_stands_alone(parts: dict[str, float | None]) -> None:
    figures = {
        name: Figure(id=name, value=value, unit="USD per hour", formula="")
        for name, value in parts.items()
    }
    whole = total("money.usd_per_hour", figures)

    lacking = {name for name, value in parts.items() if value is None}
    shown = figure_at("at", whole)
    assert isinstance(shown, Datum)
    for words in (cell(whole, places=2), shown.text):
        assert words.startswith("at least ") == (0 < len(lacking) < len(parts))
        assert (words == "unknown") == (len(lacking) == len(parts))


@for_each([path.stem for path in sorted((ROOT / "clusters").glob("*.yaml"))])
def test_the_drawing_of_a_day_says_what_it_lacks(cluster: str) -> None:
    needs = plan_needs(load(ROOT / "clusters" / f"{cluster}.yaml"))

    for index, step in enumerate(needs.spend.steps):
        words = daily_total(needs, index).text
        assert words.startswith("at least ") == bool(needs.spend.without), step


def test_the_legend_of_what_stands_beside_nodes_says_what_it_lacks() -> None:
    """The catalog has a price of public addresses in us-west-2, and none of EKS there."""
    texts: dict[str, str] = {}
    for cluster in ("trainium-bert", "serving"):
        drawing = calendar_drawing(plan_needs(load(ROOT / "clusters" / f"{cluster}.yaml")))
        assert drawing is not None
        lines = [plain(line) for box in drawing.boxes for _, _, line in box.lines]
        texts[cluster] = "\n".join(lines)

    assert re.search(r"beside nodes +at least \$[\d.,]+ +a day", texts["trainium-bert"])
    assert re.search(r"beside nodes +\$[\d.,]+ +a day", texts["serving"])


def test_every_tier_of_a_control_plane_has_a_price() -> None:
    """Their sum leaves out what is unknown: a tier without a price would cost nothing."""
    _, alone = of_cluster("standard")
    assert alone > 0
    assert all(of_cluster(tier)[1] > alone for tier in TIER_LIMITS)
