"""The part of the mirror."""

from collections.abc import Sequence
from pathlib import Path

from ultrascale import config
from ultrascale.catalog import registries
from ultrascale.core.part import Part
from ultrascale.frozen import Frozen
from ultrascale.parts.mirror.lock import FILE, MirrorLock, read_mirror_lock
from ultrascale.parts.mirror.plan import MirrorCopies, Plan
from ultrascale.parts.mirror.section import FileKeys


class _Part(Part[FileKeys, Plan]):
    name = "mirror"
    section = FileKeys
    place = "images"
    record = FILE
    has_checks = True

    def read_record(self, folder: Path) -> MirrorLock:
        return read_mirror_lock(folder)

    def plan(self, cluster: config.Cluster, records: Sequence[Frozen]) -> Plan | None:
        section = cluster.section(FileKeys)
        if section is None or (location := section.mirror) is None:
            return None
        lock = next((record for record in records if isinstance(record, MirrorLock)), MirrorLock())
        registry = MirrorCopies(
            location=location,
            regional=registries.ecr_registry("", cluster.region),
            digests=lock.mirrors.get(location, {}),
            key="images.mirror",
        )
        return Plan(registry=registry, is_recorded=location in lock.mirrors)


PART = _Part()
