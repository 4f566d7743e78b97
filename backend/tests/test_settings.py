"""The environment of the backend: every mistake in it at once."""

from pathlib import Path

import pytest

from ultrascale.errors import ConfigError
from ultrascale_backend.settings import read_settings

RDS = {
    "DATABASE_HOST": "db.example",
    "DATABASE_NAME": "backend",
    "DATABASE_USER": "backend",
    "DATABASE_IAM_REGION": "us-east-1",
}
SECRET = "arn:aws:secretsmanager:us-east-1:111122223333:secret:db-AbCdEf"


@pytest.fixture
def files(tmp_path: Path) -> dict[str, str]:
    """Return the variables that name files, which are there."""
    names = ("ULTRASCALE_CLUSTER_FILE", "DATABASE_CA_FILE")
    for name in names:
        (tmp_path / name).touch()
    return {name: str(tmp_path / name) for name in names}


def test_what_is_left_out_has_its_default(files: dict[str, str]) -> None:
    settings = read_settings({**files, **RDS, "AWS_ACCOUNT_ID": "", "DATABASE_PORT": ""})

    assert (settings.port, settings.database.port, settings.drain_seconds) == (8080, 5432, 5.0)
    assert (settings.rules_file, settings.account, settings.issuer_ca_file) == (None, None, None)
    assert (settings.requests_per_second, settings.tokens_per_second) == (20, 5)


@pytest.mark.parametrize(
    ("changes", "wrong"),
    [
        pytest.param({"ULTRASCALE_CLUSTER_FILE": ""}, ["ULTRASCALE_CLUSTER_FILE"], id="no cluster"),
        pytest.param(
            {"DATABASE_CA_FILE": "/nowhere", "ULTRASCALE_RULES_FILE": "/nowhere"},
            ["ULTRASCALE_RULES_FILE", "DATABASE_CA_FILE"],
            id="files that are not mounted",
        ),
        pytest.param({"DATABASE_CA_FILE": ""}, ["DATABASE_CA_FILE"], id="no authorities"),
        pytest.param({"DATABASE_URL": "postgresql://"}, ["DATABASE_URL"], id="two databases"),
        pytest.param(
            {"DATABASE_IAM_REGION": ""},
            ["DATABASE_IAM_REGION and DATABASE_SECRET_ARN"],
            id="no login",
        ),
        pytest.param(
            {"DATABASE_SECRET_ARN": SECRET},
            ["DATABASE_IAM_REGION and DATABASE_SECRET_ARN"],
            id="two logins",
        ),
        pytest.param(
            {
                "DATABASE_HOST": "",
                "DATABASE_NAME": "",
                "DATABASE_USER": "",
                "PORT": "0",
                "DATABASE_PORT": "٣",
                "SHUTDOWN_DELAY_SECONDS": "-1",
                "AWS_ACCOUNT_ID": "1234",
                "CALLER_REQUESTS_PER_SECOND": "0",
                "ADDRESS_TOKENS_PER_SECOND": "many",
            },
            [
                "PORT",
                "DATABASE_PORT",
                "SHUTDOWN_DELAY_SECONDS",
                "CALLER_REQUESTS_PER_SECOND",
                "ADDRESS_TOKENS_PER_SECOND",
                "DATABASE_HOST",
                "DATABASE_NAME",
                "DATABASE_USER",
                "AWS_ACCOUNT_ID",
            ],
            id="everything",
        ),
    ],
)
def test_every_mistake_in_the_environment_is_told_at_once(
    files: dict[str, str], changes: dict[str, str], wrong: list[str]
) -> None:
    with pytest.raises(ConfigError) as error:
        read_settings({**files, **RDS, **changes})

    assert [line.split(": ")[1] for line in error.value.mistakes] == wrong
