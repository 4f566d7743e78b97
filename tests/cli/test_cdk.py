"""`ultrascale cdk`: the CDK's own command line, without what stands in a newcomer's way."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from ultrascale import account
from ultrascale.cdk_cli import CdkCli
from ultrascale.cli.cdk import cdk
from ultrascale.errors import AccountError

PLACE = "aws://111122223333/us-east-2"
Run = Callable[..., Sequence[str]]


@pytest.fixture
def arguments(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    """Return what the CDK CLI gets."""
    program = tmp_path / "cdk"
    program.write_text("#!/bin/sh\n")
    asked: list[tuple[str, str | None]] = []
    given: list[list[str]] = []

    def connect(region: str, profile: str | None = None) -> None:
        asked.append((region, profile))

    def replace_process(_program: str, words: list[str], _environment: object) -> None:
        given.append(words[1:])

    monkeypatch.setattr(account, "connect", connect)
    monkeypatch.setattr(
        "ultrascale.cdk_cli.find_cdk_cli", lambda: CdkCli(program=program, version="2.0.0")
    )
    monkeypatch.setattr(os, "execve", replace_process)

    def run(*words: str) -> Sequence[str]:
        cdk([*words])
        return [*given[-1], *map(str, asked)]

    return run


def test_a_bootstrap_of_a_named_account_asks_no_cluster_file(arguments: Run) -> None:
    """Beside two cluster files the app ended; beside one it was synthesized first."""
    assert arguments("bootstrap", PLACE, "--profile=ops") == [
        *("bootstrap", PLACE, "--profile=ops", "--app", "", "('us-east-2', 'ops')")
    ]


def test_an_app_of_the_user_s_own_is_asked(arguments: Run) -> None:
    words = ("bootstrap", PLACE, "--app", "my app")

    assert [*arguments(*words)][:4] == [*words]


def test_variables_that_set_options_are_named(
    arguments: Run, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("CDK_EXPRESS", "CDK_HOME", "CDK_NOTICES"):
        monkeypatch.setenv(name, "true")
    arguments("list")
    assert capsys.readouterr().err.startswith("CDK_EXPRESS: the CDK CLI takes options")


def test_other_commands_are_passed_on_as_they_are(arguments: Run) -> None:
    assert arguments("diff", "-c", "cluster=a.yaml") == ["diff", "-c", "cluster=a.yaml"]


def test_missing_credentials_end_a_bootstrap_with_our_sentence(
    arguments: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def connect(_region: str, _profile: str | None = None) -> None:
        raise AccountError("no credentials")

    monkeypatch.setattr(account, "connect", connect)

    with pytest.raises(AccountError, match="no credentials"):
        arguments("bootstrap", PLACE)
