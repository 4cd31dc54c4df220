#include "base/strings.h"
#include "tools/docs/layer_text.h"
#include "tools/docs/schema.h"
#include "tools/lsp/features.h"
#include "tools/lsp/names.h"

namespace crema {
namespace {

using google::protobuf::FieldDescriptor;

// "layer.convolution_param" of a place, as help_on_fields() takes it.
std::string path_of(const TypedPlace& place) {
  std::string path;
  for (size_t i = 1; i < place.blocks.size(); ++i)
    path += cat(path.empty() ? "" : ".", place.blocks[i].field);
  if (!path.empty())
    return place.blocks[0].type->name() == "LayerParameter" ? "layer." + path : path;
  const std::string& type = place.blocks[0].type->name();
  return type == "SolverParameter" ? "solver" : type == "NetParameter" ? "net" : "layer";
}

std::string help_on(const TypedPlace& place, const FieldDescriptor& field) {
  for (const FieldHelp& help : help_on_fields(path_of(place)).fields) {
    if (help.name == field.name())
      return cat("**", help.name, "** (", help.type, ")\n\n", help.comment);
  }
  return "";
}

}  // namespace

Json hover_at(const Document& document, size_t offset) {
  const SyntaxTree& tree = document.tree();
  const TypedPlace place = place_at(tree, type_of(tree), offset);
  const FieldDescriptor* const field = field_of(tree, place);
  if (!field) return nullptr;
  const Statement& s = *place.statement;
  const Token& name = tree.token(s.name.begin);
  std::string text;
  size_t begin = name.begin, end = end_of(name);
  if (offset >= begin && offset <= end) {
    text = help_on(place, *field);
  } else if (field->full_name() == "crema.LayerParameter.type" && !s.value.empty()) {
    const Token& value = tree.token(s.value.begin);
    begin = value.begin, end = end_of(value);
    if (offset >= begin && offset <= end && value.kind == Token::Kind::text)
      text = cat("```\n", documentation_of(unquoted(value.text)), "\n```");
  }
  if (text.empty()) return nullptr;
  return {{"contents", {{"kind", "markdown"}, {"value", text}}},
          {"range", document.range(begin, end)}};
}

}  // namespace crema
