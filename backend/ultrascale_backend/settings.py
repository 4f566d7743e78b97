"""Settings of the process, from its environment."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from ultrascale import config
from ultrascale.errors import ConfigError

_PARTS = ("DATABASE_HOST", "DATABASE_NAME", "DATABASE_CA_FILE")
_LOGINS = ("DATABASE_IAM_REGION", "DATABASE_SECRET_ARN")
_DATABASE = (*_PARTS, *_LOGINS, "DATABASE_PORT", "DATABASE_USER")
_FILES = ("ULTRASCALE_CLUSTER_FILE", "ULTRASCALE_RULES_FILE", "DATABASE_CA_FILE", "OIDC_CA_FILE")
_PORT, _POSTGRES_PORT = 8080, 5432
# Seconds from SIGTERM to the close of the sockets: after them no Service sends requests here.
_DRAIN_SECONDS = 5.0
_PER_SECOND: Mapping[str, float] = {
    "CALLER_REQUESTS_PER_SECOND": 20,
    "ADDRESS_TOKENS_PER_SECOND": 5,
}
_MOST_PER_SECOND = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class DatabaseSettings:
    """Address of the database and the credentials of the process."""

    host: str = ""  # Its endpoint; empty with ``url``
    port: int = _POSTGRES_PORT  # Its port
    name: str = ""  # Name of the database
    user: str = ""  # PostgreSQL user; empty: the user in the secret
    iam_region: str | None = None  # Region whose IAM gives tokens in place of a password; else None
    # Secret of AWS Secrets Manager that holds user and password; else None
    secret_arn: str | None = None
    # Certificate authorities that must have signed the server's certificate
    ca_file: Path | None = None
    url: str | None = None  # A libpq connection string, used as it is; else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Settings of the backend's process."""

    cluster_file: Path  # File of the cluster that jobs run in
    rules_file: Path | None  # File of the rules; None for the rules of this package
    database: DatabaseSettings  # The database of the requests
    port: int  # TCP port of the HTTP server
    account: str | None  # AWS account of the cluster's registry, if the file does not state it
    drain_seconds: float  # Seconds from the end of readiness to the end of the server
    # Certificate authorities of the server of the file's OpenID Connect issuer; None for public
    # ones
    issuer_ca_file: Path | None
    requests_per_second: float  # Requests that one caller may send to this process in a second
    tokens_per_second: float  # Invalid tokens that one address may try in a second


def read_settings(environment: Mapping[str, str]) -> Settings:
    """Return the settings in ``environment``; an empty variable counts as not set.

    Raises:
        ConfigError: Variables are missing or wrong; one line for each.
    """
    given = {name: value for name, value in environment.items() if value}
    mistakes = [*_files(given), *_numbers(given), *_database(given)]
    account = given.get("AWS_ACCOUNT_ID")
    if account is not None and not config.is_account_id(account):
        mistakes.append(
            f"AWS_ACCOUNT_ID: not an AWS account id, got {account}; write its 12 digits"
        )
    if mistakes:
        raise ConfigError(f"environment: {mistake}" for mistake in mistakes)
    requests, tokens = (float(given.get(name, value)) for name, value in _PER_SECOND.items())
    rules, authorities = given.get("ULTRASCALE_RULES_FILE"), given.get("OIDC_CA_FILE")
    return Settings(
        cluster_file=Path(given["ULTRASCALE_CLUSTER_FILE"]),
        rules_file=Path(rules) if rules else None,
        database=_database_settings(given),
        port=int(given.get("PORT", _PORT)),
        account=account,
        drain_seconds=float(given.get("SHUTDOWN_DELAY_SECONDS", _DRAIN_SECONDS)),
        issuer_ca_file=Path(authorities) if authorities else None,
        requests_per_second=requests,
        tokens_per_second=tokens,
    )


def _files(given: Mapping[str, str]) -> Iterator[str]:
    if "ULTRASCALE_CLUSTER_FILE" not in given:
        yield "ULTRASCALE_CLUSTER_FILE: missing; set it to the path of the cluster file"
    for name in (
        "ULTRASCALE_CLUSTER_FILE",
        "ULTRASCALE_RULES_FILE",
        "DATABASE_CA_FILE",
        "OIDC_CA_FILE",
    ):
        if name in given and not Path(given[name]).is_file():
            yield f"{name}: no such file, got {given[name]}; mount it there"


def _numbers(given: Mapping[str, str]) -> Iterator[str]:
    for name in ("PORT", "DATABASE_PORT"):
        value = given.get(name, "1")
        if not value.isascii() or not value.isdecimal() or not 1 <= int(value) <= 65_535:
            yield f"{name}: not a TCP port, got {value}; write a number from 1 to 65535"
    delay = given.get("SHUTDOWN_DELAY_SECONDS", "0")
    if not delay.isascii() or not delay.replace(".", "", 1).isdecimal():
        yield f"SHUTDOWN_DELAY_SECONDS: not a number of seconds, got {delay}; write digits"
    for name in _PER_SECOND:
        rate = given.get(name, "1")
        digits = rate.isascii() and rate.isdecimal() and len(rate) < 10
        if not digits or not 1 <= int(rate) <= _MOST_PER_SECOND:
            yield f"{name}: out of range, got {rate}; write a number from 1 to {_MOST_PER_SECOND}"


def _database(given: Mapping[str, str]) -> Iterator[str]:
    if "DATABASE_URL" in given:
        if others := [name for name in _DATABASE if name in given]:
            yield f"DATABASE_URL: stated beside {', '.join(others)}; leave one of them out"
        return
    for name in _PARTS:
        if name not in given:
            yield f"{name}: missing; set it, or DATABASE_URL for a database of your own"
    logins = [name for name in _LOGINS if name in given]
    if len(logins) != 1:
        wrong = "both are set" if logins else "neither is set"
        yield f"{' and '.join(_LOGINS)}: {wrong}; set one, which says how to log in"
    if "DATABASE_USER" not in given and "DATABASE_SECRET_ARN" not in given:
        yield "DATABASE_USER: missing; set it to the PostgreSQL user that has the role rds_iam"


def _database_settings(given: Mapping[str, str]) -> DatabaseSettings:
    if "DATABASE_URL" in given:
        return DatabaseSettings(url=given["DATABASE_URL"])
    return DatabaseSettings(
        host=given["DATABASE_HOST"],
        port=int(given.get("DATABASE_PORT", _POSTGRES_PORT)),
        name=given["DATABASE_NAME"],
        user=given.get("DATABASE_USER", ""),
        iam_region=given.get("DATABASE_IAM_REGION"),
        secret_arn=given.get("DATABASE_SECRET_ARN"),
        ca_file=Path(given["DATABASE_CA_FILE"]),
    )
