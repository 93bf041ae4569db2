#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Asks a server on 127.0.0.1 of many clients at once, some of them cut off, slow or hostile: every
other answer is what `lathe generate` writes, and the server stops when it is asked to.

    serve_test.py LATHE MODEL [REQUESTS CLIENTS] [--only NAME ...]

It stops by itself after ten minutes.
"""
import argparse
import base64
import functools
import http.client
import json
import os
import pathlib
import pty
import random
import re
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time

import openai_checks
import request_fields
import server_limits

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "consumer"))
import model_files  # noqa: E402

OPTIONS = argparse.Namespace()  # the command line: lathe, model, requests, clients, only
TOKENS = 24
# At each of their steps the likeliest token is ahead by LEAD or more (`check_leads`): a batch of
# another size may round logits in bf16 the other way, and what is a tie then is no wrong answer.
PROMPTS = ["He was not afraid of the deep water. He had a silver whistle", "The cat had a red ball", "Anna had a shiny bell",
           "Tom was hot", "Lily was hot", "Anna had a red ball", "The sun had a red ball",
           "There they saw a young lamb that could not move. The lamb had a"]
LEAD = 0.1  # of the logits; where this was measured 0.37 and more


class Server:
    def __init__(self, *flags, env=None, model=None):
        self.process = subprocess.Popen([OPTIONS.lathe, "serve", model or OPTIONS.model, "--port", "0", *flags],
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                        env={**os.environ, **(env or {})})
        line = self.process.stdout.readline()
        assert "http://127.0.0.1:" in line, (line, self.process.stderr.read())
        self.port = int(line.rsplit(":", 1)[1])

    def ask(self, method, path, body=None, headers=None, timeout=120, source=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout,
                                                source_address=source and (source, 0))
        data = json.dumps(body) if isinstance(body, dict) else body
        kind = {"Content-Type": "application/json"} if data is not None else {}
        connection.request(method, path, data, {**kind, **(headers or {})})
        response = connection.getresponse()
        text = response.read().decode()
        connection.close()
        return response.status, response, text

    def complete(self, **body):
        status, response, text = self.ask("POST", "/v1/completions", body)
        return status, json.loads(text)

    def raw(self, data, timeout=20):
        """What the server says to these bytes until it closes, or the time is over."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=timeout) as s:
            said = b""
            try:
                s.sendall(data)
                while chunk := s.recv(65536):
                    said += chunk
            except OSError:
                pass
            return said

    def metrics(self):
        return {name: int(value) for name, value in
                re.findall(r"^(lathe_\S+) (\d+)$", self.ask("GET", "/metrics")[2], re.M)}

    def ended(self):
        """How many texts ended how."""
        m = self.metrics()
        return {how: m['lathe_texts_ended_total{how="%s"}' % how] for how in ("finished", "cancelled", "failed")}

    def memory(self):
        with open(f"/proc/{self.process.pid}/status") as status:
            return int(re.search(r"VmRSS:\s+(\d+)", status.read())[1])

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(60) == 0, self.process.stderr.read()


def events(text):
    parts = [part[len("data: "):] for part in text.split("\n\n") if part]
    assert parts[-1] == "[DONE]", text[-200:]
    return [json.loads(part) for part in parts[:-1]]


def model_name():
    return os.path.basename(os.path.abspath(OPTIONS.model))


@functools.cache
def expected_texts():
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
        file.write("\n".join(PROMPTS) + "\n")
        file.flush()
        done = subprocess.run([OPTIONS.lathe, "generate", OPTIONS.model, "--batch", file.name, "-n", str(TOKENS), "--json"],
                              capture_output=True, text=True, check=True)
    return {t["prompt"]: t["text"] for t in json.loads(done.stdout)["texts"]}


def check_leads(server):
    for prompt in PROMPTS:
        tokens = server.complete(prompt=prompt, max_tokens=TOKENS, temperature=0, logprobs=2)[1]
        for top in tokens["choices"][0]["logprobs"]["top_logprobs"]:
            best, second = sorted(top.values(), reverse=True)
            assert best - second >= LEAD, (prompt, top)


def check_answers(server):
    expected = expected_texts()
    prompt = PROMPTS[0]
    status, answer = server.complete(model=model_name(), prompt=prompt, max_tokens=TOKENS, temperature=0, logprobs=2)
    assert status == 200, answer
    choice = answer["choices"][0]
    assert choice["text"] == expected[prompt], (choice, expected[prompt])
    assert len(choice["logprobs"]["tokens"]) == answer["usage"]["completion_tokens"]
    # The same as a stream, with its usage at the end.
    status, response, text = server.ask("POST", "/v1/completions", {
        "prompt": prompt, "max_tokens": TOKENS, "temperature": 0, "stream": True,
        "stream_options": {"include_usage": True}})
    chunks = events(text)
    assert response.getheader("Content-Type") == "text/event-stream"
    assert "".join(c["choices"][0]["text"] for c in chunks if c["choices"]) == expected[prompt]
    assert chunks[-1]["usage"]["completion_tokens"] == answer["usage"]["completion_tokens"]
    # Several prompts, several choices.
    body = dict(prompt=PROMPTS[:2], n=2, max_tokens=TOKENS, temperature=1, seed=5)
    choices = server.complete(**body)[1]["choices"]
    assert [c["index"] for c in choices] == [0, 1, 2, 3]
    # Each of a prompt's choices is drawn by a seed of its own.
    assert choices[0]["text"] != choices[1]["text"] and choices[2]["text"] != choices[3]["text"], choices
    # A seed gives the same again: alone, with the prompt in the cache, every logit is the same.
    drawn = [server.complete(prompt=prompt, max_tokens=TOKENS, temperature=1, seed=seed)[1]["choices"][0]["text"]
             for seed in (5, 0, 5, 0)]
    assert drawn[:2] == drawn[2:] and drawn[0] != drawn[1], drawn
    # A share of 0 leaves the likeliest token, whatever else is asked for.
    body = dict(prompt=prompt, max_tokens=TOKENS, temperature=1, top_p=0, top_k=50, seed=3)
    assert server.complete(**body)[1]["choices"][0]["text"] == expected[prompt]
    # Each penalty is its own.
    for name in ("presence", "frequency"):
        command = [OPTIONS.lathe, "generate", OPTIONS.model, "-p", prompt, "-n", str(TOKENS), "--json", f"--{name}-penalty", "1.5"]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        body = {"prompt": prompt, "max_tokens": TOKENS, "temperature": 0, f"{name}_penalty": 1.5}
        assert server.complete(**body)[1]["choices"][0]["text"] == json.loads(done.stdout)["text"], name
    # A stop text, and one that a schema binds.
    word = expected[prompt].split()[3]
    stopped = server.complete(prompt=prompt, max_tokens=TOKENS, temperature=0, stop=word)[1]["choices"][0]
    assert stopped["text"] == expected[prompt].split(word)[0] and stopped["finish_reason"] == "stop", stopped
    schema = {"type": "object", "properties": {"ok": {"type": "boolean"}, "n": {"type": "integer", "minimum": 3, "maximum": 44}},
              "required": ["ok", "n"], "additionalProperties": False}
    for seed in range(5):
        text = server.complete(prompt=prompt, max_tokens=80, temperature=1, seed=seed, response_format={
            "type": "json_schema", "json_schema": {"name": "x", "schema": schema}})[1]["choices"][0]["text"]
        value = json.loads(text)
        assert list(value) == ["ok", "n"] and isinstance(value["ok"], bool) and 3 <= value["n"] <= 44, text
    text = server.complete(prompt=prompt, max_tokens=40, temperature=1, seed=1, regex="(ab|c){3,5}!")[1]["choices"][0]["text"]
    assert re.fullmatch("(ab|c){3,5}!", text), text


def check_counts(server):
    """Usage of several prompts is the sum of theirs; a stream tells every token, those without a text of their
    own among them."""
    asked = dict(max_tokens=6, temperature=0)
    alone = [server.complete(prompt=p, **asked)[1]["usage"] for p in PROMPTS[:3]]
    assert len({u["prompt_tokens"] for u in alone}) > 1, alone
    for n in (1, 2):
        usage = server.complete(prompt=PROMPTS[:3], n=n, **asked)[1]["usage"]
        prompts, made = sum(u["prompt_tokens"] for u in alone), n * sum(u["completion_tokens"] for u in alone)
        assert (usage["prompt_tokens"], usage["completion_tokens"], usage["total_tokens"]) == (prompts, made, prompts + made), usage
    # A stream tells its usage once, at its end, if it is asked to.
    body = dict(prompt=[5] * 40, **asked)
    whole = server.complete(**body)[1]
    for options, told in (({"include_usage": True}, True), ({}, False)):
        chunks = events(server.ask("POST", "/v1/completions", {**body, "stream": True, "stream_options": options})[2])
        assert [c.get("usage", "none") for c in chunks[:-1]] == [None if told else "none"] * (len(chunks) - 1), chunks
        last = chunks[-1]
        assert (last["choices"] == []) == told == ("usage" in last), last
        if told:
            assert last["usage"]["prompt_tokens_details"] == {"cached_tokens": 39}, last
            assert last["usage"]["completion_tokens"] == whole["usage"]["completion_tokens"], last
    # The longest prompt has one token behind it, of which no position is left.
    answer = server.complete(prompt=[5] * 512, max_tokens=5, temperature=0)[1]
    assert answer["usage"]["completion_tokens"] == 1 and answer["choices"][0]["finish_reason"] == "length", answer
    status, answer = server.complete(prompt=[5] * 513, max_tokens=5)
    assert status == 400 and answer["error"]["code"] == "context_length_exceeded", answer
    # Each choice of a stream counts its own characters.
    body = dict(prompt=PROMPTS[0], n=2, max_tokens=8, temperature=0, logprobs=0)
    whole = server.complete(**body)[1]["choices"]
    chunks = events(server.ask("POST", "/v1/completions", {**body, "stream": True})[2])
    for i in range(2):
        offsets = [x for c in chunks for one in c["choices"] if one["index"] == i and one["logprobs"]
                   for x in one["logprobs"]["text_offset"]]
        assert offsets == whole[i]["logprobs"]["text_offset"], (offsets, whole[i])
    # Numbers, truths and null of a schema are what the client wrote.
    for constant in (-3, 2**63, 0.0625, 1e-7, None, False, "x"):
        text = server.complete(prompt="a", max_tokens=30, temperature=1, response_format={
            "type": "json_schema", "json_schema": {"name": "x", "schema": {"const": constant}}})[1]["choices"][0]["text"]
        assert json.loads(text) == constant, (text, constant)
    # Characters of several bytes come in several tokens: the text stands at the last of them.
    body = dict(prompt=PROMPTS[0], max_tokens=40, temperature=1, seed=2, logprobs=1, regex="([\u4e00-\u4eff]x){4}")
    whole = server.complete(**body)[1]
    assert whole["usage"]["completion_tokens"] > 8, whole["usage"]
    chunks = events(server.ask("POST", "/v1/completions", {**body, "stream": True})[2])
    choices = [c["choices"][0] for c in chunks if c["choices"]]
    want = whole["choices"][0]["logprobs"]
    assert len(want["tokens"]) == whole["usage"]["completion_tokens"]
    begins = [sum(map(len, want["tokens"][:i])) for i in range(len(want["tokens"]))]
    assert want["text_offset"] == begins, want  # in characters
    assert any(c["logprobs"] and not c["text"] for c in choices), choices
    for field in ("tokens", "token_logprobs", "top_logprobs", "text_offset"):
        assert [x for c in choices if c["logprobs"] for x in c["logprobs"][field]] == want[field], field
    assert "".join(c["text"] for c in choices) == whole["choices"][0]["text"]
    # Without log-probabilities there is nothing to tell of such a token.
    del body["logprobs"]
    chunks = events(server.ask("POST", "/v1/completions", {**body, "stream": True})[2])
    assert all(c["choices"][0]["text"] or c["choices"][0]["finish_reason"] for c in chunks), chunks


def check_connection(server):
    """Limits are those of a request, however many come by one connection."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    connection.connect()
    socket_of_all = connection.sock
    for _ in range(12):
        connection.request("GET", "/health", headers={"X-Padding": "p" * 3000})
        response = connection.getresponse()
        assert response.status == 200 and response.read(), response.status
        assert connection.sock is socket_of_all, "the server has closed the connection"
    try:
        connection.request("GET", "/health", headers={f"X-{i}": "p" * 3000 for i in range(8)})
        assert connection.getresponse().status >= 400, "24 kB of headers were taken"
    except (http.client.HTTPException, OSError):
        pass
    connection.close()


def check_burst(server):
    """Who comes while the server is busy elsewhere waits, and is not reset."""
    server.process.send_signal(signal.SIGSTOP)
    statuses = []
    threads = [threading.Thread(target=lambda: statuses.append(server.ask("GET", "/health")[0])) for _ in range(30)]
    for thread in threads:
        thread.start()
    time.sleep(0.3)
    server.process.send_signal(signal.SIGCONT)
    for thread in threads:
        thread.join()
    assert statuses == [200] * len(threads), statuses


def check_limits(server):
    """The ends of each range are taken, what lies beyond them is refused by the field's name."""
    def refuses(field, **body):
        status, _, text = server.ask("POST", "/v1/completions", {"prompt": "a", "max_tokens": 1, **body})
        return status == 400 and json.loads(text)["error"]["message"].removeprefix("request: ").startswith(field)

    def takes(**body):
        return server.complete(**{"prompt": "a", "max_tokens": 1, **body})[0] == 200

    for field, low, high, step in [
            ("temperature", 0, 100, 0.001), ("top_p", 0, 1, 0.001), ("top_k", 0, 2**31 - 1, 1), ("min_p", 0, 1, 0.001),
            ("presence_penalty", -2, 2, 0.001), ("frequency_penalty", -2, 2, 0.001),
            ("repetition_penalty", 0.001, 1000, 0.0005), ("n", 1, 32, 1), ("logprobs", 0, 20, 1)]:
        for value in (low, high):
            assert takes(**{field: value}), (field, value)
        for value in (low - step, high + step):
            assert refuses(field, **{field: value}), (field, value)
    for value in (0, 4097):
        assert refuses("max_tokens", max_tokens=value), value
    # The texts of a request are its prompts times n.
    for prompts, n, blamed in [(32, 1, ""), (8, 4, ""), (33, 1, "prompt"), (17, 2, "n:"), (2, 17, "n:")]:
        body = {"prompt": ["a"] * prompts, "n": n}
        assert refuses(blamed, **body) if blamed else takes(**body), (prompts, n)
    assert takes(stop=[str(i) for i in range(16)])
    assert refuses("stop", stop=[str(i) for i in range(17)])
    assert refuses("stream_options", stream_options={"include_usage": True})
    assert refuses("regex", regex="a", response_format={"type": "text"})
    assert refuses("response_format.type", response_format={"type": "xml"})


def check_refusals(server):
    for body, status, words in [
            ({"prompt": "a", "best_off": 3}, 400, "'best_off' is not supported"),
            ({"prompt": "a", "logit_bias": {"5": 1}}, 400, "'logit_bias' is not supported"),
            ({"prompt": "a", "temperature": "hot"}, 400, "temperature"),
            ({"prompt": "a", "temperature": -1}, 400, "temperature"),
            ({"prompt": "a", "n": 100}, 400, "n"),
            ({"prompt": ["a"] * 17, "n": 2, "max_tokens": 1}, 400, "n: expected at most 32 texts of one request, got 34"),
            ({"prompt": [5, 99999]}, 400, "prompt"),
            ({"prompt": "a " * 3000}, 400, "tokens, the server takes at most"),
            ({"prompt": "a", "model": "other"}, 404, "there is no model"),
            ({"prompt": "a", "regex": "(?=b)"}, 400, "looking ahead"),
            ({}, 400, "prompt"), ("[1]", 400, "expected a JSON object"), ("{", 400, "request"),
            ("[" * 5000, 400, "request"), (b"\xff{}", 400, "request")]:
        got, _, text = server.ask("POST", "/v1/completions", body)
        error = json.loads(text)["error"]
        assert got == status and words in error["message"], (body, got, text)
    assert server.ask("POST", "/v1/chat/completions", {"messages": [{"role": "user", "content": "a"}]})[0] == 400
    assert server.ask("POST", "/v1/embeddings", {"input": "a"})[0] == 400
    status, _, text = server.ask("GET", "/nothing")
    assert status == 404 and json.loads(text)["error"]["message"] == "there is no GET /nothing", text
    assert server.ask("POST", "/v1/completions", "{}", {"Content-Type": "text/plain"})[0] == 415
    for method, body, headers, status, words in [
            ("GET", None, {"Host": "evil.example"}, 403, "reached as localhost, not as evil.example"),
            ("GET", None, {"Host": "127.evil.example:80"}, 403, "reached as localhost, not as 127.evil.example"),
            ("GET", None, {"Host": "[::1]evil.example"}, 403, "reached as localhost, not as [::1]evil.example"),
            ("GET", None, {"Host": "[::1"}, 403, "reached as localhost, not as [::1"),
            ("GET", None, {"Origin": "http://evil.example"}, 403, "pages of http://evil.example may not ask"),
            ("GET", "{}", {}, 400, "GET takes no body")]:
        got, _, text = server.ask(method, "/v1/models", body, headers)
        assert got == status and words in json.loads(text)["error"]["message"], (headers, got, text)
    head = b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    body = b'{"prompt":"a","max_tokens":1}'
    for lengths, status, words in [
            (b"Content-Length: -5", 400, "got '-5'"), (b"Content-Length: abc", 400, "got 'abc'"),
            (b"Content-Length: 99999999999999999999", 413, "at most"),
            (b"Content-Length: 29\r\nContent-Length: 5", 400, "expected one Content-Length, got 2"),
            (b"Transfer-Encoding: chunked\r\nContent-Length: 29", 400, "got both")]:
        said = server.raw(head + lengths + b"\r\n\r\n" + body).decode()
        assert said.startswith(f"HTTP/1.1 {status} ") and words in said, (lengths, said)
    for hosts, status in [(b"", 400), (b"Host: localhost\r\nHost: localhost\r\n", 400),
                          (b"Host: localhost\r\nhost: evil.example\r\n", 400), (b"Host: 127.0.0.1:80\r\n", 200),
                          (b"Host: 127.0.0.2\r\n", 200),
                          (b"Host: LOCALHOST\r\n", 200), (b"Host: [::1]:80\r\n", 200), (b"Host: [::1]\r\n", 200)]:
        said = server.raw(b"GET /health HTTP/1.1\r\n" + hosts + b"Connection: close\r\n\r\n").decode()
        assert said.startswith(f"HTTP/1.1 {status} "), (hosts, said)
        assert status == 200 or "expected one Host" in said, said
    assert server.raw(b"GET /health HTTP/1.0\r\n\r\n").startswith(b"HTTP/1.1 200 ")  # which had no Host yet
    own = {"Origin": f"http://127.0.0.1:{server.port}"}  # its own page
    assert server.ask("GET", "/v1/models", headers=own)[0] == 200
    assert json.loads(server.ask("GET", "/v1/models")[2])["data"][0]["object"] == "model"


HOSTILE = [b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 20000 + b"\r\n", b"\0" * 5000, b"GET " + b"a" * 100000,
           b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
           b"Content-Length: 99999999999\r\n\r\n{}",
           b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
           b"Content-Length: -5\r\n\r\n", b"PUT / HTTP/9\r\n\r\n"]


def soak(server):
    """So many requests from so many threads; a tenth of them is no good client."""
    expected = expected_texts()
    problems, counts, lock = [], {"good": 0, "bad": 0}, threading.Lock()
    todo = iter(range(OPTIONS.requests))

    def one(number):
        draw = random.Random(number)
        prompt = draw.choice(PROMPTS)
        body = {"prompt": prompt, "max_tokens": TOKENS, "temperature": 0, "stream": draw.random() < 0.5}
        if number % 10 == 9:
            data = json.dumps({**body, "max_tokens": 300}).encode()
            head = (b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                    b"Content-Length: %d\r\n\r\n" % len(data))
            kind = draw.randrange(3)
            if kind == 0:
                server.raw(draw.choice(HOSTILE), timeout=2)
            else:
                with socket.create_connection(("127.0.0.1", server.port), timeout=120) as s:
                    for byte in (head if kind == 1 else b""):  # slow, then cut off
                        s.sendall(bytes([byte]))
                    s.sendall(data if kind == 1 else head + data)
                    s.recv(draw.choice([1, 100]))
            return "bad"
        while True:
            status, _, text = server.ask("POST", "/v1/completions", body)
            if status != 429:
                break
            time.sleep(0.05)
        assert status == 200, (status, text)
        got = ("".join(c["choices"][0]["text"] for c in events(text)) if body["stream"]
               else json.loads(text)["choices"][0]["text"])
        assert got == expected[prompt], (prompt, got, expected[prompt])
        return "good"

    def client():
        while True:
            with lock:
                number = next(todo, None)
            if number is None:
                return
            try:
                kind = one(number)
                with lock:
                    counts[kind] += 1
            except Exception as e:
                with lock:
                    problems.append((number, repr(e)))

    before, began = server.memory(), time.monotonic()
    threads = [threading.Thread(target=client) for _ in range(OPTIONS.clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not problems, problems[:3]
    seconds = time.monotonic() - began
    for _ in range(100):  # those who left are noticed soon
        m = server.metrics()
        if m["lathe_texts_running"] + m["lathe_texts_waiting"] == 0:
            break
        time.sleep(0.1)
    assert m["lathe_texts_running"] + m["lathe_texts_waiting"] == 0, m
    assert sum(server.ended().values()) == m["lathe_texts_taken_total"], m
    after = server.memory()
    assert after < before + 200_000, (before, after)
    print(f"serve: {counts['good']} answers as `lathe generate` writes them, {counts['bad']} bad clients, "
          f"{OPTIONS.clients} at once, {seconds:.1f} s; {before // 1024} MB before, {after // 1024} MB after")


def check_blocks():
    """A cache in blocks that holds few texts at once: the same answers, and blocks that are counted."""
    with server_limits.running(Server, "--slots", "8", "--cache-block", "4", "--cache-tokens", "400") as server:
        soak(server)
        m = server.metrics()
        assert m["lathe_cache_blocks"] == 100 and m["lathe_cache_blocks_reserved"] == 0, m
        assert 0 < m["lathe_cache_blocks_used"] <= 100, m
        reused = m["lathe_prompt_tokens_reused_total"]
        # One beginning of several blocks: whoever comes later has it already.
        prompt, texts = " ".join(PROMPTS[:4]), []
        for _ in range(3):
            status, answer = server.complete(prompt=prompt, max_tokens=TOKENS, temperature=0)
            assert status == 200, answer
            texts.append(answer["choices"][0]["text"])
        assert len(set(texts)) == 1, texts
        assert server.metrics()["lathe_prompt_tokens_reused_total"] >= reused + 2 * 16
        status, answer = server.complete(prompt=" ".join(PROMPTS * 40), max_tokens=1)
        assert status == 400 and "tokens" in answer["error"]["message"], answer
    said = server.process.stderr.read()
    assert "--cache-tokens: a text has at most 400 tokens" in said and "instead of 512" in said, said
    # More than all texts fill is of no use.
    with server_limits.running(Server, "--slots", "2", "--context", "64", "--cache-tokens", "1000000000") as server:
        assert server.metrics()["lathe_cache_blocks"] == 2 * 64 // 32, server.metrics()
    said = server.process.stderr.read()
    assert "--cache-tokens: 2 texts of 64 tokens fill 128" in said, said
    refused = subprocess.run([OPTIONS.lathe, "serve", OPTIONS.model, "--port", "0", "--cache-block", "0", "--cache-tokens", "400"],
                             capture_output=True, text=True)
    assert refused.returncode == 2 and "--cache-tokens is of a cache in blocks" in refused.stderr, refused


def check_queue():
    """One who asks for more than the queue holds is refused, and others find their places."""
    with server_limits.running(Server, "--slots", "1", "--queue", "12") as server:
        answers = []

        def one(who, **asked):
            source = asked.pop("source", None)
            body = {"prompt": PROMPTS[0], "max_tokens": 300, "temperature": 0, **asked}
            status, response, text = server.ask("POST", "/v1/completions", body, source=source)
            answers.append((who, status, response.getheader("Retry-After"), json.loads(text)))

        server.process.send_signal(signal.SIGSTOP)  # all of them come at once
        threads = [threading.Thread(target=one, args=("much",)) for _ in range(30)]
        threads.append(threading.Thread(target=one, args=("user",), kwargs={"user": "x"}))
        threads.append(threading.Thread(target=one, args=("address",), kwargs={"source": "127.0.0.2"}))
        for thread in threads:
            thread.start()
        time.sleep(0.3)
        server.process.send_signal(signal.SIGCONT)
        for thread in threads:
            thread.join()
        for who, status, retry, answer in answers:
            assert status == 200 or (who, status, retry, answer["error"]["code"]) == (
                "much", 429, "1", "user_queue_full"), (who, status, retry, answer)
        refused = [answer for _, status, _, answer in answers if status == 429]
        assert refused and "as many texts waiting as the queue has free places" in refused[0]["error"]["message"], refused
        # The texts of a request come in together or not at all, and more than ever may wait are a mistake.
        answers.clear()
        finished = server.ended()["finished"]
        three = threading.Thread(target=one, args=("three",), kwargs={"prompt": ["a"] * 3})
        three.start()
        # One runs and two wait: a user has four waiting at most where twelve places are.
        while (m := server.metrics())["lathe_texts_running"] < 1 or m["lathe_texts_waiting"] < 2:
            time.sleep(0.001)
        one("four", prompt=["a"] * 4)
        three.join()
        assert [(who, status) for who, status, _, _ in answers] == [("four", 429), ("three", 200)], answers
        # Of the one that was refused no text goes on.
        while (m := server.metrics())["lathe_texts_running"] + m["lathe_texts_waiting"] > 0:
            time.sleep(0.01)
        ended = server.ended()
        assert ended["finished"] == finished + 3 and ended["cancelled"] > 0 == ended["failed"], (finished, ended)
        status, answer = server.complete(prompt=["a"] * 5, max_tokens=300)
        assert status == 400 and "expected at most 4 texts" in answer["error"]["message"], answer


def check_stop():
    """A signal lets running texts end, and refuses new ones."""
    answers = []
    with server_limits.running(Server, "--stop-timeout", "600") as server:
        body = {"prompt": PROMPTS[0], "max_tokens": 400, "temperature": 0, "stream": True}
        thread = threading.Thread(target=lambda: answers.append(server.ask("POST", "/v1/completions", body)[2]))
        thread.start()
        while server.metrics()["lathe_texts_running"] == 0 and thread.is_alive():
            time.sleep(0.01)
    thread.join()
    assert events(answers[0])[-1]["choices"][0]["finish_reason"] in ("stop", "length")


def check_key():
    with server_limits.running(Server, "--api-key-env", "SERVE_TEST_KEY", env={"SERVE_TEST_KEY": "secret"}) as server:
        for path in ("/v1/models", "/metrics"):
            status, response, text = server.ask("GET", path)
            assert (status, response.getheader("WWW-Authenticate")) == (401, "Bearer"), (path, status)
            assert json.loads(text)["error"]["type"] == "authentication_error", text
        assert server.ask("GET", "/")[0] == 200
        for other in ("Bearer secre", "Bearer secrets", "Bearer secretBearer secret", "Bearer Secret", "secret", ""):
            assert server.ask("GET", "/v1/models", headers={"Authorization": other})[0] == 401, other
        assert server.ask("GET", "/v1/models", headers={"Authorization": "Bearer secret"})[0] == 200
        assert server.ask("GET", "/health")[0] == 200
        if openai_checks.openai:
            openai_checks.check_key(server.port, "secret")
    # A file ends its line as its editor does.
    with tempfile.NamedTemporaryFile() as file:
        file.write(b"secret\r\n")
        file.flush()
        with server_limits.running(Server, "--api-key-file", file.name) as server:
            for key, status in (("secret", 200), ("secre", 401)):
                assert server.ask("GET", "/v1/models", headers={"Authorization": "Bearer " + key})[0] == status, key


CHAT_TEMPLATE = ("{{ bos_token }}{% for m in messages %}{{ m.role }}{% if m.name %} {{ m.name }}{% endif %}: {{ m.content }}\n{% endfor %}"
                 "{% if add_generation_prompt %}bot:{% endif %}")


def check_chat():
    """The story model with a chat template: the route, its stream, `lathe chat` and the page."""
    with tempfile.TemporaryDirectory() as folder:
        for name in ("config.json", "model.safetensors", "tokenizer.json"):
            os.symlink(os.path.abspath(os.path.join(OPTIONS.model, name)), os.path.join(folder, name))
        with open(os.path.join(folder, "tokenizer_config.json"), "w") as file:
            json.dump({"bos_token": "<|bos|>", "eos_token": "<|eos|>", "chat_template": CHAT_TEMPLATE}, file)
        messages = [{"role": "user", "content": "Once upon a time"}]

        def generated(list_of_messages, *flags):
            return json.loads(subprocess.run([OPTIONS.lathe, "generate", folder, "--messages", "-", "-n", "20", "--json", *flags],
                                             input=json.dumps(list_of_messages), capture_output=True, text=True,
                                             check=True).stdout)["text"]

        first = generated(messages)
        with server_limits.running(Server, model=folder) as server:
            body = {"messages": messages, "max_completion_tokens": 20, "temperature": 0}
            status, _, text = server.ask("POST", "/v1/chat/completions", body)
            assert status == 200 and json.loads(text)["choices"][0]["message"]["content"] == first, text
            if openai_checks.openai:
                openai_checks.check_chat(server.port, os.path.basename(folder), messages, 20, first)
            # A name is part of the message; each choice of a stream begins as the assistant's and ends without a text.
            named = [{**messages[0], "name": "Lily"}]
            status, _, text = server.ask("POST", "/v1/chat/completions", {**body, "messages": named})
            answer = json.loads(text)
            assert answer["choices"][0]["message"]["content"] == generated(named) and answer["object"] == "chat.completion", text
            chunks = events(server.ask("POST", "/v1/chat/completions", {**body, "n": 2, "stream": True})[2])
            assert {c["object"] for c in chunks} == {"chat.completion.chunk"}, chunks[0]
            parts = [c["choices"][0] for c in chunks]
            assert {(p["index"], p["delta"]["role"]) for p in parts if "role" in p["delta"]} == {(0, "assistant"), (1, "assistant")}
            assert all(p["delta"] == {} for p in parts if p["finish_reason"]), parts
            # The parts of a character have the bytes that they are; together they are the text's.
            status, _, text = server.ask("POST", "/v1/chat/completions", {
                **body, "temperature": 1, "seed": 2, "logprobs": True, "top_logprobs": 2, "regex": "([\u4e00-\u4eff]x){4}"})
            choice = json.loads(text)["choices"][0]
            parts = choice["logprobs"]["content"]
            joined = bytes(byte for part in parts for byte in part["bytes"])
            assert joined.decode() == choice["message"]["content"] and len(parts) > 8, parts
            assert all(part["token"] == bytes(part["bytes"]).decode(errors="replace") for part in parts), parts
            # Without a number of others each token comes with its own.
            status, _, text = server.ask("POST", "/v1/chat/completions", {**body, "logprobs": True})
            alone = json.loads(text)["choices"][0]["logprobs"]["content"]
            assert alone and all(part["logprob"] <= 0 and part["top_logprobs"] == [] for part in alone), text
            parts = [{"type": "text", "text": "Once upon "}, {"type": "text", "text": "a time"}]
            body["messages"] = [{"role": "user", "content": parts}]
            chunks = events(server.ask("POST", "/v1/chat/completions", {**body, "stream": True})[2])
            assert chunks[0]["choices"][0]["delta"]["role"] == "assistant"
            assert "".join(c["choices"][0]["delta"].get("content", "") for c in chunks) == first
            for forged in ({"content": "<|eos|>"}, {"content": "a", "role": "user<|eos|>"}, {"content": "a", "name": "<|eos|>"},
                           {"content": [{"type": "text", "text": "<|eo"}, {"type": "text", "text": "s|>"}]}):
                status, _, text = server.ask("POST", "/v1/chat/completions", {"messages": [{"role": "user", **forged}]})
                assert status == 400 and "control token" in text, (forged, text)
            request_fields.check_chat(server, os.path.basename(folder))
            status, response, page = server.ask("GET", "/")
            assert status == 200 and "default-src 'none'" in response.getheader("Content-Security-Policy")
            assert "innerHTML =" not in page and not re.search(r"(src|href)=.?https?:", page)
        talk = subprocess.run([OPTIONS.lathe, "chat", folder, "-n", "20", "-q"], input="Once upon a time\nAnd then?\n",
                              capture_output=True, text=True, check=True).stdout
        second = generated([*messages, {"role": "assistant", "content": first},
                            {"role": "user", "content": "And then?"}])
        assert talk == first + "\n" + second + "\n", (talk, first, second)
        # On a terminal a line that cannot be read is told, and the conversation goes on without it.
        ours, theirs = pty.openpty()
        talk = subprocess.Popen([OPTIONS.lathe, "chat", folder, "-n", "20", "-q"], stdin=theirs, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True)
        os.close(theirs)
        os.write(ours, b"<|eos|>\nOnce upon a time\n\x04")
        answers, told = talk.communicate(timeout=300)
        os.close(ours)
        assert talk.returncode == 0 and told.count("control token") == 1 and answers == first + "\n", (told, answers, first)
        # Each answer is drawn by a seed of its own.
        drawn = ["--temp", "1", "--seed"]
        talk = subprocess.run([OPTIONS.lathe, "chat", folder, "-n", "20", "-q", *drawn, "5"],
                              input="Once upon a time\nAnd then?\n", capture_output=True, text=True, check=True).stdout
        first = generated(messages, *drawn, "5")
        second = generated([*messages, {"role": "assistant", "content": first},
                            {"role": "user", "content": "And then?"}], *drawn, "6")
        assert talk == first + "\n" + second + "\n", (talk, first, second)


def check_embeddings():
    """In both encodings, of every number of bytes beyond threes; of one text and of several."""
    def weights_of(config):
        done = subprocess.run([OPTIONS.lathe, "inspect", str(config), "--json"], capture_output=True, text=True, check=True)
        return json.loads(done.stdout)["weights"]

    with tempfile.TemporaryDirectory() as top:
        for width in (8, 10, 12):
            folder = pathlib.Path(top) / f"minilm-{width}"
            model_files.write_folder(folder, {
                "architectures": ["BertModel"], "model_type": "bert", "vocab_size": 31000, "hidden_size": width,
                "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16,
                "max_position_embeddings": 64, "type_vocab_size": 2, "hidden_act": "gelu"}, weights_of, "bert.json")
            with server_limits.running(Server, model=str(folder)) as server:
                def asked(texts, encoding):
                    status, _, text = server.ask("POST", "/v1/embeddings", {"input": texts, "encoding_format": encoding})
                    assert status == 200, text
                    return json.loads(text)

                def embedded(texts, encoding):
                    return [row["embedding"] for row in asked(texts, encoding)["data"]]
                texts = ["a bell", "he was not afraid of the deep water", "a"]
                rows = embedded(texts, "float")
                assert [len(row) for row in rows] == [width] * 3
                coded = [base64.b64decode(text, validate=True) for text in embedded(texts, "base64")]
                assert [list(struct.unpack(f"<{width}f", data)) for data in coded] == rows
                for text, row in zip(texts, rows):
                    alone = embedded(text, "float")[0]
                    assert max(abs(a - b) for a, b in zip(alone, row)) < 1e-5, (alone, row)
                made = sum(asked(text, "float")["usage"]["prompt_tokens"] for text in texts)
                assert asked(texts, "float")["usage"] == {"prompt_tokens": made, "total_tokens": made}
                if width == 8:
                    request_fields.check_embeddings(server, folder.name, width)
                assert server.ask("POST", "/v1/completions", {"prompt": "a"})[0] == 400


def check_openai(server):
    """What OpenAI's own client makes of it."""
    if not openai_checks.openai:
        return print("serve: without the openai client; scripts/setup fetches it")
    openai_checks.check_completions(server.port, model_name(), PROMPTS[0], TOKENS, expected_texts()[PROMPTS[0]])


def check_fields(server):
    request_fields.check_completions(server, model_name())


def check_server_limits():
    """Of servers whose flags are others."""
    for check in (server_limits.check_timeout, server_limits.check_clients_gone, server_limits.check_half_closed,
                  server_limits.check_connections, server_limits.check_bodies, server_limits.check_stopping,
                  server_limits.check_metrics):
        check(Server)


def check_defaults():
    server_limits.check_defaults(Server, OPTIONS.model)


def check_flags():
    server_limits.check_flags(OPTIONS.lathe, Server, OPTIONS.model)


# Of one server, in this order, and of servers of their own.
TOGETHER = [check_leads, check_answers, check_counts, check_connection, check_openai, check_burst, check_limits,
            check_refusals, check_fields, soak]
ALONE = [check_blocks, check_queue, check_stop, check_key, check_chat, check_embeddings, check_server_limits,
         check_defaults, check_flags]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("lathe")
    parser.add_argument("model")
    parser.add_argument("requests", type=int, nargs="?", default=120)
    parser.add_argument("clients", type=int, nargs="?", default=12)
    parser.add_argument("--only", nargs="+", metavar="NAME", choices=[test.__name__ for test in TOGETHER + ALONE],
                        help="these tests alone, such as check_queue")
    parser.parse_args(namespace=OPTIONS)
    signal.alarm(600)

    def wanted(tests):
        return [test for test in tests if not OPTIONS.only or test.__name__ in OPTIONS.only]

    if wanted(TOGETHER):
        with server_limits.running(Server, "--slots", "8", "--cache-block", "0") as server:
            for test in wanted(TOGETHER):
                test(server)
    for test in wanted(ALONE):
        test()
    print("serve: as expected")


if __name__ == "__main__":
    main()
