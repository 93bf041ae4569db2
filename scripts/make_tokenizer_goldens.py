#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/golden/tokenizer/: small tokenizers of each kind, trained on generated text, and what
Hugging Face's `tokenizers` makes of several hundred strings with them.

  gpt2.json, llama3.json   byte-level BPE          llama2.json   BPE of SentencePiece's kind
  bert.json                WordPiece               t5.json       Unigram
  gpt2_cases.json, ...     {"encode": [{text, ids, plain, decoded}], "decode": [{ids, text, full}]}
                           ids: special text allowed, template applied; plain: neither (left out if
                           equal to ids); decoded: of ids without special tokens (left out if equal
                           to text)
  stage_cases.json         [{patch, cases: [[text, ids, decoded]]}]: gpt2.json with other stages put in
  metaspace_cases.json     the same of llama2.json
  character_cases.json     the same of gpt2.json: stages that look at single characters
  decoder_cases.json       the same of bert.json: decoders
  pair_cases.json          [{file, patch, cases: [[text, second text, ids, type ids]]}]

Needs the packages `tokenizers` (0.23.3 made the stored files) and `sentencepiece` (0.2.1). Same files on
every run, but for llama2 and bert, where letters that are equally frequent compete for the alphabet.
"""
import base64
import json
import pathlib
import random
import sys
import tempfile

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers
from tokenizers import pre_tokenizers, processors, trainers

OUT = pathlib.Path(__file__).resolve().parent.parent / "tests" / "golden" / "tokenizer"
LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
          r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")

WORDS = """the a small red fox and its friend walked over hill river house when they found an old
key under tree It's don't we'll they've I'm he'd said quietly looked again never always because
through sunlight morning number 12 345 2024 3.14 x+y==z print(hello) return self.value <tag/>""".split()
FOREIGN = ["Größe", "façade", "naïve", "Ελλάδα", "Москва", "שלום", "مرحبا", "नमस्ते", "ไทยแลนด์", "日本語",
           "中文字符", "한국어", "Việt", "İstanbul", "ﬁne", "①②", "Ⅷ", "½", "٣٤٥", "e\u0301", "A\u030a", "ｆｕｌｌ",
           "\u1112\u1161\u11ab"]
EMOJI = ["😀", "👍🏽", "👨‍👩‍👧‍👦", "🇫🇷", "❤️", "🏳️‍🌈", "✨", "¯\\_(ツ)_/¯"]
SPACES = [" ", "  ", "   ", "\t", "\n", "\r\n", "\n\n", " \n ", "\u00a0", "\u3000", "\u2009", "       ",
          "\u200b", "\x0b\x0c", "\u2028"]
ODD = ["\x00", "\x7f", "\u00ad", "\ufeff", "\ufffd", "\U0010ffff", "\ue000", "_", "__init__", "'S", "'LL",
       "1234567", "12a34", "0x1F", "...", "!?!?", "—", "“quoted”", "\\n", "a\u200db", "\u0300"]


def training_text(rng):
    return [" ".join(rng.choice(WORDS) for _ in range(rng.randint(4, 14))) + rng.choice(".!?\n")
            for _ in range(1500)] + FOREIGN * 3


def strings(rng, specials):
    fixed = ["", " ", "\n", "a", " a", "a ", "Hello world", "Hello  world", "  two leading", "x" * 200, "ab" * 100,
             " " * 50, "\n" * 20, "é" * 40, "\u0301\u0301", "don't DON'T we'LL", "1 12 123 1234 12345",
             "a\r\nb\r\n\r\nc", "tab\tand\ttab", "".join(chr(c) for c in range(1, 256)),
             "".join(chr(c) for c in range(0x370, 0x3e0))]
    for s in specials:
        fixed += [s, s + s, f"a{s}b", f"a {s} b", f"  {s}\n x", s[:-1], f"{s}{s[1:]}", f"({s})", f"é{s}é",
                  s.upper(), f"_{s}", f"{s} {s}"]
    pools = [WORDS, WORDS, FOREIGN, EMOJI, SPACES, SPACES, ODD, specials]
    result = list(fixed)
    while len(result) < 430:
        parts = []
        for _ in range(rng.randint(1, 12)):
            parts.append(rng.choice(rng.choice(pools)))
            if rng.random() < 0.5:
                parts.append(" ")
        result.append("".join(parts))
    ranges = [(0x20, 0x7e), (0xa0, 0x24f), (0x370, 0x3ff), (0x400, 0x4ff), (0x5d0, 0x5ea), (0x900, 0x939),
              (0x3040, 0x30ff), (0x4e00, 0x5fff), (0xac00, 0xb000), (0x1f600, 0x1f64f), (0x2000, 0x206f),
              (0x300, 0x345)]
    while len(result) < 500:
        result.append("".join(chr(rng.randint(*rng.choice(ranges))) for _ in range(rng.randint(1, 25))))
    return result


def train(pre_tokenizer, specials, vocab):
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizer
    trainer = trainers.BpeTrainer(vocab_size=vocab, special_tokens=specials, show_progress=False,
                                  initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()))
    tokenizer.train_from_iterator(training_text(random.Random(7)), trainer)
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer


def gpt2():
    tokenizer = train(pre_tokenizers.ByteLevel(add_prefix_space=True), ["<|endoftext|>"], 520)
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
    tokenizer.add_tokens([
        AddedToken("<strip>", lstrip=True, rstrip=True, normalized=False),
        AddedToken("<left>", lstrip=True), AddedToken("<right>", rstrip=True),
        AddedToken("word", single_word=True, normalized=False),
        AddedToken("wordy", normalized=False), AddedToken("caf\u0065\u0301", normalized=True)])
    tokenizer.add_special_tokens([AddedToken("<|pad|>", lstrip=True), AddedToken("<|end", normalized=True)])
    return tokenizer


def llama3():
    pre = pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(LLAMA3), "isolated", invert=False),
                                   pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    tokenizer = train(pre, ["<|begin_of_text|>", "<|end_of_text|>"], 560)
    data = json.loads(tokenizer.to_str())
    data["model"]["ignore_merges"] = True
    # A word of its own that no merge builds shows that ignore_merges is obeyed.
    data["model"]["vocab"]["unmergeable"] = len(data["model"]["vocab"])
    tokenizer = Tokenizer.from_str(json.dumps(data))
    tokenizer.add_special_tokens(["<|eot_id|>", "<|start_header_id|>"])
    tokenizer.post_processor = processors.Sequence([
        processors.ByteLevel(trim_offsets=True),
        processors.TemplateProcessing(
            single="<|begin_of_text|> $A", pair="<|begin_of_text|> $A <|begin_of_text|> $B",
            special_tokens=[("<|begin_of_text|>", tokenizer.token_to_id("<|begin_of_text|>"))])])
    return tokenizer


def llama2():
    """As the files of Llama 1 and 2: spaces are U+2581, characters without a token are bytes."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    trainer = trainers.BpeTrainer(vocab_size=420, limit_alphabet=70, show_progress=False)
    tokenizer.train_from_iterator(training_text(random.Random(7)), trainer)
    trained = json.loads(tokenizer.to_str())["model"]
    control = ["<unk>", "<s>", "</s>"]
    tokens = control + [f"<0x{byte:02X}>" for byte in range(256)] + list(trained["vocab"])
    tokenizer = Tokenizer(models.BPE(
        vocab={token: i for i, token in enumerate(tokens)}, merges=[tuple(m) for m in trained["merges"]],
        unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    tokenizer.add_special_tokens([AddedToken(token, normalized=False) for token in control])
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("\u2581"), normalizers.Replace(" ", "\u2581")])
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A", pair="<s> $A <s> $B", special_tokens=[("<s>", 1)])
    tokenizer.decoder = decoders.Sequence([
        decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    return tokenizer


def bert():
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]", max_input_chars_per_word=20))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    trainer = trainers.WordPieceTrainer(vocab_size=420, limit_alphabet=90, show_progress=False, special_tokens=[
        "[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"])
    tokenizer.train_from_iterator(training_text(random.Random(7)), trainer)
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)])
    tokenizer.decoder = decoders.WordPiece("##", cleanup=True)
    return tokenizer


def charsmap(rules):
    """SentencePiece's form of {what is replaced: what it becomes}."""
    import sentencepiece
    sys.path.insert(0, str(OUT.parent.parent / "tokenizers"))
    from compare import field
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        lines = (" ".join(f"{ord(c):X}" for c in old) + "\t" + " ".join(f"{ord(c):X}" for c in new)
                 for old, new in rules.items())
        (folder / "rules.tsv").write_text("".join(line + "\n" for line in lines))
        (folder / "text").write_text("\n".join(t.replace("\n", " ") for t in training_text(random.Random(7))[:200]))
        sentencepiece.SentencePieceTrainer.Train(
            input=str(folder / "text"), model_prefix=str(folder / "m"), vocab_size=50, model_type="char",
            hard_vocab_limit=False, normalization_rule_tsv=str(folder / "rules.tsv"), minloglevel=2)
        return field(field((folder / "m.model").read_bytes(), 3), 2)


RULES = {"\u2160": "I", "ﬁ": "fi", "①": "1", "½": "1/2", "\u00a0": " ", "\t": " ", "e\u0301": "é", "A\u030a": "Å",
         "\u200b": "", "ｆ": "f", "日本": "JP", "👍": "+1", "\n": " ", "x": "ks", "\u00ad": ""}


def t5():
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.normalizer = normalizers.Sequence([
        normalizers.Precompiled(charsmap(RULES)), normalizers.Strip(left=False, right=True),
        normalizers.Replace(Regex(" {2,}"), "\u2581")])
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    frequent = set("".join(WORDS) + "Größe Ελλάδα Москва日本語\u2581")
    text = ["".join(c for c in line if c in frequent or c == " ") for line in training_text(random.Random(7))]
    tokenizer.train_from_iterator(text, trainers.UnigramTrainer(
        vocab_size=400, special_tokens=["<pad>", "</s>", "<unk>"], unk_token="<unk>", show_progress=False))
    tokenizer.post_processor = processors.TemplateProcessing(
        single="$A </s>", pair="$A </s> $B </s>", special_tokens=[("</s>", 1)])
    tokenizer.decoder = decoders.Metaspace()
    return tokenizer


def cases(tokenizer, specials, seed):
    rng = random.Random(seed)
    encode = []
    for text in strings(rng, specials):
        tokenizer.encode_special_tokens = True
        plain = tokenizer.encode(text, add_special_tokens=False).ids
        tokenizer.encode_special_tokens = False
        ids = tokenizer.encode(text).ids
        case = {"text": text, "ids": ids}
        if plain != ids:
            case["plain"] = plain
        decoded = tokenizer.decode(ids, skip_special_tokens=True)
        if decoded != text:
            case["decoded"] = decoded
        encode.append(case)
    decode, size = [], tokenizer.get_vocab_size()
    for _ in range(80):
        ids = [rng.randrange(size) if rng.random() < 0.4 else rng.randrange(2, min(258, size))
               for _ in range(rng.randint(1, 12))]
        case = {"ids": ids, "text": tokenizer.decode(ids, skip_special_tokens=True)}
        full = tokenizer.decode(ids, skip_special_tokens=False)
        if full != case["text"]:
            case["full"] = full
        decode.append(case)
    return {"encode": encode, "decode": decode}


def stages(base):
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    mapped = dict(byte_level, use_regex=False)

    def sequence(*steps):
        return {"pre_tokenizer": {"type": "Sequence", "pretokenizers": list(steps)}}

    patches = [{"pre_tokenizer": byte_level}, {"pre_tokenizer": mapped}, {"pre_tokenizer": None},
               sequence({"type": "Digits", "individual_digits": True}, byte_level),
               sequence({"type": "Digits", "individual_digits": False}, mapped),
               sequence(dict(byte_level, add_prefix_space=True), {"type": "Digits", "individual_digits": True})]
    for behavior in ["Isolated", "Removed", "MergedWithPrevious", "MergedWithNext", "Contiguous"]:
        for pattern in [{"String": " "}, {"Regex": r"\s|[.,]"}, {"Regex": r"\d*"}]:
            for invert in [False, True]:
                patches.append(sequence(
                    {"type": "Split", "pattern": pattern, "behavior": behavior, "invert": invert}, mapped))
    for normalizer in [None, {"type": "NFD"}, {"type": "NFKC"}, {"type": "NFKD"},
                       {"type": "Prepend", "prepend": "\u2581"},
                       {"type": "Replace", "pattern": {"String": " "}, "content": "__"},
                       {"type": "Replace", "pattern": {"Regex": "[aeiou]+"}, "content": "*"},
                       {"type": "Sequence", "normalizers": [
                           {"type": "NFKC"}, {"type": "Replace", "pattern": {"String": "fi"}, "content": "FI"}]}]:
        patches.append({"normalizer": normalizer})
    patches.append({"decoder": None})
    return patched(base, patches)


def metaspaces(base):
    data = json.loads(base.to_str())
    patches = []
    for scheme in ["always", "first", "never"]:
        for split in [True, False]:
            patches.append({"normalizer": None, "pre_tokenizer": {
                "type": "Metaspace", "replacement": "\u2581", "prepend_scheme": scheme, "split": split}})
        patches.append({"decoder": {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": scheme,
                                    "split": True}})
    # As older releases wrote the stage, and in a sequence, where later words are not the first.
    old = {"type": "Metaspace", "replacement": "\u2581", "add_prefix_space": True}
    first = {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "first", "split": False}
    patches += [{"normalizer": None, "pre_tokenizer": old, "decoder": old},
                {"normalizer": None, "pre_tokenizer": {"type": "Sequence", "pretokenizers": [
                    {"type": "Digits", "individual_digits": True}, first]}},
                # Gemma's
                {"normalizer": {"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"},
                 "pre_tokenizer": {"type": "Split", "pattern": {"String": " "}, "behavior": "MergedWithPrevious",
                                   "invert": False},
                 "decoder": {"type": "Sequence", "decoders": [
                     {"type": "Replace", "pattern": {"String": "\u2581"}, "content": " "},
                     {"type": "ByteFallback"}, {"type": "Fuse"}]}}]
    for decoder in [[{"type": "Strip", "content": "\u2581", "start": 1, "stop": 0}],
                    [{"type": "Fuse"}, {"type": "Strip", "content": "\u2581", "start": 3, "stop": 0}],
                    [{"type": "ByteFallback"}, {"type": "Strip", "content": " ", "start": 1, "stop": 0}]]:
        patches.append({"decoder": {"type": "Sequence", "decoders": decoder}})
    # Bytes without a token leave the unknown token for the characters that need them.
    for fuse in [True, False]:
        model = dict(data["model"], fuse_unk=fuse)
        model["vocab"] = {("?" * (i - 240) if token.startswith("<0xF") else token): i
                          for i, token in enumerate(data["model"]["vocab"])}
        patches.append({"model": model})
    patches.append({"model": dict(data["model"], byte_fallback=False)})
    return patched(base, patches)


def character_stages(base):
    mapped = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
    patches = [{"pre_tokenizer": {"type": "Sequence", "pretokenizers": [stage, mapped]}} for stage in [
        {"type": "BertPreTokenizer"}, {"type": "Whitespace"}, {"type": "WhitespaceSplit"}, {"type": "UnicodeScripts"},
        {"type": "CharDelimiterSplit", "delimiter": "a"}, {"type": "FixedLength", "length": 3}]
        + [{"type": "Punctuation", "behavior": b} for b in ["Isolated", "Removed", "MergedWithPrevious", "Contiguous"]]]
    patches += [{"normalizer": normalizer} for normalizer in [
        {"type": "Lowercase"}, {"type": "StripAccents"}, {"type": "Nmt"},
        {"type": "Sequence", "normalizers": [{"type": "NFD"}, {"type": "StripAccents"}]},
        {"type": "Strip", "strip_left": True, "strip_right": False}, {"type": "Strip", "strip_left": False, "strip_right": True},
        {"type": "Precompiled", "precompiled_charsmap": base64.b64encode(charsmap(RULES)).decode()}]
        + [{"type": "BertNormalizer", "clean_text": a, "handle_chinese_chars": b, "strip_accents": c, "lowercase": d}
           for a, b, c, d in [(True, False, False, False), (False, True, False, False), (False, False, True, False),
                              (False, False, None, True), (True, True, False, True)]]]
    patches.append({"normalizer": {"type": "ByteLevel"}, "pre_tokenizer": None})
    return patched(base, patches, ["İstanbul ΑΣ ǅ ẞ", "a\u0300\u0301b \u0903\u20dd", "\x00\x01\x7f\u200b\u2028a\ufffd\u00ad",
                                   "中文abcかなカナー한국 Привет—мир!", "¡Hola! «ok»§ $5+3=8 _x_", "x\u00a0\u3000y \x85z",
                                   "👍🏽x\tＡｆ① e\u0301\u0301 日本", "\u1ad0\u0301\u0323 \u32ff \U00011938"])


def decoder_stages(base):
    def sequence(*steps):
        return {"decoder": {"type": "Sequence", "decoders": list(steps)}}
    fuse, word_piece = {"type": "Fuse"}, {"type": "WordPiece", "prefix": "##", "cleanup": False}
    strip = {"type": "Strip", "content": "e", "start": 1, "stop": 1}
    replace = {"type": "Replace", "pattern": {"String": "he"}, "content": "<>"}
    patches = [{"decoder": word_piece}, {"decoder": strip}, {"decoder": {"type": "BPEDecoder", "suffix": "e"}},
               {"decoder": {"type": "BPEDecoder", "suffix": "##e"}},
               {"decoder": {"type": "CTC", "pad_token": "##e", "word_delimiter_token": "a", "cleanup": True}},
               {"decoder": {"type": "CTC", "pad_token": "the", "word_delimiter_token": "|", "cleanup": False}},
               sequence(word_piece, fuse, replace), sequence(word_piece, fuse, dict(strip, start=2, stop=3)),
               sequence(word_piece, replace, strip), sequence(fuse, replace, strip),
               sequence(word_piece, json.loads(decoders.ByteLevel().__getstate__()), strip), sequence(fuse, fuse)]
    return patched(base, patches, ["the the eerie, isn't it ? do not ! they 've", "eeeee e e hehehe ##e", "h he the there e",
                                   "tthhee " * 6, "we do not find 'm 's 're n't . a , b"])


def pairs(files):
    processors_ = [None, {"type": "BertProcessing", "sep": ["[SEP]", 3], "cls": ["[CLS]", 2]},
                   {"type": "RobertaProcessing", "sep": ["[SEP]", 3], "cls": ["[CLS]", 2], "trim_offsets": True,
                    "add_prefix_space": False},
                   {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True}]
    result = []
    for name, base in files.items():
        own = json.loads(base.to_str())["post_processor"]
        for processor in [own] + (processors_ if name == "bert" else []):
            data = json.loads(base.to_str())
            data["post_processor"] = processor
            tokenizer = Tokenizer.from_str(json.dumps(data))
            rows = []
            for a, b in [("the old key", "found under the tree"), ("", "a"), ("a", ""), ("", "")]:
                both = tokenizer.encode(a, b)
                rows.append([a, b, both.ids, both.type_ids])
                rows.append([a, None, tokenizer.encode(a).ids, None])
            result.append({"file": name, "patch": {"post_processor": processor}, "cases": rows})
    return result


def patched(base, patches, more=()):
    texts = ["", " ", "It's 12 345, don't. ", "a  b,, c..\n1 22", "ﬁne e\u0301 Å ½ Ⅷ 日本語", "x<left> caf\u00e9 word wordy",
             "  lead trail  ", "7", "..  ,", "Ünïcödé\u00a0٣٤ 42abc"]
    texts += more
    if json.loads(base.to_str())["model"].get("byte_fallback"):
        texts += ["<s>a <s> b", "\u2581a\u2581 b", "😀a😀😀 é😀x", "\n\n a\n", "日本 語"]
    result = []
    for patch in patches:
        data = json.loads(base.to_str())
        data.update(patch)
        tokenizer = Tokenizer.from_str(json.dumps(data))
        alphabet_safe = (data["pre_tokenizer"] is not None or data["model"]["unk_token"] is not None
                         or (data["normalizer"] or {}).get("type") == "ByteLevel")
        rows = []
        for text in texts:
            # Without ByteLevel, characters outside the vocabulary are dropped in silence there and
            # are an error here: only ASCII without spaces is the same.
            if not alphabet_safe and (not text.isascii() or any(c.isspace() for c in text)):
                continue
            ids = tokenizer.encode(text).ids
            try:
                rows.append([text, ids, tokenizer.decode(ids)])
            except BaseException as e:  # Strip on a token that is shorter than what both ends may lose
                if type(e).__name__ != "PanicException":
                    raise
        result.append({"patch": patch, "cases": rows})
    return result


def dump(name, value):
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    (OUT / name).write_text(text + "\n", encoding="utf-8")
    print(f"{name}: {len(text.encode())} bytes")


def main():
    OUT.mkdir(parents=True, exist_ok=True)
    made = {}
    for name, tokenizer, specials, seed in [
            ("bert", bert(), ["[CLS]", "[SEP]", "[UNK]", "[MASK]", "##ing", "a" * 25], 4),
            ("t5", t5(), ["<pad>", "</s>", "<unk>", "\u2581", "\u2581\u2581"], 5),
            ("gpt2", gpt2(), ["<|endoftext|>", "<strip>", "<left>", "<right>", "word", "wordy", "café", "<|pad|>"], 1),
            ("llama2", llama2(), ["<s>", "</s>", "<unk>", "<0x41>", "\u2581", "<0xE2><0x82><0xAC>"], 3),
            ("llama3", llama3(), ["<|begin_of_text|>", "<|end_of_text|>", "<|eot_id|>", "unmergeable"], 2)]:
        dump(f"{name}.json", json.loads(tokenizer.to_str()))
        dump(f"{name}_cases.json", cases(tokenizer, specials, seed))
        made[name] = tokenizer
        if name == "bert":
            dump("decoder_cases.json", decoder_stages(tokenizer))
        if name == "gpt2":
            dump("character_cases.json", character_stages(tokenizer))
            dump("stage_cases.json", stages(tokenizer))
        if name == "llama2":
            dump("metaspace_cases.json", metaspaces(tokenizer))
    dump("pair_cases.json", pairs({name: made[name] for name in ["bert", "t5", "llama3"]}))


if __name__ == "__main__":
    main()
