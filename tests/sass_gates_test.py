#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What kernels of models look like as machine code: what is requested before griddepcontrol.wait, how
often one load waits for another behind it, the order of loads and products in the loop of a GEMV,
registers and local memory. The texts and
their PTX have the order of the source; only machine code tells what became of it.

    sass_gates_test.py rules                      the rules, on code that breaks them
    sass_gates_test.py models LATHE FOLDER MODEL...   every kernel of these (77: no nvdisasm, no NVRTC)
"""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "bench/gpu"))
import sass  # noqa: E402

# Of a GEMV for one row, beside the two batches of weights that a thread holds: sums, the floats of a
# chunk and of its row, addresses; and what the epilogue has asked for early, which are positions,
# angles and, with norms of heads, gains. The blocks that run at a time are those of the launch bounds.
OTHER_REGISTERS, EPILOGUE_REGISTERS, NORM_REGISTERS = 48, 8, 24
# With attention inside: the keys, values and queries of a tile, and its sums.
ATTENTION_REGISTERS = 88
EARLY_BYTES = 32 << 10
LEAST_STREAM = 64 << 10  # bytes of weights
# In the loop of tiles an addition of 64 bits for each chunk that is copied; beside it those of gains.
OTHER_CARRIES = 4

LOADS = ("load", lambda x: x.is_stream)
PRODUCTS = ("product", lambda x: x.is_a("FFMA", "HMMA"))


class Text:
    """What the text of a kernel says about itself."""

    def __init__(self, source):
        self.source = source
        self.is_gemv = "gemv<Gemv" in source
        self.is_mma = "gemv<GemvMma" in source
        self.is_rotated = "positions_" in source
        self.is_attended = "AttendedHooks<" in source
        self.is_gemm = bool(re.search(r"\bgemm<Config>\(", source))
        self.is_grouped = "groupedLinear<Config" in source and self.flag("kOnTensorCores")
        # Rows of both operands begin at 16 bytes, as the compiler of the text knows.
        self.has_aligned_tiles = ("groupedLinear<Config, kAlignedRows, kAlignedRows>" in source
                                  or "kAlignedRows> left" in source and "kAlignedRows> right" in source)

    def number(self, name):
        return int(re.search(rf"\b{name} = (\d+)", self.source)[1])

    def flag(self, name):
        return f"{name} = true" in self.source

    @property
    def threads(self):
        return int(re.search(r"__launch_bounds__\((\d+)", self.source)[1])

    @property
    def batch_loads(self):
        """Of 16 bytes per lane, in a batch of a GEMV."""
        return self.number("kBatch") * self.number("kColumns")

    @property
    def streams(self):
        """A GEMV whose rows are read 16 bytes at a time, past the L1 cache, before the wait. Fewer weights, the 32 KB
        of a choice among 16 experts, arrive in less time than the wait takes."""
        element = 4 if "typedef float Input" in self.source else 2
        columns = re.search(r"\bkN = (\d+)", self.source)
        return (self.is_gemv and self.flag("kConstantWeights") and self.number("kK") * element % 16 == 0
                and (not columns or int(columns[1]) * self.number("kK") * element >= LEAST_STREAM))

    @property
    def copies_one_row(self):
        """A GEMV that copies its only row to shared memory, in as many chunks as registers have room for."""
        element = 4 if "typedef float Input" in self.source else 2
        chunks = self.number("kK") * element // 16
        return ("kSource = kCopiedInput" in self.source and self.number("kRows") == 1
                and self.number("kSplits") == 1 and chunks <= 4 * self.threads)

    @property
    def has_two_batches(self):
        """Whether every warp has two batches, or as many as make the two: blocks with one batch and
        one group of columns request all that they will ever need."""
        step = 64 if self.is_mma else 32 * (16 // (4 if "typedef float Input" in self.source else 2))
        slices = self.number("kWarpsK") * self.number("kSplits") * self.number("kBatch")
        steps = -(-self.number("kK") // step)
        return -(-steps // slices) >= 2


def violations(code, text):
    """A line for each rule that the machine code `code` of the kernel `text` breaks."""
    said = []
    if code.local_accesses() and "math_sin" not in text.source and "math_cos" not in text.source:
        said.append(f"{code.local_accesses()} accesses of local memory")
    early = code.before_wait()
    if early is not None:
        # Keys and values of earlier runs, with the position in front of which they lie.
        old = text.flag("kOldKeys")
        wrong = [x.opcode for x in early
                 if (x.is_load and not x.is_constant_load and not old) or x.is_a("STG", "ST", "RED", "ATOM", "ATOMG")]
        if wrong:
            said.append(f"before the wait: {', '.join(sorted(set(wrong)))}")
        if old and sum(x.is_load and x.bytes == 16 for x in early) < 4:
            said.append("neither keys nor values of earlier runs are requested before the wait")
        if text.is_gemv and "norm_gain" in text.source and not any(x.is_a("UBLKPF") for x in early):
            said.append("the gain of the norm is not asked for before the wait")
    if text.streams and early is not None:
        loads = sum(LOADS[1](x) for x in early)
        wanted = 2 * text.batch_loads
        if loads < wanted:
            said.append(f"{loads} loads of weights before the wait, the text has {wanted}: "
                        f"{loads * 16 * text.threads} bytes of a block")
        # Each batch is requested again right behind its use, so that the other one is on its way.
        bodies = [sass.runs(b, LOADS, PRODUCTS) for b in code.loops()]
        order = max((b for b in bodies if any(kind == "load" for kind, _ in b)), default=[],
                    key=lambda b: sum(n for _, n in b))
        most = max((n for kind, n in order if kind == "load"), default=0)
        if text.has_two_batches and most != text.batch_loads:
            said.append(f"the loop requests {most} chunks at a time, a batch has {text.batch_loads}: "
                        + " ".join(f"{n} {kind}s" for kind, n in order))
        most = 2 * 4 * text.batch_loads + OTHER_REGISTERS
        if text.is_rotated:
            most += EPILOGUE_REGISTERS + (NORM_REGISTERS if text.number("kSumPairs") else 0)
        if text.is_attended:
            most += ATTENTION_REGISTERS
        if not text.is_mma and text.number("kRows") == 1 and code.registers > most:
            said.append(f"{code.registers} registers, two batches and the rest take {most}")
        # The row, and what belongs to the results of a block, are asked for together. Of further
        # blocks it is on its way while their weights are.
        late = code.late_loads() if text.copies_one_row else []
        if late:
            said.append(f"behind another load that has to arrive: {', '.join(x.opcode for x in late)}")
    if text.is_gemm and text.flag("kConstantB") and early is not None:
        if not any(x.is_a("LDGSTS") for x in early) and "kAlignedRows> right" in text.source:
            said.append("no tile of b is requested before the wait")
    if (text.is_gemm or text.is_grouped) and text.has_aligned_tiles:
        said += of_tiles(code)
    return said


def of_tiles(code):
    """What is wrong with the loop over k of tiles on tensor cores."""
    loops = [b for b in code.loops() if any(x.is_a("HMMA") for x in b)]
    if not loops:
        return ["no loop over k on tensor cores"]
    loop = min(loops, key=len)
    copies = sum(x.is_a("LDGSTS") for x in loop)
    carries = sum(x.carries for x in loop)
    said = [] if copies else ["the loop over k copies nothing to shared memory on its way"]
    if carries > copies + OTHER_CARRIES:
        said.append(f"the loop over k has {carries} parts of 64-bit addresses for {copies} chunks")
    return said


def early_bytes(code, text):
    return sum(LOADS[1](x) for x in code.before_wait() or []) * 16 * text.threads


def written(*lines):
    """Machine code as nvdisasm writes it, at whose labels addresses stand. The kernel is the second of two."""
    begin, places, code = 16, {}, []
    for line in lines:
        if line.endswith(":"):
            places[line[:-1]] = begin + 16 * len(code)
        else:
            code.append(line)
    out = ["        /*0000*/                   EXIT ;"]
    for i, line in enumerate(code):
        line = re.sub(r"`\((\.L\w+)\)", lambda to: hex(places[to[1]]), line)
        out.append(f"        /*{begin + 16 * i:04x}*/                   {line} ;")
    return sass.parse([sass.MachineCode("other", 8), sass.MachineCode("kernel", 64)], [0, begin], "\n".join(out))[1]


def check_rules():
    source = """struct Config { typedef bf16 Input; static constexpr int kK = 2048, kRows = 1, kColumns = 2;
  static constexpr int kWarpsN = 8, kWarpsK = 1, kSplits = 1, kBatch = 1;
  static constexpr GemvSource kSource = kCopiedInput; static constexpr bool kConstantWeights = true; };
__launch_bounds__(256, 2) kernel() { gemv<GemvDot, Config>(hooks); }"""
    text = Text(source)
    row, rest = "LDG.E R40, desc[UR4][R2.64]", "LDG.E.U16 R41, desc[UR4][R2.64]"
    load, product, wait = "LDG.E.NA.128.CONSTANT R4, desc[UR4][R2.64]", "FFMA R0, R1, R2, R0", "ACQBULK"
    loop = [".L_x_1:", product, load, load, product, load, load, "@P0 BRA `(.L_x_1)"]
    good = [load] * 4 + [wait] + loop
    cases = [
        (good, []),
        (["LDG.E.128 R4, desc[UR4][R2.64]"] + good, ["before the wait: LDG.E.128"]),
        (["STG.E.U16 desc[UR4][R2.64], R4"] + good, ["before the wait: STG.E.U16"]),
        ([load] * 2 + [wait] + [load] * 2 + loop, ["2 loads of weights before the wait"]),
        ([load] * 4 + [wait, ".L_x_1:", product] + [load] * 4 + [product, "@P0 BRA `(.L_x_1)"],
         ["the loop requests 4 chunks at a time, a batch has 2"]),
        (good + ["STL [R1], R4", "LDL R4, [R1]"], ["2 accesses of local memory"]),
        # A row whose second half, or a residual, is asked for when the first one is there.
        ([load] * 4 + [wait, row, "STS [R5], R40", rest] + loop, ["behind another load that has to arrive: LDG.E.U16"]),
        ([load] * 4 + [wait, row, rest, "STS [R5], R40"] + loop + [rest], []),
    ]
    for lines, expected in cases:
        said = violations(written(*lines), text)
        if len(said) != len(expected) or any(not s.startswith(e) for s, e in zip(said, expected)):
            sys.exit(f"{lines}\nbreaks {said}, expected {expected}")
    normed = Text(source + "norm_gain")
    if violations(written("UBLKPF.L2 [UR4], UR6", *good), normed) or not violations(written(*good), normed):
        sys.exit("a gain that is not asked for is not told, or one that is")
    old = Text("struct Config { static constexpr bool kOldKeys = true; }; __launch_bounds__(128, 2)")
    key = "LDG.E.128 R4, desc[UR4][R2.64]"
    if violations(written(*[key] * 4, wait), old) or not violations(written(wait, *[key] * 4), old):
        sys.exit("old keys that are requested before the wait are told, or those behind it are not")
    tiles = Text("__launch_bounds__(128) k() { DenseOperand<bf16, kAlignedRows> left{}; "
                 "DenseOperand<bf16, kAlignedRows> right{}; kConstantB = false; gemm<Config>(hooks, left); }")
    copy, carry = "LDGSTS.E.BYPASS.128 [R89+0x1000], desc[UR10][R16.64], P3", "IMAD.X R17, RZ, RZ, R203, P6"
    loop_of = lambda *body: written(wait, ".L_x_1:", "HMMA.16816.F32.BF16 R4, R8, R12, R4", *body,  # noqa: E731
                                    "@P0 BRA `(.L_x_1)")
    for body, expected in [([copy, carry] * 2 + [carry] * OTHER_CARRIES, None),
                           ([copy, carry] * 2 + [carry] * (OTHER_CARRIES + 1), "7 parts of 64-bit addresses"),
                           (["LDS R4, [R5]"], "copies nothing")]:
        said = violations(loop_of(*body), tiles)
        if bool(said) != bool(expected) or (said and expected not in said[0]):
            sys.exit(f"{body} breaks {said}, expected {expected}")
    grouped = Text("__launch_bounds__(128) k() { kOnTensorCores = true; "
                   "groupedLinear<Config, kAlignedRows, kAlignedRows>(y); }")
    if not violations(written(wait, copy), grouped) or violations(loop_of(copy, carry), grouped):
        sys.exit("a grouped product without its loop is not told, or one with it is")
    # A load, one whose address it gives, and one that nobody waits for.
    chain = written(wait, "LDG.E.64 R4, desc[UR4][R2.64]", "LDG.E R8, desc[UR4][R4.64]",
                    "LDG.E R9, desc[UR4][R2.64]", "FFMA R0, R1, R8, R0", load)
    if chain.rounds_behind_wait() != 2:
        sys.exit(f"{chain.rounds_behind_wait()} rounds of loads, expected 2")
    # Of two branches one is taken: a load each, and one that waits for either.
    fork = written(wait, "@P0 BRA `(.L_x_1)", "LDG.E.64 R4, desc[UR4][R2.64]", "BRA `(.L_x_2)", ".L_x_1:",
                   "LDG.E.64 R4, desc[UR4][R4.64]", ".L_x_2:", "LDG.E R8, desc[UR4][R4.64]", "FFMA R0, R8, R0, R0")
    if fork.rounds_behind_wait() != 2:
        sys.exit(f"{fork.rounds_behind_wait()} rounds of loads in two branches, expected 2")
    fat = written(*good)
    fat.registers = 90
    if not any("90 registers" in s for s in violations(fat, text)):
        sys.exit("90 registers of a kernel for one row are not told")
    attended = Text(source + "typedef AttendedHooks<Linear, Attention> Hooks;")
    if any("registers" in s for s in violations(fat, attended)):
        sys.exit("the registers of attention inside a product are told")
    fat.registers, rotated = 72, Text(source.replace("};", "  static constexpr int kSumPairs = 0; };") + "positions_0")
    if violations(fat, rotated) or not violations(fat, text):
        sys.exit("8 registers for a rotation are told, or those without one are not")


def check_models(lathe, folder, models):
    if not sass.nvdisasm():
        print("skipped: no nvdisasm; scripts/setup fetches it")
        sys.exit(77)
    failed = []
    for model in models:
        kernels = Path(folder) / Path(model).stem
        done = subprocess.run([lathe, "inspect", model, "--dtype", "bf16", "--backend", "cuda", "--greedy",
                               "--target", "sm_90a", "--kernels", kernels],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode and "NVRTC" in done.stdout:
            print("skipped: no NVRTC; scripts/setup fetches it")
            sys.exit(77)
        if done.returncode:
            sys.exit(done.stdout)
        checked = streaming = full = tiles = 0
        texts = {cubin: Text(cubin.with_suffix(".cu").read_text()) for cubin in sorted(kernels.glob("*.cubin"))}
        texts = {cubin: text for cubin, text in texts.items() if text.is_gemv or text.is_gemm or text.is_grouped
                 or "griddepcontrol" in cubin.with_suffix(".ptx").read_text()}
        for (cubin, text), code in zip(texts.items(), sass.read_all(list(texts))):
            checked += 1
            tiles += (text.is_gemm or text.is_grouped) and text.has_aligned_tiles
            failed += [f"{Path(model).stem} {cubin.stem}: {line}" for line in violations(code, text)]
            if text.streams:
                streaming += 1
                full += early_bytes(code, text) >= EARLY_BYTES
        print(f"{Path(model).stem}: {checked} kernels read; of {streaming} that stream weights {full} "
              f"request {EARLY_BYTES >> 10} KB a block and more before the wait; {tiles} of tiles")
        if checked < 20 or full * 2 < streaming:
            failed.append(f"{model}: too few kernels, or too little requested")
    print("\n".join(failed))
    sys.exit(bool(failed))


if __name__ == "__main__":
    if sys.argv[1:2] == ["rules"]:
        check_rules()
    elif sys.argv[1:2] == ["models"] and len(sys.argv) > 4:
        check_models(sys.argv[2], sys.argv[3], sys.argv[4:])
    else:
        sys.exit(__doc__)
