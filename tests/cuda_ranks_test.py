# SPDX-License-Identifier: Apache-2.0
"""`lathe generate --ranks --backend cuda`, whose kernels run on this CPU: the text of one rank with and
without NCCL, of which a mock joins memory of the host; and what is said where it is missing, old or
loses a rank.

    python3 cuda_ranks_test.py PATH/lathe MODEL PATH/libmock_nccl.so [--processes]

With --processes ranks are MPI's processes, too: its plug-in was built.
"""
import json
import os
import signal
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from rank_job import Cases, Job

lathe, model, mock = sys.argv[1:4]
processes = "--processes" in sys.argv
PROMPT = ["-p", "Once upon a time", "-n", "16", "--temp", "0"]
ON_CUDA = ["--backend", "cuda", "--device", "host"]
WAYS = [["--rank-threads"]] + ([[]] if processes else [])


def run(*arguments, **variables):
    done = subprocess.run([lathe, *arguments], capture_output=True, text=True, timeout=600,
                          env={**os.environ, "NO_COLOR": "1", "LATHE_NUM_THREADS": "1",
                               "OMPI_MCA_btl_vader_single_copy_mechanism": "none", **variables})
    assert done.returncode == 0, (arguments, done.returncode, done.stderr)
    return done.stdout


alone = run("generate", model, *PROMPT, *ON_CUDA)
assert len(alone) > 30, alone
for way in WAYS:
    for nccl in ("", mock):
        text = run("generate", model, *PROMPT, *ON_CUDA, "--ranks", "2", *way, LATHE_NCCL=nccl)
        assert text == alone, (way, nccl, text, alone)
        text = run("generate", model, *PROMPT, *ON_CUDA, "--ranks", "2", "--stages", "2", *way, LATHE_NCCL=nccl)
        assert text == alone, ("stages", way, nccl, text, alone)

# Every number of a run, to the rounding of another order of sums.
call = ["run", model, *ON_CUDA, "--dtype", "f32", "--entry", "forward", "--input", "input_ids=1x5xi64=5,9,7,3,2",
        "--json"]
whole = json.loads(run(*call))["outputs"][0]["first_values"]
for way in WAYS:
    split = json.loads(run(*call, "--ranks", "2", *way, LATHE_NCCL=mock))["outputs"][0]["first_values"]
    assert len(set(whole)) > 3 and all(abs(a - b) <= 1e-4 for a, b in zip(whole, split)), (whole, split)

# What collectives take is told where somebody waits for the device behind each.
for profile in ([], ["--profile"]):
    bench = ["bench", model, "-p", "8", "-n", "4", "-r", "1", *ON_CUDA, "--ranks", "2", "--rank-threads", "--json"]
    for test in json.loads(run(*bench, *profile, LATHE_NCCL=mock))["tests"]:
        work = test["collectives"]
        assert work["calls"] > 0 and work["sent_bytes"] > 0, work
        assert 0 < work["share"] < 1 if profile else work["time_s"] is work["share"] is None, work

# What goes wrong. Threads tell rank 0 alone, mpirun ends processes.
cases = Cases()
words = [lathe, "generate", model, *PROMPT, *ON_CUDA, "--ranks", "2"]
for way in WAYS:
    named = " ".join(way) or "processes"
    status = 4 if way else 1
    cases.expect(f"there is no NCCL ({named})", Job([*words, *way], LATHE_NCCL="/nowhere/libnccl.so.2"),
                 r"ranks on GPUs need NCCL, which was not found:\n +LATHE_NCCL=/nowhere/libnccl.so.2: .*\n"
                 r".*install NVIDIA's package libnccl2, or the wheel nvidia-nccl-cu13", status, 300)
    cases.expect(f"NCCL is old ({named})", Job([*words, *way], LATHE_NCCL=mock, LATHE_MOCK_NCCL_VERSION="21001"),
                 r"is NCCL 2\.10\.1, expected 2\.14\.0 or later", status, 300)
    cases.expect(f"NCCL refuses a sum ({named})",
                 Job([*words, *way], LATHE_NCCL=mock, LATHE_MOCK_NCCL_FAIL="ncclAllReduce:5"),
                 r"all_reduce sum of \d+ \w+ of rank [01]: mock: invalid usage", None, 300)
if processes:
    bench = [lathe, "bench", model, *ON_CUDA, "-p", "16", "-n", "400", "-r", "400", "--ranks", "2"]
    job = Job(bench, LATHE_NCCL=mock)
    os.kill(job.rank(1), signal.SIGKILL)
    cases.expect("a rank is killed", job, r"signal 9|[Kk]illed", None, 120)
    job = Job(bench, LATHE_NCCL=mock, LATHE_RANKS_TIMEOUT="20")
    os.kill(job.rank(1), signal.SIGSTOP)
    cases.expect("a rank hangs", job,
                 r"of rank 0 of 2: another rank has not come within 20001 ms \(LATHE_RANKS_TIMEOUT", None, 180)
if failures := cases.summary():
    sys.exit(failures)
