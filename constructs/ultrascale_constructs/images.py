"""Container images: ECR repositories, the cache of public registries, and the builds."""

import json
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from shutil import copyfile
from stat import S_IXUSR
from tempfile import TemporaryDirectory

from aws_cdk import Duration, RemovalPolicy, Stack
from aws_cdk import aws_codebuild as codebuild
from aws_cdk import aws_ecr as ecr
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_logs as logs
from aws_cdk import aws_s3_assets as assets
from constructs import Construct

from ultrascale.plan import names
from ultrascale.plan.model import (
    BuildLoginPlan,
    CodeArtifactPlan,
    ImageBuilderPlan,
    ImageBuildPlan,
    ImageCachePlan,
)
from ultrascale_constructs.acknowledgment import acknowledge, acknowledge_wildcards
from ultrascale_constructs.cdk_types import principal
from ultrascale_constructs.key import key_of
from ultrascale_constructs.log_group import define_log_group

# --- ECR: repositories, and the cache of public registries ----------------------------------------


class ImageCache(Construct):
    """Defines a pull-through rule for each public registry, and the repositories of its images.

    ECR can create a repository at the first pull, but then every node would need the permission to
    create repositories. With existing repositories the permission to pull is enough.

    Source: https://docs.aws.amazon.com/AmazonECR/latest/userguide/pull-through-cache-iam.html
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        plan: ImageCachePlan,
        images: Iterable[str],
        key_arn: str | None,
    ) -> None:
        """Define the cache.

        Args:
            scope: Parent.
            id: Construct id.
            plan: The cache.
            images: Published references of the images.
            key_arn: ARN of the user's own key of images; None: ECR encrypts with its own key.
        """
        super().__init__(scope, id)
        for rule in plan.rules:
            ecr.CfnPullThroughCacheRule(
                self,
                rule.kind,
                ecr_repository_prefix=rule.prefix,
                upstream_registry=rule.kind,
                upstream_registry_url=rule.url,
                credential_arn=rule.secret,
            )
        for name in sorted({*filter(None, map(plan.repository, images))}):
            repository = ecr.CfnRepository(
                self,
                name,
                repository_name=name,
                # The cached image follows a tag that its publisher moves.
                image_tag_mutability="MUTABLE",
                image_scanning_configuration={"scanOnPush": True},
                empty_on_delete=True,
                encryption_configuration=None
                if key_arn is None
                else {"encryptionType": "KMS", "kmsKey": key_arn},
            )
            reason = "what it holds comes from its publisher again"
            acknowledge(repository, {"ultrascale::Retained": reason})


class Registry(Construct):
    """Defines the repositories that jobs pull their images from; they outlive their stack.

    Attributes:
        key: The key that encrypts the images.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        cluster_name: str,
        repositories: Sequence[str],
        untagged_image_retention_days: int,
        key_arn: str | None,
    ) -> None:
        """Define the repositories.

        Args:
            scope: Parent.
            id: Construct id.
            cluster_name: Name of the cluster.
            repositories: Names of the repositories in the cluster file.
            untagged_image_retention_days: How long images without a tag are kept, in days.
            key_arn: ARN of the user's own key; None defines a key.
        """
        super().__init__(scope, id)
        self.key = key_of(self, description=f"Container images of {cluster_name}", arn=key_arn)
        for name in repositories:
            ecr.Repository(
                self,
                name,
                repository_name=names.repository(cluster_name, name),
                image_tag_mutability=ecr.TagMutability.IMMUTABLE,
                image_scan_on_push=True,
                encryption=ecr.RepositoryEncryption.KMS,
                encryption_key=self.key,
                lifecycle_rules=[
                    ecr.LifecycleRule(
                        description="layers of failed or replaced pushes",
                        tag_status=ecr.TagStatus.UNTAGGED,
                        max_image_age=Duration.days(untagged_image_retention_days),
                    )
                ],
                removal_policy=RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE,
            )


# --- The CodeBuild project that builds container images -------------------------------------------


# Source: https://docs.aws.amazon.com/codebuild/latest/userguide/setting-up-kms.html
_USE_KEY = (
    "kms:Decrypt",
    "kms:DescribeKey",
    "kms:Encrypt",
    "kms:GenerateDataKey",
    "kms:ReEncryptFrom",
    "kms:ReEncryptTo",
)
# Actions of `docker push`.
# Source: https://docs.aws.amazon.com/AmazonECR/latest/userguide/image-push-iam.html
_PUSH = (
    "ecr:BatchCheckLayerAvailability",
    "ecr:BatchGetImage",
    "ecr:CompleteLayerUpload",
    "ecr:InitiateLayerUpload",
    "ecr:PutImage",
    "ecr:UploadLayerPart",
)
# Further actions of `docker pull`, without the login.
# Source: https://docs.aws.amazon.com/AmazonECR/latest/userguide/image-pull-iam.html
_PULL = ("ecr:BatchCheckLayerAvailability", "ecr:BatchGetImage", "ecr:GetDownloadUrlForLayer")
_BUILD = {"version": "0.2", "phases": {"build": {"commands": ["bash images/build.sh"]}}}


class ImageBuilder(Construct):
    """Defines a project that builds images from this project's files and pushes them.

    A user starts the build. It pushes an image only under a tag that the repository lacks. It runs
    outside the VPC: it needs no connection to the cluster, and the ten gigabytes of a base image
    would cost money at the NAT gateway.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        cluster_name: str,
        region: str,
        builds: Sequence[ImageBuildPlan],
        plan: ImageBuilderPlan,
        key: kms.IKey,
    ) -> None:
        super().__init__(scope, id)
        self._cluster_name = cluster_name
        self._key = key
        self._plan = plan
        self._project_name = names.image_builder(cluster_name)
        group = define_log_group(self, retention_days=plan.log_retention_days)
        with _stage_files(plan.sources, plan.texts) as folder:
            sources = assets.Asset(
                self, "Sources", path=str(folder), asset_hash=_hash_of_modes(folder)
            )
        role = self._role(builds)
        group.grant_write(role)
        self._grant_read(role, sources)
        registry = names.registry(Stack.of(self).account, region)
        project = self._project(sources, role, group, self._variables(registry, builds))
        # CodeBuild tries the role when the project is created.
        project.node.add_dependency(role)

    def _variables(self, registry: str, builds: Sequence[ImageBuildPlan]) -> dict[str, str]:
        each = (
            ":".join((self._repository(build), build.dockerfile, build.architecture, build.tag))
            for build in builds
        )
        login, pip = self._plan.login, self._plan.pip
        variables = {
            "REGISTRY": registry,
            "BUILDS": " ".join(each),
            "DOCKERFILES": self._plan.dockerfiles,
            "PUBLIC_REGISTRY": self._plan.public_registry,
            "PUBLIC_REGION": self._plan.public_region,
            "MIRROR": None if login is None else login.host,
            "MIRROR_REGION": None if login is None else login.region,
            "PIP_INDEX": None if pip is None else pip.url,
        }
        if pip is not None and pip.repository is not None:
            variables |= {
                "CODEARTIFACT_DOMAIN": pip.repository.domain,
                "CODEARTIFACT_OWNER": pip.repository.owner,
                "CODEARTIFACT_REGION": pip.repository.region,
            }
        return {name: value for name, value in variables.items() if value is not None}

    def _project_arn(self) -> str:
        return Stack.of(self).format_arn(
            service="codebuild", resource="project", resource_name=self._project_name
        )

    def _repository(self, build: ImageBuildPlan) -> str:
        return names.repository(self._cluster_name, build.repository)

    def _project(
        self,
        sources: assets.Asset,
        role: iam.Role,
        group: logs.LogGroup,
        variables: dict[str, str],
    ) -> codebuild.CfnProject:
        environment = self._plan.build
        return codebuild.CfnProject(
            self,
            "Resource",
            name=self._project_name,
            description=f"Builds the images of {self._cluster_name} that its repositories lack",
            service_role=role.role_arn,
            source=codebuild.CfnProject.SourceProperty(
                type="S3",
                location=f"{sources.s3_bucket_name}/{sources.s3_object_key}",
                build_spec=json.dumps(_BUILD),
            ),
            artifacts=codebuild.CfnProject.ArtifactsProperty(type="NO_ARTIFACTS"),
            environment=codebuild.CfnProject.EnvironmentProperty(
                type="LINUX_CONTAINER",
                image=environment.image,
                image_pull_credentials_type="CODEBUILD",
                compute_type=environment.compute_type,
                # Docker builds need privileges; only our own Dockerfiles run here.
                privileged_mode=True,
                environment_variables=[
                    codebuild.CfnProject.EnvironmentVariableProperty(name=name, value=value)
                    for name, value in variables.items()
                ],
            ),
            logs_config=codebuild.CfnProject.LogsConfigProperty(
                cloud_watch_logs=codebuild.CfnProject.CloudWatchLogsConfigProperty(
                    status="ENABLED", group_name=group.log_group_name
                )
            ),
            encryption_key=self._key.key_arn,
            # Two builds of the same image would push it twice, and the second push would fail.
            concurrent_build_limit=1,
            timeout_in_minutes=environment.timeout_minutes,
            queued_timeout_in_minutes=environment.queued_timeout_minutes,
        )

    def _role(self, builds: Sequence[ImageBuildPlan]) -> iam.Role:
        stack = Stack.of(self)
        role = iam.Role(
            self,
            "Role",
            assumed_by=principal(
                iam.ServicePrincipal(
                    "codebuild.amazonaws.com",
                    conditions={"StringEquals": {"aws:SourceArn": self._project_arn()}},
                )
            ),
        )
        repositories = [
            stack.format_arn(
                service="ecr",
                resource="repository",
                resource_name=self._repository(build),
            )
            for build in builds
        ]
        role.add_to_policy(
            iam.PolicyStatement(actions=["ecr:DescribeImages", *_PUSH], resources=repositories)
        )
        role.add_to_policy(
            iam.PolicyStatement(actions=["ecr:GetAuthorizationToken"], resources=["*"])
        )
        role.add_to_policy(iam.PolicyStatement(actions=[*_USE_KEY], resources=[self._key.key_arn]))
        if self._plan.public_region:
            # Source: https://docs.aws.amazon.com/AmazonECR/latest/public/public-registry-auth.html
            for action in ("ecr-public:GetAuthorizationToken", "sts:GetServiceBearerToken"):
                role.add_to_policy(iam.PolicyStatement(actions=[action], resources=["*"]))
        if self._plan.login is not None:
            allow_pull(role, self._plan.login)
        if self._plan.pip is not None and self._plan.pip.repository is not None:
            _allow_packages(role, self._plan.pip.repository)
        acknowledge(
            role,
            {
                "AwsSolutions::AwsSolutions-IAM5[Resource::*]": (
                    "a login is to a registry as a whole; what it may push to is named"
                )
            },
        )
        return role

    def _grant_read(self, role: iam.Role, sources: assets.Asset) -> None:
        """Let the project read its sources and no other object of the bucket."""
        bucket = f"arn:{Stack.of(self).partition}:s3:::{sources.s3_bucket_name}"
        role.add_to_policy(
            iam.PolicyStatement(
                actions=["s3:GetObject", "s3:GetObjectVersion"],
                resources=[f"{bucket}/{sources.s3_object_key}"],
            )
        )
        role.add_to_policy(
            iam.PolicyStatement(
                actions=["s3:GetBucketAcl", "s3:GetBucketLocation"], resources=[bucket]
            )
        )


def allow_pull(role: iam.Role, login: BuildLoginPlan) -> None:
    """Let the project pull from the mirror; a mirror in another account must allow the pull too."""
    repositories = Stack.of(role).format_arn(
        service="ecr",
        account=login.account,
        region=login.region,
        resource="repository",
        resource_name=f"{login.prefix}/*" if login.prefix else "*",
    )
    role.add_to_policy(iam.PolicyStatement(actions=[*_PULL], resources=[repositories]))
    acknowledge_wildcards(role, {repositories: "each base image has a repository in the mirror"})


def _allow_packages(role: iam.Role, packages: CodeArtifactPlan) -> None:
    """Let the project read packages of one CodeArtifact repository.

    Source: https://docs.aws.amazon.com/codeartifact/latest/ug/tokens-authentication.html
    """
    stack = Stack.of(role)

    def arn(resource: str, name: str) -> str:
        return stack.format_arn(
            service="codeartifact",
            account=packages.owner,
            region=packages.region,
            resource=resource,
            resource_name=name,
        )

    role.add_to_policy(
        iam.PolicyStatement(
            actions=["codeartifact:GetAuthorizationToken"],
            resources=[arn("domain", packages.domain)],
        )
    )
    role.add_to_policy(
        iam.PolicyStatement(
            actions=["codeartifact:ReadFromRepository"],
            resources=[arn("repository", f"{packages.domain}/{packages.name}")],
        )
    )
    role.add_to_policy(
        iam.PolicyStatement(
            actions=["sts:GetServiceBearerToken"],
            resources=["*"],
            conditions={"StringEquals": {"sts:AWSServiceName": "codeartifact.amazonaws.com"}},
        )
    )


@contextmanager
def _stage_files(sources: Mapping[str, Path], texts: Mapping[str, str]) -> Generator[Path]:
    """Copy files into a new folder; an installed package has them in several folders.

    The CDK copies an asset at its definition. As in Git, only the executable bit of a mode is kept.
    """
    with TemporaryDirectory(prefix="ultrascale-") as name:
        folder = Path(name)
        for path, file in sources.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            copyfile(file, folder / path)
            (folder / path).chmod(0o755 if _is_executable(file) else 0o644)
        for path, text in texts.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(text, encoding="utf-8")
            (folder / path).chmod(0o644)
        yield folder


def _hash_of_modes(folder: Path) -> str | None:
    """Return a hash of the files of ``folder`` and their executable bits; None without such a bit.

    The CDK's own hash covers only paths and contents, so a file whose mode alone changed would not
    be uploaded.
    """
    files = sorted(file for file in folder.glob("**/*") if file.is_file())
    if not any(_is_executable(file) for file in files):
        return None
    digest = sha256()
    for file in files:
        content = file.read_bytes()
        path = file.relative_to(folder).as_posix()
        digest.update(f"{path}\0{_is_executable(file)}\0{len(content)}\0".encode())
        digest.update(content)
    return digest.hexdigest()


def _is_executable(file: Path) -> bool:
    return bool(file.stat().st_mode & S_IXUSR)
