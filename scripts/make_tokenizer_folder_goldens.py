#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/golden/tokenizer_folders/: folders without tokenizer.json, one of each class of
tokenizers, with small vocabularies that are trained here, and what `transformers` makes of some texts:
cases.json has [[text, ids, text of the ids]].

    scripts/make_tokenizer_folder_goldens.py
    scripts/make_tokenizer_folder_goldens.py --compare build/release/bin/encode_lines [--strings 3000]

`--compare` trains larger ones in a temporary folder and holds the program's ids and texts against the
library's. It has no fast class for Marian, and leaves out some of what a model says (`plain_*`): these
are held against SentencePiece itself. Needs the packages `transformers` (4.57.6 made the stored files; 5
has other classes), `sentencepiece` (0.2.3) and `tokenizers`. Same files on every run, but for those of BERT and
CLIP, where letters that are equally frequent compete for the alphabet.
"""
import argparse
import io
import json
import pathlib
import random
import sys
import tempfile
import warnings

TOP = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(TOP / "tests" / "tokenizers"))
try:
    import compare
    import sentencepiece
    import transformers
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers
    if int(transformers.__version__.split(".")[0]) > 4:
        raise ImportError(f"transformers {transformers.__version__} has other classes than transformers 4")
except ImportError as missing:
    print(f"tokenizer folders: left out: {missing}; pip install 'transformers<5' sentencepiece protobuf")
    sys.exit(77)

OUT = TOP / "tests" / "golden" / "tokenizer_folders"
RULES = {"\u2460": "1", "\ufb01": "fi", "\ufb01\ufb01": "two", "\u00a0": " ", "\u3000": " ", "\t": " ", "\n": " ", "\uff21": "A", "e\u0301": "\u00e9"}


class Maker:
    """`small`: for files that are stored."""

    def __init__(self, folder, small, text):
        self.folder, self.small, self.text = folder, small, text
        self.folder.mkdir(parents=True, exist_ok=True)

    def write(self, name, value):
        (self.folder / name).write_text(
            value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")

    def byte_level(self, specials=(), at_end=True, size=700, suffix="", **config):
        """vocab.json and merges.txt as OpenAI's tokenizers have them."""
        t = Tokenizer(models.BPE(end_of_word_suffix=suffix) if suffix else models.BPE())
        if suffix:
            t.normalizer = normalizers.Lowercase()
        t.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
        size = (len(alphabet) * (2 if suffix else 1)) + 60 if self.small else size * 5
        t.train_from_iterator(self.text, trainers.BpeTrainer(
            vocab_size=size, show_progress=False, initial_alphabet=alphabet, **({"end_of_word_suffix": suffix} if suffix else {})))
        model = json.loads(t.to_str())["model"]
        tokens = sorted(model["vocab"], key=model["vocab"].get)
        if suffix:  # every byte may end a word
            tokens += [letter + suffix for letter in alphabet if letter + suffix not in model["vocab"]]
        tokens = tokens + list(specials) if at_end else list(specials) + tokens
        self.write("vocab.json", {token: i for i, token in enumerate(tokens)})
        self.write("merges.txt", "#version: 0.2\n" + "".join(" ".join(m) + "\n" for m in model["merges"]))
        self.write("tokenizer_config.json", config)
        return len(tokens)

    def word_piece(self, **config):
        t = Tokenizer(models.WordPiece(unk_token="[UNK]"))
        t.normalizer = normalizers.BertNormalizer(lowercase=config.get("do_lower_case", True))
        t.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        t.train_from_iterator(self.text, trainers.WordPieceTrainer(
            vocab_size=600 if self.small else 6000, limit_alphabet=250 if self.small else 1500, show_progress=False,
            special_tokens=["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]))
        vocab = t.get_vocab()
        self.write("vocab.txt", "".join(token + "\n" for token in sorted(vocab, key=vocab.get)))
        self.write("tokenizer_config.json", config)

    def pieces(self, name, kind, rules="nmt_nfkc", size=None, text=None, **more):
        model = io.BytesIO()
        with tempfile.NamedTemporaryFile("w", suffix=".tsv") as table:
            if rules and self.small:
                for source, target in RULES.items():
                    table.write("\t".join(" ".join(f"{ord(c):X}" for c in part) for part in (source, target)) + "\n")
                table.flush()
                more["normalization_rule_tsv"] = table.name
            else:
                more["normalization_rule_name"] = rules or "identity"
            lines = [line.replace("\n", " ").replace("\0", "") for line in text or self.text]
            sentencepiece.SentencePieceTrainer.Train(
                sentence_iterator=iter(lines), model_writer=model, model_type=kind, minloglevel=2,
                vocab_size=size or (700 if self.small else 6000), hard_vocab_limit=False, num_threads=1,
                character_coverage=0.98 if self.small else 0.995, **more)
        (self.folder / name).write_bytes(model.getvalue())
        return sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())


def gpt2(m):
    m.byte_level(["<|endoftext|>"], tokenizer_class="GPT2Tokenizer")


def opt(m):
    m.byte_level(["<s>", "<pad>", "</s>", "<unk>"], at_end=False, add_bos_token=True, tokenizer_class="GPT2Tokenizer")
    flags = {"lstrip": False, "normalized": True, "rstrip": False, "single_word": False}
    m.write("special_tokens_map.json", {
        "bos_token": {"content": "</s>", **flags}, "eos_token": {"content": "</s>", **flags},
        "unk_token": {"content": "</s>", **flags}, "pad_token": {"content": "<pad>", **flags}})
    m.write("config.json", {"model_type": "opt"})


def roberta(m):
    m.byte_level(["<s>", "<pad>", "</s>", "<unk>", "<mask>"], at_end=False)
    (m.folder / "tokenizer_config.json").unlink()
    m.write("config.json", {"model_type": "roberta"})


def bart(m):
    m.byte_level(["<s>", "<pad>", "</s>", "<unk>", "<mask>"], at_end=False, tokenizer_class="BartTokenizer",
                 add_prefix_space=True, mask_token="<mask>")
    m.write("added_tokens.json", {"<new word>": json.loads((m.folder / "vocab.json").read_text()).__len__()})


def qwen2(m):
    count = m.byte_level()
    added = {"<|endoftext|>": True, "<|im_start|>": True, "<|im_end|>": True, "<tool_call>": False}
    m.write("tokenizer_config.json", {
        "tokenizer_class": "Qwen2Tokenizer", "bos_token": None, "eos_token": "<|im_end|>", "pad_token": "<|endoftext|>",
        "add_prefix_space": False, "additional_special_tokens": ["<|im_start|>", "<|im_end|>"],
        "added_tokens_decoder": {str(count + i): {
            "content": token, "lstrip": False, "normalized": False, "rstrip": False, "single_word": False, "special": special}
            for i, (token, special) in enumerate(added.items())}})


def clip(m):
    m.byte_level(["<|startoftext|>", "<|endoftext|>"], suffix="</w>", size=900, tokenizer_class="CLIPTokenizer")
    m.write("special_tokens_map.json", {"pad_token": "<|endoftext|>"})


def whisper(m):
    m.byte_level(["<|endoftext|>", "<|startoftranscript|>", "<|en|>", "<|transcribe|>", "<|translate|>", "<|notimestamps|>"],
                 tokenizer_class="WhisperTokenizer", additional_special_tokens=[
                     "<|startoftranscript|>", "<|en|>", "<|transcribe|>", "<|translate|>", "<|notimestamps|>"])


def bert(m):
    m.word_piece(tokenizer_class="BertTokenizer", do_lower_case=True)


def bert_cased(m):
    m.word_piece(do_lower_case=False, tokenize_chinese_chars=False, strip_accents=True)
    m.write("config.json", {"model_type": "distilbert"})


def t5(m):
    m.pieces("spiece.model", "unigram", pad_id=0, eos_id=1, unk_id=2, bos_id=-1)
    m.write("tokenizer_config.json", {"tokenizer_class": "T5Tokenizer", "extra_ids": 5, "additional_special_tokens": [
        f"<extra_id_{i}>" for i in range(5)]})


def t5_new(m):
    t5(m)
    m.write("tokenizer_config.json", {"tokenizer_class": "T5TokenizerFast", "legacy": False, "extra_ids": 3})


def xlm_roberta(m):
    m.pieces("sentencepiece.bpe.model", "unigram", user_defined_symbols=["<sep/>"])
    m.write("config.json", {"model_type": "xlm-roberta"})


def llama(m):
    m.pieces("tokenizer.model", "bpe", rules=None, byte_fallback=True, remove_extra_whitespaces=False, split_digits=True,
             size=900 if m.small else None)
    m.write("tokenizer_config.json", {"tokenizer_class": "LlamaTokenizer", "add_bos_token": True, "add_eos_token": False,
                                      "bos_token": {"__type": "AddedToken", "content": "<s>", "lstrip": False,
                                                    "normalized": True, "rstrip": False, "single_word": False}})


def llama_new(m):
    llama(m)
    m.write("tokenizer_config.json", {"tokenizer_class": "LlamaTokenizerFast", "legacy": False, "add_eos_token": True,
                                      "pad_token": "<pad>"})


def gemma(m):
    m.pieces("tokenizer.model", "bpe", rules=None, byte_fallback=True, remove_extra_whitespaces=False, split_digits=True,
             add_dummy_prefix=False, pad_id=0, eos_id=1, bos_id=2, unk_id=3, pad_piece="<pad>", eos_piece="<eos>", bos_piece="<bos>",
             user_defined_symbols=["<mask>", "<start_of_turn>", "<end_of_turn>", "\u2581\u2581", "\u2581\u2581\u2581"],
             size=900 if m.small else None)
    m.write("config.json", {"model_type": "gemma2"})


def marian(m):
    source = m.pieces("source.spm", "unigram", size=400 if m.small else 5000)
    target = m.pieces("target.spm", "unigram", size=400 if m.small else 5000, text=m.text[::3])
    tokens = ["</s>", "<unk>"]
    for model in (source, target):
        tokens += [p for p in map(model.id_to_piece, range(model.get_piece_size())) if p not in tokens and p != "<s>"]
    del tokens[5:400:20]  # pieces without an id
    tokens += [">>fra<<", ">>deu<<", "<pad>"]
    m.write("vocab.json", {token: i for i, token in enumerate(tokens)})
    m.write("tokenizer_config.json", {"source_lang": "en", "target_lang": "fr"})
    m.write("config.json", {"model_type": "marian"})


# What the classes assume of a model, and this one does not have.
def plain_unigram(m):
    m.pieces("spiece.model", "unigram", pad_id=0, eos_id=1, unk_id=2, bos_id=-1, byte_fallback=True, add_dummy_prefix=False,
             remove_extra_whitespaces=False, size=900 if m.small else None)
    m.write("tokenizer_config.json", {"tokenizer_class": "T5Tokenizer", "extra_ids": 0})


def plain_bpe(m):
    m.pieces("tokenizer.model", "bpe", byte_fallback=True, add_dummy_prefix=False, size=900 if m.small else None)
    m.write("tokenizer_config.json", {"tokenizer_class": "LlamaTokenizer", "add_bos_token": False, "add_eos_token": True})


KINDS = [gpt2, opt, roberta, bart, qwen2, clip, whisper, bert, bert_cased, t5, t5_new, xlm_roberta, llama, llama_new, gemma, marian, plain_unigram, plain_bpe]


def reference(folder, name):
    """text -> ids and the ids' text."""
    if name.startswith("plain"):
        pieces = sentencepiece.SentencePieceProcessor(model_file=str(next(folder.glob("*.model"))))
        return lambda text: (pieces.encode(text) + [pieces.eos_id()], pieces.decode(pieces.encode(text)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tokenizer = transformers.AutoTokenizer.from_pretrained(str(folder), use_fast=name != "marian")

    def answer(text):
        ids = tokenizer(text).input_ids
        if name == "marian":
            return ids, tokenizer.decode(ids, skip_special_tokens=True, clean_up_tokenization_spaces=False)
        return ids, tokenizer.backend_tokenizer.decode(ids, skip_special_tokens=True)
    return answer


def specials_of(name):
    return {"gpt2": ["<|endoftext|>"], "qwen2": ["<|im_start|>", "<|im_end|>", "<tool_call>"], "clip": ["<|startoftext|>", "<|endoftext|>"],
            "whisper": ["<|en|>", "<|notimestamps|>"], "bert": ["[CLS]", "[MASK]"], "bert_cased": ["[SEP]", "[MASK]"],
            "t5": ["</s>", "<extra_id_0>", "<extra_id_4>"], "t5_new": ["</s>", "<extra_id_2>"], "xlm_roberta": ["<s>", "<mask>", "<sep/>"],
            "gemma": ["<bos>", "<start_of_turn>", "<mask>"], "marian": ["</s>"], "bart": ["<mask>", "<new word>"]}.get(name, ["<s>", "</s>", "<pad>"])


def texts_of(name, rng, lexicon, count):
    fixed = ["", " ", "a", " a", "a ", "Hello world", "Hello  world", "  two leading", "The house\tis wonderful.\n", "caf\u00e9 cafe\u0301",
             "\u2460 \ufb01ne \uff21\u3000b \ufb01\ufb01", "12 345", "don't DON'T", "a\n\n\nb", "\u2581a\u2581\u2581b", "\u4e2d\u6587", "\U0001f600\U0001f44d\U0001f3fd x"]
    for token in specials_of(name) if not name.startswith("plain") else ():
        fixed += [token, f"a{token}b", f"a {token} b", f"  {token}  x", f"{token}{token}"]
    if name == "marian":
        fixed += [">>fra<< Hello world", ">>deu<<a b"]
    if count == 0:
        return fixed
    texts = fixed + list(compare.strings(rng, lexicon, count))
    if name == "marian":
        return [t for t in texts if "\0" not in t]
    return [t for t in texts if "\0" not in t and "<" not in t] if name.startswith("plain") else texts


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--compare", metavar="ENCODE_LINES")
    parser.add_argument("--strings", type=int, default=3000)
    parser.add_argument("--only")
    flags = parser.parse_args()
    rng = random.Random(5)
    lexicon = compare.make_lexicon(rng)
    training = [compare.sentence(rng, lexicon) for _ in range(6000)]
    english = [" ".join(rng.choice(compare.ENGLISH) for _ in range(12)) for _ in range(800)] + training[:20]
    wrong = 0
    with tempfile.TemporaryDirectory() as temporary:
        for make in KINDS:
            name = make.__name__
            if flags.only and name not in flags.only.split(","):
                continue
            folder = (pathlib.Path(temporary) if flags.compare else OUT) / name
            make(Maker(folder, not flags.compare, training if flags.compare else english))
            answer = reference(folder, name)
            texts = texts_of(name, random.Random(7), lexicon, flags.strings if flags.compare else 25)
            cases = [[text, *answer(text)] for text in texts]
            if not flags.compare:
                (folder / "cases.json").write_text(
                    "[\n" + ",\n".join(json.dumps(case) for case in cases) + "\n]\n", encoding="utf-8")
                continue
            answers, seconds = compare.ours(flags.compare, str(folder), texts, [None] * len(texts))
            assert len(answers) == len(texts), f"{name}: {len(answers)} answers"
            differ = 0
            for (text, ids, decoded), got in zip(cases, answers):
                same = isinstance(got, list) and got[0] == ids and (got[2].strip() if name in ("clip", "marian") else got[2]) == decoded
                differ += not same
                if not same and differ <= 3:
                    print(f"{name}: {text!r}\n  expected {ids} {decoded!r}\n  got      {got[0] if isinstance(got, list) else got} "
                          f"{got[2]!r}" if isinstance(got, list) else got, file=sys.stderr)
            print(f"{name}: {len(texts)} strings, {sum(len(c[1]) for c in cases)} ids, {differ} differ; ours {seconds:.1f} s")
            wrong += differ
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
