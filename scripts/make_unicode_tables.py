#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes runtime/unicode_tables.cpp: the classes of characters by which Hugging Face's `tokenizers`
cuts and changes text, read off its own stages, one character after the other. Its tables are of
several versions of Unicode, each older or newer than that of another library.

Needs the package `tokenizers` (0.23.3 made the stored file); takes a minute.
"""
import pathlib

from tokenizers import normalizers, pre_tokenizers

OUT = pathlib.Path(__file__).resolve().parent.parent / "runtime" / "unicode_tables.cpp"
CHARACTERS = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]


def ranges(points):
    result = []
    for c in sorted(points):
        if result and result[-1][1] == c - 1:
            result[-1][1] = c
        else:
            result.append([c, c])
    return result


def changed(normalizer, to=None):
    made = ((c, normalizer.normalize_str(chr(c))) for c in CHARACTERS)
    return [c for c, text in made if text != chr(c) and (to is None or text == to)]


def bert(**on):
    off = dict(clean_text=False, handle_chinese_chars=False, strip_accents=False, lowercase=False)
    return normalizers.BertNormalizer(**{**off, **on})


def words(stage, text):
    return [word for word, _ in stage.pre_tokenize_str(text)]


def isolated(stage):
    return [c for c in CHARACTERS if words(stage, f"a{chr(c)}a") == ["a", chr(c), "a"]]


def lower_case():
    """[first, last, step, what to add]; U+0130 becomes two characters and is not among them."""
    lower, runs = normalizers.Lowercase(), []
    for c in changed(lower):
        made = lower.normalize_str(chr(c))
        if len(made) != 1:
            assert c == 0x130 and made == "i\u0307", hex(c)
            continue
        shift = ord(made) - c
        last = runs[-1] if runs else None
        step = c - last[1] if last else 0
        if last and last[3] == shift and step in (1, 2) and last[2] in (0, step):
            last[1], last[2] = c, step
        else:
            runs.append([c, c, 0, shift])
    return [[a, b, max(step, 1), shift] for a, b, step, shift in runs]


def scripts():
    """[first, last, number of the script]; what joins its neighbours whatever they are is left out."""
    stage = pre_tokenizers.UnicodeScripts()
    representatives, runs = ["a"], []
    for c in CHARACTERS:
        text = chr(c)
        if words(stage, f"a{text}\u03b1") == [f"a{text}", "\u03b1"] and words(stage, text + "\u03b1") == ["\u03b1"]:
            continue
        order = list(enumerate(representatives))
        if runs:
            order.insert(0, (runs[-1][2], representatives[runs[-1][2]]))
        script = next((i for i, one in order if len(words(stage, one + text)) == 1), None)
        if script is None:
            script = len(representatives)
            representatives.append(text)
        if runs and runs[-1][1] == c - 1 and runs[-1][2] == script:
            runs[-1][1] = c
        else:
            runs.append([c, c, script])
    return runs


def table(kind, name, comment, rows):
    def number(i, value):
        return f"0x{value:x}" if i < 2 else str(value)

    items = ["{" + ", ".join(number(i, v) for i, v in enumerate(row)) + "}" for row in rows]
    text = f"\n// {comment}\nconstexpr {kind} k{name}[] = {{\n"
    line = "   "
    for item in items:
        if len(line) + len(item) + 2 > 100:
            text += line + "\n"
            line = "   "
        line += f" {item},"
    return text + line + "\n};\n"


def main():
    word = pre_tokenizers.Whitespace()
    tables = [
        ("CharacterRange", "Marks", "Combining marks that StripAccents takes away.",
         ranges(changed(normalizers.StripAccents(), ""))),
        ("CharacterRange", "NonspacingMarks", "Marks that BertNormalizer takes away.",
         ranges(changed(bert(strip_accents=True), ""))),
        ("CharacterRange", "Control", "What BertNormalizer's clean_text takes away.",
         ranges(changed(bert(clean_text=True), ""))),
        ("CharacterRange", "Punctuation", "What Punctuation and BertPreTokenizer cut out.",
         ranges(isolated(pre_tokenizers.Punctuation()))),
        ("CharacterRange", "Numeric", "What Digits cuts out.",
         ranges(isolated(pre_tokenizers.Digits(individual_digits=True)))),
        ("CharacterRange", "Word", "\\w of Whitespace and of added tokens.",
         ranges(c for c in CHARACTERS if words(word, f"a{chr(c)}a") == [f"a{chr(c)}a"])),
        ("CharacterRange", "Decomposed", "What NFKD changes.", ranges(changed(normalizers.NFKD()))),
        ("LowerCase", "LowerCase", "What Lowercase changes.", lower_case()),
        ("ScriptRange", "Scripts", "Scripts of UnicodeScripts.", scripts()),
    ]
    text = ('// SPDX-License-Identifier: Apache-2.0\n'
            '// Written by scripts/make_unicode_tables.py. Do not edit.\n'
            '#include "runtime/unicode_tables.h"\n\n// clang-format off\nnamespace lathe::unicode {\nnamespace {\n')
    text += "".join(table(*t) for t in tables)
    text += "\n}  // namespace\n\n"
    for kind, name, _, _ in tables:
        text += f"std::span<const {kind}> {name[0].lower() + name[1:]}() {{ return k{name}; }}\n"
    text += "\n}  // namespace lathe::unicode\n"
    OUT.write_text(text, encoding="utf-8")
    print(f"{OUT.name}: {len(text)} bytes, {text.count(chr(10))} lines")


if __name__ == "__main__":
    main()
