"""The account and the API server of an estate, as clients see them."""

import json
from collections.abc import Mapping
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from botocore.config import Config

from tests.support.fake_aws import CONFIG, REGION, Answer, FakeAws, Refusal, action_of
from tests.support.stub_api_server import Request

if TYPE_CHECKING:
    from tests.support.estate.account import Estate

Query = dict[str, Any]


class EstateAws(FakeAws):
    """The services of an estate, which may end the process at each of their requests."""

    def __init__(self, estate: "Estate") -> None:
        super().__init__(estate.answers)
        self._estate = estate

    def client(
        self, service_name: str, *, region_name: str = REGION, config: Config = CONFIG
    ) -> Any:
        client = super().client(service_name, region_name=region_name, config=config)
        can_paginate = client.can_paginate

        def asked(operation: str) -> bool:
            name = client.meta.method_to_api_mapping[operation]
            self._estate.listed.add(action_of(service_name, name))
            return can_paginate(operation)

        client.can_paginate = asked
        return client

    def _next(self, action: str, asked: dict[str, Any]) -> Answer:
        self._estate.requested()
        answer = super()._next(action, asked)
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
        request = Request(method, path, dict(asked["query_params"]), headers, asked["body"])
        reply = self._estate.api.respond(request)
        if reply.status >= 400:
            error = ApiException(status=reply.status, reason="refused")
            error.body = json.dumps(reply.answer)
            raise error
        if method == "DELETE":
            self._estate.deleted.append(path.rpartition("/")[2])
        if method == "PATCH":
            # The pods of a Deployment that is scaled to none end at once.
            self._estate.api.put(path, self._estate.api.objects[path] | {"status": {}})
        self._estate.changed()
        return SimpleNamespace(data=json.dumps(reply.answer).encode())


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
