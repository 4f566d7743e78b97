"""Values of templates, as `diff` shows them."""

from ultrascale.guard.templates import shown_change


def test_a_change_deep_in_a_long_value_shows_what_differs() -> None:
    """Launch templates that begin alike were cut until both sides looked the same."""
    user_data = "spec: " * 200
    template = {"UserData": user_data, "ImageId": "ami-1", "Tags": user_data}

    old, new = shown_change(template, template | {"ImageId": "ami-2"})

    assert "ami-1" in old
    assert "ami-2" in new
    assert max(len(old), len(new)) <= 82


def test_a_change_at_either_end_shows_what_differs() -> None:
    same = "x" * 500

    assert shown_change(f"a{same}", f"b{same}") == (f"a{'x' * 20}…", f"b{'x' * 20}…")
    assert shown_change(f"{same}a", f"{same}b") == (f"…{'x' * 20}a", f"…{'x' * 20}b")
    assert shown_change(same, None) == (f"{'x' * 80}…", "nothing")


def test_short_values_are_shown_whole() -> None:
    assert shown_change({"Version": 3}, {"Version": 4}) == ("{Version: 3}", "{Version: 4}")
