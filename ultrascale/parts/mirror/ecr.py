"""Mirrors in Amazon ECR: their repositories, and the login of the program that copies."""

import json
import os
from collections.abc import Generator, Iterable, Mapping, Set
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from ultrascale.account import connect
from ultrascale.catalog import registries
from ultrascale.documents import JsonObject, mapping, read_json, text
from ultrascale.errors import UltrascaleError, UnansweredError
from ultrascale.frozen import Frozen

if TYPE_CHECKING:
    from mypy_boto3_ecr.type_defs import EncryptionConfigurationTypeDef

    from ultrascale.account import Account


class EcrMirror(Frozen):
    """A mirror in a private registry of Amazon ECR."""

    host: str  # The registry's host
    registry_id: str  # Account of the registry
    account: "Account"  # The credentials for it, in its Region

    def make_repositories(
        self, *, images: Iterable[str], charts: Iterable[str], key: str | None
    ) -> tuple[str, ...]:
        """Make the repositories that the registry lacks.

        Helm takes a chart by its version, so that tags of charts never move. Pods name digests, and
        publishers patch images under the same tags.

        Args:
            images: Names of repositories of images, without the host.
            charts: Names of repositories of charts.
            key: KMS key that encrypts them; None for AES-256 with a key of Amazon S3.

        Returns:
            The names of the made ones.

        Raises:
            UltrascaleError: The credentials are of another account, which may not make any.
            UnansweredError: ECR refused a request, or did not answer it.
        """
        try:
            return self._make_repositories(images=images, charts=charts, key=key)
        except UnansweredError as error:
            if not error.denied or self.account.id == self.registry_id:
                raise
            message = (
                f"{error}; {self.host} belongs to account {self.registry_id}, the credentials are "
                f"of {self.account.id}; name a profile of that account by --profile"
            )
            raise UltrascaleError(message) from error

    def _make_repositories(
        self, *, images: Iterable[str], charts: Iterable[str], key: str | None
    ) -> tuple[str, ...]:
        ecr = self.account.client("ecr")
        there = self._repositories()
        fixed = {*charts}
        missing = sorted({*images, *fixed} - there)
        encryption: EncryptionConfigurationTypeDef = {"encryptionType": "AES256"}
        if key is not None:
            encryption = {"encryptionType": "KMS", "kmsKey": key}
        for name in missing:
            self.account.ask(
                ecr.create_repository,
                registryId=self.registry_id,
                repositoryName=name,
                imageTagMutability="IMMUTABLE" if name in fixed else "MUTABLE",
                imageScanningConfiguration={"scanOnPush": True},
                encryptionConfiguration=encryption,
            )
        return tuple(missing)

    def _repositories(self) -> Set[str]:
        ecr = self.account.client("ecr")
        return {
            name
            for page in self.account.ask_pages(
                ecr.describe_repositories, registryId=self.registry_id
            )
            for repository in page["repositories"]
            if (name := repository.get("repositoryName")) is not None
        }

    def token(self) -> str:
        """Return the login of twelve hours in the form of Docker's configuration.

        Source: https://docs.aws.amazon.com/AmazonECR/latest/userguide/registry_auth.html

        Raises:
            UnansweredError: ECR refused it, or did not answer.
        """
        answer = self.account.ask(self.account.client("ecr").get_authorization_token)
        return answer["authorizationData"][0].get("authorizationToken", "")


def ecr_mirror(location: str, profile: str | None = None) -> EcrMirror | None:
    """Return the registry of a mirror in Amazon ECR; None for another registry.

    Args:
        location: Registry and prefix of the mirror.
        profile: Profile of the AWS CLI's configuration; None for the one that is set, if any.

    Raises:
        AccountError: There are no credentials, or AWS does not accept them.
    """
    host = location.partition("/")[0]
    registry = registries.parse_ecr_registry(host)
    if registry is None:
        return None
    registry_id, region = registry
    return EcrMirror(host=host, registry_id=registry_id, account=connect(region, profile))


@contextmanager
def logged_in(mirror: EcrMirror | None) -> Generator[Mapping[str, str]]:
    """Yield environment variables with which the programs get the login of ``mirror``.

    The user's own logins stay usable, and their file stays as it is.

    Raises:
        UltrascaleError: The user's file cannot be read.
    """
    if mirror is None:
        yield {}
        return
    with TemporaryDirectory(prefix="ultrascale-") as folder:
        file = Path(folder, "config.json")
        file.touch(mode=0o600)
        file.write_text(json.dumps(_with_login(_own_logins(), mirror)), encoding="utf-8")
        # Variables that crane, skopeo and Helm read.
        yield {
            "DOCKER_CONFIG": folder,
            "REGISTRY_AUTH_FILE": str(file),
            "HELM_REGISTRY_CONFIG": str(file),
        }


def _own_logins() -> JsonObject:
    folder = os.environ.get("DOCKER_CONFIG") or Path.home() / ".docker"
    file = Path(folder, "config.json")
    try:
        return mapping(read_json(file))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise UltrascaleError(f"{file}: cannot be read: {error}; mend it, or remove it") from None


def _with_login(own: JsonObject, mirror: EcrMirror) -> JsonObject:
    """Return logins with that of ``mirror``, which no store of credentials may hide.

    A store holds the logins of all hosts that the file lists; here each of them asks it by itself.

    Source: https://docs.docker.com/reference/cli/docker/login/#credential-stores
    """
    store = text(own, "credsStore")
    helpers = dict.fromkeys(mapping(own, "auths") if store else (), store)
    helpers |= {host: text(name) for host, name in mapping(own, "credHelpers").items()}
    helpers.pop(mirror.host, None)
    return {
        "auths": {**mapping(own, "auths"), mirror.host: {"auth": mirror.token()}},
        "credHelpers": helpers,
    }
