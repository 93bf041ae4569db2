# SPDX-License-Identifier: Apache-2.0
"""What a server's flags limit, what becomes of requests while it stops, and what it counts."""
import contextlib
import http.client
import json
import os
import signal
import socket
import subprocess
import tempfile
import threading
import time

# Texts that together take far longer than any limit here, whatever a machine makes of them.
LONG = {"prompt": ["Tom was hot"] * 32, "max_tokens": 480, "temperature": 0, "regex": "[a-z ]{2000}"}


def wait_until(holds):
    for _ in range(6000):
        if holds():
            return
        time.sleep(0.01)
    raise AssertionError("a minute is over")


def error_of(text):
    return json.loads(text)["error"]


@contextlib.contextmanager
def running(make_server, *flags, **options):
    """A server that is stopped where all went well, and gone in any case."""
    server = make_server(*flags, **options)
    try:
        yield server
        server.stop()
    finally:
        server.process.kill()


def is_idle(server):
    m = server.metrics()
    return m["lathe_texts_running"] + m["lathe_texts_waiting"] == 0


def check_timeout(make_server):
    """A request that takes too long is cut, alone and as a stream; a short one is not."""
    with running(make_server, "--timeout", "0.3", "--slots", "1") as server:
        began = time.monotonic()
        status, _, text = server.ask("POST", "/v1/completions", LONG)
        assert status == 504 and error_of(text)["code"] == "timeout", text
        assert time.monotonic() - began < 8, "this is the time that headers have"
        status, _, text = server.ask("POST", "/v1/completions", {**LONG, "stream": True})
        parts = [part[len("data: "):] for part in text.split("\n\n") if part]
        assert status == 200 and parts[-1] == "[DONE]", text[-200:]
        errors = [json.loads(part)["error"] for part in parts[:-1] if "error" in json.loads(part)]
        assert errors and all(error["code"] == "timeout" for error in errors), errors
        assert server.ended()["cancelled"] >= 2 and is_idle(server), server.metrics()
        assert server.metrics()['lathe_http_responses_total{status="5xx"}'] == 1, server.metrics()


def check_clients_gone(make_server):
    """Texts of who leaves end, and are no finished ones."""
    with running(make_server, "--slots", "2") as server:
        for gone, stream in enumerate((False, True), 1):
            connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
            connection.request("POST", "/v1/completions", json.dumps({**LONG, "stream": stream}),
                               {"Content-Type": "application/json"})
            wait_until(lambda: server.metrics()["lathe_texts_running"] == 2)
            connection.sock.shutdown(socket.SHUT_RDWR)
            connection.close()
            wait_until(lambda: server.metrics()["lathe_http_clients_gone_total"] == gone and is_idle(server))
            assert server.ended() == {"finished": 0, "cancelled": 32 * gone, "failed": 0}, server.ended()


def check_half_closed(make_server):
    """Who closed its own direction before its text was ready gets no success without a text."""
    with running(make_server, "--slots", "2") as server:
        body = json.dumps(LONG).encode()
        with socket.create_connection(("127.0.0.1", server.port), timeout=60) as client:
            client.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
                           b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
            client.shutdown(socket.SHUT_WR)
            answer = b"".join(iter(lambda: client.recv(4096), b"")).decode()
        assert answer.startswith("HTTP/1.1 400 "), answer
        assert "the client closed the connection" in error_of(answer.split("\r\n\r\n", 1)[1])["message"], answer
        wait_until(lambda: is_idle(server))


def check_connections(make_server):
    """One connection too many is turned away."""
    with running(make_server, "--max-connections", "2") as server:
        kept = [http.client.HTTPConnection("127.0.0.1", server.port, timeout=60) for _ in range(2)]

        def ask(connection, path="/health"):
            connection.request("GET", path)
            response = connection.getresponse()
            return response.status, response.read().decode()
        assert [ask(connection)[0] for connection in kept] == [200, 200]
        status, response, text = server.ask("GET", "/health")
        assert status == 503 and response.getheader("Retry-After") == "1", status
        assert error_of(text)["code"] == "overloaded", text
        lines = ask(kept[0], path="/metrics")[1].splitlines()
        for line in ("lathe_http_connections 2", "lathe_http_connections_refused_total 1", "lathe_http_clients_gone_total 0",
                     'lathe_http_responses_total{status="2xx"} 2', 'lathe_http_responses_total{status="5xx"} 0'):
            assert line in lines, (line, lines)
        # The place of one who leaves is free.
        kept[1].close()
        wait_until(lambda: "lathe_http_connections 1" in ask(kept[0], path="/metrics")[1].splitlines())
        assert server.ask("GET", "/health")[0] == 200
        kept[0].close()


def check_bodies(make_server):
    """A body too long is not read, whichever way its length is told."""
    with running(make_server, "--max-body", "2000") as server:
        short = json.dumps({"prompt": "a", "max_tokens": 1})
        for size, expected in ((2000, 200), (2001, 413)):
            body = (short + " " * (size - len(short))).encode()
            for data in (body, iter([body[:1000], body[1000:]])):  # as a whole and in chunks
                status, response, text = server.ask("POST", "/v1/completions", data)
                assert status == expected, (size, status, text)
                if status == 413:
                    assert error_of(text)["message"] == "expected a body of at most 2000 bytes", text
                    assert response.getheader("Connection") == "close", response.getheaders()
        status, _, text = server.ask("POST", "/v1/completions", short, {"Content-Encoding": "gzip"})
        assert status == 415 and "bodies are not compressed" in error_of(text)["message"], text


def check_stopping(make_server):
    """While texts end the server says that it stops, to whoever asks and on connections that were kept. The second
    signal cuts what runs, and no time to stop cuts it at the first."""
    for flags, signals in ((["--stop-timeout", "600"], 2), (["--stop-timeout", "0"], 1)):
        server = make_server("--slots", "2", *flags)
        try:
            answers = []
            asks = threading.Thread(target=lambda: answers.append(server.ask("POST", "/v1/completions", LONG)))
            asks.start()
            wait_until(lambda: server.metrics()["lathe_texts_running"] == 2)
            kept = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
            kept.request("GET", "/health")
            response = kept.getresponse()
            assert (response.status, json.loads(response.read())) == (200, {"status": "ok"}), response.status
            server.process.send_signal(signal.SIGTERM)
            if signals == 2:
                wait_until(lambda: server.ask("GET", "/health")[0] != 200)  # the signal was heard
                status, response, text = server.ask("GET", "/health")
                assert (status, json.loads(text)) == (503, {"status": "stopping"}), text
                assert response.getheader("Connection") == "close", response.getheaders()
                assert server.metrics()["lathe_texts_running"] == 2, server.metrics()
                status, _, text = server.ask("POST", "/v1/completions", {"prompt": "a", "max_tokens": 1})
                assert (status, error_of(text)["code"]) == (503, "stopping"), text
                assert kept.sock.recv(1) == b"", "nobody waits for another request of this connection"
                assert asks.is_alive(), answers
                server.process.send_signal(signal.SIGTERM)
            asks.join()
            status, response, text = answers[0]
            assert (status, error_of(text)["code"]) == (503, "stopping"), text
            assert response.getheader("Retry-After") == "1", response.getheaders()
            assert server.process.wait(60) == 0, server.process.stderr.read()
        finally:
            server.process.kill()


def check_metrics(make_server):
    """One text of known counts."""
    with running(make_server, "--slots", "3") as server:
        status, answer = server.complete(prompt="Tom was hot", max_tokens=9, temperature=0, regex="[a-z]{30}")
        usage = answer["usage"]
        assert status == 200 and usage["completion_tokens"] == 9, answer
        assert answer["choices"][0]["finish_reason"] == "length", answer
        m = server.metrics()
        counted = {name: m[f"lathe_{name}"] for name in (
            "texts_taken_total", "texts_refused_total", "slots", "prompt_tokens_total", "prompt_tokens_reused_total",
            "generated_tokens_total", "decode_steps_total", "decode_step_texts_total")}
        assert counted == {"texts_taken_total": 1, "texts_refused_total": 0, "slots": 3,
                           "prompt_tokens_total": usage["prompt_tokens"], "prompt_tokens_reused_total": 0,
                           "generated_tokens_total": 9, "decode_steps_total": 8, "decode_step_texts_total": 8}, counted
        # Two texts of one prompt go on together, if the first is not over when the second is taken; the
        # second time all but its last token is there.
        steps = 399
        asked = dict(prompt=[5] * 40, n=2, max_tokens=steps + 1, temperature=0, regex="[a-z]{2000}")
        server.complete(**asked)
        n = server.metrics()
        assert n["lathe_decode_step_texts_total"] == 8 + 2 * steps, n
        assert 8 + steps <= n["lathe_decode_steps_total"] < 8 + 2 * steps, n
        answer = server.complete(**asked)[1]
        assert answer["usage"]["prompt_tokens_details"] == {"cached_tokens": 39}, answer
        o = server.metrics()
        assert o["lathe_prompt_tokens_reused_total"] == n["lathe_prompt_tokens_reused_total"] + 2 * 39, (n, o)


def check_defaults(make_server, model):
    """What the model's folder says of generating holds where a request does not."""
    def served(generation):
        folder = tempfile.mkdtemp(dir=top)
        for name in ("config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"):
            os.symlink(os.path.abspath(os.path.join(model, name)), os.path.join(folder, name))
        with open(os.path.join(folder, "generation_config.json"), "w") as file:
            json.dump(generation, file)
        return make_server(model=folder)

    def texts(server, **body):
        status, answer = server.complete(prompt="Tom was hot", **body)
        assert status == 200, answer
        choice = answer["choices"][0]
        return choice["text"], choice["finish_reason"], answer["usage"]["completion_tokens"]

    with tempfile.TemporaryDirectory() as top:
        with running(served, {"eos_token_id": 1}) as server:
            whole, reason, _ = texts(server, max_tokens=40)
            assert reason == "length", whole
            ids = server.complete(prompt="Tom was hot", max_tokens=40, logprobs=1)[1]["choices"][0]["logprobs"]["tokens"]
            assert "".join(ids) == whole, (ids, whole)
        word = whole.split()[4]
        # Of sampling with one token left the text is the likeliest, at any temperature.
        with running(served, {"eos_token_id": 1, "max_new_tokens": 5, "stop_strings": [word], "do_sample": True,
                             "temperature": 50.0, "top_k": 1}) as server:
            assert texts(server, stop=[]) == ("".join(ids[:5]), "length", 5)
            assert texts(server, stop=[], max_tokens=40)[0] == whole
            assert texts(server, max_tokens=40)[:2] == (whole.split(word)[0], "stop")
            assert texts(server, stop=[], max_tokens=40, top_k=0, seed=1)[0] != whole


def check_flags(lathe, make_server, model):
    """What is said of flags before the server listens, and where it does."""
    def refused(folder, *flags):
        done = subprocess.run([lathe, "serve", folder, "--port", "0", *flags], capture_output=True, text=True, timeout=300)
        return done.returncode, done.stderr

    def told(*flags):
        """The line with the address, and the notes."""
        process = subprocess.Popen([lathe, "serve", model, "--port", "0", "--slots", "1", *flags],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        line = process.stdout.readline()
        process.send_signal(signal.SIGTERM)
        return line, process.communicate(timeout=300)[1]

    with tempfile.TemporaryDirectory() as top:
        program, empty = os.path.join(top, "story.v2.lathe"), os.path.join(top, "key")
        subprocess.run([lathe, "compile", model, "-o", program], capture_output=True, check=True)
        with open(empty, "w") as file:
            file.write("\r\n")
        for folder, flags, words in [
                (model, ["--api-key-file", empty], "expected a key, got an empty one; see --api-key-file"),
                (model, ["--api-key-env", "SERVE_TEST_NO_SUCH_KEY"], "expected a key, got an empty one"),
                (model, ["--context", "513"], "--context: the model takes at most 512 tokens, got 513"),
                (program, ["--cache-block", "4"], "story.v2.lathe is a compiled program, whose cache is as it is")]:
            status, said = refused(folder, *flags)
            assert status == 2 and words in said, (flags, status, said)
        # A program is called as its file is, without the ending; it runs no more texts than it was compiled for.
        with running(make_server, "--context", "512", "--slots", "4096", model=program) as server:
            assert json.loads(server.ask("GET", "/v1/models")[2])["data"][0]["id"] == "story.v2"
            slots = server.metrics()["lathe_slots"]
        said = server.process.stderr.read()
        assert (f"the program runs at most {slots} texts at once" in said) == (slots < 4096), (slots, said)
    # Whoever listens for others without a key is warned.
    hosts = [("127.0.0.2", "127.0.0.2", False), ("localhost", "localhost", False), ("0.0.0.0", "0.0.0.0", True)]
    with contextlib.suppress(OSError), socket.socket(socket.AF_INET6) as six:
        six.bind(("::1", 0))
        hosts.append(("::1", "[::1]", False))
    for host, address, warns in hosts:
        line, said = told("--host", host)
        assert f" at http://{address}:" in line, (host, line, said)
        assert (f"whoever reaches {host} can use this server" in said) == warns, (host, said)
