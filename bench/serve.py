#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tokens per second of `lathe serve` with one client and with eight, in turn: a ratio of medians.

Usage: serve.py LATHE MODEL [--tokens N] [--rounds N] [FLAGS OF SERVE...]
"""
import argparse
import http.client
import json
import statistics
import subprocess
import threading
import time

parser = argparse.ArgumentParser()
parser.add_argument("lathe")
parser.add_argument("model")
parser.add_argument("--tokens", type=int, default=100)
parser.add_argument("--rounds", type=int, default=3)
args, flags = parser.parse_known_args()
server = subprocess.Popen([args.lathe, "serve", args.model, "--port", "0", "--slots", "8", *flags],
                          stdout=subprocess.PIPE, text=True)
port = int(server.stdout.readline().rsplit(":", 1)[1])


def ask(number, counts):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=600)
    body = {"prompt": f"Story {number}: once upon a time", "max_tokens": args.tokens, "temperature": 1, "seed": number}
    connection.request("POST", "/v1/completions", json.dumps(body), {"Content-Type": "application/json"})
    counts.append(json.loads(connection.getresponse().read())["usage"]["completion_tokens"])


def rate(clients, round_number):
    counts, began = [], time.monotonic()
    threads = [threading.Thread(target=ask, args=(100 * round_number + i, counts)) for i in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(counts) / (time.monotonic() - began)


try:
    rate(8, 99)  # warm
    one, eight = zip(*((rate(1, r), rate(8, r)) for r in range(args.rounds)))
    one, eight = statistics.median(one), statistics.median(eight)
    print(f"1 client: {one:.1f} tokens/s; 8 clients: {eight:.1f} tokens/s; ratio {eight / one:.2f}")
finally:
    server.terminate()
    server.wait()
