import pytest

from ultrascale.catalog import lustre
from ultrascale.errors import CatalogError


@pytest.mark.parametrize("tier", lustre.THROUGHPUT_TIERS_MBPS_PER_TIB)
def test_sizes_without_efa_are_1200_or_steps_of_2400(tier: int) -> None:
    sizes = (-2400, 0, 600, 1200, 2400, 3600, 4800, 4801, 7200, 100_800)
    legal = [size for size in sizes if lustre.is_capacity(size, tier=tier, efa=False)]
    assert legal == [1200, 2400, 4800, 7200, 100_800]


@pytest.mark.parametrize(("tier", "step"), [(1000, 4800), (500, 9600), (250, 19200), (125, 38400)])
def test_sizes_with_efa_start_at_the_step_of_their_tier(tier: int, step: int) -> None:
    for count in (1, 2, 7):
        assert lustre.is_capacity(step * count, tier=tier, efa=True)
    for wrong in (0, 1200, step // 2, step + 1200, step + 2400):
        assert not lustre.is_capacity(wrong, tier=tier, efa=True)


@pytest.mark.parametrize(
    ("capacity_gib", "tier", "efa", "nearest"),
    [
        (0, 250, False, (1200,)),
        (1000, 250, False, (1200,)),
        (1200, 250, False, (1200,)),
        (2000, 250, False, (1200, 2400)),
        (3600, 250, False, (2400, 4800)),
        (5000, 1000, False, (4800, 7200)),
        (1200, 1000, True, (4800,)),
        (10_000, 1000, True, (9600, 14_400)),
        (50_000, 125, True, (38_400, 76_800)),
    ],
)
def test_wrong_size_is_answered_with_its_neighbours(
    capacity_gib: int, tier: int, efa: bool, nearest: tuple[int, ...]
) -> None:
    assert lustre.nearest_capacities(capacity_gib, tier=tier, efa=efa) == nearest


@pytest.mark.parametrize("tier", lustre.THROUGHPUT_TIERS_MBPS_PER_TIB)
@pytest.mark.parametrize("efa", [True, False])
def test_sizes_offered_instead_are_legal(tier: int, efa: bool) -> None:
    for asked in range(1, 60_000, 777):
        for size in lustre.nearest_capacities(asked, tier=tier, efa=efa):
            assert lustre.is_capacity(size, tier=tier, efa=efa)


def test_throughput_tier_that_does_not_exist_is_refused() -> None:
    with pytest.raises(CatalogError) as raised:
        lustre.is_capacity(1200, tier=200, efa=False)

    assert str(raised.value) == (
        "unknown throughput tier, got 200 MB/s per TiB; use one of 125, 250, 500, 1000"
    )


def test_clients_and_servers_meet_on_all_lustre_ports() -> None:
    ports = {port for first, last in lustre.PORT_RANGES for port in range(first, last + 1)}

    assert ports == {988, 1018, 1019, 1020, 1021, 1022, 1023}
