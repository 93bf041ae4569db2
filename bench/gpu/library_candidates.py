# SPDX-License-Identifier: Apache-2.0
"""Whether a library computed what it is a candidate for: library_candidates.py REPORT.json

REPORT is what `lathe-gpu-choices` wrote. A candidate that a library has to compute fails where that
is missing or declines, which is no error of the others: here it is one, and told in the report.
"""

import json
import sys
from pathlib import Path


def judged(report):
    """(passed, what to say)."""
    asked = [(p["problem"], c) for p in report.get("problems", []) for c in p.get("choices", [])
             if c["choice"].startswith("library")]
    if not asked:
        return False, f"no candidate of a library was measured: {report.get('error', 'none in the problems')}"
    failed = [f"{problem}: {c['error']}" for problem, c in asked if "error" in c]
    if failed:
        return False, f"{len(failed)} of {len(asked)} candidates of a library: {failed[0]}"
    return True, f"a library computed {len(asked)} candidates"


def main():
    path = Path(sys.argv[1])
    report = json.loads(path.read_text()) if path.exists() else {}
    passed, said = judged(report)
    report |= {"check": path.stem, "library": said}
    report["outcome"] = report.get("outcome", "failed") if passed else "failed"
    path.write_text(json.dumps(report, indent=1) + "\n")
    print(f"library: {said}")
    return not passed


if __name__ == "__main__":
    sys.exit(main())
