"""The pipeline deploys what a workstation would, into two accounts, and only what was looked at."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.assembly import Assembly, synthesize, unneeded_acknowledgments
from tests.support.create_only_schemas import unknown_types
from tests.support.handler_schemas import kinds_in
from tests.support.pipelines import (
    BOUNDARY,
    DEV,
    DEV_ACCOUNT,
    HOME,
    PROD,
    PROD_ACCOUNT,
    WHEEL,
    Piped,
    actions,
    files_of,
    installs,
    listed,
    piped_accounts,
    synthesize_pipeline,
    two_accounts,
)
from ultrascale.cdk_cli import CDK_CLI_VARIABLES
from ultrascale.parts.pipeline.facts import CDK_ASSETS_SCHEMA
from ultrascale.parts.pipeline.model import APPROVAL_PREFIX
from ultrascale.parts.pipeline.plan import pipeline_actions, stage_actions
from ultrascale.plan.delivery.execution_policy import (
    ExecutionScope,
    execution_policies,
    roles_boundary,
)
from ultrascale.preflight.checks import all_checks
from ultrascale.preflight.policy import policy
from ultrascale.sbom import list_app
from ultrascale_stacks.pipeline import share_files

WHEEL_ARN = WHEEL.replace("s3://", "arn:aws:s3:::")
STAGES = {"dev": DEV_ACCOUNT, "prod": PROD_ACCOUNT}
each_stage = pytest.mark.parametrize(("stage", "account"), STAGES.items(), ids=list(STAGES))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("piped")


@pytest.fixture(scope="module")
def piped(folder: Path) -> Piped:
    """A pipeline of two stages in two accounts; its synthesis fails on any finding of cdk-nag."""
    return piped_accounts(folder)


@pytest.fixture(scope="module")
def by_hand(folder: Path, piped: Piped) -> dict[str, Assembly]:
    """Assemblies of the same files, made without the pipeline."""
    return {
        name: synthesize(folder / file, folder / "by-hand" / name)
        for name, file in (("dev", DEV), ("prod", PROD))
    }


@each_stage
def test_a_stage_deploys_what_a_workstation_would_by_the_roles_of_its_account(
    stage: str, account: str, piped: Piped, by_hand: dict[str, Assembly]
) -> None:
    templates = files_of(piped.folder / "cdk.out" / f"cluster-{stage}", "*.template.json")
    manifests = files_of(piped.folder / "dist" / stage, "*.k8s.yaml")
    deployed = {each["Configuration"]["StackName"] for each in piped.deployments(stage)}
    (role,) = {
        json.dumps(each.get("RoleArn") or each["Configuration"]["RoleArn"])
        for each in piped.deployments(stage)
    }

    assert len(templates) > 5
    assert templates == files_of(by_hand[stage].folder / "cdk.out", "*.template.json")
    assert manifests
    assert manifests == files_of(by_hand[stage].folder / "dist", "*.k8s.yaml")
    # Every stack is deployed under its own name.
    assert deployed == {f"{stage}-{name}" for name in by_hand[stage].templates}
    assert f"cdk-hnb659fds-deploy-role-{account}-" in role


def test_a_run_updates_the_pipeline_and_checks_before_it_deploys(piped: Piped) -> None:
    (made,) = piped.of("AWS::CodePipeline::Pipeline")
    (source,) = piped.stage("Source")
    commits = source["Configuration"]

    assert [stage["Name"] for stage in made["Stages"]] == [
        *("Source", "Build", "UpdatePipeline", "Assets", "Checks"),
        *("dev", "prod", "Facts"),
    ]
    first = [action["Name"] for action in piped.stage("Checks") if action["RunOrder"] == 1]
    assert first == ["Policy"]
    # Runs wait for each other and begin again with a new pipeline.
    assert (made["PipelineType"], made["ExecutionMode"]) == ("V2", "QUEUED")
    assert made["RestartExecutionOnUpdate"] is True
    # The commits come over the connection.
    assert commits["ConnectionArn"].endswith(f"{HOME}:connection/0aa1")
    assert (commits["FullRepositoryId"], commits["BranchName"]) == ("example/clusters", "main")


def test_a_pipeline_of_one_stage_is_a_pipeline_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The CDK names a wave of one stage by the stage, so the checks would have its name."""
    path = two_accounts(tmp_path, stages=[{"name": "prod"}])
    monkeypatch.chdir(tmp_path)

    synthesize_pipeline(path, tmp_path)

    template = json.loads((tmp_path / "cdk.out" / "prod-pipeline.template.json").read_text())
    (made,) = (
        each["Properties"]
        for each in template["Resources"].values()
        if each["Type"] == "AWS::CodePipeline::Pipeline"
    )
    assert [stage["Name"] for stage in made["Stages"]][-3:] == ["Checks", "prod", "Facts"]


def test_the_assembly_is_built_by_the_installed_product_from_what_the_connection_gives(
    piped: Piped,
) -> None:
    """IAM compares an action with the prefix of the resource, and there are two of both."""
    connection = piped.plan.connection
    allowed = [s for _, s in granted(piped) if connection in listed(s["Resource"])]
    synth = json.loads(piped.build(f"ultrascale synth --pipeline {PROD}")["Source"]["BuildSpec"])
    rules = piped.build("cfn-lint==")["Source"]["BuildSpec"]

    actions = {action for each in allowed for action in listed(each["Action"])}
    assert "codeconnections:UseConnection" in actions
    assert synth["artifacts"]["base-directory"] == "cdk.out"
    for file, region in ((DEV, "us-west-2"), (PROD, "us-east-2")):
        assert f"ultrascale synth {file}" in rules
        assert f"--regions {region} --template cdk.out/*.template.json" in rules


def granted(piped: Piped) -> Iterator[tuple[Any, Any]]:
    """Yield each policy of the pipeline with each of its statements."""
    for policy_ in piped.of("AWS::IAM::Policy"):
        for statement in policy_["PolicyDocument"]["Statement"]:
            yield policy_, statement


def test_the_wheel_in_a_bucket_is_all_that_builds_may_read_there(piped: Piped) -> None:
    """Builds cannot decrypt other objects under the same key of KMS."""
    readers = {
        role["Ref"]
        for policy_, s in granted(piped)
        for role in policy_["Roles"]
        if s["Action"] == "s3:GetObject" and s["Resource"] == WHEEL_ARN
    }
    decrypts = [s["Condition"] for _, s in granted(piped) if "kms:ViaService" in json.dumps(s)]

    assert len(readers) == len(decrypts) - 1 == 3
    for build in ("cfn-lint==", f"plan {PROD}"):
        assert piped.build(build)["ServiceRole"]["Fn::GetAtt"][0] in readers
    read = [each["StringLike"]["kms:EncryptionContext:aws:s3:arn"] for each in decrypts]
    assert read.count([WHEEL_ARN, "arn:aws:s3:::artifacts"]) == 3


def test_the_first_build_may_read_the_wheel_of_the_next_release(piped: Piped) -> None:
    """It installs what the commit names, before the pipeline can allow that by its update."""
    wheels = "arn:aws:s3:::artifacts/tools/ultrascale-*.whl"
    ((policy_, decrypt),) = (
        (policy_, statement)
        for policy_, statement in granted(piped)
        if statement["Action"] == "kms:Decrypt" and wheels in json.dumps(statement["Condition"])
    )
    allowed = policy_["PolicyDocument"]["Statement"]

    assert policy_["Roles"] == [{"Ref": piped.build("--pipeline")["ServiceRole"]["Fn::GetAtt"][0]}]
    assert {"Action": "s3:GetObject", "Effect": "Allow", "Resource": wheels} in allowed
    assert decrypt["Condition"]["StringLike"] == {
        "kms:ViaService": "s3.*",
        "kms:EncryptionContext:aws:s3:arn": [wheels, "arn:aws:s3:::artifacts"],
    }


class TestGate:
    """Checks before a stage is deployed."""

    @each_stage
    def test_a_stage_is_looked_at_and_deployed_under_one_lock(
        self, stage: str, account: str, piped: Piped
    ) -> None:
        """A run locks a stage: no other run deploys between the look, the approval and the end."""
        look, check, confirm, *others = piped.stage(stage)

        assert look["Name"] == f"Look-{stage}"
        assert check["Name"] == f"Permissions-{stage}.Check"
        assert confirm["Name"] == f"Permissions-{stage}.Confirm"
        assert look["RunOrder"] < check["RunOrder"] < confirm["RunOrder"]
        assert all(action["RunOrder"] > confirm["RunOrder"] for action in others)
        deploying = [each for each in others if not each["Name"].startswith("Approve")]
        assert {each["ActionTypeId"]["Provider"] for each in deploying} == {"CloudFormation"}
        last = max(each["RunOrder"] for each in piped.stage(stage) if each not in deploying)
        assert min(each["RunOrder"] for each in deploying) > last

    def test_plan_preflight_and_changes_stop_the_pipeline_in_this_order(self, piped: Piped) -> None:
        spec = json.loads(piped.build(f"ultrascale plan {PROD}")["Source"]["BuildSpec"])
        commands = spec["phases"]["build"]["commands"]
        gates = [each for each in commands if f" {PROD}" in each]

        assert gates == [
            f"ultrascale synth {PROD}",
            f"ultrascale plan {PROD}",
            f"ultrascale preflight {PROD} --profile gate",
            "bash -o pipefail -c 'ultrascale diff clusters/prod.yaml --assembly cdk.out "
            "--profile gate --replace Key1 --replace prod-network/Vpc2 | tee changes.txt'",
        ]
        # Only what a stage names may be replaced.
        spec = piped.build(f"ultrascale plan {DEV}")["Source"]["BuildSpec"]
        assert "ultrascale diff" in spec
        assert "--replace" not in spec

    def test_an_approval_shows_what_changes_where_the_stage_asks_for_one(
        self, piped: Piped
    ) -> None:
        assert not [each for each in piped.stage("dev") if "Approve" in each["Name"]]
        (approval,) = (each for each in piped.stage("prod") if "Approve" in each["Name"])
        comment = approval["Configuration"]["CustomData"]
        look = piped.stage("prod")[0]

        assert f"#{{{look['Namespace']}.LOG}}" in comment
        assert f"#{{{look['Namespace']}.CHANGES}}" in comment
        exported = json.loads(piped.build(f"ultrascale plan {PROD}")["Source"]["BuildSpec"])["env"]
        assert set(exported["exported-variables"]) == {"LOG", "CHANGES"}
        assert approval["RunOrder"] > look["RunOrder"]
        assert approval["Name"].startswith(APPROVAL_PREFIX)

    def test_a_check_of_permissions_looks_at_the_stages_own_assembly(self, piped: Piped) -> None:
        """By templates: for change sets, it makes and deletes the stacks that are not there."""
        spec = json.dumps(piped.build("--security-only"))
        assert "cluster-$STAGE_PATH --security-only --fail --method=template;" in spec
        for stage in STAGES:
            settings = piped.stage(stage)[1]["Configuration"]["EnvironmentVariables"]
            start, topic, end = settings["Fn::Join"][1]
            variables = {
                each["name"]: each["value"] for each in json.loads(start + topic["Ref"] + end)
            }
            assert variables["NOTIFICATION_ARN"].startswith("PipelineNoticesTopic")
            path = piped.folder / "cdk.out" / f"cluster-{variables['STAGE_PATH']}"
            assert (path / "manifest.json").is_file()
            assert variables["STAGE_NAME"] == stage
        # So in the pipeline's own account: with the build's own rights every run would wait.
        (check,) = (p for p in piped.of("AWS::IAM::Policy") if "CDKSecurity" in p["PolicyName"])
        conditions = [each.get("Condition") for each in check["PolicyDocument"]["Statement"]]
        assert {"StringEquals": {"iam:ResourceTag/aws-cdk:bootstrap-role": "lookup"}} in conditions

    @each_stage
    def test_the_gate_may_look_and_change_nothing(
        self, stage: str, account: str, piped: Piped
    ) -> None:
        plan = next(each for each in piped.plan.stages if each.name == stage)
        (path,) = (piped.folder / "cdk.out" / f"assembly-{stage}").glob("*.template.json")
        resources = json.loads(path.read_text())["Resources"].values()
        (role,) = (each["Properties"] for each in resources if each["Type"] == "AWS::IAM::Role")
        (more,) = (each["Properties"] for each in resources if each["Type"] == "AWS::IAM::Policy")

        (allowed,) = role["Policies"]
        assert actions(allowed["PolicyDocument"]) == actions(
            policy(all_checks(), plan.cluster, account)
        )
        assert set(actions(more["PolicyDocument"])) == {"cloudformation:GetTemplate"}
        (trust,) = role["AssumeRolePolicyDocument"]["Statement"]
        assert trust["Principal"] == {"AWS": f"arn:aws:iam::{HOME}:root"}
        assert trust["Condition"] == {"ArnEquals": {"aws:PrincipalArn": piped.plan.role_arn}}
        assert role["RoleName"] == plan.gate_role

    def test_the_builds_that_look_may_take_the_gates_roles_alone(self, piped: Piped) -> None:
        (role,) = (r for r in piped.of("AWS::IAM::Role") if r.get("RoleName") == piped.plan.role)
        taken = {
            resource
            for policy_, statement in granted(piped)
            if "GateRole" in json.dumps(policy_["Roles"])
            and statement["Action"] == "sts:AssumeRole"
            for resource in listed(statement["Resource"])
        }

        (trust,) = role["AssumeRolePolicyDocument"]["Statement"]
        assert trust["Principal"] == {"Service": "codebuild.amazonaws.com"}
        assert taken == {stage.gate_role_arn for stage in piped.plan.stages}


def test_a_stack_is_one_action_that_can_be_tried_again_and_actions_are_counted(
    piped: Piped,
) -> None:
    """CloudFormation drops the change set of what failed, and a retry runs the failed action."""
    (made,) = piped.of("AWS::CodePipeline::Pipeline")
    found = {each["Name"]: len(each["Actions"]) for each in made["Stages"]}

    for stage in STAGES:
        stacks = [each for each in piped.stage(stage) if "StackName" in each["Configuration"]]
        names = [each["Configuration"]["StackName"] for each in stacks]
        assert {each["Configuration"]["ActionMode"] for each in stacks} == {"CREATE_UPDATE"}
        assert len(set(names)) == len(names)
    # The CDK takes the check of permissions, which is two actions, for one; CodePipeline does not.
    assert {wave.name: stage_actions(wave) for wave in piped.plan.waves}.items() <= found.items()
    assert pipeline_actions(piped.plan) == sum(found.values())


def test_every_build_installs_a_pinned_command_line_on_a_python_that_is_chosen(
    piped: Piped,
) -> None:
    """Another one refuses the assembly, in the middle of a run."""
    specs = [json.dumps(each["Source"]) for each in piped.of("AWS::CodeBuild::Project")]
    specs += [path.read_text() for path in (piped.folder / "cdk.out").glob("buildspec-*")]
    installed = [word for text in specs for word in installs(text)]

    assert set(installed) == {"aws-cdk@2.1148.1", "cdk-assets@4.7.3"}
    # The newest Python of the image is another one whenever AWS changes the image.
    for command in ("--pipeline", "cfn-lint==", f"plan {PROD}"):
        spec = json.loads(piped.build(command)["Source"]["BuildSpec"])
        assert spec["phases"]["install"]["runtime-versions"]["python"] == "3.11"


class TestFiles:
    """The files that stacks upload: AWS CloudFormation takes 256 MB of a pipeline's assembly."""

    def test_every_file_is_there_and_there_once_in_lists_that_its_program_reads(
        self, piped: Piped
    ) -> None:
        lists = files_of(piped.folder / "cdk.out", "**/*.assets.json")
        found = [*(piped.folder / "cdk.out").glob("**/asset.*")]
        sources = {
            (manifest.parent / file["source"]["path"]).resolve()
            for manifest in (piped.folder / "cdk.out").glob("**/*.assets.json")
            for file in json.loads(manifest.read_text())["files"].values()
        }

        assert len(lists) > 10
        assert {json.loads(text)["version"] for text in lists.values()} == {CDK_ASSETS_SCHEMA}
        assert all(path.exists() for path in sources)
        assert len({path.name for path in found}) == len(found) > 0
        # What was shared stays as it is.
        share_files(piped.folder / "cdk.out", schema=CDK_ASSETS_SCHEMA)
        assert files_of(piped.folder / "cdk.out", "**/*.assets.json") == lists


def test_all_that_a_run_deploys_is_covered_by_the_policies_of_the_role(piped: Piped) -> None:
    """No action is a wildcard: each is one that a schema states."""
    kinds = kinds_in(piped.folder / "cdk.out")
    anywhere = ExecutionScope(cluster="prod", partition="aws", account=HOME, region="us-east-2")

    allowed = {
        action for document in execution_policies(kinds, anywhere) for action in actions(document)
    }

    assert {"eks:CreateCluster", "codepipeline:CreatePipeline", "iam:CreateRole"} <= allowed
    assert not [action for action in allowed if action.endswith(":*")]
    bounded = actions(roles_boundary((each for _, each in piped.templates()), anywhere))
    assert {"sts:AssumeRole", "ec2:*", "codebuild:*"} <= {*bounded}


class TestCare:
    """Keys, logs, rights and what a build may do."""

    def test_the_change_guard_findings_and_bill_of_materials_cover_all_its_stages(
        self, piped: Piped
    ) -> None:
        folders = {"assembly": piped.folder / "cdk.out", "manifests": piped.folder / "dist"}
        users = {user for each in list_app(piped.plan, **folders) for user in each.used_by}

        assert unknown_types(piped.own_templates()) == set()
        assert unneeded_acknowledgments(piped.folder / "cdk.out") == set()
        assert {"prod-pipeline", "dev-node-addons", "prod-node-addons"} <= users

    def test_each_role_has_the_boundary_that_its_file_names(self, piped: Piped) -> None:
        """The role that a changed template adds, too: CloudFormation may make no other."""
        found: dict[str, set[str]] = {"dev": set(), "prod": set()}
        for path, template in piped.templates():
            for each in template["Resources"].values():
                if each["Type"] == "AWS::IAM::Role":
                    bound = str(each["Properties"].get("PermissionsBoundary"))
                    found["dev" if path.name.startswith("dev") else "prod"].add(bound)

        bounds = {f"arn:aws:iam::{each}:policy/{BOUNDARY}" for each in (HOME, PROD_ACCOUNT)}
        assert found == {"dev": {"None"}, "prod": bounds}

    def test_every_build_is_encrypted_unprivileged_and_may_write_to_its_log(
        self, piped: Piped
    ) -> None:
        """CodeBuild begins no build that it cannot log."""
        builds = [*piped.of("AWS::CodeBuild::Project")]
        writers = {
            role["Ref"]
            for policy_, statement in granted(piped)
            for role in policy_["Roles"]
            if "logs:PutLogEvents" in listed(statement["Action"])
            and any("PipelineLogs" in str(each) for each in listed(statement["Resource"]))
        }

        assert len(builds) > 5
        for build in builds:
            assert build["EncryptionKey"] != "alias/aws/s3"
            assert build["LogsConfig"]["CloudWatchLogs"]["Status"] == "ENABLED"
            assert build["Environment"].get("PrivilegedMode") is False
            assert "VpcConfig" not in build
            # Some run the CDK's command line: none reports to the CDK or fetches its notices.
            found = build["Environment"]["EnvironmentVariables"]
            variables = {each["Name"]: each["Value"] for each in found}
            assert variables.items() >= CDK_CLI_VARIABLES.items()
        assert {each["ServiceRole"]["Fn::GetAtt"][0] for each in builds} == writers
        assert {each["RetentionInDays"] for each in piped.of("AWS::Logs::LogGroup")} == {90}

    def test_files_of_runs_are_encrypted_and_go_after_a_month(self, piped: Piped) -> None:
        (bucket,) = piped.of("AWS::S3::Bucket")
        (rule,) = bucket["LifecycleConfiguration"]["Rules"]

        encryption = bucket["BucketEncryption"]["ServerSideEncryptionConfiguration"][0]
        assert encryption["ServerSideEncryptionByDefault"]["SSEAlgorithm"] == "aws:kms"
        assert rule["ExpirationInDays"] == 30

    def test_what_lies_in_another_region_is_deployed_from_the_pipelines_own(
        self, piped: Piped
    ) -> None:
        """It needs no bootstrap stack there, as the page about pipelines says."""
        manifest = json.loads((piped.folder / "cdk.out" / "manifest.json").read_text())
        (support,) = (
            each["properties"]
            for name, each in manifest["artifacts"].items()
            if name.startswith("cross-region-stack-") and "stack" in each["type"]
        )

        assert support["cloudFormationExecutionRoleArn"].endswith(f"-{HOME}-us-east-2")
        assert "requiresBootstrapStackVersion" not in support

    def test_keys_of_other_regions_outlive_their_stacks(self, piped: Piped) -> None:
        (path,) = (piped.folder / "cdk.out").glob("cross-region-stack-*.template.json")
        resources = json.loads(path.read_text())["Resources"].values()
        kept = [each for each in resources if each["Type"] in ("AWS::KMS::Key", "AWS::S3::Bucket")]

        assert len(kept) == 2
        assert all(each["DeletionPolicy"] == "Retain" for each in kept)
