"""HyperPod settings that would fail in an account, or share nodes by other rules than meant."""

from typing import Any

import pytest

from tests.support.config_documents import mistakes_in, with_pool
from tests.support.pools import (
    HYPERPOD_POOL,
    SYSTEM_POOL,
    governed_document,
    make_document,
)
from ultrascale.catalog.provisioners import installed_provisioners
from ultrascale.config import pools

TAINT = {"key": "team", "value": "vision"}


def hyperpod_document(**pool: Any) -> dict[str, Any]:
    return make_document(pools=[SYSTEM_POOL, HYPERPOD_POOL | pool])


def team(name: str = "research", **changes: Any) -> dict[str, Any]:
    return {"name": name, "fair_share_weight": 40, **changes}


def test_the_documents_that_the_mistakes_are_made_in_have_none() -> None:
    assert mistakes_in(hyperpod_document()) == []
    assert mistakes_in(governed_document(team("a", nodes={"hp": 8}), team("b"))) == []
    assert mistakes_in(with_pool(taints=[TAINT, TAINT | {"effect": "NoExecute"}])) == []


def test_a_pool_of_a_part_that_is_not_installed_is_a_mistake(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    core = {key: value for key, value in installed_provisioners().items() if key != "hyperpod"}
    monkeypatch.setattr(pools, "installed_provisioners", lambda: core)

    assert "pools[hp].provisioner: form" in mistakes_in(hyperpod_document())
