"""The face of a part: a subject that a cluster may have, and the core's questions on it.

A part is a folder of `ultrascale.parts` and a row of the table there. The core asks every part the
same questions and knows none by name. A method that a part leaves out answers that it has nothing
of the kind. Its additions to a later step than planning are in a module that the step imports by
name: a program that only reads and plans files, such as the backend, has none of it.
"""

from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Generic, TypeVar

from ultrascale.frozen import Frozen

if TYPE_CHECKING:
    from ultrascale import config
    from ultrascale.catalog.provisioners import Provisioner, ProvisionerFacts
    from ultrascale.core.engine import QueueingEngine, QueueKinds
    from ultrascale.plan.advice.model import Candidate, Question, Reason
    from ultrascale.plan.jobs.controllers import JobController
    from ultrascale.plan.jobs.devices import Device
    from ultrascale.plan.jobs.nodes import NodeShare
    from ultrascale.plan.jobs.request import JobRequest
    from ultrascale.plan.model import (
        AppPlan,
        ClusterPlan,
        ControllerPlan,
        IngressPlan,
        JobPlan,
        NamespacePlan,
        PartNeeds,
        PlannedPart,
        PodsPlan,
        PoolPlan,
        RoutePlan,
        Watch,
    )
    from ultrascale.plan.model.jobs import ProgramPlan, TopologyPlan
    from ultrascale.plan.model.services import ModelPlan
    from ultrascale.plan.namespaces import Resource
    from ultrascale.plan.stacks import Layer, LayerId


class HelmChart(Frozen):
    """A chart that a part installs, with its publisher's names."""

    location: str  # ``oci://HOST/PATH``, or ``https://HOST/PATH`` in a Helm repository
    version: str  # Its version
    # Images of its pods with our values; its version completes one that ends in ``:`` or ``:v``.
    images: tuple[str, ...]
    # Hash of its archive, which comes from a repository; None where no source states it.
    sha256: str | None = None
    # Whether its definitions are in the folder `crds`, of which Helm updates none.
    defines_once: bool = False


SectionT_co = TypeVar("SectionT_co", bound="config.Section", covariant=True)
PlanT_co = TypeVar("PlanT_co", bound="PlannedPart", covariant=True)


class Part(Generic[SectionT_co, PlanT_co]):
    """A part, by its keys of the cluster file and the type of its plan."""

    name: str
    """Its folder's name. Its table of `ultrascale plan` has this name in the module `needs`, and
    the name TABLE in the module `TABLE_needs`.
    """

    section: type[SectionT_co] | None = None
    """Its keys of the cluster file; None: a key of the core's names it. Its rules, of the file, of
    the plan and of jobs, stand beside their types: an import of the part registers them.
    """

    place: str = ""
    """Section of the core with its keys; empty: they stand at the top of the file."""

    job_keys: "type[config.Job] | None" = None
    """Its keys of jobs; None: it has none. A kind of job has them where it derives from the type of
    the core that they derive from, and behind the keys of that type.
    """

    record: str | None = None
    """Name of the file beside the cluster file that `read_record` reads."""

    has_checks: bool = False
    """Whether its module `preflight` has checks of an account, as `CHECKS`, and names that its
    templates fix, as `NAMES`, if there are any.
    """

    has_guard: bool = False
    """Whether its module `guard` has `ROLLED`: by type of resource, whose nodes a change ends or
    replaces.
    """

    has_teardown: bool = False
    """Whether its module `teardown` has kinds of resources, as `KINDS`, `gates` before its layers,
    and `prepaid_capacity` that outlives a cluster.
    """

    charts: Sequence[HelmChart] = ()
    """Helm charts that it installs."""

    controller_namespaces: Sequence[str] = ()
    """Namespaces of its controllers alone, whether a cluster has them or not."""

    @property
    def provisioners(self) -> "Mapping[Provisioner, ProvisionerFacts]":
        """Its rows of the table of provisioners."""
        return {}

    reader: "PodsPlan | None" = None
    """Pods of it that read the metrics of services; None without any."""

    has_reports: bool = False
    """Whether its module `report` has the state of a job in the part."""

    judges_changes: bool = False
    """Whether its module `guard` judges changed objects: `harmful_changes` yields those that lose
    something, `openings` those that let people do more.
    """

    has_workloads: bool = False
    """Whether its module `workloads` has kinds that make pods of jobs, as `WORKLOADS`."""

    queue_annotation: str | None = None
    """Annotation by which pods outside its own objects name a queue of its engine."""

    stacks_apart: Mapping[str, str] = {}
    """Its stacks beside a cluster's layers, by the names behind the cluster's, with what to do
    while they change. No teardown deletes them; `kept_stacks` of its module `teardown` says why.
    """

    has_app: bool = False
    """Whether it deploys clusters by an app of its own: `plan_app` plans it, and `synthesize` of
    its module of `ultrascale_stacks` writes it, for the context key of its name.
    """

    controllers_in: str | None = None
    """Name of its module that has controllers of jobs, as `CONTROLLERS`, whose objects its module
    `job` renders; None without any.
    """

    is_engine: bool = False
    """Whether it is an engine of jobs, which `scheduling.queueing` names, with its answers as
    `ENGINE` of its module `engine`, and the state of a cluster's queues in its module `queues`.
    """

    has_gate: bool = False
    """Whether its module `gate` runs the checks that it adds to jobs, as `pass_checks`."""

    has_acceptance: bool = False
    """Whether its module `acceptance` has checks of a live cluster: `checks` returns a plan's."""

    job_kind: "type[config.Job] | None" = None
    """Kind of jobs that it adds to those of the core, by a value of its key `kind`."""

    @property
    def job_controllers(self) -> "Sequence[JobController]":
        """Controllers of jobs that it brings."""
        return self.module(self.controllers_in).CONTROLLERS if self.controllers_in else ()

    @property
    def engine(self) -> "QueueingEngine | None":
        """Its answers as the engine of jobs; None where it is no engine."""
        return self.module("engine").ENGINE if self.is_engine else None

    def queue_kinds(self, cluster: "config.Cluster") -> "QueueKinds | None":
        """Return the kinds of its queues in a cluster; None where it makes none."""
        return None

    def read_record(self, folder: Path) -> Frozen | None:
        """Return its record in the folder of the cluster file; None where it keeps none.

        Raises:
            ConfigError: The record cannot be read.
        """
        return None

    def addons(self, cluster: "config.Cluster") -> Iterable[str]:
        """Return the names of the EKS add-ons that it installs."""
        return ()

    def needs_certificates(self, cluster: "config.Cluster") -> bool:
        """Return whether its controllers have certificates from cert-manager."""
        return False

    def exports_devices(self, cluster: "config.Cluster") -> bool:
        """Return whether it reads the Neuron devices of every node, which only one reader may."""
        return False

    def labels_owners(self, cluster: "config.Cluster") -> bool:
        """Return whether pods of jobs say who pays for their nodes, by labels."""
        return False

    def collects_logs(self, cluster: "config.Cluster") -> bool:
        """Return whether its collector of pods' logs runs on each node, on the node's network."""
        return False

    def logs_of_pods(self, cluster: "config.Cluster") -> str | None:
        """Return the log group of pods' output; None where it keeps none."""
        return None

    def plan(self, cluster: "config.Cluster", records: Sequence[Frozen]) -> PlanT_co | None:
        """Return its plan, before the core's, which asks it; None where the file has no such part.

        Args:
            cluster: The cluster file.
            records: Records of every part beside the file.
        """
        return None

    def plan_with_pools(
        self,
        cluster: "config.Cluster",
        pools: "Sequence[PoolPlan]",
        parts: "Sequence[PlannedPart]",
    ) -> PlanT_co | None:
        """Return its plan, after that of the pools and before that of the programs on them.

        Args:
            cluster: The cluster file.
            pools: Plans of its pools.
            parts: Plans of the parts so far.
        """
        return None

    def plan_on(self, cluster: "config.Cluster", core: "ClusterPlan") -> PlanT_co | None:
        """Return its plan, after the core's, on which it stands; None without it.

        Args:
            cluster: The cluster file.
            core: The plan of the core, and of the parts above it in the table.
        """
        return None

    def plan_app(self, path: Path, reading: "config.Reading") -> "AppPlan | None":
        """Return the app that a file has of it; None where it has none.

        Args:
            path: The file, from the repository's folder, which is the current one.
            reading: The file, without mistakes.

        Raises:
            ConfigError: The app is wrong, or another file that it deploys; one line a mistake.
        """
        return None

    def namespaces(self, cluster: "config.Cluster") -> "Iterable[NamespacePlan]":
        """Return the namespaces of the platform that it needs, by its keys of the file."""
        return ()

    def kinds_of_services(self, cluster: "config.Cluster") -> "Sequence[Resource]":
        """Return the kinds of its services beyond Kubernetes' own."""
        return ()

    def plan_job(self, request: "JobRequest") -> "JobPlan | None":
        """Return the plan of a job that has no mistakes; None where it is of no kind of its own.

        Raises:
            CatalogError: No source states a value of an instance type.
        """
        return None

    def with_checks(self, request: "JobRequest", job: "JobPlan") -> "JobPlan":
        """Return the plan of a job with the checks of nodes that have to pass before it is sent.

        Raises:
            CatalogError: No source states a value of an instance type.
        """
        return job

    def images_of_checks(self, cluster: "config.Cluster", accelerator: str) -> Mapping[str, str]:
        """Return the images of the checks that jobs may ask for, by check, as publishers have them.

        Args:
            cluster: The cluster file.
            accelerator: Extended resource of the nodes' accelerators.
        """
        return {}

    def controllers_of_jobs(self, cluster: "config.Cluster") -> "Iterable[JobController]":
        """Return the controllers of which jobs on its provisioner's nodes may be."""
        return ()

    def controller_of(self, request: "JobRequest") -> "JobController | None":
        """Return the controller of a job outside every engine; None: Kubernetes itself."""
        return None

    def job_notes(self, request: "JobRequest") -> Iterable[str]:
        """Return who admits a job, in sentences."""
        return ()

    def restart_notes(
        self, request: "JobRequest", pools: "Sequence[PoolPlan]", controller: "JobController"
    ) -> Iterable[str]:
        """Return how a training job restarts when one of its nodes fails, in sentences.

        Args:
            request: The job.
            pools: The pools that it may run on.
            controller: What makes its pods.
        """
        return ()

    def topology_of(self, job: "config.TrainingJob") -> "TopologyPlan | None":
        """Return how close the nodes of a team's job are asked to be; None: not."""
        return None

    def closeness_mistakes(
        self, request: "JobRequest", job: "config.TrainingJob", pools: "Sequence[PoolPlan]"
    ) -> "Iterable[config.Mistake] | None":
        """Return why it cannot place a job as close as it says; None: it places none there.

        Args:
            request: The job.
            job: Its keys.
            pools: The pools that it may run on.
        """
        return None

    def default_nodes(self, keys: Mapping[str, object]) -> int | None:
        """Return the nodes of a training job that states none, by its ``keys`` before that one."""
        return None

    def program(self, request: "JobRequest", share: "NodeShare | None") -> "ProgramPlan | None":
        """Return the program that its key of a training job names; None where it names none.

        Before the ``share`` of a node is known, script and image alone are asked for.
        """
        return None

    def largest_program(self, device: "Device", nodes: int) -> "ProgramPlan | None":
        """Return the program with the largest model that ``nodes`` with such a device train."""
        return None

    def model(self, request: "JobRequest", share: "NodeShare") -> "ModelPlan | None":
        """Return the model that its key of a service states; None where it states none."""
        return None

    def ways_to_jobs(self, cluster: "config.Cluster") -> "Iterable[IngressPlan]":
        """Return the ways by which its controllers reach the pods of jobs."""
        return ()

    def closed_pods(self, cluster: "config.Cluster") -> str | None:
        """Return the label of its jobs' pods that policies of the jobs alone open; None without."""
        return None

    def hides_metadata(self, cluster: "config.Cluster") -> bool:
        """Return whether network policies keep pods of jobs from the metadata service of nodes."""
        return False

    def keeps_broken_nodes(self, cluster: "config.Cluster") -> bool:
        """Return whether it leaves broken nodes of its provisioners as they are."""
        return False

    def controllers(
        self, file: "config.Parts", nodes: int
    ) -> "Mapping[str, Sequence[ControllerPlan]]":
        """Return its programs on system nodes for a file, by the controller's name.

        Args:
            file: The file, as far as it can be read.
            nodes: Most nodes of the cluster.
        """
        return {}

    def route(
        self, cluster: "config.Cluster", service: "config.ServiceJob", *, closed: bool
    ) -> "RoutePlan | None":
        """Return the way of its requests to a service; None without one.

        Args:
            cluster: The cluster file.
            service: The service.
            closed: Whether network policies select the pods of jobs.
        """
        return None

    def watch(
        self, cluster: "config.Cluster", pools: "Sequence[PoolPlan]", *, seconds: int
    ) -> "Watch | None":
        """Return its measurements, graphs and alarms in a cluster with metrics.

        The core asks it whether the file has the part or not: constants of functions and agents do
        not change with it.

        Args:
            cluster: The cluster file.
            pools: All pools, in the order of the file.
            seconds: Time between two measurements of the fleet, in seconds.
        """
        return None

    @property
    def layers(self) -> "Mapping[LayerId, Layer]":
        """Its rows of the table of layers.

        `ultrascale_stacks` has a module of its name, whose `STACKS` has the builder of each row.
        """
        return {}

    def refusals(self, question: "Question", candidate: "Candidate") -> "Iterable[Reason]":
        """Return why nodes of its provisioner do not suit the adviser's question."""
        return ()

    def needs(self, plan: "ClusterPlan") -> "PartNeeds | None":
        """Return its needs in `ultrascale plan`; None where it never has any."""
        return None

    def module(self, name: str) -> ModuleType:
        """Return its module ``name``, imported."""
        return import_module(f"ultrascale.parts.{self.name}.{name}")
