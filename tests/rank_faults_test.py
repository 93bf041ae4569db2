# SPDX-License-Identifier: Apache-2.0
"""What goes wrong on one of several processes: each case has its message and its status within the
deadline, and leaves no process behind.

    python3 rank_faults_test.py PATH/lathe MODEL
"""
import contextlib
import json
import os
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time

lathe, model = sys.argv[1:3]
DEADLINE = 15  # seconds that a rank waits for another that does not come
PATIENCE = 300  # for what has to happen on a machine that is busy with other things
PROMPT = ["-p", "Once upon a time", "-n", "8", "--temp", "0"]
# mpirun as `lathe --ranks` starts it where there are more ranks than processors.
MPIRUN = ["mpirun", "--oversubscribe", "--bind-to", "none", "--allow-run-as-root"]
failures = []
cases = 0


class Job:
    """A job of several ranks, whose processes are known by a word in their environment."""

    def __init__(self, words, **variables):
        self.mark = f"LATHE_TEST_JOB={os.getpid()}.{time.monotonic_ns()}"
        name, value = self.mark.split("=")
        environment = {**os.environ, "NO_COLOR": "1", "LATHE_NUM_THREADS": "1",
                       "LATHE_RANKS_TIMEOUT": str(PATIENCE),
                       "OMPI_MCA_btl_vader_single_copy_mechanism": "none", name: value, **variables}
        self.start = time.monotonic()
        self.process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                        text=True, env=environment)

    def processes(self):
        found = {}
        for pid in filter(str.isdigit, os.listdir("/proc")):
            with contextlib.suppress(OSError):
                environment = open(f"/proc/{pid}/environ", "rb").read().split(b"\0")
                # What has ended and was not waited for has no environment.
                if self.mark.encode() in environment:
                    found[int(pid)] = dict(e.split(b"=", 1) for e in environment if b"=" in e)
        return found

    def rank(self, number):
        """The process of a rank, once it is there."""
        end = time.monotonic() + 120
        while time.monotonic() < end and self.process.poll() is None:
            for pid, environment in self.processes().items():
                if environment.get(b"OMPI_COMM_WORLD_RANK") == str(number).encode():
                    return pid
            time.sleep(0.05)
        raise AssertionError(f"rank {number} did not come: {self.process.communicate(timeout=10)}")

    def end(self, patience):
        """Status and standard error; kills what is left after `patience` seconds."""
        try:
            out, said = self.process.communicate(timeout=patience)
        except subprocess.TimeoutExpired:
            for pid in self.processes():
                with contextlib.suppress(OSError):
                    os.kill(pid, signal.SIGKILL)
            out, said = self.process.communicate()
            said += f"\n[still running after {patience} s]"
        end = time.monotonic() + 10  # for processes that are just being ended
        while (left := self.processes()) and time.monotonic() < end:
            time.sleep(0.1)
        for pid in left:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        return self.process.returncode, out, said, sorted(left)


def expect(case, job, text, status, patience=PATIENCE):
    """`status`: the one, or None for any but 0."""
    global cases
    cases += 1
    code, out, said, left = job.end(patience)
    wrong = []
    if (code == 0 if status is None else code != status):
        wrong.append(f"status {code}, expected {'any but 0' if status is None else status}")
    if not re.search(text, said):
        wrong.append(f"expected /{text}/")
    if "[still running" in said:
        wrong.append("it did not end")
    if left:
        wrong.append(f"processes {left} are left")
    if wrong:
        failures.append(f"{case}: {'; '.join(wrong)}\n{said}")
    seconds = time.monotonic() - job.start
    print(f"{'FAILED' if wrong else 'ok':7} {seconds:5.1f} s  {case}", flush=True)


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

    good = ranks(generate(), generate())
    expect("nothing is wrong", good, "", 0)

    # Ranks that end, hang or never come.
    for victim in (0, 1):
        job = ranks(bench(), bench())
        pid = job.rank(victim)
        time.sleep(3)
        os.kill(pid, signal.SIGKILL)
        expect(f"rank {victim} is killed", job, r"signal 9|Killed", None)
    hasty = {"LATHE_RANKS_TIMEOUT": str(DEADLINE)}
    job = ranks(bench(), bench(), **hasty)
    pid = job.rank(1)
    time.sleep(3)
    os.kill(pid, signal.SIGSTOP)
    # Rank 0 may be measuring the machine: it misses the other when it next needs it.
    expect("rank 1 hangs", job, r"of rank 0 of 2: another rank has not come within 15001 ms", 1)
    expect("rank 1 never comes", ranks(generate(), ["sleep", "1000"], **hasty),
           r"the beginning of the job: another rank has not come within 15001 ms", 3)
    expect("rank 1 leaves before it begins", ranks(generate(), ["true"], **hasty),
           r"another rank has not come within 15001 ms|mpirun", None)
    expect("rank 1 leaves with a status of its own", ranks(generate(), ["sh", "-c", "exit 7"]),
           r"exited with non-zero status|non-zero", 7)

    # A job that its user ends.
    for sent in (signal.SIGINT, signal.SIGTERM):
        job = Job([*bench(), "--ranks", "2"])
        job.rank(1)
        time.sleep(3)
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

print(f"{cases} cases, {len(failures)} failed")
if failures:
    sys.exit("\n\n".join(failures))
