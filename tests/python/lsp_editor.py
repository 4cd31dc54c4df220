"""An editor for `crema lsp`, as tests and benchmarks use it."""
import json
import os
import pathlib
import subprocess

CREMA = os.environ["CREMA_TOOLS"] + "/crema"


def place(position):
    """Line and column as in messages."""
    return f"{position['line'] + 1}:{position['character'] + 1}"


def apply(text, edits):
    """The text with the edits of a WorkspaceEdit or of a formatter; it has only ASCII characters."""
    lines = [0]
    for line in text.split("\n"):
        lines.append(lines[-1] + len(line) + 1)
    spans = [(lines[e["range"]["start"]["line"]] + e["range"]["start"]["character"],
              lines[e["range"]["end"]["line"]] + e["range"]["end"]["character"], e["newText"]) for e in edits]
    for begin, end, new in sorted(spans, reverse=True):
        text = text[:begin] + new + text[end:]
    return text


def rows(name):
    """The rows of a table in this folder; \\n is a new line."""
    lines = (pathlib.Path(__file__).parent / name).read_text().splitlines()
    return [[column.replace("\\n", "\n") for column in line.split("\t")] for line in lines if not line.startswith("#")]


class Editor:
    def __init__(self, folder="/tmp", **settings):
        self.process = subprocess.Popen([CREMA, "lsp"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=folder,
                                        env=dict(os.environ, CREMA_FLAGS="", XDG_CONFIG_HOME=os.devnull))
        self.number, self.version, self.uri = 0, 0, f"file://{folder}/net.prototxt"
        self.published = {}  # by file and version: what was said of its words, then of its meaning
        self.capabilities = self.ask("initialize", {"capabilities": {}, **settings})["capabilities"]
        self.legend = self.capabilities["semanticTokensProvider"]["legend"]
        self.tell("initialized", {})

    def send(self, message):
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
        self.process.stdin.flush()

    def receive(self):
        length = 0
        while (line := self.process.stdout.readline().strip()) != b"":
            length = int(line.split(b":")[1])
        message = json.loads(self.process.stdout.read(length))
        if message.get("method") == "textDocument/publishDiagnostics":
            params = message["params"]
            key = params["uri"], params["version"]
            self.published[key] = self.published.get(key, []) + [params["diagnostics"]]
        return message

    def tell(self, method, params):
        self.send({"method": method, "params": params})

    def ask(self, method, params):
        self.number += 1
        self.send({"id": self.number, "method": method, "params": params})
        while (message := self.receive()).get("id") != self.number:
            pass
        if "error" in message:
            raise RuntimeError(message["error"]["message"])
        return message["result"]

    def at(self, method, line, character, **more):
        return self.ask("textDocument/" + method, {"textDocument": {"uri": self.uri},
                                                   "position": {"line": line, "character": character}, **more})

    def open(self, text, uri=None):
        self.uri, self.version, self.text = uri or self.uri, self.version + 1, text
        self.tell("textDocument/didOpen", {"textDocument": {"uri": self.uri, "languageId": "prototxt",
                                                            "version": self.version, "text": text}})

    def change(self, begin, end, text):
        """begin, end: offsets in the text, which has only ASCII characters."""
        def position(offset):
            before = self.text[:offset]
            return {"line": before.count("\n"), "character": offset - (before.rfind("\n") + 1)}
        self.version += 1
        self.tell("textDocument/didChange", {
            "textDocument": {"uri": self.uri, "version": self.version},
            "contentChanges": [{"range": {"start": position(begin), "end": position(end)}, "text": text}]})
        self.text = self.text[:begin] + text + self.text[end:]

    def mistakes(self):
        """Errors and warnings of the current version: of its words, or, if there are none, of its meaning."""
        return [(place(found["range"]["start"]), found["message"]) for found in self.diagnostics() if found["severity"] < 3]

    def diagnostics(self):
        while True:
            lists = self.published.get((self.uri, self.version), [])
            if len(lists) > 1 or (lists and any(found["severity"] == 1 for found in lists[0])):
                return lists[-1]
            self.receive()

    def look(self):
        """The same as mistakes(), without waiting until the editor is still."""
        found = self.ask("textDocument/diagnostic", {"textDocument": {"uri": self.uri}})["items"]
        return [(place(one["range"]["start"]), one["message"]) for one in found if one["severity"] < 3]

    def hints(self):
        whole = {"start": {"line": 0, "character": 0}, "end": {"line": 100000, "character": 0}}
        hints = self.ask("textDocument/inlayHint", {"textDocument": {"uri": self.uri}, "range": whole})
        return [(place(hint["position"]), hint["label"]) for hint in hints]

    def fixes(self):
        """The quick fixes of the whole file."""
        whole = {"start": {"line": 0, "character": 0}, "end": {"line": 100000, "character": 0}}
        return self.ask("textDocument/codeAction", {"textDocument": {"uri": self.uri}, "range": whole,
                                                    "context": {"diagnostics": []}})

    def close(self):
        self.ask("shutdown", None)
        self.tell("exit", None)
        return self.process.wait(10)
