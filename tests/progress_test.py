# SPDX-License-Identifier: Apache-2.0
"""Long work shows one bar on a terminal, which goes away at its end, and nothing in a pipe.

    python3 progress_test.py PATH/lathe CONFIG MODEL
"""
import os
import pty
import re
import subprocess
import sys
import tempfile

lathe, config, model = sys.argv[1:]
ENVIRONMENT = {**os.environ, "TERM": "xterm", "NO_COLOR": "1"}


def on_terminal(arguments):
    """What a terminal as standard error is sent."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen([lathe, *arguments], stdin=subprocess.DEVNULL,
                               stdout=subprocess.DEVNULL, stderr=theirs, env=ENVIRONMENT)
    os.close(theirs)
    sent = b""
    try:
        while chunk := os.read(ours, 65536):
            sent += chunk
    except OSError:  # the other end is closed
        pass
    os.close(ours)
    assert process.wait() == 0, sent.decode()
    return sent.decode()


def in_pipe(arguments):
    done = subprocess.run([lathe, *arguments], capture_output=True, text=True, env=ENVIRONMENT)
    assert done.returncode == 0, done.stderr
    return done.stderr


with tempfile.TemporaryDirectory() as folder:
    compiling = ["compile", config, "-o", os.path.join(folder, "model.lathe")]
    checking = ["inspect", model, "--check-numerics"]
    for arguments, stage in ((compiling, "compiling"), (checking, "step ")):
        sent = on_terminal(arguments)
        bars = re.findall(r"\r\x1b\[K[^\r]*\[(#*)(-*)\] (\d+)/(\d+) [\d.]+ s", sent)
        assert bars and stage in sent, f"{arguments}: no bar in {sent!r}"
        counts = [(int(done), int(of)) for _, _, done, of in bars]
        assert len({of for _, of in counts}) == 1, counts
        assert counts == sorted(counts) and all(done <= of for done, of in counts), counts
        for filled, rest, done, of in bars:
            assert len(filled) == 20 * int(done) // int(of) and len(filled + rest) == 20, bars
        # What is left on the screen when the bar has gone: whole lines.
        after = sent[sent.rindex("\r\x1b[K") + 4:]
        assert "\r\x1b[K" in sent and "[#" not in after and "[-" not in after, repr(after)
        piped = in_pipe(arguments)
        assert "\r" not in piped and "\x1b" not in piped and "[#" not in piped, piped
print("progress: a bar on a terminal, none in a pipe")
