"""All checks of an account, in the order of the report."""

from functools import cache
from itertools import chain

from ultrascale.core.table import all_parts
from ultrascale.preflight.access import ACCESS_ENTRIES, ADMINS, BOUNDARY, ROLES
from ultrascale.preflight.account import BOOTSTRAP, IDENTITY, OFFERINGS, ZONES
from ultrascale.preflight.cluster import CLUSTER, UPGRADE
from ultrascale.preflight.existing_buckets import EXISTING_BUCKETS
from ultrascale.preflight.existing_lustre import EXISTING_LUSTRE
from ultrascale.preflight.existing_vpc import EXISTING_VPC
from ultrascale.preflight.model import Check
from ultrascale.preflight.network import ADDRESSES, ENDPOINTS
from ultrascale.preflight.network_cards import INSTANCE_TYPES, NETWORK_CARDS
from ultrascale.preflight.provider_changes import PROVIDER_CHANGES
from ultrascale.preflight.quotas import QUOTAS
from ultrascale.preflight.recording import RECORDED_FACTS
from ultrascale.preflight.reservations import RESERVATIONS
from ultrascale.preflight.stacks import STACKS, names_check
from ultrascale.preflight.versions import (
    ADDON_CONFIGURATION,
    ADDONS,
    KUBERNETES_VERSION,
    MACHINE_IMAGES,
)


@cache
def all_checks() -> tuple[Check, ...]:
    """Return all checks, of the core and of the parts, in the order of the report."""
    modules = (part.module("preflight") for part in all_parts() if part.has_checks)
    parts: list[Check] = [check for module in modules for check in module.CHECKS]
    checks = (*_BEFORE_PARTS, *(check for check in parts if not check.follows), STACKS)
    followed = (
        (check, *(part for part in parts if part.follows == check.name)) for check in checks
    )
    return (*chain.from_iterable(followed), names_check())


_BEFORE_PARTS: tuple[Check, ...] = (
    IDENTITY,
    BOOTSTRAP,
    ROLES,
    BOUNDARY,
    ADMINS,
    ACCESS_ENTRIES,
    QUOTAS,
    ZONES,
    ENDPOINTS,
    OFFERINGS,
    RECORDED_FACTS,
    INSTANCE_TYPES,
    NETWORK_CARDS,
    RESERVATIONS,
    CLUSTER,
    PROVIDER_CHANGES,
    UPGRADE,
    KUBERNETES_VERSION,
    MACHINE_IMAGES,
    ADDONS,
    ADDON_CONFIGURATION,
    ADDRESSES,
    EXISTING_VPC,
    EXISTING_LUSTRE,
    EXISTING_BUCKETS,
)
