"""Teams that share nodes by quotas, as far as the core knows them; a part has their keys."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import Annotated

from ultrascale.config._base import Model, Section
from ultrascale.config._values import LabelValue, dns_label


class Team(Model):
    """A team that shares nodes with the others."""

    # Its pods have the name of its LocalQueue, hyperpod-ns-NAME-localqueue, as a label of at most
    # 63 characters.
    name: Annotated[str, dns_label(40)]
    """Name of the team; its namespace is `hyperpod-ns-NAME`."""

    cost_center: LabelValue | None = None
    """Account that pays for its jobs, with `observability.ledger`. Default: none."""


class Teams(Section):
    """The sharing of nodes between teams by quotas."""

    @property
    @abstractmethod
    def names(self) -> Sequence[str]:
        """Names of the teams, in the order of the file."""
