#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the pages say works for somebody who has an installed Lathe and nothing else: every command is
run, every C++ and CMake block is compiled, in one project, and every flag that is named exists.

Usage: pages.py PREFIX WORK CMAKE CXX MLIR_DIR
"""
import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time
import urllib.request

import model_files

PREFIX, WORK, CMAKE, CXX, MLIR = sys.argv[1:6]
DOC = pathlib.Path(PREFIX, "share", "doc", "lathe")
WORK = pathlib.Path(WORK)
# docs/nn.md and docs/ops.md are generated from what is compiled, docs/python.md has a test of its own.
PAGES = ["README.md"] + ["docs/" + page + ".md" for page in (
    "getting-started", "write-a-fusion", "adding-a-pass", "adding-a-backend", "explain", "families", "formats",
    "generation", "numerics", "onnx", "questions", "ranks", "report", "selftest", "serving", "tuning")]
BLOCK = re.compile(r"(?:<!-- identical to (\S+) -->\n)?^```(\w*)\n(.*?)^```$", re.S | re.M)

# Blocks that are no whole file: what stands around them.
FRAMES = {
    "docs/getting-started.md": """#include <vector>
{includes}
#include <lathe/runtime/chat_template.h>
#include <lathe/runtime/checkpoint.h>
using namespace lathe;
int main() {{
  try {{
    std::vector<float> values(3 * 64, 0.5f);
    Array weights = Array(DType::F32, {{10, 64}});
    {body}
    return first > 0 ? 0 : 1;
  }} catch (const Error& e) {{
    std::fprintf(stderr, "%s\\n", e.what());
    return 1;
  }}
}}
""",
    "docs/adding-a-pass.md": """#include <lathe/lathe.h>
using namespace lathe;
{body}
int main() {{
  PatternLibrary (*fusions)(mlir::MLIRContext*) = [](mlir::MLIRContext* context) {{
    PatternLibrary library;
    addMyPatterns(library, context);
    return library;
  }};
  Graph g("gate");
  Tensor x = g.input("x", DType::F32, {{3, 64}});
  g.output("y", mul(mul(x, sigmoid(x)), x));
  CompileRecord record;
  compile(g, {{.pipeline = {{.patterns = fusions}}, .record = &record}});
  for (const auto& rewrite : record.rewrites)
    if (rewrite.what == "my_pattern") return 0;
  return 1;
}}
""",
    "docs/adding-a-backend.md": """#include <lathe/backends/backend.h>
#include <lathe/runtime/backend_plugin.h>
#include <lathe/runtime/device.h>
static std::unique_ptr<lathe::Backend> makeBackend() {{ return nullptr; }}
static std::unique_ptr<lathe::Device> makeDevice(std::shared_ptr<const lathe::Program>,
                                                 const lathe::DeviceOptions&) {{
  return nullptr;
}}
{body}
int main() {{ return lathe_backend_plugin()->name == std::string("table") ? 0 : 1; }}
""",
    "docs/explain.md": """#include <iostream>
{includes}
#include <lathe/lathe.h>
using namespace lathe;
int main() {{
  Graph graph("scores"), g("observed");
  Dim batch = graph.dim("batch", 1, 8), seq = graph.dim("seq", 1, 8192);
  graph.output("y", exp(graph.input("x", DType::F32, {{batch, seq, 64}})));
  Tensor scores = g.input("scores", DType::F32, {{2, 8, 8}}), v = g.input("v", DType::F32, {{2, 8, 4}});
  {scopes}
  return 0;
}}
""",
    "docs/report.md": """{includes}
#include <lathe/lathe.h>
using namespace lathe;
int main() {{
  Graph graph("scores");
  graph.output("y", exp(graph.input("x", DType::F32, {{2, 64}})));
  {body}
}}
""",
    "docs/onnx.md": """#include <lathe/lathe.h>
{includes}
using namespace lathe;
int main() {{
  try {{
    Array ids(DType::I64, {{1, 4}});
    {body}
    return y.at("y").size() == 4 * 8 ? 0 : 1;
  }} catch (const Error& e) {{
    std::fprintf(stderr, "%s\\n", e.what());
    return 1;
  }}
}}
""",
    "docs/ranks.md": """#include <thread>
#include <lathe/lathe.h>
#include <lathe/runtime/checkpoint.h>
{includes}
using namespace lathe;
int main() {{
  Graph g("mlp");
  g.output("y", nn::SwiGLU(g, "mlp", 64, 172)(g.input("x", DType::F32, {{3, 64}})));
  Checkpoint checkpoint = Checkpoint::open("mlp.safetensors");
  Arrays inputs = {{{{"x", Array(DType::F32, {{3, 64}})}}}};
  {body}
  return 0;
}}
""",
    "docs/families.md": """#include <lathe/lathe.h>
{includes}
using namespace lathe;
int main() {{
  {body}
  const char* config = R"({{"architectures": ["MineForCausalLM"], "vocab_size": 11, "hidden_size": 16,
      "intermediate_size": 12, "num_hidden_layers": 2, "num_attention_heads": 4}})";
  Session session(compile(buildFromConfig(JsonValue::parse(config, "config.json"))));
  session.bindRandomWeights(1);
  return session.run("forward", {{{{"input_ids", Array(DType::I64, {{1, 3}})}}}}).at("logits").size() == 33 ? 0 : 1;
}}
""",
}
# Words that stand for something of the reader's.
WORDS = [(r"build/release/bin/", ""), (r"\bMODEL\b", "examples/models/stories"), (r"\bDIR\b", "examples/models/stories"),
         (r"\bdiff A B\b", "diff examples/models/stories examples/models/stories"),
         # Sampling all ops and a picture take longer or other programs than a test may.
         (r"selftest --mode (test|perf)$", r"selftest --mode \1 --op softmax"),
         # The story model takes 512 positions.
         (r"bench (\S+) --random-weights", r"bench \1 --random-weights -p 64 -n 32"), (r"\| dot -Tsvg >graph.svg", ">graph.dot")]
# Commands for other machines; that their flags exist is checked all the same.
ELSEWHERE = ("lathe-gpu-choices ", "lathe tune ", "LATHE_TUNING=", "mpirun ")
# What a build says that was made without a package which a command needs; then nothing more is asked of it.
WITHOUT_PACKAGE = "install openmpi-bin and libopenmpi-dev and build again"
# The verb whose flags a page's tables and words list, where no other is named with them.
TABLES = {"docs/generation.md": "generate", "docs/explain.md": "explain", "docs/selftest.md": "selftest",
          "docs/serving.md": "serve"}
# No command of a page takes longer, under any load of the machine; one that does would never end.
SECONDS = 300
# Of the tree that is built, not of an installed Lathe.
OF_THE_TREE = ("scripts/demo", "scripts/test")


def run(command, statuses=(0,), seconds=SECONDS, **options):
    start = time.monotonic()
    shown = command if isinstance(command, str) else " ".join(map(str, command))
    try:
        result = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                text=True, timeout=seconds, **options)
    except subprocess.TimeoutExpired as e:
        sys.exit(f"{shown}\ndid not end within {seconds} s:\n{(e.output or b'').decode()}")
    print(f"{time.monotonic() - start:6.1f} s  {shown.splitlines()[0][:120]}", flush=True)
    if result.returncode not in statuses and WITHOUT_PACKAGE not in result.stdout:
        sys.exit(f"{shown}\nended with {result.returncode}:\n{result.stdout}")
    return result.stdout


@contextlib.contextmanager
def serving(command, **options):
    """The address of a command that runs until it is stopped: it ends well at SIGTERM."""
    with subprocess.Popen(["bash", "-c", f"exec {command} --port 0"], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, text=True, **options) as server:
        try:
            address = server.stdout.readline().split()[-1:]
            if not address or not address[0].startswith("http://"):
                sys.exit(f"{command}\ntold no address, but {address}")
            yield address[0]
            server.send_signal(signal.SIGTERM)
            if server.wait(SECONDS):
                sys.exit(f"{command}\nended with {server.returncode}")
        finally:
            server.kill()


def serve(command, **options):
    with serving(command, **options) as address:
        with urllib.request.urlopen(address + "/health", timeout=SECONDS) as answer:
            print(f"{command}: {answer.status}", flush=True)


# What a page's client needs of the package `openai`, for machines that have not got it.
OPENAI = """
import json, types, urllib.request
class OpenAI:
    def __init__(self, base_url, api_key):
        def create(**body):
            headers = {"Content-Type": "application/json", "Authorization": "Bearer " + api_key}
            request = urllib.request.Request(base_url + "/chat/completions", json.dumps(body).encode(), headers)
            with urllib.request.urlopen(request) as answer:
                return json.load(answer, object_hook=lambda found: types.SimpleNamespace(**found))
        self.chat = types.SimpleNamespace(completions=types.SimpleNamespace(create=create))
"""


def ask_as_the_page_does(text, folder, environment):
    """Runs a page's client against a server of the folder that it names."""
    if subprocess.run([sys.executable, "-c", "import openai"], stderr=subprocess.DEVNULL).returncode:
        (folder / "openai.py").write_text(OPENAI)
    with serving("lathe serve DIR", cwd=folder, env=environment) as address:
        lines = text.replace("http://127.0.0.1:8080", address).rstrip().splitlines()
        lines[-1] = "answer = " + lines[-1]
        lines.append("assert answer.choices[0].message.content, answer")
        (folder / "client.py").write_text("\n".join(lines))
        run([sys.executable, "client.py"], cwd=folder, env=environment)


def commands(text):
    """Commands of a block: lines, with those that a backslash or a here-document goes on with."""
    found, here = [], None
    for line in text.splitlines():
        if here or (found and found[-1].endswith("\\")):
            found[-1] += "\n" + line
            here = None if line == here else here
        elif line.strip():
            found.append(re.sub(r"\s+# .*$", "", line))
            match = re.search(r"<<'(\w+)'", line)
            here = match and match.group(1)
    return [c for c in found if c.split()[0] not in OF_THE_TREE]


def framed(page, blocks):
    text = "\n".join(blocks)
    lines = text.splitlines()
    includes = [line for line in lines if line.startswith("#include")]
    body = "\n".join(line for line in lines if line not in includes and line != "using namespace lathe;")
    # Blocks that do not go on with each other: each its own scope.
    scopes = "\n".join("{\n" + "\n".join(l for l in block.splitlines() if l not in includes) + "\n}" for block in blocks)
    return FRAMES[page].format(includes="\n".join(includes), body=body, scopes=scopes)


def transcripts(text):
    """Commands behind `$ ` and what they print, up to a line of three dots."""
    for piece in re.split(r"^\$ ", text, flags=re.M)[1:]:
        command, _, output = piece.partition("\n")
        yield command, output.split("\n...\n")[0].strip("\n")


def check_flags(page, text, helps):
    """Flags of commands in a page's words and tables are flags of their verbs."""
    named = [(verb, span) for span in re.findall(r"`(lathe [^`]+)`", text)
             for verb in [span.split()[1]] if verb in helps]
    if page in TABLES:
        named += [(TABLES[page], cell) for cell in re.findall(r"^\| ([^|]*`-[^|]*) \|", text, re.M)]
        named += [(TABLES[page], span) for span in re.findall(r"`(--?[a-z][^`]*)`", text)]
    count = 0
    for verb, span in named:
        for flag in re.findall(r"(?<![\w-])--?[a-z][a-z-]*", span):
            count += 1
            if not re.search(re.escape(flag) + r"(?![\w-])", helps[verb]):
                sys.exit(f"{page}: `{span}`: lathe {verb} has no flag {flag}")
    return count


def write_models(folder, environment):
    def weights_of(config):
        return json.loads(run(["lathe", "inspect", config, "--json"], env=environment))["weights"]
    model_files.write_minilm(folder / "MINILM", weights_of)
    model_files.write_t5(folder / "T5", weights_of)
    model_files.write_chat_model(folder / "DIR", folder / "examples/models/stories")
    model_files.write_onnx(folder / "model.onnx")
    model_files.write_ids(folder / "ids.npy", [0, 5, 6, 7])
    model_files.write_safetensors(folder / "mlp.safetensors", {
        f"mlp.{name}.weight": shape for name, shape in
        (("gate_proj", [172, 64]), ("up_proj", [172, 64]), ("down_proj", [64, 172]))})


def main():
    blocks = [(page, *m.groups()) for page in PAGES for m in BLOCK.finditer((DOC / page).read_text())]
    source = WORK / "pages"
    source.mkdir()
    for page, file, language, text in blocks:
        if file:
            (source / pathlib.Path(file).name).write_text(text)
    shutil.copy(DOC / "examples/fusions/trial.h", source)

    # One project: each page's CMake lines as they are, and a target for each program without any.
    lists = ["cmake_minimum_required(VERSION 3.25)", "project(Pages LANGUAGES C CXX)",
             "find_package(Lathe 0.1 REQUIRED CONFIG)",
             "add_executable(my_compiler swiglu.cpp)", "add_executable(my_server my_server.cpp)"]
    (source / "my_server.cpp").write_text("#include <lathe/runtime/session.h>\nint main() {}\n")
    lists += [text for _, _, language, text in blocks if language == "cmake"]
    listed = " ".join(lists)
    programs, plain = ["my_compiler"], []
    for page, file, language, text in blocks:
        name = pathlib.Path(file).stem if file else ""
        if file and file.endswith(".cpp") and f"{name}.cpp" not in listed:
            lists += [f"add_executable({name} {name}.cpp)", f"target_link_libraries({name} PRIVATE lathe::lathe)"]
            plain.append(name)
        if file and file.endswith(".cpp") and name not in ("swiglu", "round_weights_plugin"):
            programs.append(name)
    for page in FRAMES:
        pieces = [text for p, file, language, text in blocks if p == page and language == "cpp" and not file]
        if not pieces:
            sys.exit(f"{page}: no C++ block was found")
        name = pathlib.Path(page).stem
        (source / f"{name}.cpp").write_text(framed(page, pieces))
        lists += [f"add_executable({name} {name}.cpp)", f"target_link_libraries({name} PRIVATE lathe::lathe)"]
        if page == "docs/adding-a-backend.md":  # the compile side sees MLIR
            lists += [f"target_include_directories({name} SYSTEM PRIVATE ${{MLIR_INCLUDE_DIRS}} ${{LLVM_INCLUDE_DIRS}})",
                      f"target_link_libraries({name} PRIVATE MLIR LLVM)"]
        else:
            plain.append(name)
        programs.append(name)
    # What nearly all of their time goes to, read once; the examples' own build reads it in each of them.
    lists.append(f"target_precompile_headers({plain[0]} PRIVATE <lathe/lathe.h>)")
    lists += [f"target_precompile_headers({name} REUSE_FROM {plain[0]})" for name in plain[1:]]
    (source / "CMakeLists.txt").write_text("\n".join(lists) + "\n")
    build = WORK / "pages-build"
    run([CMAKE, "-S", source, "-B", build, "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={PREFIX}", f"-DMLIR_DIR={MLIR}",
         f"-DCMAKE_CXX_COMPILER={CXX}", "-DCMAKE_BUILD_TYPE=None", "-DCMAKE_CXX_FLAGS=-Wall -Wno-unused-variable -Werror"])
    run([CMAKE, "--build", build], seconds=1200)

    # A folder as the pages have it: the examples beside the reader, the installed programs on the path.
    folder = WORK / "reader"
    folder.mkdir()
    (folder / "examples").symlink_to(DOC / "examples")
    for file in list(source.iterdir()) + [build / "round_weights_plugin.so"]:
        shutil.copy(file, folder)
    for side in ("table_backend.so", "table_device.so"):
        shutil.copy(WORK / "table" / side, folder)
    environment = dict(os.environ, PATH=f"{PREFIX}/bin:{os.environ['PATH']}", NO_COLOR="1", LATHE_NUM_THREADS="1")
    arguments = {"pattern_file": ["glu.pdl.mlir", "glu_pdl"], "load_plugin": ["./round_weights_plugin.so"]}
    own = WORK / "own"  # getting-started binds the weights of a folder `model`, of its own graph
    (own / "model").mkdir(parents=True)
    model_files.write_safetensors(own / "model/model.safetensors", {"head.weight": [10, 64]})
    write_models(folder, environment)
    for program in programs:
        run([build / program, *arguments.get(program, [])], env=environment,
            cwd=own if program == "getting-started" else folder)
    (folder / "bench").symlink_to(DOC / "bench")
    help_text = run(["lathe", "--help"], env=environment)
    helps = {verb: run(["lathe", "help", verb], env=environment)
             for verb in re.findall(r"^  ([a-z][a-z-]+)  ", help_text, re.M)}
    flags = sum(check_flags(page, (DOC / page).read_text(), helps) for page in PAGES)
    count = 0

    def obey(command, statuses=(0,)):
        for word, meaning in WORDS:
            command = re.sub(word, meaning, command)
        if command.startswith(ELSEWHERE):
            return check_flags(page, f"`{command[command.index('lathe'):]}`", helps)
        if command.startswith("lathe serve "):
            return serve(command, cwd=folder, env=environment)
        return run("set -e -o pipefail; " + command, statuses, shell=True, executable="/bin/bash", cwd=folder,
                   env=environment)

    for page, file, language, text in blocks:
        if language == "python":
            ask_as_the_page_does(text, folder, environment)
            count += 1
        for command in commands(text) if language == "sh" else []:
            obey(command)
            count += 1
        for command, output in transcripts(text) if not language else []:
            # Two graphs that differ are a status of 1. What a wrong fusion gives needs that fusion.
            printed = obey(command, (0, 1) if command.startswith("lathe diff") else (0,))
            count += 1
            if "gate.mlir" in command and printed.strip("\n") != output:
                sys.exit(f"{page}: $ {command}\nprinted\n{printed}\nnot\n{output}")
    if count < 45 or flags < 60:
        sys.exit(f"only {count} commands and {flags} flags were found")
    print(f"{count} commands, {flags} flags and {len(programs)} programs of {len(PAGES)} pages work")


if __name__ == "__main__":
    main()
