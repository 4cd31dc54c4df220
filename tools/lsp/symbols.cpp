#include <algorithm>

#include "tools/lsp/features.h"
#include "tools/lsp/names.h"

namespace crema {
namespace {

// Of the protocol.
enum SymbolKind { kClass = 5, kField = 8, kVariable = 13, kObject = 19 };
size_t end_of(const SyntaxTree& tree, const Statement& s) {
  return end_of(tree.token(s.all.end - 1));
}

Json symbols_in(const Document& document, const Block& block, bool with_values) {
  const SyntaxTree& tree = document.tree();
  Json all = Json::array();
  for (const Statement& s : block.statements) {
    if (s.kind == Statement::Kind::junk) continue;
    const bool is_field = s.kind == Statement::Kind::field;
    if (is_field && s.blocks.empty() && !with_values) continue;
    const Token &first = tree.token(s.all.begin),
                &last = tree.token(std::max(s.all.begin, s.name.end - 1));
    std::string name(first.text), detail;
    SymbolKind kind = s.kind == Statement::Kind::assignment ? kVariable
                      : is_field && s.blocks.empty()        ? kField
                                                            : kObject;
    Json children = Json::array();
    for (const Block& inside : s.blocks) {
      for (Json& child : symbols_in(document, inside, false)) children.push_back(std::move(child));
    }
    if (is_field && !s.blocks.empty()) {
      const std::string own = text_of_field(tree, s.blocks[0], "name");
      const std::string type = text_of_field(tree, s.blocks[0], "type");
      if (!own.empty()) {
        detail = type.empty() ? name : type;
        name = own;
        kind = kClass;
      }
    }
    if (!s.value.empty()) {
      const Token &from = tree.token(s.value.begin), &to = tree.token(s.value.end - 1);
      detail = tree.text.substr(from.begin, std::min<size_t>(end_of(to) - from.begin, 60));
    }
    Json symbol = {{"name", name},
                   {"kind", kind},
                   {"range", document.range(first.begin, end_of(tree, s))},
                   {"selectionRange", document.range(first.begin, end_of(last))}};
    if (!detail.empty()) symbol["detail"] = detail;
    if (!children.empty()) symbol["children"] = children;
    all.push_back(std::move(symbol));
  }
  return all;
}

void add_folds(const Document& document, const Block& block, Json* folds) {
  const SyntaxTree& tree = document.tree();
  for (const Statement& s : block.statements) {
    for (const Block& inside : s.blocks) {
      const Json begin = document.position(tree.token(inside.open).begin);
      const Json end =
          document.position(inside.close < 0 ? end_of(tree, s) : tree.token(inside.close).begin);
      if (begin["line"] < end["line"])
        folds->push_back({{"startLine", begin["line"]}, {"endLine", end["line"]}});
      add_folds(document, inside, folds);
    }
  }
}

}  // namespace

Json symbols_of(const Document& document) {
  return symbols_in(document, document.tree().file, true);
}

Json folds_of(const Document& document) {
  Json folds = Json::array();
  add_folds(document, document.tree().file, &folds);
  return folds;
}

}  // namespace crema
