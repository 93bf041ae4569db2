# SPDX-License-Identifier: Apache-2.0
"""Trains the small story model in examples/models/stories from text that story_grammar.py writes.

    python scripts/train_story_model.py [--out examples/models/stories] [--steps 3000]

Writes config.json, generation_config.json, model.safetensors (bf16), tokenizer.json,
tokenizer_config.json and the end of the log, training.log. Everything is drawn from one seed. The
model is scored as it is stored: its weights are rounded to bf16 before the last evaluation.
Needs torch, transformers, tokenizers and safetensors; about ten minutes on one free core.
"""

import argparse
import json
import math
import pathlib
import random
import time

import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from transformers import LlamaConfig, LlamaForCausalLM

import story_grammar

SEED = 20240
VOCAB = 768
BOS, EOS = "<|bos|>", "<|eos|>"
BOS_ID, EOS_ID = 0, 1
SEQUENCE = 256
BATCH = 4
PEAK_RATE = 2e-3
COPYING_SHARE = 0.12
LOG_LINES_KEPT = 60

CONFIG = {
    "architectures": ["LlamaForCausalLM"],
    "attention_bias": False,
    "attention_dropout": 0.0,
    "bos_token_id": BOS_ID,
    "eos_token_id": EOS_ID,
    "head_dim": 32,
    "hidden_act": "silu",
    "hidden_size": 192,
    "initializer_range": 0.06,
    "intermediate_size": 384,
    "max_position_embeddings": 512,
    "mlp_bias": False,
    "model_type": "llama",
    "num_attention_heads": 6,
    "num_hidden_layers": 4,
    "num_key_value_heads": 2,
    "pretraining_tp": 1,
    "rms_norm_eps": 1e-05,
    "rope_scaling": None,
    "rope_theta": 10000.0,
    "tie_word_embeddings": True,
    "torch_dtype": "bfloat16",
    "use_cache": True,
    "vocab_size": VOCAB,
}

LINES = []


def log(line):
    print(line, flush=True)
    LINES.append(line)


def train_tokenizer(texts):
    """A byte-level BPE tokenizer with GPT-2's pre-tokenizer pattern; encoding puts BOS in front."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.train_from_iterator(
        texts,
        trainers.BpeTrainer(
            vocab_size=VOCAB,
            special_tokens=[BOS, EOS],
            initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
            show_progress=False,
        ),
    )
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{BOS} $A", pair=f"{BOS} $A {BOS} $B", special_tokens=[(BOS, BOS_ID)]
    )
    return tokenizer


def story_row(rng, tokenizer):
    """Whole stories one after the other, each between BOS and EOS; the last one is cut."""
    row = []
    while len(row) < SEQUENCE:
        row += tokenizer.encode(story_grammar.story(rng)).ids + [EOS_ID]
    return row[:SEQUENCE]


def copy_row(rng, tokenizer):
    """A piece of 10 to 50 tokens of a story, again and again."""
    ids = tokenizer.encode(story_grammar.story(rng)).ids
    start = rng.randrange(1, len(ids) - 30)
    piece = ids[start : start + rng.randint(10, 50)]
    return ([BOS_ID] + piece * (SEQUENCE // len(piece) + 1))[:SEQUENCE]


def batches(rng, tokenizer, copying_steps):
    """Endless batches [BATCH, SEQUENCE]; in the first steps three rows of four teach copying.

    They make attention find what was read before, so that names stay the same through a story:
    without them the loss is 0.04 higher after 1,400 steps.
    """
    step = 0
    while True:
        step += 1
        rows = []
        for i in range(BATCH):
            copies = step < copying_steps and i % 4 != 0
            rows.append((copy_row if copies else story_row)(rng, tokenizer))
        yield torch.tensor(rows)


def learning_rate(step, steps):
    """Linear warm-up over 40 steps, then a cosine down to 1 % of the peak."""
    if step < 40:
        return PEAK_RATE * (step + 1) / 40
    progress = (step - 40) / max(1, steps - 40)
    return PEAK_RATE * (0.01 + 0.99 * 0.5 * (1 + math.cos(math.pi * progress)))


def optimizer_for(model):
    """AdamW whose weight decay spares norm gains and the embedding, so that names stay distinct."""
    named = list(model.named_parameters())
    spared = [p for name, p in named if p.dim() == 1 or "embed" in name]
    matrices = [p for name, p in named if p.dim() > 1 and "embed" not in name]
    groups = [{"params": matrices, "weight_decay": 0.01}, {"params": spared, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=PEAK_RATE, betas=(0.9, 0.98), fused=True)


@torch.no_grad()
def sample(model, prompt_ids, count, temperature, generator):
    """Continues one prompt `count` times up to EOS or SEQUENCE tokens; returns lists of ids."""
    ids = torch.tensor([prompt_ids] * count)
    done = torch.zeros(count, dtype=torch.bool)
    cache, step = None, ids
    while ids.shape[1] < SEQUENCE and not done.all():
        out = model(step, past_key_values=cache, use_cache=True)
        cache, logits = out.past_key_values, out.logits[:, -1]
        if temperature == 0:
            step = logits.argmax(-1, keepdim=True)
        else:
            chances = torch.softmax(logits / temperature, -1)
            step = torch.multinomial(chances, 1, generator=generator)
        step[done] = EOS_ID
        done |= step[:, 0] == EOS_ID
        ids = torch.cat([ids, step], 1)
    return [row[: row.index(EOS_ID)] if EOS_ID in row else row for row in ids.tolist()]


def score(model, tokenizer, prompts, temperature, count):
    """Shares of parsing sentences and of stories that parse as a whole, and one sample text.

    A text cut at the token limit loses its unfinished last sentence and is no whole story.
    """
    model.eval()
    generator = torch.Generator().manual_seed(SEED)
    good = total = whole = texts = 0
    text = ""
    for prompt in prompts:
        for ids in sample(model, tokenizer.encode(prompt).ids, count, temperature, generator):
            text = tokenizer.decode(ids)
            written = story_grammar.sentences(text)
            if not text.endswith((".", '."')):
                written = written[:-1]
            good += sum(story_grammar.parses(s) for s in written)
            total += len(written)
            whole += story_grammar.parses_story(text)
            texts += 1
    model.train()
    return good / total, total, whole / texts, texts, text


def evaluation_prompts(rng, count):
    """Beginnings of new stories, cut after two to eight words."""
    return [" ".join(story_grammar.story(rng).split()[: rng.randint(2, 8)]) for _ in range(count)]


def report(model, tokenizer, prompts):
    """Logs the shares at temperature 0 and 0.8; returns the smaller sentence share."""
    shares = []
    for temperature, count in [(0.0, 1), (0.8, 4)]:
        share, total, whole, texts, text = score(model, tokenizer, prompts, temperature, count)
        shares.append(share)
        log(
            f"  temperature {temperature}: {100 * share:.2f} % of {total} sentences parse, "
            f"{100 * whole:.1f} % of {texts} stories parse as a whole"
        )
        log(f"    {text}")
    return min(shares)


def save(model, tokenizer, out):
    out.mkdir(parents=True, exist_ok=True)
    tensors = {
        name: tensor.to(torch.bfloat16).contiguous()
        for name, tensor in model.state_dict().items()
        if name != "lm_head.weight"  # tied to model.embed_tokens.weight
    }
    save_file(tensors, out / "model.safetensors", metadata={"format": "pt"})
    tokenizer.save(str(out / "tokenizer.json"))
    generation = {"bos_token_id": BOS_ID, "do_sample": False, "eos_token_id": EOS_ID}
    tokenizer_config = {
        "add_bos_token": True,
        "add_eos_token": False,
        "bos_token": BOS,
        "clean_up_tokenization_spaces": False,
        "eos_token": EOS,
        "model_max_length": CONFIG["max_position_embeddings"],
        "tokenizer_class": "PreTrainedTokenizerFast",
    }
    for name, value in [
        ("config.json", CONFIG),
        ("generation_config.json", generation),
        ("tokenizer_config.json", tokenizer_config),
    ]:
        (out / name).write_text(json.dumps(value, indent=2) + "\n")
    (out / "training.log").write_text("\n".join(LINES[-LOG_LINES_KEPT:]) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    default = pathlib.Path(__file__).resolve().parent.parent / "examples" / "models" / "stories"
    parser.add_argument("--out", type=pathlib.Path, default=default)
    parser.add_argument("--steps", type=int, default=3000)
    arguments = parser.parse_args()

    torch.set_num_threads(1)
    torch.manual_seed(SEED)
    rng = random.Random(SEED)
    start = time.perf_counter()
    tokenizer = train_tokenizer([story_grammar.story(rng) for _ in range(4000)])
    model = LlamaForCausalLM._from_config(LlamaConfig(**CONFIG), dtype=torch.float32)
    parameters = sum(p.numel() for p in model.parameters())
    log(
        f"seed {SEED}, {parameters} parameters, vocabulary {tokenizer.get_vocab_size()}, "
        f"{arguments.steps} steps of {BATCH} x {SEQUENCE} tokens, torch {torch.__version__}"
    )
    prompts = evaluation_prompts(random.Random(SEED + 1), 40)

    optimizer = optimizer_for(model)
    data = batches(rng, tokenizer, int(COPYING_SHARE * arguments.steps))
    mean_loss = None
    for step in range(arguments.steps):
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(step, arguments.steps)
        ids = next(data)
        logits = model(ids, use_cache=False).logits
        loss = torch.nn.functional.cross_entropy(
            logits[:, :-1].reshape(-1, VOCAB), ids[:, 1:].reshape(-1)
        )
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        mean_loss = loss.item() if mean_loss is None else 0.95 * mean_loss + 0.05 * loss.item()
        if (step + 1) % 25 == 0 or step + 1 == arguments.steps:
            log(
                f"step {step + 1:4d}  loss {loss.item():.4f}  mean {mean_loss:.4f}  "
                f"{time.perf_counter() - start:.0f} s"
            )

    model.to(torch.bfloat16).to(torch.float32)
    log("weights rounded to bf16:")
    share = report(model, tokenizer, prompts)
    log(
        f"done after {time.perf_counter() - start:.0f} s, "
        f"at least {100 * share:.2f} % of the sentences parse"
    )
    save(model, tokenizer, arguments.out)
    if share < 0.97:
        raise SystemExit("fewer than 97 % of the sentences parse: train longer (--steps)")


if __name__ == "__main__":
    main()
