"""The tests that `make test-changed` runs for a diff."""

import subprocess
from pathlib import Path

import pytest

from tools import changed

_FILES = {
    "ultrascale/plan/pools.py": "",
    "ultrascale/plan/cluster.py": "from ultrascale.plan import pools",
    "ultrascale/parts/kueue/job.py": "",
    "ultrascale/catalog/offers.py": "TABLE = read('offers.csv')",
    "ultrascale/catalog/offers.csv": "",
    "clusters/trainium.yaml": "",
    "docs/serving.md": "",
    "tests/conftest.py": "",
    "tests/support/clusters.py": "FILE = ROOT / 'clusters/trainium.yaml'",
    "tests/plan/test_pools.py": "from ultrascale.plan.pools import plan",
    "tests/plan/test_cluster.py": "from ultrascale.plan import cluster",
    "tests/jobs/test_kueue_job.py": "PART = load('kueue')",
    "tests/catalog/test_offers.py": "import ultrascale.catalog.offers",
    "tests/manifests/test_charts.py": "from tests.support.clusters import FILE",
    "tests/docs/test_pages.py": "PAGES = ROOT.glob('docs/*.md')",
    "tests/titan/test_loss.py": "import ultrascale.plan.pools",
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A small product with its tests."""
    for name, text in _FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def lines(root: Path, *paths: str) -> list[str]:
    return [str(choice) for choice in changed.choices(root, paths)]


@pytest.mark.parametrize(
    ("path", "tests"),
    [
        ("tests/plan/test_pools.py", ["tests/plan/test_pools.py: changed"]),
        (
            "ultrascale/plan/pools.py",
            [
                "tests/plan/test_pools.py: imports ultrascale/plan/pools.py",
                "tests/plan/test_cluster.py: in 2 steps imports ultrascale/plan/pools.py",
            ],
        ),
        # Its part is imported by name.
        (
            "ultrascale/parts/kueue/job.py",
            ["tests/jobs/test_kueue_job.py: is named like ultrascale/parts/kueue/job.py"],
        ),
        (
            "ultrascale/catalog/offers.csv",
            ["tests/catalog/test_offers.py: imports ultrascale/catalog/offers.csv"],
        ),
        (
            "clusters/trainium.yaml",
            ["tests/manifests/test_charts.py: imports clusters/trainium.yaml"],
        ),
        ("docs/serving.md", ["tests/docs/test_pages.py: names docs/serving.md"]),
        ("pylock.toml", []),
    ],
)
def test_a_changed_file_leads_to_the_tests_that_it_can_break(
    root: Path, path: str, tests: list[str]
) -> None:
    assert lines(root, path) == tests


def test_a_conftest_leads_to_every_test_around_it(root: Path) -> None:
    reached = {choice.test for choice in changed.choices(root, ["tests/conftest.py"])}
    tests = {name for name in _FILES if "/test_" in name}
    assert reached == tests - {"tests/titan/test_loss.py"}


def test_a_test_of_two_changes_runs_once_for_the_nearer(root: Path) -> None:
    assert lines(root, "ultrascale/plan/pools.py", "ultrascale/plan/cluster.py") == [
        "tests/plan/test_cluster.py: imports ultrascale/plan/cluster.py",
        "tests/plan/test_pools.py: imports ultrascale/plan/pools.py",
    ]


def test_what_is_farther_off_waits_for_all_tests_unless_nothing_is_nearer(root: Path) -> None:
    near = changed.choices(root, ["ultrascale/plan/pools.py"])
    assert changed.within(near, 1) == near[:1]
    assert changed.within(near[1:], 1) == near[1:]


def test_changed_is_what_differs_from_the_branch_s_begin_committed_or_not(root: Path) -> None:
    def git(*words: str) -> None:
        identity = ("-c", "user.name=a", "-c", "user.email=a@example.com")
        subprocess.run(["git", *identity, *words], cwd=root, check=True, capture_output=True)

    git("init", "--initial-branch=main")
    git("add", ".")
    git("commit", "--message=begin")
    git("update-ref", "refs/remotes/origin/main", "HEAD")
    git("rm", "docs/serving.md")
    git("commit", "--message=page")
    (root / "ultrascale/plan/pools.py").write_text("NODES = 1")
    (root / "ultrascale/plan/nodes.py").write_text("")

    uncommitted = ["ultrascale/plan/nodes.py", "ultrascale/plan/pools.py"]
    assert changed.changed_files(root, None) == ["docs/serving.md", *uncommitted]
    assert changed.changed_files(root, "HEAD") == uncommitted
