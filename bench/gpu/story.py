# SPDX-License-Identifier: Apache-2.0
"""Adds to a conformance report whether a trained model wrote the expected tokens.

    story.py CONFORMANCE.json GOT.json STDERR.txt WANT.json

GOT and WANT are what `lathe generate --json` prints, WANT with `--logprobs 2`. Sums round otherwise
on another machine: where the reference finds its two likeliest tokens within NEAR_TIE of each other
the other one is right as well, and what follows it is another text.
"""

import json
import sys
from pathlib import Path

NEAR_TIE = 1e-3  # of natural logarithms of probabilities, in f32


def judged(got, want):
    """(passed, what to say)."""
    for i, (ours, theirs) in enumerate(zip(got["ids"], want["ids"])):
        if ours == theirs:
            continue
        first, second = want["logprobs"][i]["likeliest"][:2]
        gap = first["logprob"] - second["logprob"]
        if ours == second["id"] and gap < NEAR_TIE:
            return True, f"the expected tokens up to a tie at token {i} (by {gap:.1e})"
        return False, f"token {i} is {ours}, expected {theirs}; the second likeliest is {gap:.1e} below"
    if len(got["ids"]) != len(want["ids"]):
        return False, f"{len(got['ids'])} tokens, expected {len(want['ids'])}"
    return True, f"the {len(want['ids'])} expected tokens"


def main():
    report, got, errors, want = (Path(argument) for argument in sys.argv[1:])
    result = json.loads(report.read_text()) if report.exists() else {"check": "conformance"}
    written = got.read_text()
    passed, said = judged(json.loads(written), json.loads(want.read_text())) if written else (False, "no text")
    result["story"] = {"passed": passed, "said": said}
    if not passed:
        result["story"] |= {"got": written, "stderr": errors.read_text()[-1000:]}
        result["outcome"] = "failed"
    report.write_text(json.dumps(result, indent=1) + "\n")
    print(f"story: {said}")
    return not passed


if __name__ == "__main__":
    sys.exit(main())
