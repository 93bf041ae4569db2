# SPDX-License-Identifier: Apache-2.0
"""A planted bug: one edit of a source file, and the tests that must fail with it."""
from dataclasses import dataclass


@dataclass(frozen=True)
class Mutant:
    """One bug.

    name:  short, of the form room/what; the tables are sorted by room.
    file:  the source file, from the top of the repository.
    old:   text that occurs exactly once in it; new takes its place.
    what:  what is wrong then, in words.
    tests: in the order in which they are run, until one fails:
             'sampler_test'            a GoogleTest program
             'cli_test:Bench.*'        with a filter
             'lit:fuse_linear'         lit files whose name matches
             'ctest:golden/greedy'     an entry of CTest
             'pytest:python/tests/test_graph.py::test_items_are_exact'
    """
    name: str
    file: str
    old: str
    new: str
    what: str
    tests: tuple[str, ...]
