# SPDX-License-Identifier: Apache-2.0
"""Speaks the Language Server Protocol to lathe-lsp-server through its standard streams.

    python3 lsp_test.py PATH/lathe-lsp-server
"""
import json
import subprocess
import sys
import threading

GOOD = """module {
  lathe.dim @seq 1 to 16
  func.func @forward(%x: tensor<?x8xf32, #lathe.dims<seq, 8>>) -> tensor<?x8xf32, #lathe.dims<seq, 8>> {
    %y = lathe.exp %x : tensor<?x8xf32, #lathe.dims<seq, 8>>
    %z = lathe.neg %y : tensor<?x8xf32, #lathe.dims<seq, 8>>
    return %z : tensor<?x8xf32, #lathe.dims<seq, 8>>
  }
}
"""
BAD = """func.func @forward(%a: tensor<4x8xf32>, %b: tensor<8x4xbf16>) {
  %y = lathe.matmul %a, %b : tensor<4x8xf32>, tensor<8x4xbf16>
  return
}
"""


class Client:
    def __init__(self, program):
        self.process = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.DEVNULL)
        self.next_id = 0
        # A server that hangs fails the test instead of the whole run.
        self.alarm = threading.Timer(60, self.process.kill)
        self.alarm.start()

    def send(self, method, params, is_request):
        message = {"jsonrpc": "2.0", "method": method, "params": params}
        if is_request:
            self.next_id += 1
            message["id"] = self.next_id
        body = json.dumps(message).encode()
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
        self.process.stdin.flush()

    def receive(self):
        length = 0
        while True:
            line = self.process.stdout.readline()
            assert line, "the server ended"
            if line == b"\r\n":
                break
            key, value = line.split(b":")
            if key.lower() == b"content-length":
                length = int(value)
        return json.loads(self.process.stdout.read(length))

    def request(self, method, params):
        self.send(method, params, True)
        while True:
            message = self.receive()
            if message.get("id") == self.next_id:
                assert "error" not in message, message
                return message["result"]

    def notification(self, method):
        while True:
            message = self.receive()
            if message.get("method") == method:
                return message["params"]

    def open(self, uri, text):
        self.send("textDocument/didOpen", {"textDocument": {
            "uri": uri, "languageId": "mlir", "version": 1, "text": text}}, False)
        while True:
            params = self.notification("textDocument/publishDiagnostics")
            if params["uri"] == uri:
                return params["diagnostics"]

    def close(self):
        self.request("shutdown", None)
        self.send("exit", None, False)
        status = self.process.wait(timeout=30)
        self.alarm.cancel()
        return status


def at(uri, line, character):
    return {"textDocument": {"uri": uri}, "position": {"line": line, "character": character}}


def main():
    client = Client(sys.argv[1])
    capabilities = client.request("initialize", {"processId": None, "rootUri": None,
                                                 "capabilities": {}})["capabilities"]
    assert capabilities["hoverProvider"] and capabilities["definitionProvider"], capabilities
    client.send("initialized", {}, False)

    good, bad = "file:///good.mlir", "file:///bad.mlir"
    assert client.open(good, GOOD) == []
    diagnostics = client.open(bad, BAD)
    assert any("[C1]" in d["message"] and d["range"]["start"]["line"] == 1 for d in diagnostics), \
        diagnostics

    lines = GOOD.splitlines()
    hover = client.request("textDocument/hover", at(good, 3, lines[3].index("lathe.exp") + 2))
    text = hover["contents"]["value"]
    assert "lathe.exp" in text and "#lathe.dims<seq, 8>" in text, text
    # From the use of %y in lathe.neg to its definition by lathe.exp, one line above.
    places = client.request("textDocument/definition", at(good, 4, lines[4].index("%y") + 1))
    assert [p["range"]["start"]["line"] for p in places] == [3], places
    # An op that is being written, in front of what is left of its line.
    half = GOOD.replace("lathe.neg", "lathe.")
    client.open("file:///half.mlir", half)
    where = at("file:///half.mlir", 4, lines[4].index("lathe.") + len("lathe."))
    completion = client.request("textDocument/completion", where)
    items = completion["items"] if isinstance(completion, dict) else completion
    labels = {item["label"] for item in items}
    missing = {"neg", "exp", "attention", "linear"} - {l.split(".")[-1] for l in labels}
    assert not missing, (missing, sorted(labels)[:20])
    assert client.close() == 0
    print("diagnostics, hover, definition and completion: passed")


main()
