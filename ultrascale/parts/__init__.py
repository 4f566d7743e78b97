"""Parts: subjects that a cluster may have, a folder each; `table` has their rows.

This package imports nothing, and nor does that of a part with a verb: the verb is loaded alone.
"""
