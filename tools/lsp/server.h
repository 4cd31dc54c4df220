// The language server: what an editor asks about nets and solvers, and what it is told of them.
#pragma once

#include <map>
#include <string>

#include "tools/lsp/meaning.h"
#include "tools/lsp/open_files.h"
#include "tools/lsp/rpc.h"

namespace crema {

class LanguageServer {
 public:
  explicit LanguageServer(RpcStream stream) : stream_(std::move(stream)) {}

  // Answers until the editor ends it. Returns the exit code: 1 if it ends without a shutdown.
  int run();

 private:
  struct Open {
    std::shared_ptr<Document> document;
    int64_t version = 0;
    std::vector<Diagnostic> diagnostics;
    Meaning meaning;
    bool is_looked_at = false, is_understood = false;
  };

  // Returns false when the editor ends it.
  bool handle(const Json& message);
  Json answer(const std::string& method, const Json& params);
  Json answer_about(const std::string& what, Open& open, const Json& params);
  void initialize(const Json& params);
  void notify(const std::string& method, const Json& params);
  Open& open(const Json& params);
  // What has changed is looked at when no message waits, what takes longer once the editor is still.
  void look_at_changes();
  // Does both at once for an answer that needs them.
  void catch_up(Open* open);
  void look_at(Open* open);
  void understand(Open* open);
  // Files that are made of the one that has changed.
  void read_again_with(const Document& changed);
  void publish(const Open& open);
  Json code_actions(const Open& open, const Json& range) const;
  Json format(const Open& open) const;
  Json inlay_hints(const Open& open, const Json& range) const;
  static Json diagnostics(const Open& open);

  RpcStream stream_;
  OpenFiles files_;
  std::map<std::string, Open> open_;  // by URI
  // Milliseconds that the meaning waits for the next keystroke: a quarter of what it took before.
  int still_after_ = 0;
  bool is_initialized_ = false, is_shut_down_ = false;
  bool has_snippets_ = false;  // the editor fills in snippets
};

}  // namespace crema
