# SPDX-License-Identifier: Apache-2.0
"""`lathe serve --ranks`: several clients at once get the texts of one rank, from a cache in blocks and one
of rows; the server stops when it is asked to, and a rank that fails ends it with its words.

    python3 serve_ranks_test.py PATH/lathe MODEL [--processes]

With --processes ranks are MPI's processes, too: its plug-in was built.
"""
import http.client
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from rank_job import Cases, Job

LATHE, MODEL = sys.argv[1:3]
PROCESSES = "--processes" in sys.argv
WAYS = [["--rank-threads"]] + ([[]] if PROCESSES else [])
TOKENS = 24
# The likeliest token of each step is far ahead (serve_test.py): another order of sums changes none.
PROMPTS = ["The cat had a red ball", "Anna had a shiny bell", "Tom was hot", "Lily was hot",
           "Anna had a red ball", "The sun had a red ball"]
signal.alarm(900)


class Server:
    def __init__(self, *flags, **variables):
        self.job = Job([LATHE, "serve", MODEL, "--port", "0", *flags], **variables)
        line = self.job.process.stdout.readline()
        assert "http://127.0.0.1:" in line, (line, self.job.said())
        self.port = int(line.rsplit(":", 1)[1])

    def complete(self, **body):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=300)
        connection.request("POST", "/v1/completions", json.dumps({"temperature": 0, "max_tokens": TOKENS, **body}),
                           {"Content-Type": "application/json"})
        response = connection.getresponse()
        answer = response.status, json.loads(response.read())
        connection.close()
        return answer


def expected_texts():
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
        file.write("\n".join(PROMPTS) + "\n")
        file.flush()
        done = subprocess.run([LATHE, "generate", MODEL, "--batch", file.name, "-n", str(TOKENS), "--temp", "0",
                               "--json"], capture_output=True, text=True, check=True)
    return {t["prompt"]: t["text"] for t in json.loads(done.stdout)["texts"]}


expected = expected_texts()
cases = Cases()
for way in WAYS:
    named = " ".join(way) or "processes"
    for cache in ("0", "16"):
        # Fewer slots than clients, so that texts come and go, and go on from what others left.
        # With the row caches in stages of a pipeline: their commands are messages.
        stages = ["--stages", "2"] if cache == "0" else []
        server = Server("--ranks", "2", *stages, *way, "--slots", "3", "--cache-block", cache)
        wrong = []

        def client(first):
            for i in range(4):
                prompt = PROMPTS[(first + i) % len(PROMPTS)]
                status, answer = server.complete(prompt=prompt)
                text = answer["choices"][0]["text"] if status == 200 else answer
                if text != expected[prompt]:
                    wrong.append((prompt, text, expected[prompt]))

        clients = [threading.Thread(target=client, args=[i]) for i in range(5)]
        for one in clients:
            one.start()
        for one in clients:
            one.join()
        assert not wrong, (way, cache, wrong[0])
        status, answer = server.complete(prompt=[10 ** 6])
        assert status == 400, answer  # which ends nothing
        assert server.complete(prompt=PROMPTS[0])[1]["choices"][0]["text"] == expected[PROMPTS[0]]
        # Texts that run when it is asked to stop have their time, with mpirun in between, too.
        last = []
        asking = threading.Thread(target=lambda: last.append(server.complete(prompt=PROMPTS[1])))
        asking.start()
        time.sleep(0.2)
        server.job.process.send_signal(signal.SIGTERM)
        asking.join()
        assert last[0][0] == 503 or last[0][1]["choices"][0]["text"] == expected[PROMPTS[1]], last
        status, _, said, left = server.job.end(60)
        assert status == 0 and not left, (way, status, said, left)

if PROCESSES:
    def asks(server):
        """Asks until the server has gone."""
        def ask():
            try:
                while server.complete(prompt=PROMPTS[0], max_tokens=200)[0] == 200:
                    pass
            except (OSError, http.client.HTTPException):
                pass
        asking = threading.Thread(target=ask)
        asking.start()
        return asking

    server = Server("--ranks", "2")
    asking = asks(server)
    os.kill(server.job.rank(1), signal.SIGKILL)
    cases.expect("a rank of a server is killed", server.job, r"signal 9|[Kk]illed", None, 120)
    asking.join()
    server = Server("--ranks", "2", LATHE_RANKS_TIMEOUT="15")
    # A server that nobody asks is no rank that is missing.
    time.sleep(17)
    assert server.complete(prompt=PROMPTS[0])[1]["choices"][0]["text"] == expected[PROMPTS[0]]
    hung = server.job.rank(1)
    os.kill(hung, signal.SIGSTOP)
    asking = asks(server)
    cases.expect("a rank of a server hangs", server.job,
                 r"rank 0 ends the job: rank 0: .* of rank 0 of 2: another rank has not come within 15001 ms",
                 None, 180)
    asking.join()
if failures := cases.summary():
    sys.exit(failures)
