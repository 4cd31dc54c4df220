#include "tools/lsp/server.h"

#include <algorithm>
#include <chrono>

#include "base/error.h"
#include "base/strings.h"
#include "net/syntax/format.h"
#include "tools/lsp/features.h"

namespace crema {
namespace {

// Error codes of JSON-RPC and of the protocol.
constexpr int kInvalidRequest = -32600, kUnknownMethod = -32601, kInvalidParams = -32602,
              kRequestFailed = -32803, kNotInitialized = -32002;
constexpr int kMostStill = 100;  // milliseconds

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
          {"semanticTokensProvider", {{"legend", semantic_legend()}, {"full", true}}},
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
    initialize(params);
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
  return answer_about(method.substr(kOfDocuments.size()), open(params), params);
}

Json LanguageServer::answer_about(const std::string& what, Open& open, const Json& params) {
  const Document& document = *open.document;
  const auto offset = [&] { return document.offset_of(params.at("position")); };
  if (what == "formatting") return format(open);
  if (what == "documentSymbol") return symbols_of(document);
  if (what == "foldingRange") return folds_of(document);
  if (what == "semanticTokens/full") return semantic_tokens_of(document);
  if (what == "completion") return completions_at(document, offset(), has_snippets_);
  if (what == "hover") return hover_at(document, offset(), files_);
  if (what == "definition") return definition_at(document, offset(), files_);
  if (what == "references") return references_at(document, offset(), files_);
  if (what == "rename") return renamed_at(document, offset(), params.at("newName"), files_);
  if (what == "codeAction") return code_actions(open, params.at("range"));
  if (what == "inlayHint") {
    catch_up(&open);
    return inlay_hints(open, params.at("range"));
  }
  if (what == "diagnostic") {
    // It is not announced, as editors would show each mistake twice: programs ask, which cannot wait.
    catch_up(&open);
    return {{"kind", "full"}, {"items", diagnostics(open)}};
  }
  throw RpcError{kUnknownMethod, "there is no textDocument/" + what};
}

void LanguageServer::initialize(const Json& params) {
  is_initialized_ = true;
  const Json::json_pointer snippets(
      "/capabilities/textDocument/completion/completionItem/snippetSupport");
  has_snippets_ = params.contains(snippets) && params[snippets] == true;
  std::vector<std::string> folders;
  const auto add = [&](const Json& holder, const char* key) {
    const auto uri = holder.find(key);
    if (uri != holder.end() && uri->is_string()) folders.push_back(path_of_uri(*uri));
  };
  const auto all = params.find("workspaceFolders");
  if (all != params.end() && all->is_array()) {
    for (const Json& folder : *all) {
      if (folder.is_object()) add(folder, "uri");
    }
  }
  if (folders.empty()) add(params, "rootUri");
  folders.erase(std::remove(folders.begin(), folders.end(), ""), folders.end());
  files_.set_folders(std::move(folders));
}

void LanguageServer::notify(const std::string& method, const Json& params) {
  if (method == "textDocument/didOpen") {
    const Json& item = params.at("textDocument");
    const std::string uri = item.at("uri");
    Open open;
    open.document = files_.open(uri, item.at("text"));
    open.version = item.value("version", int64_t{0});
    read_again_with(*open.document);
    open_[uri] = std::move(open);
  } else if (method == "textDocument/didChange") {
    Open& open = this->open(params);
    for (const Json& change : params.at("contentChanges")) {
      const Document::Edit edit = open.document->change(change);
      std::vector<Hint>& hints = open.meaning.hints;
      hints.erase(std::remove_if(hints.begin(), hints.end(),
                                 [&](const Hint& hint) {
                                   return hint.offset > edit.begin && hint.offset <= edit.end;
                                 }),
                  hints.end());
      for (Hint& hint : hints) {
        if (hint.offset > edit.begin) hint.offset += edit.inserted - (edit.end - edit.begin);
      }
    }
    open.version = params.at("textDocument").value("version", int64_t{0});
    open.is_looked_at = open.is_understood = false;
    read_again_with(*open.document);
  } else if (method == "textDocument/didClose") {
    Open& closed = open(params);
    closed.diagnostics.clear();
    closed.meaning = {};
    publish(closed);
    files_.close(*closed.document);
    read_again_with(*closed.document);
    open_.erase(std::string(closed.document->uri()));
  } else if (method == "textDocument/didSave" || method == "workspace/didChangeWatchedFiles") {
    // What is not open may have changed, too.
    for (auto& [uri, other] : open_) other.is_understood = false;
  }
}

LanguageServer::Open& LanguageServer::open(const Json& params) {
  const std::string uri = params.at("textDocument").at("uri");
  const auto found = open_.find(uri);
  if (found == open_.end()) throw RpcError{kInvalidParams, "this file is not open: " + uri};
  return found->second;
}

void LanguageServer::read_again_with(const Document& changed) {
  const std::string path = normal_path(changed.path());
  for (auto& [uri, other] : open_) {
    if (other.meaning.files.count(path) > 0) other.is_understood = false;
  }
}

void LanguageServer::look_at_changes() {
  for (auto& [uri, open] : open_) {
    if (open.is_looked_at || stream_.has_more(0)) continue;
    look_at(&open);
    publish(open);
  }
  for (auto& [uri, open] : open_) {
    if (open.is_understood || !open.is_looked_at || stream_.has_more(still_after_)) continue;
    understand(&open);
    publish(open);
  }
}

void LanguageServer::catch_up(Open* open) {
  if (!open->is_looked_at) {
    look_at(open);
    publish(*open);
  }
  if (!open->is_understood) {
    understand(open);
    publish(*open);
  }
}

void LanguageServer::look_at(Open* open) {
  open->is_looked_at = true;
  open->diagnostics = diagnose_statements(*open->document);
  open->meaning.diagnostics.clear();  // their places have moved
  open->is_understood = false;
}

void LanguageServer::understand(Open* open) {
  open->is_understood = true;
  const auto begin = std::chrono::steady_clock::now();
  Meaning meaning = meaning_of(*open->document, files_, open->diagnostics);
  // What was understood before a mistake that hides everything stays visible.
  if (meaning.hints.empty() && !(open->diagnostics.empty() && meaning.diagnostics.empty()))
    meaning.hints = std::move(open->meaning.hints);
  open->meaning = std::move(meaning);
  const auto took = std::chrono::steady_clock::now() - begin;
  still_after_ = static_cast<int>(std::min<int64_t>(
      kMostStill, std::chrono::duration_cast<std::chrono::milliseconds>(took).count() / 4));
}

Json LanguageServer::diagnostics(const Open& open) {
  constexpr int kError = 1, kWarning = 2, kInformation = 3, kHint = 4;
  Json all = Json::array();
  for (const std::vector<Diagnostic>* const list : {&open.diagnostics, &open.meaning.diagnostics}) {
    for (const Diagnostic& one : *list) {
      const int severity = one.severity == Severity::error     ? kError
                           : one.severity == Severity::warning ? kWarning
                           : one.tag == Diagnostic::Tag::none  ? kInformation
                                                               : kHint;
      Json item = {{"range", open.document->range(one.begin, one.end)},
                   {"severity", severity},
                   {"source", "crema"},
                   {"message", one.text}};
      if (one.tag != Diagnostic::Tag::none) item["tags"] = {static_cast<int>(one.tag)};
      all.push_back(std::move(item));
    }
  }
  return all;
}

void LanguageServer::publish(const Open& open) {
  stream_.write({{"jsonrpc", "2.0"},
                 {"method", "textDocument/publishDiagnostics"},
                 {"params",
                  {{"uri", open.document->uri()},
                   {"version", open.version},
                   {"diagnostics", diagnostics(open)}}}});
}

Json LanguageServer::code_actions(const Open& open, const Json& range) const {
  const size_t begin = open.document->offset_of(range.at("start")),
               end = open.document->offset_of(range.at("end"));
  Json actions = modern_forms_at(*open.document, begin, end);
  for (const std::vector<Diagnostic>* const list : {&open.diagnostics, &open.meaning.diagnostics}) {
    for (const Diagnostic& one : *list) {
      if (!one.fix || one.begin > end || one.end < begin) continue;
      const Fix& fix = *one.fix;
      const Json edits = Json::array({edit(*open.document, fix.begin, fix.end, fix.text)});
      actions.push_back({{"title", fix.title},
                         {"kind", "quickfix"},
                         {"isPreferred", true},
                         {"edit", {{"changes", {{open.document->uri(), edits}}}}}});
    }
  }
  return actions;
}

Json LanguageServer::format(const Open& open) const {
  const SyntaxTree& tree = open.document->tree();
  if (!tree.mistakes.empty())
    throw RpcError{kRequestFailed,
                   cat("line ", tree.place(tree.mistakes[0].begin), ": ", tree.mistakes[0].text)};
  const std::string text = formatted(tree);
  if (text == tree.text) return Json::array();
  return Json::array({edit(*open.document, 0, tree.text.size(), text)});
}

Json LanguageServer::inlay_hints(const Open& open, const Json& range) const {
  const size_t begin = open.document->offset_of(range.at("start")),
               end = open.document->offset_of(range.at("end"));
  Json hints = Json::array();
  for (const Hint& hint : open.meaning.hints) {
    if (hint.offset < begin || hint.offset > end) continue;
    hints.push_back({{"position", open.document->position(hint.offset)},
                     {"label", hint.text},
                     {"paddingLeft", true}});
  }
  return hints;
}

}  // namespace crema
