"""One run of the product in an account of its own, from bootstrap to an empty inventory.

Its commands are those of a user: `ultrascale`, and `aws` for what it reads. Nothing of it has run
in an account yet; tests run it against doubles. [How to use it](../../docs/live.md).
"""
