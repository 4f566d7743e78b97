"""The backend's section: database, environment and image."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.folders import ROOT
from tests.support.pools import as_text, make_cluster, make_document
from ultrascale import config, plan
from ultrascale.parts.backend.database import Database
from ultrascale.parts.backend.model import (
    ApplicationPlan,
    DatabasePlan,
    InstanceCapacity,
    Plan,
    ServerlessCapacity,
)
from ultrascale.parts.backend.section import Backend, CallerIdentity, CallerRight
from ultrascale_backend.settings import read_settings

JOBS = {"tune": {"node_selector": {"node-type": "train"}}}
REFERENCE = "docker.io/acme/backend:1"


def backend(*, document: dict[str, Any] | None = None, **changes: Any) -> Plan:
    section = {"submits_to": ["tune"], "database": {"version": "17"}} | changes
    cluster = make_cluster(**{"jobs": JOBS, "backend": section} | (document or {}))
    found = plan.plan_cluster(cluster).part(Plan)
    assert found is not None
    return found


def database(**changes: Any) -> DatabasePlan:
    found = backend(database={"version": "17"} | changes).database
    assert found is not None
    return found


def application(*, document: dict[str, Any] | None = None, **changes: Any) -> ApplicationPlan:
    found = backend(document=document, **{"image": REFERENCE} | changes).application
    assert found is not None
    return found


class TestDatabase:
    """Instances of the database, and its upgrades."""

    @pytest.mark.parametrize(
        ("changes", "pause", "instances", "least"),
        [
            ({}, None, 2, 0.5),
            ({"min_capacity_acu": 0}, 3600, 2, 0),
            ({"multi_az": False}, None, 1, 0.5),
        ],
        ids=["by default", "may pause", "alone"],
    )
    def test_a_second_instance_takes_over_and_capacity_follows_the_load(
        self, changes: dict[str, Any], pause: int | None, instances: int, least: float
    ) -> None:
        found = database(**changes)
        assert found.engine == "aurora-postgresql"
        assert found.capacity == ServerlessCapacity(
            instance_class="db.serverless",
            instances=instances,
            min_acu=least,
            max_acu=4,
            pause_seconds=pause,
        )

    def test_an_instance_of_rds_has_room_to_grow(self) -> None:
        found = database(service="rds", storage_gib=50, instance_type="db.r6g.large")

        assert found.engine == "postgres"
        assert found.capacity == InstanceCapacity(
            instance_class="db.r6g.large", multi_az=True, storage_gib=50, max_storage_gib=500
        )

    @pytest.mark.parametrize(("version", "upgraded"), [("17", True), ("17.9", False)])
    def test_rds_upgrades_no_minor_version_that_the_file_names(
        self, version: str, upgraded: bool
    ) -> None:
        """CloudFormation would ask for the older one at the next change, and be refused."""
        assert database(version=version).minor_upgrades == upgraded

    @pytest.mark.parametrize(
        ("changes", "days"),
        [({}, None), ({"min_capacity_acu": 2}, 7), ({"service": "rds"}, 7)],
        ids=["small", "2 ACU", "instance"],
    )
    def test_insights_take_no_memory_of_an_instance_that_has_none_to_spare(
        self, changes: dict[str, Any], days: int | None
    ) -> None:
        assert database(**changes).insights_days == days

    @pytest.mark.parametrize("service", ["aurora-serverless", "rds"])
    def test_no_connection_goes_without_tls(self, service: str) -> None:
        assert database(service=service).parameters == {"rds.force_ssl": "1"}


class TestApplication:
    """Settings of the process: exactly the names that it reads."""

    def test_the_process_finds_its_database_and_its_files(self) -> None:
        assert backend().application is None  # the user deploys an application without an image
        environment = {
            "ULTRASCALE_CLUSTER_FILE": "/etc/ultrascale/cluster.yaml",
            "AWS_ACCOUNT_ID": "${AWS_ACCOUNT_ID}",
            "PORT": "8080",
            "DATABASE_HOST": "${DATABASE_HOST}",
            "DATABASE_PORT": "5432",
            "DATABASE_NAME": "backend",
            "DATABASE_USER": "backend",
        }
        # Our application refuses to start with both ways to log in.
        secret = {"DATABASE_SECRET_ARN": "${DATABASE_SECRET_ARN}"}
        iam = {"DATABASE_IAM_REGION": "us-west-2"}
        by_iam = application(database={"version": "17", "login": "iam"})
        assert application().environment == environment | secret
        assert by_iam.environment == environment | iam

    @pytest.mark.parametrize("login", ["secret", "iam"])
    def test_our_application_starts_with_what_it_is_told(self, login: str, tmp_path: Path) -> None:
        found = application(database={"version": "17", "login": login}, rules={"rules": []})
        told = {
            key: value.replace("${AWS_ACCOUNT_ID}", "111122223333")
            for key, value in found.environment.items()
        }
        told["DATABASE_CA_FILE"] = "/opt/rds-ca.pem"  # by the image
        for key in ("ULTRASCALE_CLUSTER_FILE", "ULTRASCALE_RULES_FILE", "DATABASE_CA_FILE"):
            file = tmp_path / Path(told[key]).name
            file.write_text(found.files.get(file.name, ""))
            told[key] = str(file)

        settings = read_settings(told)

        assert settings.port == found.port
        assert settings.database.user == "backend"
        assert (settings.database.secret_arn is None) == (login == "iam")
        assert (settings.database.iam_region is None) == (login == "secret")
        assert settings.drain_seconds < found.grace_period_seconds
        assert config.load(settings.cluster_file).name == "research"

    def test_rules_of_the_file_take_the_place_of_those_in_the_image(self) -> None:
        rules = {"rules": [{"name": "all", "types": ["a", "b"], "template": "tune"}]}

        found = application(rules=rules)

        assert found.environment["ULTRASCALE_RULES_FILE"] == "/etc/ultrascale/rules.yaml"
        assert yaml.safe_load(found.files["rules.yaml"]) == rules
        assert "ULTRASCALE_RULES_FILE" not in application().environment

    @pytest.mark.parametrize("name", ["hybrid-hyperpod", "mixed-capacity"])
    def test_the_application_reads_the_cluster_that_it_submits_to(self, name: str) -> None:
        cluster = config.load(ROOT / "clusters" / f"{name}.yaml")

        assert config.loads(config.text_of(cluster)) == cluster

    def test_images_of_the_users_own_have_the_same_tags_where_their_folders_are_not(
        self, tmp_path: Path
    ) -> None:
        (tmp_path / "mine").mkdir()
        (tmp_path / "mine" / "Dockerfile").write_text("FROM a\nUSER 5\n")
        file = tmp_path / "cluster.yaml"
        rules = {"rules": [{"name": "all", "types": ["a"], "template": "tune"}]}
        section = {"submits_to": ["tune"], "database": {"version": "17"}, "image": "backend"}
        images = {"repositories": ["llm", "backend"], "builds": {"llm": "./mine"}}
        file.write_text(
            as_text(make_document(jobs=JOBS, backend=section | {"rules": rules}, images=images))
        )
        here = plan.load(file)
        own = here.part(Plan)
        assert own is not None
        assert own.application is not None
        pod = tmp_path / "pod"
        pod.mkdir()
        for name, text in own.application.files.items():
            (pod / name).write_text(text)

        there = plan.load(pod / "cluster.yaml")

        llm, *_ = there.images.builds
        assert [build.tag for build in there.images.builds] == [
            build.tag for build in here.images.builds
        ]
        assert (llm.repository, llm.non_root) == ("llm", True)
        assert "images.lock" not in application().files

    @pytest.mark.parametrize(
        ("image", "reference"),
        [
            (REFERENCE, REFERENCE),
            (
                "backend:1.2.3",
                "${AWS_ACCOUNT_ID}.dkr.ecr.us-west-2.amazonaws.com/research/backend:1.2.3",
            ),
            (
                "backend@sha256:" + 64 * "0",
                "${AWS_ACCOUNT_ID}.dkr.ecr.us-west-2.amazonaws.com/research/backend@sha256:"
                + 64 * "0",
            ),
        ],
    )
    def test_an_image_of_the_clusters_own_is_pulled_from_its_account(
        self, image: str, reference: str
    ) -> None:
        document = {"images": {"repositories": ["backend"], "builds": {"backend": "none"}}}

        assert application(document=document, image=image).image == reference


OTHER_VALUES: dict[str, dict[str, Any]] = {
    "submits_to": {"submits_to": ["tune", "batch"]},
    "namespace": {"namespace": "apps"},
    "allow_from": {"allow_from": ["web"]},
    "image": {"image": REFERENCE},
    "identity": {"identity": {"admins": ["system:serviceaccount:backend:ops"]}},
    "rules": {"image": REFERENCE, "rules": {}},
    "database": {"database": None},
    "version": {"database": {"version": "16"}},
    "service": {"database": {"version": "17", "service": "rds"}},
    "login": {"database": {"version": "17", "login": "iam"}},
    "min_capacity_acu": {"database": {"version": "17", "min_capacity_acu": 1}},
    "max_capacity_acu": {"database": {"version": "17", "max_capacity_acu": 8}},
    "multi_az": {"database": {"version": "17", "multi_az": False}},
    "backup_retention_days": {"database": {"version": "17", "backup_retention_days": 35}},
}
OF_AN_INSTANCE: dict[str, object] = {"instance_type": "db.r7g.large", "storage_gib": 100}
ISSUER = {"issuer": "https://login.example.com"}
OF_AN_IDENTITY: dict[str, dict[str, Any]] = {
    "issuer": {"issuer": "https://other.example.com"},
    "audience": {"audience": "jobs"},
    "groups_claim": {"groups_claim": "cognito:groups"},
    "admins": {"admins": ["platform"]},
    "rights": {"rights": {"research": {}}},
}
OF_A_RIGHT: dict[str, object] = {"priority": "low", "kinds": ["training"], "templates": ["tune"]}


@pytest.mark.parametrize("key", OTHER_VALUES)
def test_a_key_of_the_backend_has_an_effect(key: str) -> None:
    claim = {"namespace": "data", "name": "data", "mount_path": "/data"}
    lustre = {"zone": "us-west-2b", "capacity_gib": 1200, "throughput_mbps_per_tib": 250}
    document: dict[str, Any] = {
        "jobs": JOBS | {"batch": {"kind": "batch", "namespace": "data"}},
        "storage": {"lustre": [{"name": "scratch", "claim": claim, **lustre}]},
    }

    assert backend(document=document, **OTHER_VALUES[key]) != backend(document=document)


@pytest.mark.parametrize("key", OF_AN_INSTANCE)
def test_a_key_of_an_instance_has_an_effect(key: str) -> None:
    assert database(service="rds", **{key: OF_AN_INSTANCE[key]}) != database(service="rds")


@pytest.mark.parametrize("key", OF_AN_IDENTITY)
def test_a_key_of_the_callers_has_an_effect(key: str) -> None:
    assert backend(identity=ISSUER | OF_AN_IDENTITY[key]) != backend(identity=ISSUER)


@pytest.mark.parametrize("key", OF_A_RIGHT)
def test_a_key_of_a_right_has_an_effect(key: str) -> None:
    document: dict[str, Any] = {"jobs": JOBS | {"batch": {"kind": "batch"}}}

    def with_right(**right: object) -> Plan:
        rights = {"system:serviceaccounts:backend": right}
        changes = {"submits_to": ["tune", "batch"], "identity": {"rights": rights}}
        return backend(document=document, **changes)

    assert with_right(**{key: OF_A_RIGHT[key]}) != with_right()


def test_a_right_without_a_priority_is_to_jobs_that_displace_nobody() -> None:
    rights: dict[str, Any] = {
        "system:serviceaccounts:backend": {},
        "system:serviceaccount:backend:cron": {"priority": "high"},
    }

    found = backend(identity={"rights": rights}).identity.rights

    assert [(right.highest_value, right.templates) for right in found] == [
        (0, ("tune",)),
        (800_000, ("tune",)),
    ]


def test_no_key_goes_untried() -> None:
    keys = Backend.model_fields.keys() | Database.model_fields.keys()
    # The engine has one value.
    assert keys == {*OTHER_VALUES, *OF_AN_INSTANCE, "engine"}
    assert CallerIdentity.model_fields.keys() == OF_AN_IDENTITY.keys()
    assert CallerRight.model_fields.keys() == OF_A_RIGHT.keys()


def test_an_image_that_is_built_from_this_project_is_pulled_by_the_tag_of_its_sources() -> None:
    section = {"submits_to": ["tune"], "database": {"version": "17"}, "image": "backend"}
    section |= {"rules": {"rules": [{"template": "tune"}]}}
    cluster = make_cluster(jobs=JOBS, backend=section, images={"repositories": ["backend"]})
    found = plan.plan_cluster(cluster)
    (build,) = found.images.builds
    own = found.part(Plan)
    assert own is not None
    assert own.application is not None
    assert own.application.image.endswith(f"/research/backend:{build.tag}")


def test_the_hybrid_backend_launches_jobs_of_its_own_and_of_a_team() -> None:
    cluster = plan.load(ROOT / "clusters" / "hybrid-hyperpod.yaml")
    found = cluster.part(Plan)
    (own,) = (each for each in cluster.namespaces if each.name == "backend")
    assert found is not None
    assert found.job_namespaces == ("training",)
    assert found.team_namespaces == ("hyperpod-ns-production",)
    # Its namespace takes no pod that runs as root.
    assert (own.pod_security, own.training) == ("restricted", False)
