#include "tools/lsp/hints.h"

#include <algorithm>
#include <optional>

#include "base/strings.h"
#include "tools/lsp/names.h"
#include "tools/lsp/net_reading.h"
#include "tools/lsp/places.h"
#include "tools/measure/net_size.h"

namespace crema {
namespace {

// The token at a place of this file.
std::optional<size_t> token_of(const Document& document, const std::string& where) {
  size_t end = 0;
  const std::optional<size_t> place =
      starts_with(where, name_of(document) + ":") ? place_in(document, where, &end) : std::nullopt;
  return place ? std::optional(token_index(document.tree(), *place)) : std::nullopt;
}

// Behind the value of the field whose name is this token.
size_t end_of_field(const SyntaxTree& tree, size_t at) {
  const bool is_field = at + 2 < tree.tokens.size() && tree.tokens[at + 1].is(":");
  return end_of(tree.tokens[is_field ? at + 2 : at]);
}

// Behind the opening brace, or behind the layer if it is in one line.
size_t behind_layer(const SyntaxTree& tree, size_t at) {
  for (size_t open = at; open < std::min(at + 3, tree.tokens.size()); ++open) {
    const Token& token = tree.tokens[open];
    if (!token.is("{") && !token.is("<")) continue;
    const size_t line = tree.line_of(token.begin) + 1;
    const size_t line_end = line < tree.lines.size() ? tree.lines[line] - 1 : tree.text.size();
    const size_t next = token_index(tree, line_end);
    const Token& last = tree.tokens[next == 0 ? 0 : next - 1];
    return std::max(end_of(token), end_of(last));
  }
  return end_of(tree.tokens[at]);
}

}  // namespace

std::vector<TokenHint> hints_of(const Document& document, const MadeNet& made) {
  const SyntaxTree& tree = document.tree();
  const Graph& graph = *made.graph;
  const std::vector<int64_t> multiply_adds = multiply_adds_of(graph);
  std::vector<TokenHint> hints;
  for (int i = 0; i < graph.net.layer_size(); ++i) {
    const int from = made.input_layer(i);
    if (from < 0) continue;
    for (size_t k = 0; k < graph.views[i].tops.size(); ++k) {
      const std::string field = cat("top[", k, "]");
      const std::optional<size_t> token = token_of(document, made.input.where_field(from, field));
      if (!token) continue;
      const Value& value = graph.values[graph.views[i].tops[k]];
      hints.push_back({*token, {end_of_field(tree, *token), value.shape.brief()}});
    }
    int64_t parameters = 0;
    for (const int index : graph.views[i].parameters) {
      const Parameter& parameter = graph.parameters[index];
      if (parameter.layer == graph.net.layer(i).name()) parameters += parameter.shape.count();
    }
    if (parameters + multiply_adds[i] == 0) continue;
    const std::optional<size_t> token = token_of(document, made.input.options.where(from));
    if (!token) continue;
    std::string text = parameters > 0 ? cat(grouped(parameters), " parameters") : "";
    if (multiply_adds[i] > 0)
      text += cat(text.empty() ? "" : ", ", grouped(multiply_adds[i]), " multiply-adds");
    hints.push_back({*token, {behind_layer(tree, *token), text}});
  }
  return hints;
}

std::vector<Hint> value_hints(const SyntaxTree& tree, const std::vector<ComputedValue>& values) {
  std::vector<Hint> hints;
  constexpr size_t kLongest = 40;
  for (const ComputedValue& one : values) {
    if (one.end > tree.text.size() || one.begin >= one.end) continue;
    const std::string text = tree.text.substr(one.begin, one.end - one.begin);
    const bool is_computed = text.find('$') != std::string::npos || one.values.size() > 1;
    if (!is_computed) continue;
    std::string shown =
        join({one.values.begin(), one.values.end() - (one.values.size() > 4 ? 1 : 0)}, ", ");
    if (one.values.size() > 4) shown += ", ...";
    if (shown.size() > kLongest) continue;
    hints.push_back({one.end, "= " + shown});
  }
  return hints;
}

}  // namespace crema
