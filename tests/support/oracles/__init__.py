"""Second statements of what the product decides, which share nothing of its own reasoning.

`addresses` tries every order of launches and ends on small subnets; `advice` states AWS's rules for
buying capacity anew, from its pages. Properties compare the product's answers with theirs.
"""
