// What the server answers, as VS Code's objects. Its numbers of kinds and severities begin at 0, the protocol's at 1.
"use strict";

const vscode = require("vscode");

const position = ({ line, character }) => new vscode.Position(line, character);
const range = ({ start, end }) => new vscode.Range(position(start), position(end));
const plain = ({ start, end }) => ({ start, end }); // VS Code writes ranges as lists
const location = ({ uri, range: at }) => new vscode.Location(vscode.Uri.parse(uri), range(at));
const textEdit = (edit) => new vscode.TextEdit(range(edit.range), edit.newText);

function diagnostic(found) {
  const shown = new vscode.Diagnostic(range(found.range), found.message, found.severity - 1);
  shown.source = found.source;
  shown.tags = found.tags;
  return shown;
}

function workspaceEdit({ changes }) {
  const all = new vscode.WorkspaceEdit();
  for (const [uri, edits] of Object.entries(changes)) all.set(vscode.Uri.parse(uri), edits.map(textEdit));
  return all;
}

function completion(item) {
  const shown = new vscode.CompletionItem(item.label, item.kind - 1);
  const text = item.textEdit ? item.textEdit.newText : item.insertText || item.label;
  shown.insertText = item.insertTextFormat === 2 ? new vscode.SnippetString(text) : text;
  shown.detail = item.detail;
  if (item.textEdit) shown.range = range(item.textEdit.range);
  return shown;
}

function symbol(found) {
  const shown = new vscode.DocumentSymbol(
    found.name, found.detail || "", found.kind - 1, range(found.range), range(found.selectionRange));
  shown.children = (found.children || []).map(symbol);
  return shown;
}

function hint({ position: at, label, paddingLeft }) {
  const shown = new vscode.InlayHint(position(at), label);
  shown.paddingLeft = paddingLeft;
  return shown;
}

function action({ title, edit, isPreferred }) {
  const shown = new vscode.CodeAction(title, vscode.CodeActionKind.QuickFix);
  shown.edit = workspaceEdit(edit);
  shown.isPreferred = isPreferred;
  return shown;
}

// Returns what to dispose of when the server ends.
function register(language, capabilities, server) {
  const { languages } = vscode;
  const about = (document, more) => ({ textDocument: { uri: document.uri.toString() }, ...more });
  // Without an answer there is nothing to show; only a refusal to rename or format is for the person.
  const ask = (method, document, more) =>
    server.ask(`textDocument/${method}`, about(document, more)).catch(() => null);
  const list = async (answer, shown) => ((await answer) || []).map(shown);
  const triggers = capabilities.completionProvider.triggerCharacters;
  return [
    languages.registerCompletionItemProvider(
      language,
      { provideCompletionItems: (document, at) => list(ask("completion", document, { position: at }), completion) },
      ...triggers),
    languages.registerHoverProvider(language, {
      provideHover: async (document, at) => {
        const found = await ask("hover", document, { position: at });
        return found && new vscode.Hover(new vscode.MarkdownString(found.contents.value), range(found.range));
      },
    }),
    languages.registerDefinitionProvider(language, {
      provideDefinition: async (document, at) => {
        const found = await ask("definition", document, { position: at });
        return found && location(found);
      },
    }),
    languages.registerReferenceProvider(language, {
      provideReferences: (document, at, context) => list(ask("references", document, { position: at, context }), location),
    }),
    languages.registerRenameProvider(language, {
      provideRenameEdits: async (document, at, newName) =>
        workspaceEdit(await server.ask("textDocument/rename", about(document, { position: at, newName }))),
    }),
    languages.registerDocumentFormattingEditProvider(language, {
      provideDocumentFormattingEdits: async (document, options) =>
        (await server.ask("textDocument/formatting", about(document, { options }))).map(textEdit),
    }),
    languages.registerDocumentSymbolProvider(language, {
      provideDocumentSymbols: (document) => list(ask("documentSymbol", document), symbol),
    }),
    languages.registerFoldingRangeProvider(language, {
      provideFoldingRanges: (document) =>
        list(ask("foldingRange", document), ({ startLine, endLine }) => new vscode.FoldingRange(startLine, endLine)),
    }),
    languages.registerCodeActionsProvider(language, {
      provideCodeActions: (document, at) =>
        list(ask("codeAction", document, { range: plain(at), context: { diagnostics: [] } }), action),
    }),
    languages.registerInlayHintsProvider(language, {
      provideInlayHints: (document, at) => list(ask("inlayHint", document, { range: plain(at) }), hint),
    }),
    languages.registerDocumentSemanticTokensProvider(
      language,
      {
        provideDocumentSemanticTokens: async (document) => {
          const found = await ask("semanticTokens/full", document);
          return found && new vscode.SemanticTokens(new Uint32Array(found.data));
        },
      },
      new vscode.SemanticTokensLegend(
        capabilities.semanticTokensProvider.legend.tokenTypes, capabilities.semanticTokensProvider.legend.tokenModifiers)),
  ];
}

module.exports = { register, diagnostic };
