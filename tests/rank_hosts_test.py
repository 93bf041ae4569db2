# SPDX-License-Identifier: Apache-2.0
"""Ranks on two hosts: network namespaces of this machine with a cable between them, so that all goes by
TCP. The text is that of one rank; with --cable, the cable is pulled while they work.

    python3 rank_hosts_test.py PATH/lathe MODEL [--cable]

Exits with 77, and says why, where namespaces cannot be made.
"""
import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from rank_job import Job

lathe, model = sys.argv[1:3]
NAMES = [f"lathe-{os.getpid()}-{host}" for host in (1, 2)]
ADDRESSES = ["10.77.0.1", "10.77.0.2"]
PROMPT = ["-p", "Once upon a time", "-n", "40", "--temp", "0"]
# Open MPI would take two namespaces with one host name for one host and use its shared memory.
ON_HOST = """#!/bin/sh
exec ip netns exec "$1" unshare --uts sh -c 'hostname "$0"; exec "$@"' "$@"
"""
# What mpirun calls instead of ssh: ADDRESS COMMAND... .
AGENT = """#!/bin/sh
address=$1; shift
exec {on_host} {name}"${{address##*.}}" sh -c "$*"
"""


def skip(why):
    print(f"skipped: {why}")
    sys.exit(77)


def ip(*words):
    done = subprocess.run(["ip", *words], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"ip {' '.join(words)}: {done.stderr.strip()}")


@contextlib.contextmanager
def hosts():
    """Two namespaces and the cable between them."""
    try:
        for name in NAMES:
            ip("netns", "add", name)
        ip("-n", NAMES[0], "link", "add", "cable", "type", "veth", "peer", "name", "cable",
           "netns", NAMES[1])
        for name, address in zip(NAMES, ADDRESSES):
            ip("-n", name, "addr", "add", f"{address}/24", "dev", "cable")
            for link in ("lo", "cable"):
                ip("-n", name, "link", "set", link, "up")
        yield
    finally:
        for name in NAMES:
            subprocess.run(["ip", "netns", "del", name], capture_output=True)


def script(path, text):
    with open(path, "w") as file:
        file.write(text)
    os.chmod(path, 0o755)
    return path


for tool in ("ip", "unshare", "mpirun"):
    if not shutil.which(tool):
        skip(f"there is no `{tool}`")
with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
    try:
        stack.enter_context(hosts())
        on_host = script(os.path.join(folder, "on_host"), ON_HOST)
        subprocess.run([on_host, NAMES[0], "true"], check=True, capture_output=True)
    except (RuntimeError, subprocess.CalledProcessError) as e:
        skip(f"no namespaces can be made here: {getattr(e, 'stderr', None) or e}")
    agent = script(os.path.join(folder, "agent"),
                   AGENT.format(on_host=on_host, name=NAMES[0].removesuffix("1")))
    mpirun = [on_host, NAMES[0], "mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none",
              "--host", ",".join(f"{a}:1" for a in ADDRESSES), "-n", "2",
              "--mca", "plm", "rsh", "--mca", "plm_rsh_agent", agent, "--mca", "pml", "ob1",
              "--mca", "btl", "self,tcp", "--mca", "btl_tcp_if_include", "cable",
              "--mca", "oob_tcp_if_include", "cable",
              # As docs/ranks.md advises: else mpirun does not notice that a host is gone.
              "--mca", "oob_tcp_keepalive_time", "10", "--mca", "oob_tcp_keepalive_intvl", "5",
              "--mca", "oob_tcp_keepalive_probes", "3"]
    program = os.path.join(folder, "two.lathe")
    subprocess.run([lathe, "compile", model, "-o", program, "--ranks", "2", "-q"], check=True)
    generate = [lathe, "generate", program, "--weights", model, *PROMPT]

    alone = subprocess.run([lathe, "generate", model, *PROMPT], check=True, capture_output=True,
                           text=True).stdout
    job = Job([*mpirun, *generate], LATHE_RANKS_CHECK="1")
    status, text, said, left = job.end(600)
    assert status == 0 and text == alone and not left, (status, text, said, left)
    usual = time.monotonic() - job.start
    print(f"the text of one rank on two hosts, {usual:.1f} s")

    if "--cable" in sys.argv:
        deadline = int(10 + 3 * usual)
        job = Job([*mpirun, lathe, "bench", program, "--weights", model, "-p", "200", "-n", "50",
                   "-r", "1000"], LATHE_RANKS_TIMEOUT=str(deadline))
        job.rank(0)
        ip("-n", NAMES[0], "link", "set", "cable", "down")
        # What is held to its time are the ranks: mpirun may wait for the daemon on the other host.
        start = time.monotonic()
        ranks = {pid for pid, e in job.environments().items() if b"OMPI_COMM_WORLD_RANK" in e}
        while ranks & set(job.environments()) and time.monotonic() < start + 60 + 3 * deadline:
            time.sleep(0.2)
        seconds = time.monotonic() - start
        left = ranks & set(job.environments())
        said = job.said()
        job.kill()
        job.process.wait()
        missed = f"of rank 0 of 2: another rank has not come within {deadline * 1000 + 1} ms"
        assert len(ranks) == 2 and not left and missed in said, (ranks, left, seconds, said)
        print(f"the cable is pulled: both ranks have ended after {seconds:.1f} s")
