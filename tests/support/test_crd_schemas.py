"""The offline judge of custom resources: it must refuse what a real API server refuses."""

from typing import Any

import pytest

from tests.support.crd_schemas import CrdSet, Document, karpenter_crds, validate

API = "example.dev/v1"


def make_crd(spec: Document, *, served: bool = True) -> Document:
    schema = {"type": "object", "properties": {"spec": spec}}
    version = {"name": "v1", "served": served, "schema": {"openAPIV3Schema": schema}}
    return {"spec": {"group": "example.dev", "names": {"kind": "Thing"}, "versions": [version]}}


def thing(**spec: Any) -> Document:
    return {"apiVersion": API, "kind": "Thing", "metadata": {"name": "x"}, "spec": spec}


def closed(*rules: str, **properties: Document) -> Document:
    validations = [{"rule": rule, "message": f"broken: {rule}"} for rule in rules]
    return {"type": "object", "properties": properties, "x-kubernetes-validations": validations}


TEXT: Document = {"type": "string"}
NUMBER: Document = {"type": "integer", "default": 3}


def test_unknown_field_is_refused_because_a_server_would_drop_it() -> None:
    (mistake,) = validate(thing(color="red"), make_crd(closed(size=NUMBER)))

    assert mistake.startswith("$.spec: ")
    assert "color" in mistake


def test_unknown_field_is_kept_where_the_schema_says_so() -> None:
    crds = CrdSet.from_documents(
        [make_crd({**closed(size=NUMBER), "x-kubernetes-preserve-unknown-fields": True})]
    )

    assert crds.validate(thing(color="red")) == []
    assert crds.stored(thing(color="red"))["spec"] == {"color": "red", "size": 3}


def test_server_stores_defaults_and_drops_the_unknown() -> None:
    crds = CrdSet.from_documents([make_crd(closed(size=NUMBER))])

    assert crds.stored(thing(color="red"))["spec"] == {"size": 3}


def test_wrong_type_is_named_by_its_path() -> None:
    assert validate(thing(size="big"), make_crd(closed(size=NUMBER))) == [
        "$.spec.size: 'big' is not of type 'integer'"
    ]


@pytest.mark.parametrize("value", ["8", 8])
def test_quantity_is_text_or_number(value: object) -> None:
    quantity = {"x-kubernetes-int-or-string": True, "pattern": "^[0-9]+$"}

    assert validate(thing(cpu=value), make_crd(closed(cpu=quantity))) == []


def test_kind_that_is_not_served_is_refused() -> None:
    assert validate(thing(), make_crd(closed(), served=False)) == [
        "no CRD serves kind Thing of example.dev/v1"
    ]


@pytest.mark.parametrize(
    ("rule", "good", "bad"),
    [
        ("has(self.a) != has(self.b)", {"a": "1"}, {"a": "1", "b": "2"}),
        ("self.a.find('^[0-9]+') == ''", {"a": "x1"}, {"a": "1x"}),
        ("self.a.split('/').size() == 2", {"a": "x/y"}, {"a": "x"}),
        ("self.a in ['x', 'y']", {"a": "x"}, {"a": "z"}),
    ],
    ids=["exclusive fields", "find", "split", "values"],
)
def test_rule_is_evaluated(rule: str, good: dict[str, str], bad: dict[str, str]) -> None:
    crd = make_crd(closed(rule, a=TEXT, b=TEXT))

    assert validate(thing(**good), crd) == []
    assert validate(thing(**bad), crd) == [f"$.spec: broken: {rule}"]


def test_rule_sees_the_defaults() -> None:
    assert validate(thing(), make_crd(closed("self.size == 3", size=NUMBER))) == []


def test_rule_about_the_old_object_is_left_out() -> None:
    assert validate(thing(size=4), make_crd(closed("self.size == oldSelf.size", size=NUMBER))) == []


# --- the same on the CRDs of a real project -----------------------------------------------------


def test_a_real_definition_refuses_what_a_server_would() -> None:
    crds = karpenter_crds()
    template: Document = {
        "spec": {
            "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "p5"},
            "requirements": [],
        }
    }
    budgets = [{"nodes": "10%", "schedule": "@daily"}]
    disruption = {"consolidationPolicy": "WhenEmpty", "consolidateAfter": "5m"}

    def found(**spec: Any) -> list[str]:
        whole: Document = {"template": template, "disruption": disruption, **spec}
        metadata = {"name": "p5"}
        return crds.validate(
            {
                "apiVersion": "karpenter.sh/v1",
                "kind": "NodePool",
                "metadata": metadata,
                "spec": whole,
            }
        )

    assert found() == found(replicas=4) == []
    for wrong in (
        {"replicas": 4, "weight": 10},
        {"replicas": 4, "limits": {"cpu": "100"}},
        {"weight": 101},
        {"ttlSecondsAfterEmpty": 30},
        {"disruption": {**disruption, "budgets": budgets}},
    ):
        assert found(**wrong), wrong
