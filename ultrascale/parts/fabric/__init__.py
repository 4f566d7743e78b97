"""Checks of nodes before a job: measurements between pairs of them, and diagnoses of each.

The modules `agent`, `logs`, `remote` and `rounds` are the program of the pods that measure, so they
import nothing but the standard library of Python 3.10 and each other: `plan` sends their source.
"""
