// Runs the extension of tools/editors/vscode on a net, without VS Code: `node vscode_drive.js EXTENSION CREMA NET.prototxt`.
// Types a mistake, takes its quick fix, and prints what each provider answers as JSON.
"use strict";

const fs = require("fs");
const Module = require("module");
const path = require("path");

const [extension, crema, file] = process.argv.slice(2);

// --- the parts of VS Code's module that the extension uses ---------------------------------------

class Position {
  constructor(line, character) {
    Object.assign(this, { line, character });
  }
}
class Range {
  constructor(start, end) {
    Object.assign(this, { start, end });
  }
  toJSON() {
    return [this.start, this.end];
  }
}
class Uri {
  constructor(text) {
    this.text = text;
    this.scheme = text.split(":")[0];
  }
  static parse(text) {
    return new Uri(text);
  }
  toString() {
    return this.text;
  }
}
const record = (...names) => class {
  constructor(...values) {
    names.forEach((name, i) => (this[name] = values[i]));
  }
};
class WorkspaceEdit {
  constructor() {
    this.edits = {};
  }
  set(uri, edits) {
    this.edits[uri.toString()] = edits;
  }
}
const nothing = { dispose() {} };
const providers = {};
const events = {};
const shown = new Map(); // diagnostics by file
const warnings = [];
const provide = (name) => (language, provider, ...more) => {
  providers[name] = { language, provider, more };
  return nothing;
};
const on = (name) => (handler) => {
  events[name] = handler;
  return nothing;
};
const document = {
  uri: Uri.parse("file://" + path.resolve(file)),
  languageId: "prototxt",
  version: 1,
  text: fs.readFileSync(file, "utf8"),
  getText() {
    return this.text;
  },
};
const vscode = {
  Position, Range, Uri, WorkspaceEdit,
  Location: record("uri", "range"),
  TextEdit: record("range", "newText"),
  Diagnostic: record("range", "message", "severity"),
  CompletionItem: record("label", "kind"),
  SnippetString: record("value"),
  MarkdownString: record("value"),
  Hover: record("contents", "range"),
  DocumentSymbol: record("name", "detail", "kind", "range", "selectionRange"),
  FoldingRange: record("start", "end"),
  InlayHint: record("position", "label"),
  CodeAction: record("title", "kind"),
  CodeActionKind: { QuickFix: "quickfix" },
  SemanticTokens: record("data"),
  SemanticTokensLegend: record("tokenTypes", "tokenModifiers"),
  window: { showWarningMessage: async (text) => void warnings.push(text) },
  commands: { registerCommand: () => nothing, executeCommand: async () => {} },
  workspace: {
    textDocuments: [document],
    workspaceFolders: [{ uri: Uri.parse("file://" + path.dirname(path.resolve(file))), name: "nets" }],
    getConfiguration: () => ({ get: () => crema }),
    onDidOpenTextDocument: on("open"),
    onDidChangeTextDocument: on("change"),
    onDidCloseTextDocument: on("close"),
    onDidSaveTextDocument: on("save"),
    onDidChangeConfiguration: on("configuration"),
    createFileSystemWatcher: () => ({ onDidCreate: on("created"), onDidChange: on("written"), onDidDelete: on("deleted"), dispose() {} }),
  },
  languages: new Proxy({
    createDiagnosticCollection: () => ({
      set: (uri, found) => shown.set(uri.toString(), found),
      delete: (uri) => shown.delete(uri.toString()),
      clear: () => shown.clear(),
      dispose() {},
    }),
  }, { get: (own, name) => own[name] || provide(name.replace(/^register(.*)Provider$/, "$1")) }),
};
const load = Module._load;
Module._load = (name, ...more) => (name === "vscode" ? vscode : load(name, ...more));

// --- a person --------------------------------------------------------------------------------------

const positionOf = (offset) => {
  const before = document.text.slice(0, offset).split("\n");
  return new Position(before.length - 1, before.at(-1).length);
};
const offsetOf = ({ line, character }) =>
  document.text.split("\n").slice(0, line).reduce((sum, text) => sum + text.length + 1, 0) + character;

function replace(begin, end, text) {
  const range = new Range(positionOf(begin), positionOf(end));
  document.text = document.text.slice(0, begin) + text + document.text.slice(end);
  document.version += 1;
  events.change({ document, contentChanges: [{ range, text }] });
}

async function until(what, condition) {
  for (let i = 0; i < 500 && !condition(); ++i) await new Promise((resolve) => setTimeout(resolve, 10));
  if (!condition()) throw new Error(`waited for ${what}; shown: ${JSON.stringify([...shown])}`);
}

async function main() {
  const { activate, deactivate } = require(path.resolve(extension, "extension.js"));
  await activate({ subscriptions: [] });
  const mine = () => shown.get(document.uri.toString()) || [];
  if (warnings.length > 0) {
    console.log(JSON.stringify({ warnings }));
    return;
  }
  const whole = () => new Range(new Position(0, 0), positionOf(document.text.length));
  const asked = async (name, method, ...more) => providers[name].provider[method](document, ...more);
  const at = positionOf(document.text.indexOf("conv1\"\n  convolution") + 1);
  const result = { registered: Object.keys(providers).sort() };
  const right = document.text.indexOf("Convolution");
  replace(right, right + 11, "Convolutoin");
  await until("a mistake", () => mine().length === 1);
  result.mistake = mine()[0];
  const [fix] = await asked("CodeActions", "provideCodeActions", whole());
  const [edit] = fix.edit.edits[document.uri.toString()];
  replace(offsetOf(edit.range.start), offsetOf(edit.range.end), edit.newText);
  await until("no mistake", () => mine().length === 0);
  result.fix = fix.title;
  result.hints = await asked("InlayHints", "provideInlayHints", whole());
  result.hover = await asked("Hover", "provideHover", at);
  result.definition = await asked("Definition", "provideDefinition", at);
  result.references = await asked("Reference", "provideReferences", at, { includeDeclaration: true });
  result.rename = await asked("Rename", "provideRenameEdits", at, "c");
  result.refused = await asked("Rename", "provideRenameEdits", new Position(0, 1), "c").catch((error) => error.message);
  result.format = await asked("DocumentFormattingEdit", "provideDocumentFormattingEdits", {});
  result.symbols = await asked("DocumentSymbol", "provideDocumentSymbols");
  result.folds = await asked("FoldingRange", "provideFoldingRanges");
  result.completions = await asked("CompletionItem", "provideCompletionItems", positionOf(document.text.indexOf("ReLU") + 2));
  result.tokens = [...(await asked("DocumentSemanticTokens", "provideDocumentSemanticTokens")).data];
  const block = path.join(path.dirname(path.resolve(file)), "block.prototxt");
  replace(document.text.length, document.text.length, 'include: "block.prototxt"\n');
  await until("a missing file", () => mine().length === 1);
  result.missing = mine()[0].message;
  fs.writeFileSync(block, "");
  events.created(Uri.parse("file://" + block));
  await until("the file", () => mine().length === 0);
  // After a crash the server starts again, with the text as it is.
  replace(0, 0, "nme: 1\n");
  const children = fs.readFileSync(`/proc/self/task/${process.pid}/children`, "utf8").trim().split(" ");
  shown.clear();
  children.forEach((child) => process.kill(Number(child), "SIGKILL"));
  await until("the next server", () => mine().length === 1);
  result.again = mine()[0].message;
  events.close(document);
  await until("closing", () => mine().length === 0);
  await deactivate();
  console.log(JSON.stringify(result));
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
