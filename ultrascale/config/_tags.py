"""EC2 tags, as they may stand in the cluster file.

Source: https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/Using_Tags.html#tag-restrictions
"""

from collections.abc import Mapping
from typing import Annotated

from pydantic import Field

from ultrascale.config._base import matching

_CHARACTERS = "letters, digits, spaces and . : / = + - @ _"

TagKey = Annotated[
    str,
    matching(r"[\w .:/=+@-]{1,128}", "not the key of an EC2 tag", f"write up to 128 {_CHARACTERS}"),
]
TagValue = Annotated[
    str,
    matching(
        r"[\w .:/=+@-]{0,256}", "not the value of an EC2 tag", f"write up to 256 {_CHARACTERS}"
    ),
]
# A node class takes an asterisk for any value, which may find a reservation of somebody else's.
_SelectedValue = Annotated[
    str,
    matching(
        r"[\w .:/=+@-]{1,256}",
        "not a value that one reservation can be selected by",
        f"write the tag's value: 1 to 256 {_CHARACTERS}",
    ),
]
SelectorTags = Annotated[Mapping[TagKey, _SelectedValue], Field(min_length=1)]
