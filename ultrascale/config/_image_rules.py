"""What the images of a cluster must be to each other."""

from collections.abc import Iterator, Mapping

from ultrascale.config._errors import Mistake, near


def builds_have_a_repository(
    builds: Mapping[str, str], repositories: tuple[str, ...]
) -> Iterator[Mistake]:
    for name in builds:
        if name not in repositories:
            todo = near(name, repositories)
            yield Mistake(("builds", name), "not one of images.repositories", todo, repr(name))
