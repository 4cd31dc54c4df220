#include "tools/lsp/server.h"

#include <algorithm>

#include "base/error.h"
#include "base/strings.h"
#include "net/syntax/format.h"
#include "tools/lsp/features.h"

namespace crema {
namespace {

// Error codes of JSON-RPC and of the protocol.
constexpr int kInvalidRequest = -32600, kUnknownMethod = -32601, kInvalidParams = -32602,
              kRequestFailed = -32803, kNotInitialized = -32002;
constexpr int kStillAfter = 100;  // milliseconds

struct RpcError {
  int code;
  std::string text;
};

Json capabilities() {
  return {{"textDocumentSync", {{"openClose", true}, {"change", 2}}},
          {"documentFormattingProvider", true},
          {"documentSymbolProvider", true},
          {"foldingRangeProvider", true},
          {"completionProvider", {{"triggerCharacters", {":", "\"", "$", " "}}}},
          {"hoverProvider", true},
          {"definitionProvider", true},
          {"referencesProvider", true},
          {"renameProvider", true},
          {"codeActionProvider", {{"codeActionKinds", {"quickfix"}}}},
          {"inlayHintProvider", true}};
}

Json edit(const Document& document, size_t begin, size_t end, const std::string& text) {
  return {{"range", document.range(begin, end)}, {"newText", text}};
}

}  // namespace

int LanguageServer::run() {
  while (true) {
    look_at_changes();
    const std::optional<Json> message = stream_.read();
    if (!message || !handle(*message)) return is_shut_down_ ? 0 : 1;
  }
}

bool LanguageServer::handle(const Json& message) {
  const bool is_request = message.contains("id") && message.contains("method");
  if (!message.contains("method")) return true;  // an answer, which nothing here waits for
  Json reply = {{"jsonrpc", "2.0"}, {"id", is_request ? message["id"] : Json(nullptr)}};
  const auto refuse = [&](int code, const std::string& text) {
    reply["error"] = {{"code", code}, {"message", text}};
  };
  try {
    const std::string method = message["method"];
    const Json params = message.value("params", Json::object());
    if (method == "exit") return false;
    if (is_request) {
      reply["result"] = answer(method, params);
    } else if (is_initialized_) {
      notify(method, params);
    }
  } catch (const RpcError& error) {
    refuse(error.code, error.text);
  } catch (const Json::exception& error) {
    refuse(kInvalidParams, error.what());
  } catch (const Error& error) {
    refuse(kRequestFailed, error.what());
  }
  if (is_request) stream_.write(reply);
  return true;
}

Json LanguageServer::answer(const std::string& method, const Json& params) {
  if (method == "initialize") {
    is_initialized_ = true;
    return {{"capabilities", capabilities()}, {"serverInfo", {{"name", "crema"}}}};
  }
  if (!is_initialized_) throw RpcError{kNotInitialized, "initialize comes first"};
  if (is_shut_down_) throw RpcError{kInvalidRequest, "the server has been shut down"};
  if (method == "shutdown") {
    is_shut_down_ = true;
    return nullptr;
  }
  constexpr std::string_view kOfDocuments = "textDocument/";
  if (!starts_with(method, kOfDocuments)) throw RpcError{kUnknownMethod, "there is no " + method};
  const std::string what = method.substr(kOfDocuments.size());
  const Open& open = this->open(params);
  const Document& document = open.document;
  const auto offset = [&] { return document.offset_of(params.at("position")); };
  if (what == "formatting") return format(open);
  if (what == "documentSymbol") return symbols_of(document);
  if (what == "foldingRange") return folds_of(document);
  if (what == "completion") return completions_at(document, offset());
  if (what == "hover") return hover_at(document, offset());
  if (what == "definition") return definition_at(document, offset());
  if (what == "references") return references_at(document, offset());
  if (what == "rename") return renamed_at(document, offset(), params.at("newName"));
  if (what == "codeAction") return code_actions(open, params.at("range"));
  if (what == "inlayHint") return inlay_hints(open, params.at("range"));
  throw RpcError{kUnknownMethod, "there is no " + method};
}

void LanguageServer::notify(const std::string& method, const Json& params) {
  if (method == "textDocument/didOpen") {
    const Json& item = params.at("textDocument");
    const std::string uri = item.at("uri");
    open_.erase(uri);
    open_.emplace(uri,
                  Open{Document(uri, item.at("text")), item.value("version", int64_t{0}), {}, {}});
  } else if (method == "textDocument/didChange") {
    Open& open = this->open(params);
    for (const Json& change : params.at("contentChanges")) open.document.change(change);
    open.version = params.at("textDocument").value("version", int64_t{0});
    open.is_looked_at = open.is_understood = false;
  } else if (method == "textDocument/didClose") {
    Open& closed = open(params);
    closed.diagnostics.clear();
    closed.meaning = {};
    publish(closed);
    open_.erase(closed.document.uri());
  } else if (method == "textDocument/didSave") {
    // Other files may include it.
    for (auto& [uri, other] : open_) other.is_understood = false;
  }
}

LanguageServer::Open& LanguageServer::open(const Json& params) {
  const std::string uri = params.at("textDocument").at("uri");
  const auto found = open_.find(uri);
  if (found == open_.end()) throw RpcError{kInvalidParams, "this file is not open: " + uri};
  return found->second;
}

void LanguageServer::look_at_changes() {
  for (auto& [uri, open] : open_) {
    if (open.is_looked_at || stream_.has_more(0)) continue;
    open.is_looked_at = true;
    open.diagnostics = diagnose_statements(open.document);
    open.meaning.diagnostics.clear();  // their places have moved
    open.is_understood = !open.diagnostics.empty();
    publish(open);
  }
  for (auto& [uri, open] : open_) {
    if (open.is_understood || !open.is_looked_at || stream_.has_more(kStillAfter)) continue;
    open.is_understood = true;
    if (!open.diagnostics.empty()) continue;
    Meaning meaning = meaning_of(open.document);
    // Shapes of layers that are right stay visible while one of them is wrong.
    if (meaning.shapes.empty() && !meaning.diagnostics.empty())
      meaning.shapes = open.meaning.shapes;
    open.meaning = std::move(meaning);
    publish(open);
  }
}

void LanguageServer::publish(const Open& open) {
  constexpr int kError = 1, kWarning = 2, kInformation = 3;
  Json all = Json::array();
  for (const std::vector<Diagnostic>* const list : {&open.diagnostics, &open.meaning.diagnostics}) {
    for (const Diagnostic& one : *list) {
      const int severity = one.severity == Severity::error     ? kError
                           : one.severity == Severity::warning ? kWarning
                                                               : kInformation;
      all.push_back({{"range", open.document.range(one.begin, one.end)},
                     {"severity", severity},
                     {"source", "crema"},
                     {"message", one.text}});
    }
  }
  stream_.write(
      {{"jsonrpc", "2.0"},
       {"method", "textDocument/publishDiagnostics"},
       {"params",
        {{"uri", open.document.uri()}, {"version", open.version}, {"diagnostics", all}}}});
}

Json LanguageServer::code_actions(const Open& open, const Json& range) const {
  const size_t begin = open.document.offset_of(range.at("start")),
               end = open.document.offset_of(range.at("end"));
  Json actions = Json::array();
  std::vector<Diagnostic> all = open.diagnostics;
  all.insert(all.end(), open.meaning.diagnostics.begin(), open.meaning.diagnostics.end());
  for (const Diagnostic& one : all) {
    if (one.replacement.empty() || one.begin > end || one.end < begin) continue;
    const Json edits = Json::array({edit(open.document, one.begin, one.end, one.replacement)});
    actions.push_back({{"title", cat("Change to ", one.replacement)},
                       {"kind", "quickfix"},
                       {"isPreferred", true},
                       {"edit", {{"changes", {{open.document.uri(), edits}}}}}});
  }
  return actions;
}

Json LanguageServer::format(const Open& open) const {
  const SyntaxTree& tree = open.document.tree();
  if (!tree.mistakes.empty())
    throw RpcError{kRequestFailed,
                   cat("line ", tree.place(tree.mistakes[0].begin), ": ", tree.mistakes[0].text)};
  const std::string text = formatted(tree);
  if (text == tree.text) return Json::array();
  return Json::array({edit(open.document, 0, tree.text.size(), text)});
}

Json LanguageServer::inlay_hints(const Open& open, const Json& range) const {
  const size_t begin = open.document.offset_of(range.at("start")),
               end = open.document.offset_of(range.at("end"));
  Json hints = Json::array();
  for (const ShapeHint& hint : open.meaning.shapes) {
    if (!open.is_understood || hint.offset < begin || hint.offset > end) continue;
    hints.push_back({{"position", open.document.position(hint.offset)},
                     {"label", hint.shape},
                     {"paddingLeft", true}});
  }
  return hints;
}

}  // namespace crema
