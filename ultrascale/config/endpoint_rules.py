"""Rules of `network.endpoints`: endpoints to make, and endpoints that exist."""

from ultrascale.catalog import endpoints as catalog
from ultrascale.config._errors import Mistakes, refuse
from ultrascale.config._rules import rule
from ultrascale.config.identity import Identity
from ultrascale.config.network import Network, is_shared

_PRESENT, _CREATE, _GROUP = "endpoints.present", "endpoints.create", "endpoints.security_group"


@rule
def endpoints_of_our_vpc_are_ours(network: Network) -> Mistakes:
    if network.vpc is not None:
        return
    if network.endpoints.present:
        wrong = "a VPC of ours has no endpoints but those that we make"
        yield refuse(_PRESENT, wrong, "leave it out", got="")
    if network.endpoints.security_group is not None:
        wrong = "a security group that is there before its VPC"
        yield refuse(_GROUP, wrong, "leave it out: we make one")


@rule
def endpoints_have_short_names(network: Network) -> Mistakes:
    settings = network.endpoints
    created = settings.create if isinstance(settings.create, tuple) else ()
    for key, services in ((_PRESENT, settings.present), (_CREATE, created)):
        for number, name in enumerate(services):
            if (short := catalog.short_name(name)) != name:
                todo = f"write {short}"
                yield refuse(f"{key}.{number}", "the long name of an endpoint", todo)


@rule
def participants_make_no_endpoints(network: Network, identity: Identity) -> Mistakes:
    # Source: https://docs.aws.amazon.com/vpc/latest/userguide/vpc-sharing.html
    wanted = network.endpoints.create
    if is_shared(network, identity.account) and wanted not in {None, "none", ()}:
        wrong = "only the owner of a shared VPC can make endpoints in it"
        todo = "write none; `ultrascale network needs` lists those that the owner has to make"
        yield refuse(_CREATE, wrong, todo)


@rule
def endpoints_are_made_once(network: Network) -> Mistakes:
    """Yield an endpoint that would be the VPC's second of its service, or a route of others."""
    settings = network.endpoints
    for number, name in enumerate(settings.create if isinstance(settings.create, tuple) else ()):
        key = f"{_CREATE}.{number}"
        if name in settings.present:
            wrong = "in present too, and a VPC has one endpoint with private DNS of a service"
            yield refuse(key, wrong, "leave it out of one of them")
        elif network.vpc is not None and catalog.kind_of(name) == "gateway":
            wrong = "a gateway endpoint, which is an entry in route tables that are not ours"
            yield refuse(key, wrong, "let whoever keeps them make it, and write it to present")


@rule
def group_has_endpoints(network: Network) -> Mistakes:
    settings, exists = network.endpoints, network.vpc is not None
    if exists and settings.security_group is not None and settings.create in {None, "none", ()}:
        wrong = "the security group of endpoints that we make, and create makes none"
        todo = "leave it out; preflight reads the groups of those that are there"
        yield refuse(_GROUP, wrong, todo)
