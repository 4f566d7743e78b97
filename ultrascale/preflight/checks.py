"""All checks of an account, in the order of the report."""

from functools import cache
from itertools import chain

from ultrascale.core.table import all_parts
from ultrascale.preflight.access import ACCESS_ENTRIES, ADMINS
from ultrascale.preflight.addons import ADDON_CONFIGURATION, ADDONS
from ultrascale.preflight.addresses import ADDRESSES
from ultrascale.preflight.bootstrap import BOOTSTRAP
from ultrascale.preflight.cluster import CLUSTER
from ultrascale.preflight.endpoints import ENDPOINTS
from ultrascale.preflight.existing_buckets import EXISTING_BUCKETS
from ultrascale.preflight.existing_lustre import EXISTING_LUSTRE
from ultrascale.preflight.existing_vpc import EXISTING_VPC
from ultrascale.preflight.iam import BOUNDARY, ROLES
from ultrascale.preflight.identity import IDENTITY
from ultrascale.preflight.model import Check
from ultrascale.preflight.network_cards import INSTANCE_TYPES, NETWORK_CARDS
from ultrascale.preflight.offerings import OFFERINGS
from ultrascale.preflight.quotas import QUOTAS
from ultrascale.preflight.reservations import RESERVATIONS
from ultrascale.preflight.stacks import STACKS, names_check
from ultrascale.preflight.upgrade import UPGRADE
from ultrascale.preflight.versions import KUBERNETES_VERSION, MACHINE_IMAGES
from ultrascale.preflight.zones import ZONES


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
    INSTANCE_TYPES,
    NETWORK_CARDS,
    RESERVATIONS,
    CLUSTER,
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
