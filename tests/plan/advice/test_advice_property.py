"""Properties of the adviser: each answer is legal, and no legal one is better by its order."""

from functools import cache
from typing import Any

import yaml
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.support.advice_questions import G_TYPES, HELD, HELD_BLOCK, question
from tests.support.oracles.advice import allowed, place, ways
from ultrascale import catalog, config, plan
from ultrascale.catalog import matrix
from ultrascale.catalog.provisioners import PROVISIONERS
from ultrascale.errors import CatalogError, ConfigError
from ultrascale.plan.advice import Candidate, Judged, Question, advise
from ultrascale.plan.advice.candidates import candidates
from ultrascale.plan.advice.fragment import document, pools_of
from ultrascale.plan.advice.model import COMMITMENTS, IMAGES, TOLERANCES, WORKLOADS
from ultrascale.plan.advice.order import judge
from ultrascale.plan.needs.report import plan_needs

PLACES = [
    {"region": "us-west-2", "zone": ["us-west-2b"]},
    {"region": "us-west-2", "zone": ["us-west-2b", "us-west-2c"]},
    {"region": "us-east-1", "zone": ["use1-az4"]},
    {"region": "ca-west-1", "zone": ["ca-west-1a", "ca-west-1b"]},
    {"region": "us-gov-east-1", "zone": ["us-gov-east-1a"]},
]
TYPES = [
    *(["p5.48xlarge"], ["p5e.48xlarge", "p5.48xlarge"], ["trn1.32xlarge"], ["trn2.3xlarge"]),
    *(["g6e.48xlarge"], G_TYPES, ["g6.xlarge", "p5.4xlarge"], ["p6e-gb200.36xlarge"]),
    *(["m7g.8xlarge", "c7i.8xlarge"], ["trn3.48xlarge", "g6e.48xlarge"], ["inf2.48xlarge"]),
]
QUESTIONS = st.fixed_dictionaries(
    {
        "workload": st.sampled_from(WORKLOADS),
        "type": st.sampled_from(TYPES),
        "nodes": st.sampled_from([1, 2, 8, 16, 65, 257, 460]),
        "place": st.sampled_from(PLACES),
        "days": st.sampled_from(["0.2", "7", "15", "182", "200", "400", "steady"]),
        "starts": st.sampled_from([None, "2026-11-21T12:10Z", "2026-12-01T00:00Z", "2027-06-01Z"]),
        "tolerance": st.sampled_from([None, *TOLERANCES]),
        "coupled": st.sampled_from([None, True, False]),
        "utilisation": st.sampled_from([100, 20]),
        "commitment": st.sampled_from(COMMITMENTS),
        "provisioner": st.sampled_from([None, *PROVISIONERS]),
        "kubernetes": st.sampled_from(["1.35", "1.36"]),
        "placement_group": st.booleans(),
        "image": st.sampled_from(["any", *IMAGES]),
        "held": st.sampled_from([[], [], [HELD], [HELD_BLOCK]]),
    }
)


CODES = ("", "P1", "P2", "P3", "P4", "P5", "P6", "later", "last")
FITS_ANY_VPC = 65


def asked(drawn: dict[str, Any]) -> Question:
    place: dict[str, Any] = drawn.pop("place")
    starts = drawn["starts"] and drawn["starts"].replace("-01Z", "-01T00:00Z")
    return question(**drawn | place | {"starts": starts})


@cache
def accepted(text: str) -> bool | None:
    """Return whether a cluster file is planned; None where that exceeds what AWS publishes."""
    try:
        needs = plan_needs(plan.plan_cluster(config.loads(text)))
    except (ConfigError, CatalogError):
        return False
    return None if any(need.state == "beyond" for need in needs.quotas) else True


def alone(ask: Question, candidate: Candidate) -> str:
    """Return a large cluster file around the pools of one candidate."""
    nodes = min(ask.nodes, candidate.held.count) if candidate.held else ask.nodes
    pools = pools_of(ask, candidate, nodes=nodes, taken=0, first=True)
    found = document(ask, pools, system_type="m8g.24xlarge", pod_blocks=31)
    return yaml.dump(found, Dumper=yaml.CSafeDumper, sort_keys=False)


def limits(examples: int) -> settings:
    return settings(
        max_examples=examples, deadline=None, phases=[Phase.explicit, Phase.reuse, Phase.generate]
    )


@limits(25)
@given(drawn=QUESTIONS)
def test_an_answer_is_legal_and_no_legal_one_is_better(drawn: dict[str, Any]) -> None:
    ask = asked(drawn)

    answer = advise(ask)

    weighed = {(each.candidate.provisioner, each.candidate.option) for each in answer.candidates}
    assert weighed == set(matrix.MATRIX)
    assert all(each.legal or each.refused[0].text for each in answer.candidates)
    if answer.choice is None:
        assert not any(allowed(ask, way) and accepted(alone(ask, way)) for way in ways(ask))
        return
    chosen = answer.choice.judged.candidate
    assert allowed(ask, chosen)
    assert answer.choice.judged.place.code == CODES[place(ask, chosen)[1]]
    planned = accepted(answer.cluster_file)
    assert planned is not False
    for way in ways(ask):
        better = place(ask, way) < place(ask, chosen)
        assert not (better and allowed(ask, way) and accepted(alone(ask, way))), way
    pools = yaml.safe_load(answer.fragment)["pools"]
    assert pools == yaml.safe_load(answer.cluster_file)["pools"][1:]
    assert [name for step in answer.steps for name in step.pools] == [one["name"] for one in pools]


@limits(25)
@given(drawn=QUESTIONS, number=st.integers(0, 999))
def test_check_and_the_adviser_agree_on_what_is_legal(drawn: dict[str, Any], number: int) -> None:
    """An adviser that refuses more than the file does hides capacity from its user."""
    ask = replace(asked(drawn), nodes=min(drawn["nodes"], FITS_ANY_VPC))
    judged = [judge(ask, each) for each in candidates(ask)]
    legal = [each for each in judged if each.legal]
    refused = [each for each in judged if by_the_file(each)]

    for each in (legal, refused):
        if each:
            one = each[number % len(each)]
            assert (accepted(alone(ask, one.candidate)) is not False) == one.legal, one


def by_the_file(judged: Judged) -> bool:
    """Return whether only limits of this product refuse a candidate that can be written down."""
    windowed = judged.candidate.option in ("capacity-block", "training-plan")
    codes = {reason.code for reason in judged.refused}
    own = bool(codes) and codes <= {"check", "matrix", "H8"}
    return own and written(judged) and not windowed


def written(judged: Judged) -> bool:
    """Return whether the catalog knows enough of a candidate's types to write its pool down."""
    return all(matrix.can_be_planned(catalog.lookup(n)) for n in judged.candidate.instance_types)
