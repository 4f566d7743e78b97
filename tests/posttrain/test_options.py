"""Options that `submit` knows, held against TRL's own parsers."""

from recorded_options import RECORD, options_of, recorded

from ultrascale.parts.recipes.posttraining import known_options
from ultrascale_training.posttrain import METHODS


def test_the_record_is_what_the_parsers_of_the_installed_release_take() -> None:
    assert RECORD.read_text() == recorded(), "write it: python -m tests.posttrain.recorded_options"
    for method in METHODS:
        assert known_options(method) == options_of(method)
