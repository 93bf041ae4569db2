#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tokens per second of `lathe serve` with one client and with eight, in turn: a ratio of medians.

Usage: serve.py LATHE MODEL [--tokens N] [--prompt-words N] [--temperature T] [--rounds N]
       [FLAGS OF SERVE...]

MODEL is a folder with a tokenizer, or a bare config.json, as those of configs/: that runs with random
weights, and with a tokenizer made here, which has a word for every id.
"""
import argparse
import http.client
import json
import os
import random
import statistics
import subprocess
import tempfile
import threading
import time

CLIENTS = 8


def with_tokenizer(config_path, folder):
    """A folder that serves a bare config.json: words of one id each, and no end of text."""
    with open(config_path) as file:
        config = json.load(file)
    vocab = {f"w{i}": i for i in range(config["vocab_size"])}
    tokenizer = {"version": "1.0", "added_tokens": [], "normalizer": None,
                 "pre_tokenizer": {"type": "WhitespaceSplit"}, "post_processor": None, "decoder": None,
                 "model": {"type": "WordLevel", "vocab": vocab, "unk_token": "w0"}}
    config.pop("eos_token_id", None)
    for name, document in (("config.json", config), ("tokenizer.json", tokenizer)):
        with open(os.path.join(folder, name), "w") as file:
            json.dump(document, file)
    return folder


def ask(port, prompt, args, seed, counts):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=600)
    body = {"prompt": prompt, "max_tokens": args.tokens, "temperature": args.temperature, "seed": seed}
    connection.request("POST", "/v1/completions", json.dumps(body), {"Content-Type": "application/json"})
    answer = json.loads(connection.getresponse().read())
    if "usage" not in answer:
        raise SystemExit(f"the server refused: {answer}")
    counts.append(answer["usage"]["completion_tokens"])


def rate(port, clients, args, draw):
    prompts = [" ".join(f"w{draw.randrange(2, 512)}" for _ in range(args.prompt_words)) for _ in range(clients)]
    counts, began = [], time.monotonic()
    threads = [threading.Thread(target=ask, args=(port, prompt, args, draw.randrange(1 << 30), counts))
               for prompt in prompts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if len(counts) < clients:
        raise SystemExit("not all requests were answered")
    return sum(counts) / (time.monotonic() - began)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("lathe")
    parser.add_argument("model")
    parser.add_argument("--tokens", type=int, default=100)
    parser.add_argument("--prompt-words", type=int, default=16)
    parser.add_argument("--temperature", type=float, default=1)
    parser.add_argument("--rounds", type=int, default=5)
    args, flags = parser.parse_known_args()
    with tempfile.TemporaryDirectory() as folder:
        model = args.model
        if model.endswith(".json"):
            model = with_tokenizer(model, folder)
            flags += ["--random-weights"]
        command = [args.lathe, "serve", model, "--port", "0", "--slots", str(CLIENTS), *flags]
        server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        try:
            port = int(server.stdout.readline().rsplit(":", 1)[1])
            draw = random.Random(1)
            rate(port, CLIENTS, args, draw)  # warm
            one, many = zip(*((rate(port, 1, args, draw), rate(port, CLIENTS, args, draw))
                              for _ in range(args.rounds)))
            ratios = sorted(b / a for a, b in zip(one, many))
            one, many = statistics.median(one), statistics.median(many)
            print(f"1 client: {one:.1f} tokens/s; {CLIENTS} clients: {many:.1f} tokens/s; ratio {many / one:.2f} "
                  f"({ratios[0]:.2f} to {ratios[-1]:.2f} in one round)")
        finally:
            server.terminate()
            server.wait()


if __name__ == "__main__":
    main()
