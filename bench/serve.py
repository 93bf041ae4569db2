#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tokens per second of `lathe serve` with one client and with eight, in turn: a ratio of medians.

Usage: serve.py LATHE MODEL [--tokens N] [--prompt-tokens N] [--temperature T] [--rounds N]
       [--llama-server PROGRAM FILE.gguf] [FLAGS OF SERVE...]

MODEL is a folder with a tokenizer, or a bare config.json, as those of configs/: that runs with random
weights, and with a tokenizer made here, which has a word for every id. Prompts are random ids. With
--llama-server llama.cpp's server is asked the same in the same rounds, with as many threads; its file
may come from peers/llama_cpp_model.py.
"""
import argparse
import http.client
import json
import os
import random
import socket
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


class Server:
    """A program that answers OpenAI's routes, and the rates that were measured."""

    def __init__(self, name, command, port=None, further=None):
        self.name, self.further = name, further or {}
        self.rates = {clients: [] for clients in (1, CLIENTS)}
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE if port is None else subprocess.DEVNULL,
                                        stderr=None if port is None else subprocess.DEVNULL, text=True)
        self.port = port or int(self.process.stdout.readline().rsplit(":", 1)[1])

    def get(self, path):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        connection.request("GET", path)
        return connection.getresponse().status

    def wait(self):
        for _ in range(1200):
            try:
                if self.get("/health") == 200:
                    return
            except OSError:
                pass
            if self.process.poll() is not None:
                break
            time.sleep(0.1)
        raise SystemExit(f"{self.name} did not start")

    def ask(self, prompt, args, seed, counts):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=600)
        body = {"prompt": prompt, "max_tokens": args.tokens, "temperature": args.temperature, "seed": seed}
        connection.request("POST", "/v1/completions", json.dumps({**body, **self.further}),
                           {"Content-Type": "application/json"})
        answer = json.loads(connection.getresponse().read())
        if "usage" not in answer:
            raise SystemExit(f"{self.name} refused: {answer}")
        counts.append(answer["usage"]["completion_tokens"])

    def rate(self, clients, args, draw):
        prompts = [[draw.randrange(5, 512) for _ in range(args.prompt_tokens)] for _ in range(clients)]
        counts, began = [], time.monotonic()
        threads = [threading.Thread(target=self.ask, args=(prompt, args, draw.randrange(1 << 30), counts))
                   for prompt in prompts]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if len(counts) < clients:
            raise SystemExit(f"{self.name}: not all requests were answered")
        return sum(counts) / (time.monotonic() - began)

    def told(self):
        one, many = (statistics.median(self.rates[clients]) for clients in (1, CLIENTS))
        ratios = sorted(b / a for a, b in zip(self.rates[1], self.rates[CLIENTS]))
        return (f"{self.name}: 1 client: {one:.1f} tokens/s; {CLIENTS} clients: {many:.1f} tokens/s; ratio "
                f"{many / one:.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f} in one round)")


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def llama_server(program, file, args):
    """Its own choices, but for the number of texts and threads; no text ends before its time."""
    port = free_port()
    command = [program, "-m", file, "--port", str(port), "-np", str(CLIENTS), "-c", str(CLIENTS * args.context)]
    return Server("llama.cpp", [*command, "-t", str(args.threads), "-tb", str(args.threads)], port,
                  {"ignore_eos": True, "cache_prompt": False})


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("lathe")
    parser.add_argument("model")
    parser.add_argument("--tokens", type=int, default=100)
    parser.add_argument("--prompt-tokens", type=int, default=16)
    parser.add_argument("--temperature", type=float, default=1)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--context", type=int, default=512)
    parser.add_argument("--llama-server", nargs=2)
    args, flags = parser.parse_known_args()
    servers = []
    with tempfile.TemporaryDirectory() as folder:
        model = args.model
        if model.endswith(".json"):
            model = with_tokenizer(model, folder)
            flags += ["--random-weights"]
        command = [args.lathe, "serve", model, "--port", "0", "--slots", str(CLIENTS)]
        command += ["--threads", str(args.threads), "--context", str(args.context), *flags]
        try:
            servers.append(Server("lathe", command))
            if args.llama_server:
                servers.append(llama_server(*args.llama_server, args))
            draw = random.Random(1)
            for server in servers:
                server.wait()
                server.rate(CLIENTS, args, draw)  # warm
            for _ in range(args.rounds):
                for clients in (1, CLIENTS):
                    for server in servers:
                        server.rates[clients].append(server.rate(clients, args, draw))
            for server in servers:
                print(server.told())
            if len(servers) == 2:
                for clients in (1, CLIENTS):
                    ours, theirs = (statistics.median(server.rates[clients]) for server in servers)
                    print(f"lathe / llama.cpp with {clients} clients: {ours / theirs:.2f}")
        finally:
            for server in servers:
                server.process.terminate()
                server.process.wait()


if __name__ == "__main__":
    main()
