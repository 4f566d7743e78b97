"""Run options: `-cfg key=value,…`, or the section `[ultrascale]` of `.torchxconfig`."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import cast

from torchx.specs import CfgVal, runopts

from ultrascale.frozen import Frozen
from ultrascale.plan.names import TRAINING_NAMESPACE
from ultrascale_torchx.errors import AppError

_HELP: Mapping[str, str] = {
    "queue": "queue, one of scheduling.queues of the cluster file",
    "image_repo": "registry and repository of images that are named by :TAG alone; $NAME stands "
    "for an environment variable",
    "pool": "pool whose nodes the job runs on, instead of the one with its instance type",
    "priority_class": "one of scheduling.priority_classes of the cluster file",
    "account": "AWS account of the cluster's registry, where the cluster file does not state it",
    "kubeconfig": "kubeconfig; by default KUBECONFIG, ~/.kube/config, or the pod's account",
    "context": "context of the kubeconfig; by default its current one",
}


class Options(Frozen):
    """Run options of a job; an option that is None is left to the cluster file."""

    cluster: Path  # The cluster file
    namespace: str  # Namespace of the job
    queue: str | None  # Queue that the job waits in
    image_repo: str | None  # Registry and repository of images that are given as a tag alone
    pool: str | None  # Pool whose nodes it runs on
    priority_class: str | None  # Its priority
    account: str | None  # AWS account of the cluster's registry
    kubeconfig: Path | None  # Kubeconfig
    context: str | None  # Context of it
    durable: bool  # Whether the job must have a place for its output that outlives its pods
    allow_env: tuple[
        str, ...
    ] = ()  # Variables that are usually refused as harmful, and allowed here


def run_options() -> runopts:
    """Return the run options in the form in which TorchX lists and checks them."""
    options = runopts()
    options.add(
        "cluster", type_=str, required=True, help="path of the cluster file of the job's cluster"
    )
    options.add("namespace", type_=str, default=TRAINING_NAMESPACE, help="namespace of the job")
    for key, text in _HELP.items():
        options.add(key, type_=str, help=text)
    options.add(
        "allow_env",
        type_=list[str],
        help="variables to set although they are refused as harmful, separated by ;",
    )
    options.add(
        "durable",
        type_=bool,
        default=True,
        help="False sends a job even if it has no place for output that outlives its pods",
    )
    return options


def read(cfg: Mapping[str, CfgVal]) -> Options:
    """Return the options of a run, after TorchX has checked them."""
    kubeconfig = _text(cfg, "kubeconfig")
    return Options(
        cluster=Path(_text(cfg, "cluster") or ""),
        namespace=_text(cfg, "namespace") or TRAINING_NAMESPACE,
        queue=_text(cfg, "queue"),
        image_repo=_text(cfg, "image_repo"),
        pool=_text(cfg, "pool"),
        priority_class=_text(cfg, "priority_class"),
        account=_text(cfg, "account"),
        kubeconfig=Path(kubeconfig).expanduser() if kubeconfig else None,
        context=_text(cfg, "context"),
        allow_env=tuple(cast("list[str] | None", cfg.get("allow_env")) or ()),
        durable=cfg.get("durable") is not False,
    )


def repository(image_repo: str | None) -> str:
    """Return the repository in `image_repo`, which may be the name of an environment variable.

    Raises:
        AppError: `image_repo`, or the variable that it names, is not set.
    """
    if image_repo is None:
        todo = "add -cfg image_repo=REGISTRY/REPOSITORY, or write the whole image"
        raise AppError([f"image_repo: missing, and the image is named by its tag alone; {todo}"])
    if not image_repo.startswith("$"):
        return image_repo
    name = image_repo[1:]
    found = os.environ.get(name)
    if not found:
        wrong = f"the environment variable {name} is not set, got {image_repo!r}"
        todo = f"export {name}=REGISTRY/REPOSITORY, or add -cfg image_repo=REGISTRY/REPOSITORY"
        raise AppError([f"image_repo: {wrong}; {todo}"])
    return found


def _text(cfg: Mapping[str, CfgVal], key: str) -> str | None:
    value = cfg.get(key)
    return str(value) if value else None
