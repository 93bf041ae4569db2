# SPDX-License-Identifier: Apache-2.0
"""Adds to a conformance report whether a trained model wrote the expected words.

    story.py CONFORMANCE.json GOT.txt STDERR.txt WANT.txt
"""

import json
import sys
from pathlib import Path

report, got, errors, want = (Path(argument) for argument in sys.argv[1:])
result = json.loads(report.read_text()) if report.exists() else {"check": "conformance"}
same = got.read_text() == want.read_text()
result["story"] = {"same_text": same, "got": got.read_text(), "want": want.read_text()}
if not same:
    result["story"]["stderr"] = errors.read_text()[-1000:]
    result["outcome"] = "failed"
report.write_text(json.dumps(result, indent=1) + "\n")
print("story: the expected text" if same else "story: ANOTHER TEXT")
sys.exit(not same)
