# SPDX-License-Identifier: Apache-2.0
"""A job of several ranks as tests start it: all its processes are known, on whatever host they are."""
import contextlib
import os
import re
import signal
import subprocess
import tempfile
import time


class Job:
    """Its processes are known by a word in their environment, which they all inherit."""

    def __init__(self, words, **variables):
        name, value = "LATHE_TEST_JOB", f"{os.getpid()}.{time.monotonic_ns()}"
        self.mark = f"{name}={value}".encode()
        environment = {**os.environ, "NO_COLOR": "1", "LATHE_NUM_THREADS": "1",
                       "OMPI_MCA_btl_vader_single_copy_mechanism": "none", name: value, **variables}
        self.start = time.monotonic()
        self.errors = tempfile.TemporaryFile()
        self.process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=self.errors,
                                        text=True, env=environment)

    def said(self):
        """Standard error until now."""
        return os.pread(self.errors.fileno(), 1 << 20, 0).decode(errors="replace")

    def environments(self):
        """Of the processes that are running, by id."""
        found = {}
        for pid in filter(str.isdigit, os.listdir("/proc")):
            with contextlib.suppress(OSError):
                words = open(f"/proc/{pid}/environ", "rb").read().split(b"\0")
                # What has ended and was not waited for has no environment.
                if self.mark in words:
                    found[int(pid)] = dict(w.split(b"=", 1) for w in words if b"=" in w)
        return found

    def rank(self, number):
        """The process of a rank, when it has joined the others."""
        while self.process.poll() is None:
            if "ranks of" in self.said():
                for pid, environment in self.environments().items():
                    if environment.get(b"OMPI_COMM_WORLD_RANK") == str(number).encode():
                        return pid
            time.sleep(0.05)
        raise AssertionError(f"the job ended before rank {number} was there: {self.said()}")

    def kill(self):
        for pid in self.environments():
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)

    def end(self, patience):
        """Status, standard output and error, and the ids of processes that are left behind; kills
        what runs after `patience` seconds."""
        try:
            out, _ = self.process.communicate(timeout=patience)
            said = self.said()
        except subprocess.TimeoutExpired:
            self.kill()
            out, _ = self.process.communicate()
            said = self.said() + f"\n[still running after {patience} s]"
        end = time.monotonic() + 10  # for processes that are just being ended
        while (left := self.environments()) and time.monotonic() < end:
            time.sleep(0.1)
        self.kill()
        return self.process.returncode, out, said, sorted(left)


class Cases:
    """Jobs that fail as they should: each with its words and its status."""

    def __init__(self):
        self.count, self.failures = 0, []

    def expect(self, case, job, text, status, patience):
        """`status`: the one, or None for any but 0. Returns the seconds that the job took."""
        self.count += 1
        code, _, said, left = job.end(patience)
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
            self.failures.append(f"{case}: {'; '.join(wrong)}\n{said}")
        seconds = time.monotonic() - job.start
        print(f"{'FAILED' if wrong else 'ok':7} {seconds:5.1f} s  {case}", flush=True)
        return seconds

    def summary(self):
        print(f"{self.count} cases, {len(self.failures)} failed")
        return "\n\n".join(self.failures)
