"""The project that builds images: what it may write to decides what a bad build can break."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

import aws_cdk as cdk
import pytest
from aws_cdk import aws_kms as kms
from aws_cdk.assertions import Template

from tests.support.assembly import Assembly
from tests.support.construct_stacks import REGION, make_stack, the
from tests.support.folders import ROOT
from tests.support.pools import make_cluster
from ultrascale.own_images import read_own_image
from ultrascale.plan import plan_cluster
from ultrascale.plan.delivery.build_context import sources_of
from ultrascale.plan.delivery.images import plan_image_builder
from ultrascale.plan.model import ImageBuilderPlan, ImageBuildPlan
from ultrascale_constructs.images import ImageBuilder
from ultrascale_k8s import define_charts
from ultrascale_stacks.builders import define_stacks

PROJECT = "AWS::CodeBuild::Project"
BUILDS = (
    ImageBuildPlan(
        repository="bert", dockerfile="neuron", architecture="amd64", tag="0123456789ab"
    ),
    ImageBuildPlan(
        repository="team/board", dockerfile="tensorboard", architecture="arm64", tag="ba9876543210"
    ),
)
GPU = ImageBuildPlan(
    repository="llm", dockerfile="nvidia", architecture="amd64", tag="0123456789ab"
)
KEY = f"arn:aws:kms:{REGION}:111122223333:key/1"


def define(builds: tuple[ImageBuildPlan, ...], plan: ImageBuilderPlan) -> cdk.Stack:
    stack = make_stack()
    key = kms.Key.from_key_arn(stack, "Key", KEY)
    ImageBuilder(
        stack,
        "Builder",
        cluster_name="research",
        region=REGION,
        builds=builds,
        plan=plan,
        key=key,
    )
    return stack


def build(region: str = REGION) -> Template:
    return Template.from_stack(define(BUILDS, plan_image_builder(region, builds=BUILDS)))


def own_build(location: Path) -> Path:
    """Return the folder of the app whose only image is built from a folder of the user's own."""
    image = ImageBuildPlan(
        repository="llm",
        dockerfile="./mine",
        architecture="amd64",
        tag="0123456789ab",
        own=read_own_image(location),
    )
    stack = define((image,), plan_image_builder(REGION, builds=(image,)))
    told = variables(the(Template.from_stack(stack), PROJECT))
    assert "research/llm:./mine:amd64:0123456789ab" in told.values()
    app = cdk.Stage.of(stack)
    assert app is not None
    return Path(app.outdir)


def test_a_dockerfile_of_the_users_own_is_what_is_built_with_its_executables(
    tmp_path: Path,
) -> None:
    """A program that becomes executable is an upload of its own: the CDK skips the same hash."""
    (tmp_path / "Dockerfile").write_text("FROM mine\n")
    start = tmp_path / "entrypoint.sh"
    start.write_text("exec train\n")
    keys: list[str] = []
    for mode in (0o600, 0o700):
        start.chmod(mode)
        (staged,) = own_build(tmp_path).glob("asset.*/own/mine/entrypoint.sh")
        image = staged.parent / "Dockerfile"
        assert staged.stat().st_mode & 0o777 == mode | 0o044 | (mode & 0o100 and 0o011)
        assert (image.stat().st_mode & 0o777, image.read_text()) == (0o644, "FROM mine\n")
        keys.append(staged.parents[2].name)
        # Nothing else is sent but the script: its build gets the folder alone.
        sent = {path.name for path in staged.parents[2].rglob("*") if path.is_file()}
        assert sent == {"Dockerfile", "entrypoint.sh", "build.sh"}

    assert keys[0] != keys[1]


@pytest.fixture(scope="module")
def built() -> Template:
    return build()


@pytest.fixture(scope="module")
def project(built: Template) -> dict[str, Any]:
    return the(built, PROJECT)


def variables(project: Mapping[str, Any]) -> dict[str, Any]:
    return {each["Name"]: each["Value"] for each in project["Environment"]["EnvironmentVariables"]}


def allowed(template: Template) -> Iterator[tuple[str, str]]:
    """Yield each action that the role may do, and on what."""
    for statement in the(template, "AWS::IAM::Policy")["PolicyDocument"]["Statement"]:
        assert statement["Effect"] == "Allow"
        for action in listed(statement["Action"]):
            for resource in listed(statement["Resource"]):
                yield str(action), json.dumps(resource)


def listed(value: object) -> list[object]:
    return cast("list[object]", value) if isinstance(value, list) else [value]


def test_it_builds_what_the_plan_says_under_the_tags_of_the_plan(project: dict[str, Any]) -> None:
    assert variables(project)["BUILDS"] == (
        "research/bert:neuron:amd64:0123456789ab research/team/board:tensorboard:arm64:ba9876543210"
    )
    assert f".dkr.ecr.{REGION}.amazonaws.com" in json.dumps(variables(project)["REGISTRY"])


def test_it_runs_the_script_of_its_sources_alone_and_on_a_disk_for_two_of_the_large_bases(
    built: Template, project: dict[str, Any]
) -> None:
    specification = json.loads(project["Source"]["BuildSpec"])
    (policy,) = built.find_resources("AWS::IAM::Policy")
    (body,) = built.find_resources(PROJECT).values()

    (command,) = specification["phases"]["build"]["commands"]
    assert command == "bash images/build.sh"
    assert (ROOT / command.split()[1]).is_file()
    assert project["ConcurrentBuildLimit"] == 1  # Two never push one tag.
    # 128 GB; BUILD_GENERAL1_SMALL has 64.
    assert project["Environment"]["ComputeType"] == "BUILD_GENERAL1_MEDIUM"
    assert project["Environment"]["PrivilegedMode"] is True
    assert "latest" not in project["Environment"]["Image"]
    assert "VpcConfig" not in project  # It has no way into the cluster.
    built.has_resource_properties("AWS::Logs::LogGroup", {"RetentionInDays": 90})
    assert project["LogsConfig"]["CloudWatchLogs"]["Status"] == "ENABLED"
    assert project["EncryptionKey"] == KEY
    # Its role is complete before it is made.
    assert policy in body["DependsOn"]


def test_it_pushes_to_the_repositories_it_builds_for_and_to_no_other(built: Template) -> None:
    written = {on for action, on in allowed(built) if action.startswith("ecr:Put")}

    assert len(written) == len(BUILDS)
    for on, name in zip(sorted(written), ("research/bert", "research/team/board"), strict=True):
        assert on.endswith(f':repository/{name}"]]}}')


def test_it_reads_its_own_sources_and_nothing_but_logins_is_allowed_everywhere(
    built: Template, project: dict[str, Any]
) -> None:
    assert {action for action, on in allowed(built) if "*" in on} == {
        "ecr:GetAuthorizationToken",
        "ecr-public:GetAuthorizationToken",
        "sts:GetServiceBearerToken",
    }
    (read,) = {on for action, on in allowed(built) if action.startswith("s3:GetObject")}
    (_, (*_, key)) = project["Source"]["Location"]["Fn::Join"]
    assert key.endswith(".zip")
    assert f'"{key}"' in read
    (statement,) = the(built, "AWS::IAM::Role")["AssumeRolePolicyDocument"]["Statement"]
    assert statement["Principal"] == {"Service": "codebuild.amazonaws.com"}
    source = statement["Condition"]["StringEquals"]["aws:SourceArn"]
    assert json.dumps(source).endswith(':project/research-images"]]}')


def test_a_government_region_pulls_from_the_public_registry_without_a_login() -> None:
    template = build("us-gov-west-1")

    assert "PUBLIC_REGION" not in variables(the(template, PROJECT))
    assert not [action for action, _ in allowed(template) if action.startswith(("ecr-p", "sts"))]


@pytest.fixture(scope="module")
def closed() -> Template:
    host = f"https://corp-444455556666.d.codeartifact.{REGION}.amazonaws.com"
    images = {
        "repositories": ["llm"],
        "mirror": f"444455556666.dkr.ecr.{REGION}.amazonaws.com/copies",
        "packages": {"pip": f"{host}/pypi/all/simple/"},
    }
    plan = plan_cluster(make_cluster(images=images)).images.builder
    assert plan is not None
    return Template.from_stack(define((GPU,), plan))


def test_with_a_mirror_it_reaches_the_mirror_and_a_repository_of_packages_and_no_public_host(
    closed: Template,
) -> None:
    told = variables(the(closed, PROJECT))
    on = dict(allowed(closed))
    statements = the(closed, "AWS::IAM::Policy")["PolicyDocument"]["Statement"]
    (bearer,) = (each for each in statements if "sts:" in str(each["Action"]))

    assert told["MIRROR"] == f"444455556666.dkr.ecr.{REGION}.amazonaws.com"
    assert (told["MIRROR_REGION"], told["DOCKERFILES"]) == (REGION, "mirrored")
    assert told["PIP_INDEX"].endswith("/pypi/all/simple/")
    assert (told["CODEARTIFACT_DOMAIN"], told["CODEARTIFACT_OWNER"]) == ("corp", "444455556666")
    assert "PUBLIC_REGION" not in told
    assert f"ecr:{REGION}:444455556666:repository/copies/*" in on["ecr:GetDownloadUrlForLayer"]
    assert f"{REGION}:444455556666:domain/corp" in on["codeartifact:GetAuthorizationToken"]
    assert "repository/corp/all" in on["codeartifact:ReadFromRepository"]
    assert not [action for action in on if action.startswith("ecr-public")]
    # Its only login beyond a registry is for packages.
    assert bearer["Condition"] == {
        "StringEquals": {"sts:AWSServiceName": "codeartifact.amazonaws.com"}
    }


class TestStack:
    """Image builds of the Trainium cluster, from its user's view."""

    def test_outputs_are_the_command_that_starts_it_and_the_images_that_jobs_name(
        self, trainium: Assembly
    ) -> None:
        found = trainium.templates["images"]["Outputs"].values()
        outputs = {body["Description"]: json.dumps(body["Value"]) for body in found}
        project = trainium.templates["images"]["Resources"]
        (name,) = (b["Properties"]["Name"] for b in project.values() if b["Type"] == PROJECT)

        start = f"aws codebuild start-build --project-name {name} --region us-west-2"
        assert json.dumps(start) in outputs.values()
        for image in trainium.plan.images.builds:
            value = outputs[f"image of images/{image.dockerfile} in {image.repository}"]
            assert value.endswith(f'/trainium-bert/{image.repository}:{image.tag}"]]}}')

    def test_its_sources_are_what_images_are_built_from_without_what_tools_leave(
        self, trainium: Assembly
    ) -> None:
        folder = trainium.folder / "cdk.out"
        manifest = json.loads((folder / "trainium-bert-images.assets.json").read_text())
        (sources,) = (
            folder / file["source"]["path"]
            for file in manifest["files"].values()
            if file["source"]["packaging"] == "zip"
        )
        files = [path.relative_to(sources) for path in sources.rglob("*") if path.is_file()]

        used = {source for name in ("neuron", "tensorboard") for source in sources_of(name)}
        assert {path for path in used if not [f for f in files if f.is_relative_to(path)]} == set()
        assert [f for f in files if not [path for path in used if f.is_relative_to(path)]] == [
            Path("images/build.sh")
        ]
        assert not [path for path in files if "__pycache__" in path.parts]

    def test_repositories_alone_make_no_project(self) -> None:
        plan = plan_cluster(
            make_cluster(images={"repositories": ["mine"], "builds": {"mine": "none"}})
        )
        app = cdk.App(builtin_cloud_formation_validation=False)
        define_stacks(app, plan, define_charts(plan))

        names = {stack.node.id for stack in app.node.children if isinstance(stack, cdk.Stack)}
        assert "research-registry" in names
        assert "research-images" not in names
