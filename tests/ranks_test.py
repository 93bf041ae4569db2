# SPDX-License-Identifier: Apache-2.0
"""`lathe generate --ranks`: the same text on one process, on several, and on threads; and what is said
when a rank goes missing.

    python3 ranks_test.py PATH/lathe MODEL [--processes]

With --processes ranks are MPI's processes, too: its plug-in was built.
"""
import json
import os
import re
import signal
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from rank_job import Cases, Job

lathe, model = sys.argv[1:3]
processes = "--processes" in sys.argv
IN_DEPTH = os.environ.get("LATHE_TEST_DEPTH") == "all"  # depth.h
ENVIRONMENT = {**os.environ, "NO_COLOR": "1", "OMPI_MCA_btl_vader_single_copy_mechanism": "none",
               "LATHE_RANKS_CHECK": "1"}
PROMPT = ["-p", "Once upon a time", "-n", "40", "--temp", "0"]


def run(*arguments, status=0, **variables):
    done = subprocess.run([lathe, *arguments], capture_output=True, text=True, timeout=300,
                          env={**ENVIRONMENT, **variables})
    assert done.returncode == status, (arguments, done.returncode, done.stderr)
    return done.stdout, done.stderr


def some(*ways):
    """The first, in depth all: each is a compilation and more."""
    return ways if IN_DEPTH else ways[:1]


alone, _ = run("generate", model, *PROMPT)
assert len(alone) > 80, alone
for count in some("3", "2", "6"):
    text, _ = run("generate", model, *PROMPT, "--ranks", count, "--rank-threads")
    assert text == alone, (count, text)

# With norms of a rank's share of the prompt's four tokens, and of one token alone.
for prompt in (PROMPT, ["-p", "A", *PROMPT[2:]]):
    whole, _ = run("generate", model, *prompt)
    for count, stages in some(("4", "2"), ("2", "1"), ("3", "1")):
        text, _ = run("generate", model, *prompt, "--ranks", count, "--stages", stages, "--rank-threads", "--split-rows")
        assert text == whole, (prompt, count, stages, text)

# In stages of a pipeline, of one rank each or of two, and in strict mode, too.
for ranks, stages in some(("4", "2"), ("2", "2"), ("3", "3")):
    text, _ = run("generate", model, *PROMPT, "--ranks", ranks, "--stages", stages, "--rank-threads")
    assert text == alone, (ranks, stages, text)
_, said = run("generate", model, *PROMPT, "--ranks", "3", "--stages", "2", "--rank-threads", status=2)
assert "expected 2 stages with as many ranks each, got 3 ranks" in said, said

# A program for ranks says itself how many it needs.
with tempfile.TemporaryDirectory() as folder:
    program = os.path.join(folder, "two.lathe")
    run("compile", model, "-o", program, "--ranks", "2", "--split-rows")
    text, _ = run("generate", program, "--weights", model, *PROMPT, "--rank-threads")
    assert text == alone
    _, said = run("generate", program, "--weights", model, *PROMPT, "--ranks", "3", "--rank-threads",
                  status=2)
    assert "is a program compiled for 2" in said, said
    _, said = run("generate", program, "--weights", model, *PROMPT, "--split-rows", "--rank-threads", status=2)
    assert "--split-rows" in said and "is a compiled program" in said, said
    stages = os.path.join(folder, "stages.lathe")
    run("compile", model, "-o", stages, "--stages", "2")
    text, _ = run("generate", stages, "--weights", model, *PROMPT, "--rank-threads")
    assert text == alone
    _, said = run("generate", stages, "--weights", model, *PROMPT, "--stages", "4", "--rank-threads",
                  status=2)
    assert "is a program compiled for 2" in said, said

_, said = run("generate", model, *PROMPT, "--ranks", "2", "--mode", "strict", "--rank-threads", status=2)
assert "strict mode keeps the contract 'sum-split'" in said, said
# The reference interprets, a step in seconds.
short = ["-p", "Once", "-n", "3", "--temp", "0", "--backend", "reference"]
text, _ = run("generate", model, *short)
for more in [["--rank-threads"]] + ([[]] if processes else []):
    on, _ = run("generate", model, *short, "--ranks", "2", *more)
    assert on == text, (on, text)
ir, _ = run("inspect", model, "--ranks", "2", "--stop-after", "sharded")
assert 'lathe.all_reduce sum' in ir and 'of "model.layers.0.mlp.down_proj.weight" axis 1 parts 2' in ir
said, _ = run("why-not", model, "--ranks", "4")
assert "do not divide by 4 ranks" in said, said
ir, _ = run("inspect", model, "--ranks", "2", "--split-rows", "--stop-after", "sharded")
assert "lathe.dim_part @seq_part of <seq> parts 2" in ir and "whole <seq>" in ir, ir
said, _ = run("why-not", model, "--ranks", "2", "--split-rows")
assert "is less than one for each of 2 ranks: each rank has all rows behind the sum" in said, said

table, _ = run("inspect", model, "--ranks", "2", "--check-numerics", "--layers", "1")
assert re.search(r"sharded\s.*shard\b", table), table

# What ranks would cost, on a link that is given and where they would lose.
sizes = ["--set", "batch=1,seq=1,cache=64", "--device", "xeon:2", "--entry", "decode"]
table, _ = run("explain", model, *sizes, "--mesh", "tp=2", "--link", "25us,2.8GB/s")
assert "one of 2 ranks, link 25us,2.8GB/s: 25" in table and re.search(r"all_reduce .* link ", table), table
assert re.search(r"more than \d+ ranks lose", table), table
document = json.loads(run("explain", model, *sizes, "--mesh", "tp=2", "--json")[0])
entry = next(e for e in document["entries"] if e["name"] == "decode")
assert [s["ranks"] for s in entry["scaling"]] == [1, 2, 4, 8, 16, 32, 64], entry["scaling"]
first, second = entry["scaling"][:2]
assert first["link_s"] == 0 < second["link_s"] < second["time_s"], entry["scaling"]
assert 0.4 < second["peak_bytes"] / first["peak_bytes"] < 0.6, entry["scaling"]
assert second["time_s"] == entry["total"]["time_s"], entry["total"]
# Shares of a prompt's rows take as many bytes as its sums, in more messages.
prompt = ["--set", "batch=1,seq=9,cache=64", "--device", "xeon:2", "--entry", "prefill", "--mesh", "tp=4", "--json"]
split = json.loads(run("explain", model, *prompt, "--split-rows")[0])
whole = json.loads(run("explain", model, *prompt)[0])
assert split["values"] == whole["values"] == {"batch": 1, "seq": 9, "cache": 64}, split["values"]
assert split["entries"][0]["total"]["flops"] < whole["entries"][0]["total"]["flops"], split["entries"][0]["total"]
assert split["entries"][0]["scaling"][0] == whole["entries"][0]["scaling"][0], split["entries"][0]["scaling"]
# Stages send one message each: the layers' values to the next, the logits to the first.
table, _ = run("explain", model, *sizes, "--mesh", "pp=2", "--link", "10ms,1MB/s")
assert "one of 2 ranks in 2 stages, the first, link 10ms,1MB/s" in table, table
assert re.search(r"\| send .* link ", table) and "of several, such as chunks" in table, table
document = json.loads(run("explain", model, *sizes, "--mesh", "tp=2,pp=2", "--link", "10ms,1MB/s", "--json")[0])
entry = next(e for e in document["entries"] if e["name"] == "decode")
assert document["link"]["ranks"] == 4 and document["link"]["stages"] == 2, document["link"]
assert [s["ranks"] for s in entry["scaling"]] == [1, 2, 4, 8, 16, 32, 64], entry["scaling"]
whole, spread = entry["scaling"][0], entry["scaling"][1]
first, second = entry["stages"]
assert first["ranks"] == second["ranks"] == 2, entry["stages"]
# Two ranks are a stage each, which hold half the weights and send 10 ms twice a token.
assert 0.02 <= spread["link_s"] < 0.03 and spread["interval_s"] < spread["time_s"], spread
assert spread["peak_bytes"] < 0.7 * whole["peak_bytes"], entry["scaling"]
pair = entry["scaling"][2]
assert abs(pair["time_s"] - first["time_s"] - second["time_s"]) < 1e-9, entry
# Sums within the stages.
assert pair["link_s"] > spread["link_s"], entry["scaling"]
for wrong, named in ((["--mesh", "tp=2,tp=3"], "--mesh: expected tp=N, pp=N or tp=N,pp=N"),
                     (["--mesh", "dp=2"], "--mesh: expected tp=N"),
                     (["--mesh", "tp=2", "--link", "fast"], "--link: expected a latency and a bandwidth"),
                     (["--link", "25us,2.8GB/s"], "--link is between ranks")):
    _, said = run("explain", model, *sizes, *wrong, status=2)
    assert named in said, said

# What they pay is measured: a layer has two sums, and the head one gather.
sizes = json.load(open(os.path.join(model, "config.json")))
bench = ["bench", model, "-p", "20", "-n", "3", "-r", "2", "-t", "1"]
hidden, vocabulary, layers = (sizes["hidden_size"], sizes["vocab_size"], sizes["num_hidden_layers"])
# Three ranks cannot share two key heads: attention stays whole there.
for ranks, sums in ((2, 2 * layers), (3, layers)):
    document = json.loads(run(*bench, "--ranks", str(ranks), "--rank-threads", "--json")[0])
    assert document["ranks"] == ranks, document
    width = {"f32": 4, "bf16": 2, "f16": 2}[document["dtype"]]
    for test in document["tests"]:
        work, tokens = test["collectives"], test["tokens"]
        # One more sum for the table of embeddings, of rows as they are; those of layers are f32. The last
        # one of a prompt is of its last token alone, as are the logits; each rank sends the others their
        # pieces of the addends, then its piece of the result.
        steps, rows = (1, tokens * (sums - 1) + 1) if test["name"] == "prefill" else (tokens, tokens * sums)
        assert work["calls"] == steps * (sums + 2), (sums, test)
        bytes_summed = rows * hidden * 4 + tokens * hidden * width
        sent = (ranks - 1) / ranks * (2 * bytes_summed + steps * vocabulary * 4)
        assert abs(work["sent_bytes"] - sent) < 1, (ranks, rows, test)
        assert 0 < work["share"] < 1 and test["cpu_s"] > 0, test
# With shares of the rows a prompt's sums are two exchanges of half each, and a token's are as they were: what
# is scattered is f32, what is gathered of the model's dtype. The last layer's rows are gathered once more, for
# its last token.
document = json.loads(run(*bench, "--ranks", "2", "--rank-threads", "--split-rows", "--json")[0])
prefill, decode = document["tests"][:2]
tokens, sums = prefill["tokens"], 2 * layers
assert decode["collectives"]["calls"] == decode["tokens"] * (sums + 2), decode
assert prefill["collectives"]["calls"] == 2 * (sums - 1) + 1 + 3, prefill

alone_document = json.loads(run(*bench, "--json")[0])
assert alone_document["ranks"] == 1 and "collectives" not in alone_document["tests"][0], alone_document
# The table that the first stage reads as embeddings and the last as the head is counted once.
staged = json.loads(run(*bench, "--ranks", "2", "--stages", "2", "--rank-threads", "--json")[0])
assert staged["parameters"] == alone_document["parameters"], (staged["parameters"], alone_document["parameters"])
table, _ = run(*bench, "--ranks", "2", "--rank-threads")
assert "| test of one of 2 ranks | processor time ms | collectives | sent | ms | share |" in table, table

# A graph that says itself how many ranks it is for, and what they hold in pieces. Rows of a sum of bf16
# are each added on one rank, in f32.
GRAPH = """
module @rows {
  lathe.mesh "tp" of 2
  lathe.shard_weights "up" axis 0 over "tp"
  func.func @forward(%x: tensor<4x8xbf16> {lathe.name = "x"}) -> (tensor<4x8xbf16> {lathe.name = "y"}) {
    %up = lathe.weight "up" : tensor<12x8xbf16>
    %down = lathe.weight "down" : tensor<8x12xbf16>
    %h = lathe.linear %x, %up : tensor<4x8xbf16>, tensor<12x8xbf16>
    %y = lathe.linear %h, %down : tensor<4x12xbf16>, tensor<8x12xbf16>
    %s = lathe.shard %y axis 0 over "tp" : tensor<4x8xbf16>
    %e = lathe.mul %s, %s : tensor<4x8xbf16>, tensor<4x8xbf16>
    return %e : tensor<4x8xbf16>
  }
}
"""
with tempfile.TemporaryDirectory() as folder:
    graph = os.path.join(folder, "rows.mlir")
    with open(graph, "w") as file:
        file.write(GRAPH)
    ir, _ = run("inspect", graph, "--stop-after", "sharded")
    assert 'lathe.reduce_scatter sum' in ir and 'of "down" axis 1 parts 2' in ir, ir
    ir, _ = run("inspect", graph, "--stop-after", "sharded", "--ranks", "1")
    assert "lathe.shard" not in ir and "lathe.reduce_scatter" not in ir, ir
    weights = os.path.join(folder, "w.safetensors")
    header = {name: {"dtype": "BF16", "shape": shape, "data_offsets": [i * 192, i * 192 + 192]}
              for i, (name, shape) in enumerate((("up", [12, 8]), ("down", [8, 12])))}
    text = json.dumps(header).encode()
    with open(weights, "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for i in range(192):
            file.write((0x3F00 + i * 5 % 96).to_bytes(2, "little"))  # from 0.5 to 0.87
    values = ",".join(str((i * 7 % 11 - 5) / 4) for i in range(32))
    call = ["run", graph, "--weights", weights, "--input", f"x=4x8xbf16={values}", "--json"]
    outputs = json.loads(run(*call, "--ranks", "1")[0])["outputs"][0]["first_values"]
    assert len(set(outputs)) > 3, outputs
    for more in [["--rank-threads"]] + ([[]] if processes else []):
        on = json.loads(run(*call, *more)[0])["outputs"][0]["first_values"]
        # The sums are in another order: one rounding may fall the other way.
        assert all(abs(a - b) <= 0.03 * abs(b) for a, b in zip(on, outputs)), (on, outputs)
    _, said = run("run", graph, "--ranks", "5", "--rank-threads", status=2)
    assert "does not divide by 5 ranks" in said and "rows.mlir:" in said, said

# Without mpirun the package is named.
_, said = run("generate", model, *PROMPT, "--ranks", "2", status=4, PATH="/nonexistent")
assert "install openmpi-bin" in said and "--rank-threads" in said, said

if processes:
    for count in some("2", "4"):
        text, said = run("generate", model, *PROMPT, "--ranks", count)
        assert text == alone, (count, text, said)
        assert f"{count} ranks of" in said, said
    for count in some("3", "2"):
        text, said = run("generate", model, *PROMPT, "--ranks", count, "--split-rows")
        assert text == alone, (count, text, said)
    for ranks, stages in some(("4", "2"), ("2", "2"), ("3", "3")):
        text, said = run("generate", model, *PROMPT, "--ranks", ranks, "--stages", stages)
        assert text == alone, (ranks, stages, text, said)
        assert f"{ranks} ranks of" in said, said
        # Without the messages that are compared.
        text, said = run("generate", model, *PROMPT, "--ranks", ranks, "--stages", stages,
                         LATHE_RANKS_CHECK="0")
        assert text == alone, (ranks, stages, text, said)

    # A rank that is killed ends the job, and nobody is left.
    job = Job([lathe, "bench", model, "-p", "64", "-n", "200", "-r", "200", "--ranks", "2"],
              LATHE_RANKS_CHECK="1")
    os.kill(job.rank(1), signal.SIGKILL)
    cases = Cases()
    cases.expect("a rank is killed", job, r"signal 9|[Kk]illed", None, 60)
    if failures := cases.summary():
        sys.exit(failures)
