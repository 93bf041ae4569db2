#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares Lathe's tokenizers with Hugging Face's `tokenizers`: the same ids for every string, the
same text back, and a time that grows with the text alone.

    compare.py ENCODE_LINES [--strings 100000] [--only bpe,unigram,...] [--folder KEEP]

Trains a tokenizer of each kind on text made here (20 scripts, code, emoji), encodes strings of the
same sorts, random characters, random bytes read as UTF-8 and texts of a megabyte without a space,
with and without special tokens, alone and in pairs. Characters that this Python's Unicode does not know
are left out: patterns see those by the version of Oniguruma that is installed. Needs the packages `tokenizers` and, for a map
of SentencePiece's rules, `sentencepiece`; exit status 77 without the first.
"""
import argparse
import collections
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import unicodedata

try:
    from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
except ImportError as missing:
    if __name__ != "__main__":
        raise
    print(f"tokenizers: left out: {missing}; pip install tokenizers sentencepiece")
    sys.exit(77)

SCRIPTS = {  # letters of words, by range
    "latin": "a-z A-Z", "french": "a-z é è ê à ç ù î ô œ", "vietnamese": "a-z ă â đ ê ô ơ ư ạ ả ấ ầ ậ ế ệ ộ",
    "greek": "α-ω Α-Ω ά έ ή ί ό ύ ώ", "cyrillic": "а-я А-Я ё ї є", "armenian": "ա-ֆ", "hebrew": "א-ת ְ-ׇ",
    "arabic": "ء-ي ً-ْ", "devanagari": "अ-ह ा-्", "bengali": "অ-হ া-্", "tamil": "அ-ஹ ா-்", "telugu": "అ-హ ా-్",
    "thai": "ก-ฮ ะ-ฺ เ-์", "lao": "ກ-ຮ ະ-ູ", "tibetan": "ཀ-ཀྵ ཱ-ཱྀ", "georgian": "ა-ჰ", "ethiopic": "ሀ-ፚ",
    "khmer": "ក-ឳ ា-់", "hangul": "가-힣 ᄀ-ᇿ", "kana": "ぁ-ん ァ-ヶ ー", "han": "一-龥 㐀-䶵 豈-龎", "cherokee": "Ꭰ-Ᏼ"}
CODE = ["def f(x):\n    return x**2  # square\n", "for (int i = 0; i < n; ++i) { a[i] += b[i]; }", "<div class=\"x\">",
        "SELECT * FROM t WHERE id != 42;", "{\"key\": [1, 2.5e-3, null]}", "\tif err != nil {\n\t\treturn err\n\t}\n",
        "std::vector<int> v{1,2,3};", "https://example.org/a?b=c&d=%20", "x = \"it's\" + 'don''t'", "\\frac{a}{b}"]
ENGLISH = """the quick brown fox jumps over lazy dogs while seven wizards boxed it's don't we'll they've I'm he'd
unbelievable tokenization running runner internationalization 1 12 123 1234 2024 3.14 42nd A B C USA NASA""".split()
EMOJI = ["😀", "👍🏽", "👨‍👩‍👧‍👦", "🇫🇷🇩🇪", "❤️", "🏳️‍🌈", "✨", "¯\\_(ツ)_/¯", "⚡︎"]
ODD = ["ﬁne", "①②", "Ⅷ", "½", "٣٤٥", "e\u0301\u0323", "ｆｕｌｌ　ｗｉｄｔｈ", "İI ıi ß ẞ", "\u00ad", "\ufeff", "\ufffd", "\x00", "\x07",
       "\u200b", "\u200d", "Å Å", "ﷺ", "㍿", "ǅ", "ΑΣ", "\U0001d400", "\ue000", "\U0010ffff", "##ing", "▁", "Ġ", "[UNK]x"]
SPACES = [" ", " ", " ", "  ", "   ", "\t", "\n", "\r\n", "\n\n", "\u00a0", "\u3000", "\u2009", "\u2028", "\x85", ""]
SPECIAL = ["[CLS]", "[SEP]", "[MASK]", "<s>", "</s>", "<unk>", "<|end|>", "[mask]"]
PUNCTUATION = list("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~") + ["—", "…", "“", "”", "¿", "。", "、", "、", "؟", "।", "§", "«", "»"]


def letters(description):
    result = []
    for part in description.split():
        first, last = (part[0], part[-1]) if len(part) > 2 and "-" in part else (part[0], part[0])
        result += [chr(c) for c in range(ord(first), ord(last) + 1)]
    return result


LETTERS = {name: letters(text) for name, text in SCRIPTS.items()}
LETTERS["english"] = LETTERS["latin"]


def word(rng, script):
    return "".join(rng.choice(LETTERS[script]) for _ in range(rng.randint(1, 9)))


def sentence(rng, lexicon):
    script = rng.choice(list(lexicon))
    parts = []
    for _ in range(rng.randint(1, 14)):
        kind = rng.random()
        if kind < 0.72:
            parts.append(rng.choice(lexicon[script]) if rng.random() < 0.85 else word(rng, script))
        elif kind < 0.80:
            parts.append(rng.choice(PUNCTUATION))
        elif kind < 0.84:
            parts.append(rng.choice(EMOJI))
        elif kind < 0.88:
            parts.append(rng.choice(CODE))
        elif kind < 0.92:
            parts.append(str(rng.randint(0, 10 ** rng.randint(1, 9))))
        elif kind < 0.96:
            parts.append(rng.choice(ODD))
        else:
            parts.append(rng.choice(ENGLISH))
        parts.append("" if script in ("han", "kana", "thai") and rng.random() < 0.8 else rng.choice(SPACES))
    return "".join(parts)


def make_lexicon(rng):
    lexicon = {name: [word(rng, name) for _ in range(150)] for name in SCRIPTS}
    lexicon["english"] = ENGLISH * 3
    return lexicon


def strings(rng, lexicon, count):
    for i in range(count):
        kind = i % 10
        if kind < 6:
            text = sentence(rng, lexicon)
        elif kind == 6:
            text = rng.choice(CODE) + sentence(rng, lexicon)
        elif kind == 7:
            ranges = (0x250, 0x3000, 0x20000, 0x110000)
            text = "".join(c for c in (chr(rng.randrange(rng.choice(ranges))) for _ in range(rng.randint(1, 30)))
                           if unicodedata.category(c) not in ("Cs", "Cn"))
        elif kind == 8:
            text = bytes(rng.randrange(256) for _ in range(rng.randint(1, 40))).decode("utf-8", "replace")
        else:
            text = sentence(rng, lexicon) + rng.choice(SPECIAL) + rng.choice(SPACES) + sentence(rng, lexicon)
        yield text


def template(first, last, ids):
    return processors.TemplateProcessing(
        single=f"{first}:0 $A:0 {last}:0", pair=f"{first}:0 $A:0 {last}:0 $B:1 {last}:1",
        special_tokens=[(first, ids(first)), (last, ids(last))])


def byte_level_bpe(text):
    t = Tokenizer(models.BPE())
    t.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
                                   r"|\s*[\r\n]+|\s+(?!\S)|\s+"), "isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    t.decoder = decoders.ByteLevel()
    t.train_from_iterator(text, trainers.BpeTrainer(
        vocab_size=6000, special_tokens=["<s>", "</s>", "<|end|>"], show_progress=False,
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet())))
    t.post_processor = processors.RobertaProcessing(("</s>", 1), ("<s>", 0))
    return t


def sentence_piece_bpe(text):
    trained = Tokenizer(models.BPE(unk_token="<unk>"))
    trained.pre_tokenizer = pre_tokenizers.Metaspace()
    trained.train_from_iterator(text, trainers.BpeTrainer(
        vocab_size=4000, limit_alphabet=600, special_tokens=["<unk>", "<s>", "</s>"], show_progress=False))
    model = json.loads(trained.to_str())["model"]
    tokens = ["<unk>", "<s>", "</s>"] + [f"<0x{b:02X}>" for b in range(256)]
    tokens += [token for token in model["vocab"] if token not in tokens]
    t = Tokenizer(models.BPE(vocab={token: i for i, token in enumerate(tokens)},
                             merges=[tuple(m) for m in model["merges"]], unk_token="<unk>", fuse_unk=True,
                             byte_fallback=True))
    t.add_special_tokens(["<unk>", "<s>", "</s>"])
    t.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    t.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(),
                                   decoders.Strip(" ", 1, 0)])
    t.post_processor = template("<s>", "</s>", t.token_to_id)
    return t


def suffix_bpe(text):
    """As CLIP's."""
    t = Tokenizer(models.BPE(unk_token="<unk>", end_of_word_suffix="</w>", continuing_subword_prefix=""))
    t.normalizer = normalizers.Sequence([normalizers.NFC(), normalizers.Replace(Regex(r"\s+"), " "), normalizers.Lowercase()])
    t.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(r"'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+"), "removed", invert=True),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    t.decoder = decoders.BPEDecoder("</w>")
    t.train_from_iterator(text, trainers.BpeTrainer(
        vocab_size=3000, special_tokens=["<unk>", "<s>", "</s>"], end_of_word_suffix="</w>", show_progress=False,
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet())))
    return t


def word_piece(text, **bert):
    t = Tokenizer(models.WordPiece(unk_token="[UNK]", max_input_chars_per_word=100))
    t.normalizer = normalizers.BertNormalizer(**bert)
    t.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    t.decoder = decoders.WordPiece("##", cleanup=True)
    t.train_from_iterator(text, trainers.WordPieceTrainer(
        vocab_size=8000, limit_alphabet=2500, special_tokens=["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"],
        show_progress=False))
    t.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    return t


def charsmap(text, folder):
    """The rules that SentencePiece puts into its models (nmt_nfkc), or None without that package."""
    try:
        import sentencepiece
    except ImportError:
        return None
    source = folder / "sentences.txt"
    source.write_text("\n".join(t.replace("\n", " ").replace("\0", "") for t in text[:2000]), encoding="utf-8")
    sentencepiece.SentencePieceTrainer.Train(
        input=str(source), model_prefix=str(folder / "spm"), vocab_size=400, hard_vocab_limit=False,
        character_coverage=0.98, model_type="char", normalization_rule_name="nmt_nfkc", minloglevel=2)
    return field(field((folder / "spm.model").read_bytes(), 3), 2)


def field(message, number):
    """The last field `number` of bytes in a protocol buffer."""
    at, found = 0, None

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = message[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value
    while at < len(message):
        key = varint()
        if key & 7 == 0:
            varint()
        elif key & 7 == 1:
            at += 8
        elif key & 7 == 5:
            at += 4
        else:
            size = varint()
            if key >> 3 == number:
                found = message[at:at + size]
            at += size
    return found


def unigram(text, fallback, map_bytes=None):
    t = Tokenizer(models.Unigram())
    steps = [normalizers.Precompiled(map_bytes)] if map_bytes else [normalizers.Nmt(), normalizers.NFKC()]
    t.normalizer = normalizers.Sequence(steps + [normalizers.Replace(Regex(" {2,}"), " "), normalizers.Strip(False, True)])
    t.pre_tokenizer = pre_tokenizers.Metaspace()
    t.decoder = decoders.Metaspace()
    letters = collections.Counter("".join(text)).most_common(1500)
    frequent = {letter for letter, _ in letters}
    t.train_from_iterator(["".join(c for c in line if c in frequent) for line in text], trainers.UnigramTrainer(
        vocab_size=5000, special_tokens=["<s>", "</s>", "<unk>"], unk_token="<unk>", show_progress=False))
    if fallback:
        data = json.loads(t.to_str())
        known = {token for token, _ in data["model"]["vocab"]}
        data["model"]["vocab"] += [[f"<0x{b:02X}>", 0.0] for b in range(256) if f"<0x{b:02X}>" not in known]
        data["model"]["byte_fallback"] = True
        t = Tokenizer.from_str(json.dumps(data))
        t.decoder = decoders.Sequence([decoders.ByteFallback(), decoders.Metaspace()])
    t.post_processor = template("<s>", "</s>", t.token_to_id)
    return t


def word_level(text):
    t = Tokenizer(models.WordLevel(unk_token="[UNK]"))
    t.normalizer = normalizers.Sequence([normalizers.NFKD(), normalizers.StripAccents(), normalizers.Lowercase(),
                                         normalizers.Strip()])
    t.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Whitespace(), pre_tokenizers.UnicodeScripts(),
                                               pre_tokenizers.Digits(individual_digits=False)])
    t.train_from_iterator(text, trainers.WordLevelTrainer(vocab_size=5000, special_tokens=["[UNK]"], show_progress=False))
    return t


def kinds(text, folder):
    rules = charsmap(text, folder)
    result = {
        "bpe_bytes": lambda: byte_level_bpe(text), "bpe_metaspace": lambda: sentence_piece_bpe(text),
        "bpe_suffix": lambda: suffix_bpe(text),
        "unigram": lambda: unigram(text, False), "unigram_bytes": lambda: unigram(text, True),
        "word_piece": lambda: word_piece(text), "word_piece_cased": lambda: word_piece(text, lowercase=False, strip_accents=None),
        "word_level": lambda: word_level(text)}
    if rules:
        result["unigram_charsmap"] = lambda: unigram(text, False, rules)
    return result


def ours(program, file, texts, pairs):
    lines = "".join(json.dumps([t, p]) + "\n" for t, p in zip(texts, pairs))
    # The processor's time, whatever else the machine does meanwhile.
    before = os.times()
    done = subprocess.run([program, file], input=lines.encode(), stdout=subprocess.PIPE, check=True)
    after = os.times()
    seconds = after.children_user + after.children_system - before.children_user - before.children_system
    return [json.loads(line) for line in done.stdout.splitlines()], seconds


def compare(name, tokenizer, program, folder, texts, pairs):
    file = folder / f"{name}.json"
    file.write_text(tokenizer.to_str(), encoding="utf-8")
    answers, seconds = ours(program, str(file), texts, pairs)
    assert len(answers) == len(texts), f"{name}: {len(answers)} answers"
    special = tokenizer.encode_batch(texts)
    tokenizer.encode_special_tokens = True
    plain = tokenizer.encode_batch(texts, add_special_tokens=False)
    tokenizer.encode_special_tokens = False
    wrong = 0
    for i, (text, pair, got) in enumerate(zip(texts, pairs, answers)):
        decoded = tokenizer.decode(special[i].ids)
        expected = [special[i].ids, plain[i].ids, decoded, decoded, None, None]
        if pair is not None:
            both = tokenizer.encode(text, pair)
            expected[4:] = [both.ids, both.type_ids]
        if got == expected:
            continue
        wrong += 1
        if wrong <= 5:
            print(f"{name}: {text!r}\n  expected {expected}\n  got      {got}", file=sys.stderr)
    print(f"{name}: {len(texts)} strings, {sum(len(e.ids) for e in special)} tokens, {wrong} differ; ours {seconds:.1f} s")
    return wrong


def check_time(name, tokenizer, program, folder):
    """Texts without a space: the same ids, and four times the text takes less than seven times as long."""
    alphabet = "abcdefghijklmnopqrstuvwxyz\u0430\u4e2d"
    wrong = 0
    for title, make in [("one letter", lambda n: "a" * n), ("letters", lambda n: "".join(
            alphabet[(i * i + i // 7) % len(alphabet)] for i in range(n))), ("marks", lambda n: "e" + "\u0301\u0323" * (n // 2)),
            ("signs", lambda n: "#" * n)]:
        times = []
        for size in (1 << 18, 1 << 20):
            answers, seconds = ours(program, str(folder / f"{name}.json"), [make(size)], [None])
            times.append(seconds)
        slow = times[1] > 7 * times[0] + 0.2
        differs = answers[0][0] != tokenizer.encode(make(size)).ids
        wrong += slow + differs
        print(f"{name}: {title}: {times[0]:.2f} s for 256 Ki characters, {times[1]:.2f} s for 1 Mi"
              f"{': TOO SLOW' if slow else ''}{': OTHER IDS' if differs else ''}")
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("--strings", type=int, default=100000)
    parser.add_argument("--only")
    parser.add_argument("--folder", type=pathlib.Path)
    parser.add_argument("--no-time", action="store_true")
    flags = parser.parse_args()
    folder = flags.folder or pathlib.Path(tempfile.mkdtemp())
    folder.mkdir(parents=True, exist_ok=True)
    rng = random.Random(11)
    lexicon = make_lexicon(rng)
    training = [sentence(rng, lexicon) for _ in range(12000)]
    texts = ["", " ", "a", "\n", *ODD, *SPECIAL, *EMOJI, *CODE, "a" * 300, " " * 300, "x" * 100000, "é" * 50000, "한" * 20000]
    texts += strings(rng, lexicon, max(0, flags.strings - len(texts)))
    pairs = [texts[i - 1] if i % 4 == 0 and i > 60 else None for i in range(len(texts))]
    wrong = 0
    for name, make in kinds(training, folder).items():
        if flags.only and name not in flags.only.split(","):
            continue
        kept = folder / f"{name}.json"
        tokenizer = Tokenizer.from_file(str(kept)) if kept.exists() else make()
        wrong += compare(name, tokenizer, flags.program, folder, texts, pairs)
        if not flags.no_time:
            wrong += check_time(name, tokenizer, flags.program, folder)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
