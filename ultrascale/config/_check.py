"""Reads a document, applies every rule, and returns the cluster or all its mistakes."""

from dataclasses import replace

from ultrascale.config import (
    _backend_rules,
    _block_rules,
    _hyperpod_rules,
    _image_rules,
    _job_rules,
    _karpenter_rules,
    _list_rules,
    _network_rules,
    _pipeline_rules,
    _pool_rules,
    _purchase_rules,
    _section_rules,
    _storage_rules,
    _tag_rules,
)
from ultrascale.config._document import Document
from ultrascale.config._reader import Reader
from ultrascale.config._reading import Reading, Rules
from ultrascale.config.cluster import Cluster
from ultrascale.config.hyperpod import TaskGovernance, Team
from ultrascale.config.jobs import Job, Resources, Toleration
from ultrascale.config.kubernetes import Endpoint, Karpenter, Kubernetes
from ultrascale.config.network import Network
from ultrascale.config.operations import Backend, Database, Observability
from ultrascale.config.pipeline import Pipeline
from ultrascale.config.pools import Nodes, Pool
from ultrascale.config.purchase import CapacityBlock, Reservation, TrainingPlan
from ultrascale.config.scheduling import Queue, Rendezvous, Scheduling
from ultrascale.config.storage import Claim, Images, Lustre, LustreS3, Storage

RULES: Rules = {
    Network: (
        _network_rules.zones_are_of_the_region,
        _network_rules.network_has_two_zones,
        _network_rules.zones_are_named_one_way,
        _network_rules.vpc_range_has_a_legal_size,
        _network_rules.pod_ranges_exist,
        _network_rules.pod_ranges_are_apart,
    ),
    Kubernetes: (
        _network_rules.version_is_supported,
        _network_rules.hyperpod_supports_version,
        _network_rules.admins_are_of_the_partition,
        _network_rules.service_range_is_legal,
        _network_rules.service_range_is_apart,
        _network_rules.event_ttl_is_in_bounds,
        _network_rules.addons_are_ours,
    ),
    Endpoint: (_network_rules.endpoint_can_be_reached,),
    Karpenter: (
        _karpenter_rules.karpenter_is_the_only_one,
        _karpenter_rules.karpenter_is_sound,
        _karpenter_rules.karpenter_suits_kubernetes,
        _karpenter_rules.karpenter_suits_its_pools,
    ),
    Nodes: (_pool_rules.counts_fit,),
    Pool: (
        _pool_rules.name_is_free,
        _pool_rules.name_is_not_auto_modes,
        _pool_rules.name_has_room,
        _pool_rules.one_kind_of_hardware,
        _pool_rules.provisioner_launches_the_types,
        _pool_rules.karpenter_is_installed,
        _pool_rules.zones_have_subnets,
        _pool_rules.counts_act,
        _pool_rules.static_pools_are_reserved,
        _pool_rules.managed_group_holds_the_nodes,
        _pool_rules.pool_fits_into_a_cluster,
        _pool_rules.system_pool_is_there_first,
        _pool_rules.system_pool_has_no_accelerators,
        _pool_rules.placement_group_has_one_zone,
        _pool_rules.placement_group_is_not_hyperpods,
        _pool_rules.placement_group_takes_the_types,
        _pool_rules.efa_has_one_zone,
        _pool_rules.efa_has_one_type,
        _pool_rules.efa_is_there,
        _pool_rules.deep_health_checks_are_hyperpods,
        _pool_rules.labels_are_free,
        _pool_rules.labels_fit_a_node_pool,
        _hyperpod_rules.hyperpod_is_in_the_region,
        _hyperpod_rules.hyperpod_has_the_types,
        _hyperpod_rules.hyperpod_group_holds_the_nodes,
        _hyperpod_rules.hyperpod_takes_the_labels,
        _hyperpod_rules.hyperpod_tags_nothing,
        _hyperpod_rules.taints_are_allowed,
        _tag_rules.tags_are_free,
        _tag_rules.tags_leave_room,
        _purchase_rules.option_suits_the_provisioner,
        _purchase_rules.way_suits_the_provisioner,
        _purchase_rules.spill_acts,
        _purchase_rules.fallback_acts,
        _purchase_rules.fallback_has_a_share,
        _purchase_rules.spot_group_has_a_choice,
        _purchase_rules.placement_group_is_the_reservations,
        _purchase_rules.reservation_has_one_zone_and_type,
        _purchase_rules.arns_are_of_the_region,
        _block_rules.block_is_sold_for_the_type,
        _block_rules.block_is_whole,
        _block_rules.block_holds_the_nodes,
        _block_rules.block_has_no_minimum,
        _block_rules.block_is_not_for_controllers,
        _block_rules.block_can_be_used,
    ),
    Reservation: (_tag_rules.selector_is_short,),
    CapacityBlock: (
        _purchase_rules.window_has_a_length,
        _block_rules.block_lasts_as_long_as_blocks_do,
        _block_rules.block_ends_when_blocks_end,
    ),
    TrainingPlan: (_purchase_rules.window_has_a_length,),
    Lustre: (
        _section_rules.lustre_tier_exists,
        _section_rules.lustre_size_exists,
        _section_rules.lustre_zone_has_a_subnet,
        _section_rules.lustre_efa_has_clients,
    ),
    LustreS3: (_section_rules.lustre_bucket_exists,),
    Claim: (_storage_rules.claim_has_a_namespace_of_jobs,),
    Storage: (_storage_rules.default_claims_have_a_source,),
    Images: (_image_rules.builds_have_a_repository,),
    Scheduling: (
        _section_rules.volcano_is_there,
        _section_rules.one_scheduler_governs,
        _section_rules.neuron_extension_has_nodes,
    ),
    Observability: (_section_rules.hyperpod_addon_has_nodes,),
    Queue: (_section_rules.queue_is_legal, _section_rules.queue_weight_is_legal),
    Rendezvous: (_section_rules.replicas_form_a_quorum, _section_rules.replicas_have_a_use),
    TaskGovernance: (
        _hyperpod_rules.governance_is_in_the_region,
        _hyperpod_rules.governed_types_have_quotas,
        _hyperpod_rules.priorities_have_weights,
        _hyperpod_rules.teams_are_there,
        _hyperpod_rules.teams_have_weights,
        _hyperpod_rules.teams_have_the_nodes,
    ),
    Team: (_hyperpod_rules.team_pools_exist, _hyperpod_rules.team_lends_to_borrow),
    Job: (
        _job_rules.job_has_one_way_to_nodes,
        _job_rules.job_pool_exists,
        _job_rules.job_knows_its_nodes,
        _job_rules.job_fits_its_nodes,
        _job_rules.neuron_devices_are_neighbours,
        _job_rules.job_has_the_nodes,
        _job_rules.processes_share_the_devices,
        _job_rules.training_keeps_off_controllers,
        _job_rules.job_priority_exists,
        _job_rules.job_team_exists,
        _job_rules.job_queue_exists,
        _job_rules.job_meets_where_a_server_is,
        _job_rules.job_namespace_exists,
        _job_rules.mounts_have_a_path_each,
        _job_rules.job_image_is_known,
        _job_rules.job_has_one_program,
        _job_rules.cache_has_a_compiler,
        _job_rules.spot_notice_is_long_enough,
        _job_rules.capacity_is_the_pools,
        _job_rules.variables_do_no_harm,
    ),
    Resources: (_job_rules.job_uses_one_accelerator,),
    Toleration: (_section_rules.toleration_is_legal,),
    Backend: (
        _backend_rules.backend_has_jobs,
        _backend_rules.backend_jobs_exist,
        _backend_rules.backend_namespace_is_free,
        _backend_rules.callers_are_others,
        _backend_rules.backend_image_is_known,
        _backend_rules.application_has_a_database,
        _backend_rules.rules_have_a_reader,
        _backend_rules.rules_choose_among_the_jobs,
    ),
    Database: (
        _backend_rules.database_version_exists,
        _backend_rules.database_keys_are_of_its_service,
        _backend_rules.database_capacity_exists,
        _backend_rules.database_capacity_has_room,
        _backend_rules.database_instance_exists,
        _backend_rules.database_storage_exists,
        _backend_rules.backups_can_be_kept,
    ),
    Pipeline: (
        _pipeline_rules.connection_can_be_used,
        _pipeline_rules.connection_is_of_the_partition,
        _pipeline_rules.waves_stand_together,
        _pipeline_rules.stages_are_there,
        _pipeline_rules.pipeline_has_room,
        _pipeline_rules.stages_have_names_of_their_own,
        _pipeline_rules.stages_deploy_a_file_each,
        _pipeline_rules.own_stage_states_what_the_file_does,
    ),
    Cluster: (
        _hyperpod_rules.hyperpod_has_nodes,
        _hyperpod_rules.hyperpod_groups_fit,
        _list_rules.names_are_unique,
        _list_rules.values_are_unique,
        _list_rules.claims_are_unique,
        _storage_rules.exports_are_apart,
        _list_rules.shards_have_names_of_their_own,
        _list_rules.fallbacks_have_names_of_their_own,
        _list_rules.managed_node_groups_fit,
        _purchase_rules.reservations_are_named_once,
        _block_rules.reservations_are_not_shared,
        _block_rules.selectors_find_one_block,
        _list_rules.controllers_have_nodes,
    ),
}


def read_document(document: Document) -> Reading:
    """Return what could be read of ``document``, with every mistake in it."""
    reader = Reader()
    cluster = reader.model(Cluster, document.value)
    reading = Reading(
        document=document,
        cluster=cluster if isinstance(cluster, Cluster) else None,
        parts=tuple(reader.parts),
        known=reader.known,
    )
    return replace(reading, mistakes=(*reader.mistakes, *reading.judge(RULES)))


def check(reading: Reading) -> Cluster:
    """Return the cluster that was read.

    Raises:
        ConfigError: The file has mistakes; one line for each, in the order of the file.
    """
    if reading.mistakes or reading.cluster is None:
        raise reading.refusal(reading.mistakes)
    return reading.cluster
