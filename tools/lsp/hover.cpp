#include "base/strings.h"
#include "tools/docs/layer_text.h"
#include "tools/lsp/features.h"
#include "tools/lsp/field_help.h"
#include "tools/lsp/net_help.h"

namespace crema {
namespace {

using google::protobuf::FieldDescriptor;

std::string help_on(const TypedPlace& place, const FieldDescriptor& field) {
  for (const FieldHelp& help : help_on_block(place).fields) {
    if (help.name == field.name())
      return cat("**", help.name, "** (", help.type, ")\n\n", help.comment);
  }
  return "";
}

// Fields that decide about the learning rate.
bool is_of_rate(const FieldDescriptor& field) {
  if (field.containing_type()->name() != "SolverParameter") return false;
  for (const char* const name : {"base_lr", "lr_policy", "gamma", "power", "stepsize", "stepvalue",
                                 "max_iter", "min_lr", "warmup_iter", "warmup_start_lr"}) {
    if (field.name() == name) return true;
  }
  return false;
}

}  // namespace

Json hover_at(const Document& document, size_t offset, const OpenFiles& files) {
  const SyntaxTree& tree = document.tree();
  const TypedPlace place = place_at(tree, type_of(tree), offset);
  const FieldDescriptor* const field = field_of(tree, place);
  if (!field) return nullptr;
  const Statement& s = *place.statement;
  const Token& name = tree.token(s.name.begin);
  std::vector<std::string> texts;
  size_t begin = name.begin, end = end_of(name);
  if (offset >= begin && offset <= end) texts.push_back(help_on(place, *field));
  const Token* const value = token_at(tree, offset);
  const bool is_value = value && value->begin > name.begin && s.blocks.empty();
  if (is_value) begin = value->begin, end = end_of(*value);
  if (is_of_rate(*field)) texts.push_back(rate_help(document, files));
  if (is_value && value->kind == Token::Kind::text) {
    const std::string text = unquoted(value->text);
    if (field->full_name() == "crema.LayerParameter.type") {
      texts.push_back(layer_help(document, files, place));
      const std::string documentation = documentation_of(text);
      if (!documentation.empty()) texts.push_back(cat("```\n", documentation, "\n```"));
    } else if (field->name() == "bottom" || field->name() == "top") {
      texts.push_back(blob_help(document, files, place, text, field->name() == "top"));
    }
  }
  std::string all;
  for (const std::string& text : texts) {
    if (!text.empty()) all += cat(all.empty() ? "" : "\n\n", text);
  }
  if (all.empty()) return nullptr;
  return {{"contents", {{"kind", "markdown"}, {"value", all}}},
          {"range", document.range(begin, end)}};
}

}  // namespace crema
