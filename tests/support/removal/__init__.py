"""Removes parts of the product one at a time, and shows whether the tests miss them.

`python -m tests.support.removal RESULTS` removes all rules, all functions of the guard that say
something or nothing, and one part of 300 functions that render: a keyword argument or a key is
dropped, or a condition turned round. Each is taken out of a process forked from one that has
collected the tests. The tests that reached the part run in it, the cheapest first, until one fails.
"""
