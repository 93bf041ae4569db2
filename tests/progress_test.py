# SPDX-License-Identifier: Apache-2.0
"""Long work shows one bar on a terminal, which goes away at its end, and nothing in a pipe.

    python3 progress_test.py PATH/lathe CONFIG MODEL
"""
import fcntl
import json
import os
import pty
import re
import struct
import subprocess
import sys
import tempfile
import termios

lathe, config, model = sys.argv[1:]
# Some of what is measured here takes less than the half second after which it would be shown.
ENVIRONMENT = {**os.environ, "TERM": "xterm", "NO_COLOR": "1", "LATHE_PROGRESS_SECONDS": "0.02"}


def on_terminal(arguments, columns=0):
    """What a terminal as standard error is sent; 0 columns: it does not tell how many it has."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
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


def write_empty_weights(path, dtype):
    """A checkpoint of the config's names and shapes, all zeros, which takes no room on the disk."""
    described = subprocess.run([lathe, "inspect", config, "--dtype", dtype, "--json"], capture_output=True, text=True,
                               check=True)
    header, at = {}, 0
    for weight in json.loads(described.stdout)["weights"]:
        end = at + weight["size_bytes"]
        header[weight["name"]] = {"dtype": weight["dtype"].upper(), "shape": weight["shape"], "data_offsets": [at, end]}
        at = end
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        file.truncate(8 + len(text) + at)


with tempfile.TemporaryDirectory() as folder:
    program, weights = os.path.join(folder, "model.lathe"), os.path.join(folder, "model.safetensors")
    write_empty_weights(weights, "bf16")
    for arguments, stage in [
            (["compile", config, "--dtype", "bf16", "-o", program], "compiling "),
            (["run", program, "--weights", weights, "--input", "input_ids=1x1xi64=1", "-o", os.path.join(folder, "y.npy")],
             "(?:loading|packing) weights"),
            # One row at a time is far from the matrix peak, however busy the machine is beside it.
            (["bench", model, "-p", "1", "-n", "64", "-r", "8"], "measuring "),
            (["selftest", "--mode", "test", "--backend", "reference", "--op", "re*"], "testing "),
            (["inspect", model, "--check-numerics", "--precision", "own"], "step ")]:
        sent = on_terminal(arguments)
        assert re.search(r"\r\x1b\[K[^\r]*" + stage, sent), f"{arguments}: no {stage!r} in {sent!r}"
        bars = re.findall(r"\r\x1b\[K[^\r]*" + stage + r"[^\r]*\[(#*)(-*)\] (\d+)/(\d+) [\d.]+ s", sent)
        # What was read before that is seen without a bar: what follows is packing.
        assert bars or "packing weights" in sent, f"{arguments}: no bar in {sent!r}"
        counts = [(int(done), int(of)) for _, _, done, of in bars]
        assert len({of for _, of in counts}) <= 1, counts
        assert counts == sorted(counts) and all(done <= of for done, of in counts), counts
        for filled, rest, done, of in bars:
            assert len(filled) == 20 * int(done) // int(of) and len(filled + rest) == 20, bars
        # What is left on the screen when the bar has gone: whole lines.
        after = sent[sent.rindex("\r\x1b[K") + 4:]
        assert "\r\x1b[K" in sent and "[#" not in after and "[-" not in after, repr(after)
        piped = in_pipe(arguments)
        assert "\r" not in piped and "\x1b" not in piped and "[#" not in piped, piped
        print(f"{arguments[0]}: {len(bars)} bars on a terminal, none in a pipe", flush=True)

    # On a narrow terminal no line is so long that it wraps: what wraps is not erased.
    sent = on_terminal(["compile", config, "--dtype", "bf16", "-o", program], columns=48)
    lines = [line.partition("\r")[0] for line in sent.split("\r\x1b[K") if line.endswith(" s")]
    assert lines and all(len(line) < 48 for line in lines), lines
    assert any("..." in line for line in lines), lines
    print("narrow: no line wraps")
