#!/usr/bin/env python3
"""Decoding with an imported StaticCache step beside Lathe's own Llama and PyTorch eager, in one run.

    PYTHONPATH=build/release/python python bench/torch_decode.py [--dtype f32] [-t 2] [-p 64] [-n 64] [--layers 8]

One Llama with random weights: transformers' model exported with its cache (python/tests/torch_models.py), the family
that `lathe` builds from the same config, and transformers itself. Each decodes the same greedy tokens, in turn, and
they must be equal; times are medians over the rounds. Needs a build of the Python package, torch and transformers.
"""
import argparse
import pathlib
import statistics
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "python/tests"))

import torch  # noqa: E402
import torch_models as models  # noqa: E402
import transformers as tf  # noqa: E402

import lathe  # noqa: E402
import lathe.torch  # noqa: E402

DTYPES = {"f32": torch.float32, "bf16": torch.bfloat16}


class Imported:
    def __init__(self, model, prompt, length, threads):
        step = models.Step(model, length)
        exported = lathe.torch.export(step, (prompt,), entry="prefill")
        lathe.torch.export(step, (prompt[:, :1],), entry="decode", into=exported)
        self.run = exported.session(threads=threads)

    def prefill(self, x):
        self.run.session.reset_states()
        return self.run(x, entry="prefill")

    def decode(self, x):
        return self.run(x, entry="decode")


class Family:
    def __init__(self, model, prompt, length, threads, dtype):
        with tempfile.TemporaryDirectory() as folder:
            model.save_pretrained(folder)
            program = lathe.compile(folder, dtype=dtype, max_batch=1, max_seq=prompt.shape[1], cache_capacity=length)
            self.session, self.length = lathe.Session(program, folder, threads=threads), length

    def prefill(self, x):
        self.session.reset_states()
        self.session.set_symbol("cache", self.length)
        self.at = 0
        return self.run(x, "prefill")

    def run(self, x, entry):
        y = self.session.run(entry, input_ids=x, positions=torch.tensor([self.at]))["logits"]
        self.at += x.shape[1]
        return torch.from_dlpack(y)

    def decode(self, x):
        return self.run(x, "decode")


class Eager:
    def __init__(self, model, prompt, length):
        self.model, self.length = model, length

    def prefill(self, x):
        self.cache = tf.StaticCache(config=self.model.config, max_cache_len=self.length)
        return self.decode(x)

    def decode(self, x):
        return self.model(x, past_key_values=self.cache, use_cache=True, logits_to_keep=1).logits[:, -1]


def decoded(runner, prompt, count):
    """(greedy tokens, seconds of the steps behind the first)"""
    token = runner.prefill(prompt).argmax(-1, keepdim=True)
    tokens = [token.item()]
    start = time.perf_counter()
    for _ in range(count):
        token = runner.decode(token).argmax(-1, keepdim=True)
        tokens.append(token.item())
    return tokens, time.perf_counter() - start


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dtype", choices=DTYPES, default="f32")
    parser.add_argument("-t", "--threads", type=int, default=2)
    parser.add_argument("-p", "--prompt", type=int, default=64)
    parser.add_argument("-n", "--new", type=int, default=64)
    parser.add_argument("--layers", type=int, default=8)
    parser.add_argument("--width", type=int, default=768)
    parser.add_argument("--rounds", type=int, default=7)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    torch.manual_seed(3)
    config = tf.LlamaConfig(hidden_size=arguments.width, intermediate_size=3 * arguments.width,
                            num_hidden_layers=arguments.layers, num_attention_heads=arguments.width // 64,
                            num_key_value_heads=arguments.width // 192, head_dim=64, vocab_size=8000,
                            max_position_embeddings=1024)
    model = models.spread(tf.LlamaForCausalLM(config)).to(DTYPES[arguments.dtype])
    prompt = torch.randint(2, 8000, (1, arguments.prompt))
    length = arguments.prompt + arguments.new + 1
    with torch.no_grad():
        runners = {"imported": Imported(model, prompt, length, arguments.threads),
                   "family": Family(model, prompt, length, arguments.threads, arguments.dtype),
                   "eager": Eager(model, prompt, length)}
        times, tokens = {k: [] for k in runners}, {}
        for _ in range(arguments.rounds):
            for name, runner in runners.items():
                tokens[name], seconds = decoded(runner, prompt, arguments.new)
                times[name].append(seconds / arguments.new)
    equal = {k: sum(a == b for a, b in zip(tokens[k], tokens["eager"])) for k in tokens}
    for name, seconds in times.items():
        ratio = statistics.median(s / f for s, f in zip(seconds, times["family"]))
        print(f"{name}: {statistics.median(seconds) * 1e3:.3f} ms a token, {ratio:.3f} of the family's; "
              f"{equal[name]} of {len(tokens[name])} tokens are eager's")


if __name__ == "__main__":
    main()
