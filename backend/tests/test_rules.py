"""Rules decide every request, and mistakes in them are all told before the first."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.backend_files import CLUSTER, PRODUCTION, RESEARCH, RULES, asked, write_files
from tests.support.folders import ROOT
from ultrascale.errors import ConfigError
from ultrascale.parts.backend.section import DEFAULT_JOB_KEYS, DEFAULT_TEMPLATES, Backend
from ultrascale_backend.errors import BadRequestError
from ultrascale_backend.rendering import Renderer, open_renderer, read_rules
from ultrascale_backend.requests import JobRequest

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
OWNER = "system:serviceaccount:web:web"
ID = UUID("0f3c2b1a-0000-4000-8000-123456789abc")
_, DEFAULTS = read_rules(None)


def test_check_knows_which_templates_the_rules_in_the_image_submit() -> None:
    """By them it refuses a file with which the image would not start."""
    assert {rule.template for rule in DEFAULTS.rules} == DEFAULT_TEMPLATES
    # The change guard compares what clients may state.
    assert tuple(DEFAULTS.job_keys) == DEFAULT_JOB_KEYS


@pytest.fixture(scope="module")
def renderer(tmp_path_factory: pytest.TempPathFactory) -> Renderer:
    return open_renderer(*write_files(tmp_path_factory.mktemp("files")), account=None)


def request(kind: str, *, hours: float | None = None, urgency: str = "normal") -> JobRequest:
    deadline = None if hours is None else NOW + timedelta(hours=hours)
    return JobRequest.model_validate({"type": kind, "urgency": urgency, "deadline": deadline})


@pytest.mark.parametrize(
    ("asked_for", "rule", "template"),
    [
        pytest.param(request("production"), "production", "production", id="production"),
        pytest.param(request("development"), "development", "development", id="development"),
        pytest.param(request("research"), "research", "research", id="research"),
        pytest.param(
            request("development", hours=24), "development-due", "production", id="due in a day"
        ),
        pytest.param(
            request("development", hours=24.1), "development", "development", id="due later"
        ),
        pytest.param(
            request("research", hours=48), "research-due", "development", id="due in two days"
        ),
        pytest.param(
            request("research", urgency="high"), "research-urgent", "development", id="urgent"
        ),
    ],
)
def test_what_is_due_soon_or_urgent_takes_nodes_that_stay(
    asked_for: JobRequest, rule: str, template: str
) -> None:
    chosen = DEFAULTS.choose(asked_for, NOW)

    assert chosen is not None
    assert (chosen.name, chosen.template) == (rule, template)


@given(
    kind=st.sampled_from(sorted(DEFAULTS.types)),
    urgency=st.sampled_from(["low", "normal", "high"]),
    hours=st.none() | st.floats(0.01, 80_000),
)
def test_every_request_of_a_known_type_becomes_a_template(
    kind: str, urgency: str, hours: float | None
) -> None:
    assert DEFAULTS.choose(request(kind, urgency=urgency, hours=hours), NOW) is not None


def test_the_rules_that_ship_fit_the_hybrid_cluster_file() -> None:
    hybrid = ROOT / "clusters" / "hybrid-hyperpod.yaml"

    renderer = open_renderer(hybrid, None, account="111122223333")

    submits_to = renderer.cluster.cluster.section(Backend)
    assert submits_to is not None
    assert {rule.template for rule in renderer.rules.rules} == set(submits_to.submits_to)


def test_what_is_rendered_is_named_after_the_request_and_carries_its_id(
    renderer: Renderer,
) -> None:
    record, _ = renderer.render(ID, asked(PRODUCTION), NOW, owner=OWNER)

    again, _ = renderer.render(ID, asked(PRODUCTION), NOW, owner=OWNER)
    assert record.job_name == f"request-{ID.hex}"
    assert record.objects.count(f'"ultrascale.dev/request": "{ID}"') == 2
    assert again == record
    assert (record.namespace, record.kind, record.workloads) == ("training", "jobs.batch", 1)


@pytest.mark.parametrize(
    ("queueing", "kinds"),
    [
        ("none", {"jobs.batch"}),
        ("kueue", {"jobs.batch", "jobsets.jobset.x-k8s.io"}),
        ("volcano", {"jobs.batch", "jobs.batch.volcano.sh"}),
    ],
)
def test_each_kind_that_a_request_can_become_is_followed(
    tmp_path: Path, queueing: str, kinds: set[str]
) -> None:
    """The number of nodes makes it a Job or a JobSet, and a request may state that number."""
    cluster = f"{CLUSTER}scheduling: {{queueing: {queueing}}}\n"

    renderer = open_renderer(*write_files(tmp_path, cluster=cluster), account=None)

    record, _ = renderer.render(ID, asked(PRODUCTION), NOW, owner=OWNER)
    assert renderer.followed == {("training", kind) for kind in kinds}
    assert (record.namespace, record.kind) in renderer.followed


def test_what_a_client_may_not_state_does_not_reach_the_job(renderer: Renderer) -> None:
    job: dict[str, object] = {
        **RESEARCH["job"],
        "namespace": "kube-system",
        "volumes": [],
        "pool": "system",
    }

    with pytest.raises(BadRequestError) as error:
        renderer.render(ID, asked({**RESEARCH, "job": job}), NOW, owner=OWNER)

    assert [line.split(": ")[1] for line in error.value.mistakes] == [
        "namespace",
        "volumes",
        "pool",
    ]


def rules(text: str, old: str, new: str) -> dict[str, Any]:
    assert old in text
    return {"rules": text.replace(old, new)}


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        pytest.param({"rules": ""}, ["input should be a valid dictionary"], id="empty"),
        pytest.param({"rules": "rules: [\n"}, ["cannot be read"], id="no YAML"),
        pytest.param(
            rules(RULES, "job_keys:", "job_keys: []\njob_keys:"), ["stands on line"], id="twice"
        ),
        pytest.param(
            rules(RULES, "[image,", "[namespace, imag,"),
            ["job_keys.0: no client may state it", "job_keys.1: no key of a job, got imag; did"],
            id="keys",
        ),
        pytest.param(
            rules(RULES, "[image,", "[patch, secrets,"),
            ["job_keys.0: no client may state it", "job_keys.1: no client may state it"],
            id="keys that go past a caller's rights",
        ),
        pytest.param(
            rules(RULES, "template: production", "template: producton"),
            ["rules.0.template: not one of", "did you mean production?"],
            id="a template that is misspelt",
        ),
        pytest.param(
            rules(
                RULES, "types: [production], ", "types: [production], deadline_within_hours: 1, "
            ),
            ["requests of type production and urgency low or normal or high without a near"],
            id="a type without a last rule",
        ),
        pytest.param(
            {"rules": RULES + "  - {name: late, types: [research], template: production}\n"},
            ["rules.3: never asked"],
            id="a rule behind its last",
        ),
        pytest.param(
            rules(RULES, "name: research-due", "name: research"),
            ["rules.1.name: not unique", "rules.2.name: not unique"],
            id="names",
        ),
        pytest.param(
            rules(RULES, "{name: production,", "{changes: {nodes: 99}, name: production,"),
            ["rules.0: job: nodes: more than"],
            id="changes that a job does not take",
        ),
        pytest.param(
            rules(RULES, "{name: production,", "{changes: {pol: gpu}, name: production,"),
            ["rules.0: job: pol: unknown key"],
            id="changes that no job takes",
        ),
        pytest.param(
            rules(
                RULES,
                "{name: research,",
                "{changes: {ttl_seconds_after_finished: 5}, name: research,",
            ),
            ["rules.2: ttl_seconds_after_finished: too short"],
            id="a job that is gone before its end is seen",
        ),
        pytest.param(
            rules(
                RULES,
                "{name: production,",
                "{changes: {preflight: device, durable: false}, name: production,",
            ),
            ["rules.0: preflight: checks that take minutes and cordon nodes"],
            id="checks of nodes that the backend cannot wait for",
        ),
        pytest.param(
            rules(RULES, "types: [research], deadline", "types: [], urgencies: [now], deadline"),
            ["rules.1.types", "rules.1.urgencies.0"],
            id="form",
        ),
    ],
)
def test_every_mistake_in_rules_is_told_before_the_first_request(
    tmp_path: Path, changes: dict[str, Any], told: list[str]
) -> None:
    with pytest.raises(ConfigError) as error:
        open_renderer(*write_files(tmp_path, **changes), account=None)

    for part in told:
        assert any(part in line for line in error.value.mistakes), error.value.mistakes
    assert all(str(tmp_path) in line for line in error.value.mistakes)


def test_a_cluster_file_whose_backend_submits_nothing_is_refused(tmp_path: Path) -> None:
    cluster, rules_file = write_files(tmp_path)
    cluster.write_text(cluster.read_text().partition("backend:")[0])

    with pytest.raises(ConfigError, match="backend: missing"):
        open_renderer(cluster, rules_file, account=None)
