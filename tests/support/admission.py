"""Judges objects by a ValidatingAdmissionPolicy offline, as an API server would."""

import importlib
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

# It ships no type hints.
celpy: Any = importlib.import_module("celpy")
# Its first environment raises the recursion limit, which hypothesis takes amiss within a test.
celpy.Environment()

Document = Mapping[str, Any]


class Policy:
    """A policy, with a binding that denies."""

    def __init__(self, manifest: Document) -> None:
        self._spec = manifest["spec"]

    def covers(self, namespace: str) -> bool:
        """Return whether the pods of ``namespace`` are judged."""
        selector = self._spec["matchConstraints"]["namespaceSelector"]
        (term,) = selector["matchExpressions"]
        assert (term["key"], term["operator"]) == ("kubernetes.io/metadata.name", "NotIn")
        return namespace not in term["values"]

    def refusals(
        self,
        thing: Document | None,
        *,
        old: Document | None = None,
        groups: Sequence[str] = (),
        namespace: str | None = "training",
        resource: str | None = None,
        rights: Sequence[str] = (),
    ) -> list[str]:
        """Return the messages with which an object is refused; empty where it is not.

        An expression that fails to evaluate refuses it too: the policy says `Fail`.

        Args:
            thing: The object; None where it is deleted.
            old: The object before it is updated or deleted; None where it is made.
            groups: Groups of whoever asks, beside those of everybody.
            namespace: Namespace of the object; None: its kind has none, so that no binding's
                selector of namespaces leaves it out.
            resource: Plural of its kind; None: the one that the policy names.
            rights: Rights in the cluster of whoever asks, as ``patch nodes``.
        """
        assert self._spec["failurePolicy"] == "Fail"
        rule, *_ = self._spec["matchConstraints"]["resourceRules"]
        operation = "DELETE" if thing is None else "CREATE" if old is None else "UPDATE"
        other_scope = namespace is None and rule.get("scope", "*") == "Namespaced"
        if operation not in rule["operations"] or other_scope:
            return []
        known = {
            "object": None if thing is None else celpy.json_to_cel({"metadata": {}} | dict(thing)),
            "oldObject": None if old is None else celpy.json_to_cel(dict(old)),
            "request": celpy.json_to_cel(
                {
                    "operation": operation,
                    "namespace": namespace or "",
                    "resource": {"resource": resource or rule["resources"][0]},
                    "userInfo": {"groups": ["system:authenticated", *groups]},
                }
            ),
        }
        known["authorizer"] = celpy.json_to_cel({"rights": [*rights], "asked": ""})
        conditions = (each["expression"] for each in self._spec["matchConditions"])
        if not all(_evaluate(expression, known) for expression in conditions):
            return []
        variables: dict[str, Any] = {}
        for each in self._spec.get("variables", ()):
            known |= {"variables": celpy.json_to_cel(variables)}
            variables[each["name"]] = _evaluate(each["expression"], known)
        known |= {"variables": celpy.json_to_cel(variables)}
        return [
            each["message"]
            for each in self._spec["validations"]
            if not _evaluate(each["expression"], known)
        ]


def _evaluate(expression: str, known: Mapping[str, Any]) -> Any:
    return _program(expression).evaluate(dict(known))


@cache
def _program(expression: str) -> Any:
    environment = celpy.Environment()
    return environment.program(environment.compile(expression), functions=_FUNCTIONS)


def _split(text: str, by: str) -> Any:
    return celpy.json_to_cel(str(text).split(str(by)))


def _dyn(value: Any) -> Any:
    return value


def _authorizer_question(what: Any, word: Any) -> Any:
    asked = " ".join(filter(None, (str(word), str(what["asked"]))))
    return celpy.json_to_cel({"rights": [str(each) for each in what["rights"]], "asked": asked})


def _group(what: Any, group: Any) -> Any:
    return what if not group else _authorizer_question(what, group)


def _allowed(what: Any) -> Any:
    return celpy.json_to_cel(str(what["asked"]) in [str(each) for each in what["rights"]])


# Of Kubernetes' CEL, which celpy lacks.
# Source: https://kubernetes.io/docs/reference/using-api/cel/#cel-options-language-features-and-libraries
_FUNCTIONS = {
    "split": _split,
    "dyn": _dyn,
    "group": _group,
    "resource": _authorizer_question,
    "check": _authorizer_question,
    "allowed": _allowed,
}
