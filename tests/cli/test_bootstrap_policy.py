"""`ultrascale bootstrap-policy` writes what an administrator runs once, and asks nothing."""

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.support.cases import rows
from tests.support.command_line import Answer, run
from tests.support.pipelines import (
    BOUNDARY,
    DEV,
    DEV_ACCOUNT,
    HOME,
    PROD,
    PROD_ACCOUNT,
    two_accounts,
)


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    two_accounts(tmp_path)
    assembly(
        tmp_path / "cdk.out",
        ("prod-pipeline", HOME, "us-east-2", ["AWS::CodePipeline::Pipeline"]),
        ("prod-pipeline-support-us-west-2", HOME, "us-west-2", ["AWS::S3::Bucket"]),
    )
    assembly(
        tmp_path / "cdk.out" / "cluster-prod",
        ("prod-network", PROD_ACCOUNT, "us-east-2", ["AWS::EC2::VPC"]),
    )
    assembly(
        tmp_path / "cdk.out" / "cluster-dev",
        ("dev-cluster", DEV_ACCOUNT, "us-west-2", ["AWS::EKS::Cluster", "AWS::CDK::Metadata"]),
    )
    return tmp_path


def assembly(folder: Path, *stacks: tuple[str, str, str, list[str]]) -> None:
    folder.mkdir(parents=True)
    artifacts: dict[str, Any] = {"Tree": {"type": "cdk:tree", "properties": {"file": "tree.json"}}}
    for name, account, region, kinds in stacks:
        template = {"Resources": {f"R{n}": {"Type": kind} for n, kind in enumerate(kinds)}}
        (folder / f"{name}.template.json").write_text(json.dumps(template))
        artifacts[name] = {
            "type": "aws:cloudformation:stack",
            "environment": f"aws://{account}/{region}",
            "properties": {
                "templateFile": f"{name}.template.json",
                # As the CDK has it for the part of a pipeline that lies in another Region.
                "cloudFormationExecutionRoleArn": (
                    f"arn:${{AWS::Partition}}:iam::{account}:role/cdk-hnb659fds-cfn-exec-role-"
                    f"{account}-{'us-east-2' if '-support-' in name else region}"
                ),
            },
        }
    (folder / "manifest.json").write_text(json.dumps({"artifacts": artifacts}))


Policy = Callable[..., Answer]


@pytest.fixture
def policy(
    repository: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Policy:
    return partial(run, "bootstrap-policy", monkeypatch=monkeypatch, capsys=capsys)


def actions(path: Path) -> set[str]:
    document = json.loads(path.read_text())
    return {action for each in document["Statement"] for action in each["Action"]}


def test_the_command_bootstraps_with_policies_boundary_trust_and_protection(
    repository: Path, policy: Policy
) -> None:
    *policies, bootstrap = policy(PROD).stdout.splitlines()

    assert policies == [
        f"aws iam create-policy --policy-name {name} "
        f"--policy-document file://dist/bootstrap/{PROD_ACCOUNT}/{name}.json"
        for name in ("prod-cdk-execution-us-east-2-1", "prod-cdk-boundary-us-east-2", BOUNDARY)
    ]
    assert bootstrap == (
        f"npx aws-cdk@2.1148.1 bootstrap aws://{PROD_ACCOUNT}/us-east-2 --trust {HOME} "
        "--cloudformation-execution-policies "
        f"arn:aws:iam::{PROD_ACCOUNT}:policy/prod-cdk-execution-us-east-2-1 "
        "--custom-permissions-boundary prod-cdk-boundary-us-east-2 --termination-protection"
    )


def test_each_account_gets_what_its_own_stacks_take(repository: Path, policy: Policy) -> None:
    """The names are the same: whoever makes all of them afterwards would give one the other's."""
    of_cluster, of_pipeline = policy(PROD), policy(PROD, "--of-pipeline")

    name = "prod-cdk-execution-us-east-2-1.json"
    cluster, pipeline = (
        actions(repository / "dist/bootstrap" / account / name) for account in (PROD_ACCOUNT, HOME)
    )
    assert (of_cluster.returncode, of_pipeline.returncode) == (0, 0)
    assert "ec2:CreateVpc" in cluster - pipeline
    # The CDK lets that one role deploy the stack with the bucket and key of another Region.
    assert {"codepipeline:CreatePipeline", "s3:CreateBucket"} <= pipeline - cluster
    assert "eks:CreateCluster" not in cluster | pipeline
    lines = of_pipeline.stdout.splitlines()
    assert [line.split()[3:5] for line in lines if " bootstrap " in line] == [
        [f"aws://{HOME}/us-east-2", "--cloudformation-execution-policies"]
    ]


def test_another_files_account_trusts_the_pipeline_that_is_named(
    repository: Path, policy: Policy
) -> None:
    answer = policy(DEV, "--trust", HOME, "--allow", "eks:Made", "--out", "policies")
    assert f"aws://{DEV_ACCOUNT}/us-west-2 --trust {HOME} " in answer.stdout
    written = actions(repository / "policies" / DEV_ACCOUNT / "dev-cdk-execution-us-west-2-1.json")
    assert {"eks:CreateCluster", "eks:Made"} <= written


def test_roles_that_have_a_boundary_get_what_they_need_of_it(
    repository: Path, policy: Policy
) -> None:
    path = repository / "cdk.out" / "cluster-prod" / "prod-network.template.json"
    document = {"Statement": [{"Effect": "Allow", "Action": "logs:PutLogEvents"}]}
    inline = {"Type": "AWS::IAM::Policy", "Properties": {"PolicyDocument": document}}
    path.write_text(json.dumps({"Resources": {"Write": inline}}))
    policy(PROD)
    assert actions(repository / "dist/bootstrap" / PROD_ACCOUNT / f"{BOUNDARY}.json") == {"logs:*"}


def test_a_boundary_is_of_all_roles_of_the_account_whatever_their_region(
    repository: Path, policy: Policy
) -> None:
    """It has one name in all Regions: that of the last one would deny the roles of the others."""
    folder = repository / "cdk.out" / "elsewhere"
    assembly(folder, ("prod-pipeline", PROD_ACCOUNT, "us-west-2", ["AWS::SNS::Topic"]))
    document = {"Statement": [{"Effect": "Allow", "Action": "codebuild:StartBuild"}]}
    inline = {"Type": "AWS::IAM::Policy", "Properties": {"PolicyDocument": document}}
    (folder / "prod-pipeline.template.json").write_text(json.dumps({"Resources": {"P": inline}}))

    policy(PROD)

    written = repository / "dist/bootstrap" / PROD_ACCOUNT
    assert "codebuild:*" in actions(written / f"{BOUNDARY}.json")
    assert "iam:PutRolePolicy" not in actions(written / "prod-cdk-execution-us-east-2-1.json")


def test_a_boundary_of_the_roles_takes_no_place_of_cloudformations_own(
    repository: Path, policy: Policy
) -> None:
    path = repository / PROD
    name = "prod-cdk-boundary-us-east-2"
    path.write_text(path.read_text().replace(BOUNDARY, name))

    answer = policy(PROD)

    assert answer.returncode == 1
    assert answer.stderr == (
        f"{PROD}: permissions_boundary: the name of a policy of CloudFormation's role, got "
        f"'{name}'; choose another\n"
    )
    assert not (repository / "dist").exists()


def test_roles_without_a_boundary_need_none(repository: Path, policy: Policy) -> None:
    policy(DEV)
    written = {path.name for path in (repository / "dist/bootstrap" / DEV_ACCOUNT).iterdir()}
    assert written == {*("dev-cdk-execution-us-west-2-1.json", "dev-cdk-boundary-us-west-2.json")}


@rows(
    "words, lines",
    {
        "another cluster": (
            (PROD, "--assembly", "cdk.out/cluster-dev"),
            [
                f"cdk.out/cluster-dev: has no stack of prod for aws://{PROD_ACCOUNT}/us-east-2; "
                f"run `ultrascale synth {PROD}`, with --pipeline for that of a pipeline"
            ],
        ),
        "words that AWS would refuse": (
            (PROD, "--trust", "12", "--allow", "TagResource"),
            [
                "--trust: not an AWS account id, got '12'; write its 12 digits",
                "--allow: not an action of IAM, got 'TagResource'; write it as eks:TagResource",
            ],
        ),
        "no pipeline": (
            (DEV, "--of-pipeline"),
            [f"--of-pipeline: {DEV} has no pipeline; leave it out"],
        ),
        "no template": (
            (PROD,),
            [
                "cdk.out/cluster-prod/prod-network.template.json: is not what `cdk synth` wrote; "
                "synthesize anew"
            ],
        ),
    },
)
def test_nothing_is_written_where_there_is_no_base_for_a_policy(
    repository: Path, policy: Policy, words: tuple[str, ...], lines: list[str]
) -> None:
    if words == (PROD,):
        (repository / "cdk.out" / "cluster-prod" / "prod-network.template.json").unlink()
    answer = policy(*words)
    assert answer.returncode == 1
    assert answer.stderr.splitlines() == lines
    assert not (repository / "dist").exists()
