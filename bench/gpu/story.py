# SPDX-License-Identifier: Apache-2.0
"""Adds to a conformance report whether a trained model writes the expected tokens.

    story.py CONFORMANCE.json WANT.json LATHE ARGUMENT...

WANT is what `lathe generate --json --logprobs 4` printed of the reference; `LATHE ARGUMENT...
--ids IDS -n COUNT` writes the tokens behind these. Sums round otherwise on another machine: where
the reference finds another token within NEAR_TIE of its likeliest one, that is right as well. What
follows it is another text, so the rest is written anew behind the reference's own token.
"""

import json
import subprocess
import sys
from pathlib import Path

# One step of bf16 between logits of 8 to 16, which those of a trained model's likeliest tokens are:
# differences of natural logarithms of probabilities are differences of logits.
NEAR_TIE = 2.0**-4
MOST_TIES = 8  # a text with more is not the reference's


def judged(want, write):
    """(passed, what to say). write(ids, count): so many greedy tokens behind `ids`."""
    expected, begin, ties = want["ids"], 0, []
    while begin < len(expected):
        got = write(want["prompt_ids"] + expected[:begin], len(expected) - begin)
        rest = expected[begin:]
        at = next((i for i, (ours, theirs) in enumerate(zip(got, rest)) if ours != theirs), None)
        if at is None:
            if len(got) != len(rest):
                return False, f"{begin + len(got)} tokens, expected {len(expected)}"
            break
        likeliest = {t["id"]: t["logprob"] for t in want["logprobs"][begin + at]["likeliest"]}
        gap = max(likeliest.values()) - likeliest.get(got[at], float("-inf"))
        if gap > NEAR_TIE:
            return False, (f"token {begin + at} is {got[at]}, expected {rest[at]}, which the reference finds "
                           f"likelier by {gap:.2g}")
        ties.append(f"{begin + at} by {gap:.2g}")
        if len(ties) > MOST_TIES:
            return False, f"more than {MOST_TIES} ties: {', '.join(ties)}"
        begin += at + 1
    apart = f", apart at ties: token {', '.join(ties)}" if ties else ""
    return True, f"the {len(expected)} expected tokens{apart}"


def main():
    report, want, command = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:]
    result = json.loads(report.read_text()) if report.exists() else {"check": "conformance"}
    errors = ""

    def write(ids, count):
        nonlocal errors
        done = subprocess.run([*command, "--ids", ",".join(map(str, ids)), "-n", str(count)],
                              capture_output=True, text=True)
        errors = done.stderr[-1000:]
        return json.loads(done.stdout)["ids"] if done.returncode == 0 else []

    passed, said = judged(json.loads(want.read_text()), write)
    result["story"] = {"passed": passed, "said": said}
    if not passed:
        result["story"]["stderr"] = errors
        result["outcome"] = "failed"
    report.write_text(json.dumps(result, indent=1) + "\n")
    print(f"story: {said}" + ("" if passed else f"\n{errors}"))
    return not passed


if __name__ == "__main__":
    sys.exit(main())
