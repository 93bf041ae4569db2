# SPDX-License-Identifier: Apache-2.0
"""What goes wrong on one of several processes: each case has its message and its status within the
deadline, and leaves no process behind.

    python3 rank_faults_test.py PATH/lathe MODEL
"""
import json
import os
import shutil
import signal
import struct
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from rank_job import Cases, Job

lathe, model = sys.argv[1:3]
PROMPT = ["-p", "Once upon a time", "-n", "8", "--temp", "0"]
# mpirun as `lathe --ranks` starts it where there are more ranks than processors.
MPIRUN = ["mpirun", "--oversubscribe", "--bind-to", "none", "--allow-run-as-root"]
cases = Cases()
patience = 3600  # until it is known how fast this machine is today


def expect(case, job, text, status):
    return cases.expect(case, job, text, status, patience)


def ranks(*commands, **variables):
    """One command for each rank."""
    words = []
    for command in commands:
        words += ([":"] if words else []) + ["-n", "1", *command]
    return Job([*MPIRUN, *words], **variables)


def changed(name, folder):
    """A copy of the model in which one weight has another value."""
    copy = os.path.join(folder, f"changed-{name}")
    shutil.copytree(model, copy)
    path = os.path.join(copy, "model.safetensors")
    with open(path, "r+b") as file:
        length = struct.unpack("<Q", file.read(8))[0]
        begin = json.loads(file.read(length))[name]["data_offsets"][0]
        file.seek(8 + length + begin)
        byte = file.read(1)
        file.seek(8 + length + begin)
        file.write(bytes([byte[0] ^ 1]))
    return copy


with tempfile.TemporaryDirectory() as folder:
    program = os.path.join(folder, "two.lathe")
    other = os.path.join(folder, "other.lathe")
    for path, flags in ((program, []), (other, ["--dtype", "f32"])):
        subprocess.run([lathe, "compile", model, "-o", path, "--ranks", "2", "-q", *flags], check=True)

    def generate(path=program, weights=model, *flags):
        return [lathe, "generate", path, "--weights", weights, *PROMPT, *flags]

    # Long enough for a signal to meet it while it computes.
    def bench(*flags):
        return [lathe, "bench", program, "--weights", model, "-p", "200", "-n", "50", "-r", "1000",
                *flags]

    # Everything is measured by this: a rank that is late on a busy machine is not missing.
    usual = expect("nothing is wrong", ranks(generate(), generate()), "2 ranks of 1 threads", 0)
    patience = 300 + 30 * usual
    deadline = int(10 + 3 * usual)
    hasty = {"LATHE_RANKS_TIMEOUT": str(deadline)}
    missed = f"another rank has not come within {deadline * 1000 + 1} ms"

    # Ranks that end, hang or never come.
    for victim in (0, 1):
        job = ranks(bench(), bench())
        os.kill(job.rank(victim), signal.SIGKILL)
        expect(f"rank {victim} is killed", job, r"signal 9|Killed", None)
    job = ranks(bench(), bench(), **hasty)
    os.kill(job.rank(1), signal.SIGSTOP)
    expect("rank 1 hangs", job, f"of rank 0 of 2: {missed}", None)
    expect("rank 1 never comes", ranks(generate(), ["sleep", "100000"], **hasty),
           f"the beginning of the job: {missed}", 3)
    expect("rank 1 leaves before it begins", ranks(generate(), ["true"], **hasty),
           f"{missed}|mpirun", None)
    expect("rank 1 leaves with a status of its own", ranks(generate(), ["sh", "-c", "exit 7"]),
           r"exited with non-zero status|non-zero", 7)

    # Stages of a pipeline.
    staged = os.path.join(folder, "staged.lathe")
    subprocess.run([lathe, "compile", model, "-o", staged, "--stages", "2", "-q"], check=True)
    stage = [lathe, "bench", staged, "--weights", model, "-p", "200", "-n", "50", "-r", "1000"]
    for victim in (0, 1):
        job = ranks(stage, stage)
        os.kill(job.rank(victim), signal.SIGKILL)
        expect(f"stage {victim} is killed", job, r"signal 9|Killed", None)
    job = ranks(stage, stage, **hasty)
    os.kill(job.rank(1), signal.SIGSTOP)
    expect("stage 1 hangs", job, f"bytes (from|to) rank 1 of rank 0 of 2: {missed}", None)
    expect("stage 1 is of another program", ranks(generate(staged), generate()),
           r"has another program than rank", 1)

    # A job that its user ends.
    for sent in (signal.SIGINT, signal.SIGTERM):
        job = Job([*bench(), "--ranks", "2"])
        job.rank(1)
        job.process.send_signal(sent)
        expect(f"{sent.name} to the launcher", job, "", None)

    # Ranks that have not the same.
    expect("rank 1 has another program", ranks(generate(), generate(other)),
           r"has another program than rank", 1)
    expect("rank 1 has another weight that all have whole",
           ranks(generate(), generate(program, changed("model.norm.weight", folder))),
           r"has other values of the weight 'model.norm.weight' than rank", 1)
    expect("there are three ranks", ranks(generate(), generate(), generate()),
           r"is for 2 ranks, the session has 3|is a program compiled for 2", None)
    expect("there is one rank", ranks(generate()),
           r"is for 2 ranks, the session has 1|is a program compiled for 2", None)

    # Errors of one rank's own.
    expect("rank 1 has no weights", ranks(generate(), generate(program, "/nonexistent")),
           r"/nonexistent", 3)
    short = os.path.join(folder, "short.lathe")
    with open(program, "rb") as whole, open(short, "wb") as part:
        part.write(whole.read()[:-100])
    expect("rank 1 has half a program", ranks(generate(), generate(short)), r"short\.lathe", 3)
    expect("rank 0 has half a program", ranks(generate(short), generate()), r"short\.lathe", 3)
    wrong = shutil.copytree(model, os.path.join(folder, "wrong"))
    with open(os.path.join(wrong, "model.safetensors"), "r+b") as file:
        file.truncate(100_000)
    expect("rank 1 has half a checkpoint", ranks(generate(), generate(program, wrong)),
           r"model\.safetensors", 3)

    # The user's mistakes.
    expect("an id outside of the table", ranks(
        *[[lathe, "run", program, "--weights", model, "--entry", "forward", "--input",
           "input_ids=1x2xi64=5,100000", "-q"]] * 2), r"100000|outside|range", None)
    expect("a deadline that is none", ranks(generate(), generate(), LATHE_RANKS_TIMEOUT="soon"),
           r"LATHE_RANKS_TIMEOUT: expected seconds above 0, got 'soon'", 2)

    # What is missing on this machine.
    bare = os.path.join(folder, "bare")
    os.mkdir(bare)
    library = os.path.join(os.path.dirname(lathe), "..", "lib")
    for name in os.listdir(library):
        if name.startswith("liblathe_runtime.so"):
            os.symlink(os.path.realpath(os.path.join(library, name)), os.path.join(bare, name))
    expect("there is no plug-in", Job(generate(), OMPI_COMM_WORLD_SIZE="2", LD_LIBRARY_PATH=bare),
           r"install openmpi-bin and libopenmpi-dev and build again, or take --rank-threads", 4)
    expect("there is no mpirun", Job([*generate(), "--ranks", "2"], PATH="/nonexistent"),
           r"install openmpi-bin, or add --rank-threads", 4)

    # A disk that is full where rank 0 writes.
    full = os.path.join(folder, "full")
    os.mkdir(full)
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8k", "none", full],
                      capture_output=True).returncode == 0:
        try:
            write = [lathe, "run", program, "--weights", model, "--entry", "forward", "--input",
                     "input_ids=1x40xi64=5", "-q", "-o", os.path.join(full, "logits.safetensors")]
            expect("the disk of rank 0 is full", ranks(write, write), r"No space left on device", 1)
        finally:
            subprocess.run(["umount", full], check=True)
    else:
        print("skipped: no right to mount a small disk")

if failures := cases.summary():
    sys.exit(failures)
