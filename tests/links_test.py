#!/usr/bin/env python3
"""Every relative link of the pages leads to a file of the tree.

Usage: links_test.py SOURCE_DIR
"""
import pathlib
import re
import sys

root = pathlib.Path(sys.argv[1])
broken = []
for page in [root / "README.md", *sorted(root.glob("docs/**/*.md"))]:
    for target in re.findall(r"\]\(([^)#\s]+)", re.sub(r"```.*?```", "", page.read_text(), flags=re.S)):
        if "://" not in target and not (page.parent / target).exists():
            broken.append(f"{page.relative_to(root)}: {target}")
print("\n".join(broken) or "links: all lead to files")
sys.exit(bool(broken))
