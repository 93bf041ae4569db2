# SPDX-License-Identifier: Apache-2.0
"""Lets `lathe generate` write stories and asks the generating grammar whether it knows the sentences.

usage: story_grammar_test.py LATHE MODEL SCRIPTS_FOLDER
"""

import json
import subprocess
import sys

lathe, model, scripts = sys.argv[1:]
sys.path.insert(0, scripts)
import story_grammar  # noqa: E402

PROMPTS = ["Once upon a time there was a", "There once was a", "In a small house near the",
           "On a sunny morning,", "Long ago,"]
total = known = 0
unknown = []
for prompt in PROMPTS:
    for temperature, seed in [("0", "0"), ("0.8", "1"), ("0.8", "2"), ("0.8", "3")]:
        command = [lathe, "generate", model, "-p", prompt, "-n", "220", "--temp", temperature,
                   "--top-k", "0", "--top-p", "1", "--seed", seed, "--json"]
        out = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        text = (prompt + out["text"]).strip()
        sentences = story_grammar.sentences(text)
        # The prompt's own words and a sentence cut off by -n are not the model's.
        for sentence in sentences[1:]:
            sentence = sentence.strip()
            total += 1
            if story_grammar.parses(sentence):
                known += 1
            else:
                unknown.append(sentence)
print(f"{known} of {total} sentences parse ({100 * known / total:.1f} %)")
for sentence in unknown[:20]:
    print("  unknown:", sentence)
sys.exit(0 if total >= 100 and known >= 0.95 * total else 1)
