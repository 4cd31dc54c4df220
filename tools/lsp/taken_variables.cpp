#include "tools/lsp/taken_variables.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/strings.h"

namespace crema {
namespace {

using Names = std::set<std::string>;

void add_variables(const SyntaxTree& tree, Names* set, Names* used) {
  for (size_t i = 0; i + 1 < tree.tokens.size(); ++i) {
    const Token& token = tree.tokens[i];
    if (token.kind == Token::Kind::variable) {
      const Token& next = tree.tokens[i + 1];
      size_t first = i;  // repeat $a, $b = ...
      while (first > 1 && tree.tokens[first - 1].is(",")) first -= 2;
      const bool in_repeat = first > 0 && tree.tokens[first - 1].is_word("repeat");
      (next.is("=") || next.is("?=") || in_repeat ? set : used)->emplace(token.text.substr(1));
    } else {
      each_variable(token, [&](size_t begin, size_t end) {
        used->insert(tree.text.substr(begin, end - begin));
      });
    }
  }
}

class TakenVariables {
 public:
  explicit TakenVariables(const OpenFiles& files) : files_(files) {}

  // Of a file and of those that it includes.
  Names of(const Document& document) {
    Names set, used;
    add_variables(document.tree(), &set, &used);
    add_included(document, document.tree().file, &used);
    for (const std::string& name : set) used.erase(name);
    return used;
  }

 private:
  void add_included(const Document& document, const Block& block, Names* used) {
    const SyntaxTree& tree = document.tree();
    for (const Statement& s : block.statements) {
      for (const Block& inside : s.blocks) {
        if (s.kind != Statement::Kind::include) add_included(document, inside, used);
      }
      if (s.kind != Statement::Kind::include || s.value.end - s.value.begin != 1) continue;
      const std::string_view value = tree.token(s.value.begin).text;
      if (value.size() < 3 || value.find('$') != std::string_view::npos) continue;
      Names taken = of_path(normal_path(included_path(document, unquoted(value))));
      for (const Block& arguments : s.blocks) {
        for (const Statement& argument : arguments.statements) taken.erase(word_of(tree, argument));
      }
      used->merge(taken);
    }
  }

  const Names& of_path(const std::string& path) {
    const auto [known, is_new] = known_.try_emplace(path);
    if (!is_new) return known->second;  // empty for a file that includes itself
    if (const auto document = files_.at(path)) known->second = of(*document);
    return known->second;
  }

  const OpenFiles& files_;
  std::map<std::string, Names> known_;  // by path
};

}  // namespace

bool takes_variables(const Document& document, const OpenFiles& files) {
  const SyntaxTree& tree = document.tree();
  Names set, used;
  add_variables(tree, &set, &used);
  if (names_in(tree).empty()) used = TakenVariables(files).of(document);
  const std::vector<std::string> known(set.begin(), set.end());
  return std::any_of(used.begin(), used.end(), [&](const std::string& name) {
    return set.count(name) == 0 && did_you_mean(name, known).empty();
  });
}

}  // namespace crema
