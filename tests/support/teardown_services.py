"""How requests of a teardown reach an account and an API server in memory."""

import json
from collections.abc import Mapping
from types import MethodType, SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

from botocore import xform_name
from botocore.client import BaseClient
from botocore.config import Config
from botocore.exceptions import ClientError

from tests.support.fake_aws import PREFIXES, Refusal
from tests.support.stub_api_server import Request

if TYPE_CHECKING:
    from tests.support.teardown_estate import Estate

Query = dict[str, Any]


class Direct:
    """The clients of an estate, without botocore's parts that are slow."""

    def __init__(self, estate: "Estate") -> None:
        self._estate = estate

    def client(self, service_name: str, *, region_name: str, config: Config) -> "DirectClient":
        return DirectClient(self._estate, service_name)


class DirectClient(BaseClient):
    """A client whose requests the estate answers, in one page."""

    def __init__(self, estate: "Estate", service: str) -> None:
        self._estate = estate
        self._actions = {
            xform_name(action.partition(":")[2]): action
            for action in estate.answers
            if action.partition(":")[0] == PREFIXES.get(service, service)
        }
        self.meta: Any = SimpleNamespace(
            region_name=estate.plan.region,
            service_model=SimpleNamespace(service_name=service),
            method_to_api_mapping={
                method: action.partition(":")[2] for method, action in self._actions.items()
            },
        )

    def can_paginate(self, operation_name: str) -> bool:
        self._estate.listed.add(self._actions[operation_name])
        return False

    def __getattr__(self, name: str) -> Any:
        action = self._actions[name]

        def ask(_: "DirectClient", **parameters: object) -> Mapping[str, Any]:
            return self._ask(action, parameters)

        ask.__name__ = name
        return MethodType(ask, self)

    def _ask(self, action: str, parameters: dict[str, Any]) -> Mapping[str, Any]:
        self._estate.requested()
        self._estate.asked.append(action)
        told = self._estate.answers[action]
        try:
            if isinstance(told, Exception):
                raise told
            answer = cast("Any", told(parameters) if callable(told) else told)
        except Refusal as refusal:
            error = {"Error": {"Code": refusal.code, "Message": refusal.message}}
            raise ClientError(cast("Any", error), action) from None
        self._estate.changed()
        return answer


class InMemory:
    """The estate's API server, without a network."""

    user_agent = ""

    def __init__(self, estate: "Estate") -> None:
        self._estate = estate

    def call_api(self, path: str, method: str, **asked: Any) -> Any:
        from kubernetes.client.exceptions import ApiException

        self._estate.requested()
        if self._estate.cluster is None:
            raise ApiException(status=0, reason="no such host")
        headers = {key.lower(): value for key, value in asked["header_params"].items()}
        headers["authorization"] = "Bearer secret"
        if method in {"DELETE", "PATCH"}:
            try:
                self._estate.changing(path.rpartition("/")[2])
            except Refusal as refusal:
                raise ApiException(status=403, reason=refusal.message) from None
        if method == "PATCH":
            return self._scale(path, asked["body"])
        request = Request(method, path, dict(asked["query_params"]), headers, asked["body"])
        reply = self._estate.api.respond(request)
        if reply.status >= 400:
            error = ApiException(status=reply.status, reason="refused")
            error.body = json.dumps(reply.answer)
            raise error
        if method == "DELETE":
            self._estate.deleted.append(path.rpartition("/")[2])
        self._estate.changed()
        return SimpleNamespace(data=json.dumps(reply.answer).encode())

    def _scale(self, path: str, operations: Any) -> Any:
        """Scale exactly the Deployment that is meant; its pods end at once."""
        found = self._estate.api.find(path)
        assert found is not None
        test, change = operations
        assert test == {"op": "test", "path": "/metadata/uid", "value": found["metadata"]["uid"]}
        assert change["path"] == "/spec/replicas"
        spec = found["spec"] | {"replicas": change["value"]}
        self._estate.api.put(path, found | {"spec": spec, "status": {}})
        self._estate.changed()
        return SimpleNamespace(data=b"{}")


def tagged(things: Mapping[str, dict[str, Any]], asked: Query) -> list[dict[str, Any]]:
    """Return what passes EC2's filters; fields that are no fields of EC2 are left out."""
    found: list[dict[str, Any]] = []
    for each in things.values():
        tags = {tag["Key"]: tag["Value"] for tag in each.get("Tags", each.get("TagSet", []))}
        if all(_passes(each, tags, one) for one in asked.get("Filters", [])):
            found.append({key: value for key, value in each.items() if key != "Stack"})
    return found


def _passes(found: Mapping[str, Any], tags: Mapping[str, str], filter: Query) -> bool:
    name, values = filter["Name"], filter["Values"]
    if name == "tag-key":
        return any(value in tags for value in values)
    if name.startswith("tag:"):
        return tags.get(name.removeprefix("tag:")) in values
    if name == "vpc-id":
        return found.get("VpcId") in values
    if name == "group-id":
        return any(each["GroupId"] in values for each in found.get("Groups", []))
    if name == "subnet-id":
        return found.get("SubnetId") in values
    assert name == "instance-state-name"
    return found["State"]["Name"] in values
