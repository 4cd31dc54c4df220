// Crema in VS Code: starts `crema lsp` and shows what it says. It speaks the protocol itself, so that it needs no packages.
"use strict";

const vscode = require("vscode");
const { Server } = require("./server");
const { register, diagnostic } = require("./providers");

const kLanguage = "prototxt";
const kMostStarts = 5; // in three minutes; then a person decides

let server = null;
let diagnostics = null;
let providers = [];
let starts = [];

function isOurs(document) {
  return document.languageId === kLanguage && document.uri.scheme !== "git";
}

function opened(document) {
  if (!server || !isOurs(document)) return;
  const { languageId, version } = document;
  server.tell("textDocument/didOpen", {
    textDocument: { uri: document.uri.toString(), languageId, version, text: document.getText() },
  });
}

function changed({ document, contentChanges }) {
  if (!server || !isOurs(document) || contentChanges.length === 0) return;
  server.tell("textDocument/didChange", {
    textDocument: { uri: document.uri.toString(), version: document.version },
    contentChanges: contentChanges.map(({ range: { start, end }, text }) => ({ range: { start, end }, text })),
  });
}

function closed(document) {
  if (!server || !isOurs(document)) return;
  server.tell("textDocument/didClose", { textDocument: { uri: document.uri.toString() } });
  diagnostics.delete(document.uri);
}

function saved(document) {
  if (server && isOurs(document)) server.tell("textDocument/didSave", { textDocument: { uri: document.uri.toString() } });
}

// A file that is not open, but that open ones may include.
function changedOnDisk(uri) {
  if (server) server.tell("workspace/didChangeWatchedFiles", { changes: [{ uri: uri.toString(), type: 2 }] });
}

function told(method, params) {
  if (method !== "textDocument/publishDiagnostics") return;
  diagnostics.set(vscode.Uri.parse(params.uri), params.diagnostics.map(diagnostic));
}

async function ended(text) {
  server = null;
  diagnostics.clear();
  const now = Date.now();
  starts = starts.filter((time) => now - time < 180000);
  if (starts.length > 0 && starts.length < kMostStarts && !text.includes("cannot be started")) return start();
  const choice = await vscode.window.showWarningMessage(
    `Crema: ${text}. The setting crema.path has its place.`, "Open the setting", "Try again");
  if (choice === "Open the setting") vscode.commands.executeCommand("workbench.action.openSettings", "crema.path");
  if (choice === "Try again") return start();
}

async function start() {
  starts.push(Date.now());
  const program = vscode.workspace.getConfiguration("crema").get("path") || "crema";
  const mine = new Server(program, told, ended);
  server = mine;
  const folders = (vscode.workspace.workspaceFolders || []).map(({ uri, name }) => ({ uri: uri.toString(), name }));
  try {
    const { capabilities } = await mine.ask("initialize", {
      processId: process.pid,
      rootUri: folders.length > 0 ? folders[0].uri : null,
      workspaceFolders: folders,
      capabilities: {},
    });
    mine.tell("initialized", {});
    vscode.workspace.textDocuments.forEach(opened);
    providers.forEach((provider) => provider.dispose());
    providers = register(kLanguage, capabilities, mine);
  } catch {
    // ended() has told it
  }
}

async function stop() {
  const mine = server;
  server = null;
  if (mine) await mine.end();
}

async function activate(context) {
  const watcher = vscode.workspace.createFileSystemWatcher("**/*.{prototxt,pbtxt}");
  diagnostics = vscode.languages.createDiagnosticCollection("crema");
  context.subscriptions.push(
    diagnostics,
    watcher,
    watcher.onDidCreate(changedOnDisk),
    watcher.onDidChange(changedOnDisk),
    watcher.onDidDelete(changedOnDisk),
    vscode.workspace.onDidOpenTextDocument(opened),
    vscode.workspace.onDidChangeTextDocument(changed),
    vscode.workspace.onDidCloseTextDocument(closed),
    vscode.workspace.onDidSaveTextDocument(saved),
    vscode.workspace.onDidChangeConfiguration(async (event) => {
      if (event.affectsConfiguration("crema.path")) await restart();
    }),
    vscode.commands.registerCommand("crema.restart", restart),
    { dispose: () => providers.forEach((provider) => provider.dispose()) });
  await start();
}

async function restart() {
  await stop();
  starts = [];
  await start();
}

module.exports = { activate, deactivate: stop };
