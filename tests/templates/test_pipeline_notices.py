"""Somebody hears of an approval before the week is over that it waits, and of a run that failed."""

from collections.abc import Mapping
from contextlib import chdir
from pathlib import Path
from typing import Any

import pytest
from aws_cdk.assertions import Template

from tests.support.construct_stacks import make_stack, the
from tests.support.pipelines import EMAIL, load_pipeline, two_accounts
from ultrascale_constructs.pipeline.pipeline import Notices


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Template:
    folder = tmp_path_factory.mktemp("notices")
    path = two_accounts(folder)
    with chdir(folder):
        plan = load_pipeline(path)
    assert plan is not None
    stack = make_stack()
    Notices(stack, "Notices", plan=plan, email=EMAIL)
    return Template.from_stack(stack)


def patterns(template: Template) -> Mapping[str, Any]:
    rules = [each["Properties"] for each in template.find_resources("AWS::Events::Rule").values()]
    return {each["EventPattern"]["detail-type"][0].split()[1]: each for each in rules}


def test_an_approval_of_a_stage_and_a_run_that_failed_are_told_of(template: Template) -> None:
    """The confirmation of permissions waits in every run until the check answers it."""
    rules = patterns(template)

    assert rules["Action"]["EventPattern"]["detail"] == {
        "pipeline": ["prod-pipeline"],
        "state": ["STARTED"],
        "action": [{"prefix": "Approve-"}],
        "type": {"category": ["Approval"]},
    }
    failed = {"pipeline": ["prod-pipeline"], "state": ["FAILED"]}
    assert rules["Pipeline"]["EventPattern"]["detail"] == failed
    # Every word that a message takes from its event is looked up there.
    for rule in rules.values():
        (target,) = rule["Targets"]
        message = target["InputTransformer"]["InputTemplate"]
        paths = target["InputTransformer"]["InputPathsMap"]

        words = {word.strip('".,:;') for word in message.split() if word.startswith("<")}
        assert {f"<{name}>" for name in paths} == words
        assert "us-east-2, account 777788889999" in message


def test_what_is_told_is_encrypted_and_eventbridge_may_tell_it(template: Template) -> None:
    """Without the key no message would arrive, and nobody would hear of that."""
    (key,) = template.find_resources("AWS::KMS::Key")
    allowed = [
        statement["Action"]
        for policy in (
            the(template, "AWS::KMS::Key")["KeyPolicy"],
            the(template, "AWS::SNS::TopicPolicy")["PolicyDocument"],
        )
        for statement in policy["Statement"]
        if statement["Principal"] == {"Service": "events.amazonaws.com"}
    ]

    assert the(template, "AWS::SNS::Topic")["KmsMasterKeyId"] == {"Fn::GetAtt": [key, "Arn"]}
    assert allowed == [["kms:Decrypt", "kms:GenerateDataKey*"], "sns:Publish"]
    assert the(template, "AWS::SNS::Subscription")["Endpoint"] == EMAIL


def test_without_anybody_to_tell_nothing_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    plan = load_pipeline(two_accounts(tmp_path, notifications=None))

    assert plan is not None
    assert (plan.email, plan.events) == (None, ())
