#include "tools/lsp/diagnostics.h"

#include <algorithm>

#include "base/error.h"
#include "base/other_names.h"
#include "layers/layer_types.h"
#include "tools/lsp/names.h"

namespace crema {
namespace {

using google::protobuf::FieldDescriptor;

Fix replace(size_t begin, size_t end, const std::string& text) {
  return {begin, end, text, cat("Change to ", text)};
}

// What an editor can do about a mistake of syntax.
std::optional<Fix> fix_of(const SyntaxTree& tree, const SyntaxMistake& mistake) {
  if (mistake.kind == SyntaxMistake::Kind::open_text) {
    const std::string quote(1, tree.text[mistake.begin]);
    return Fix{mistake.end, mistake.end, quote, cat("Add the closing ", quote)};
  }
  if (mistake.kind == SyntaxMistake::Kind::stray_brace)
    return Fix{mistake.begin, mistake.end, "", "Remove this brace"};
  if (mistake.kind == SyntaxMistake::Kind::equals_sign) {
    const bool follows_name = mistake.begin > 0 && tree.text[mistake.begin - 1] == ' ';
    return Fix{mistake.begin - (follows_name ? 1 : 0), mistake.end, ":", "Change to :"};
  }
  if (mistake.kind == SyntaxMistake::Kind::unquoted_text) {
    const std::string text = tree.text.substr(mistake.begin, mistake.end - mistake.begin);
    return Fix{mistake.begin, mistake.end, cat('"', text, '"'), "Add quotes"};
  }
  return std::nullopt;
}

class StatementDiagnosis {
 public:
  StatementDiagnosis(const SyntaxTree& tree, std::vector<Diagnostic>* found)
      : tree_(tree), found_(*found), types_(layer_types()) {}

  void look_at(const TypedPlace& place) {
    const Statement& s = *place.statement;
    if (s.kind != Statement::Kind::field || !place.type() || tree_.token(s.name.begin).is("["))
      return;
    const Token& name = tree_.token(s.name.begin);
    const FieldDescriptor* const field = field_of(tree_, place);
    if (!field) {
      add_unknown(name, unknown_field(name.text, place.blocks, {}), "");
      return;
    }
    look_at_form(name, place);
    if (s.value.end - s.value.begin != 1) return;
    const Token& value = tree_.token(s.value.begin);
    if (field->enum_type() && value.kind == Token::Kind::word &&
        !field->enum_type()->FindValueByName(std::string(value.text)))
      add_unknown(value, unknown_value(value.text, *field), "");
    if (field->full_name() == "crema.LayerParameter.type") look_at_type(value);
  }

 private:
  void add_unknown(const Token& word, const std::string& text, const char* quote) {
    // A word that is still being typed.
    if (std::any_of(found_.begin(), found_.end(),
                    [&](const Diagnostic& other) { return other.begin == word.begin; }))
      return;
    Diagnostic unknown{word.begin, end_of(word), Severity::error, text, std::nullopt};
    const std::string meant = suggested(text);
    if (!meant.empty()) unknown.fix = replace(word.begin, end_of(word), cat(quote, meant, quote));
    found_.push_back(std::move(unknown));
  }

  // Forms of Caffe's first years, which are read as today's.
  void look_at_form(const Token& name, const TypedPlace& place) {
    if (!is_old_layer(tree_, place)) return;
    found_.push_back({name.begin, end_of(name), Severity::info,
                      "this is how layers were written until 2014; `crema upgrade_net_proto_text` "
                      "writes them as layer { type: \"...\" }",
                      std::nullopt, Diagnostic::Tag::deprecated});
  }

  void look_at_type(const Token& value) {
    if (value.kind != Token::Kind::text || value.text.size() < 2 ||
        value.text.find('$') != std::string_view::npos)
      return;
    const std::string type(value.text.substr(1, value.text.size() - 2));
    if (std::binary_search(types_.begin(), types_.end(), type)) return;
    add_unknown(
        value,
        cat("there is no layer type \"", type, "\"", suggestion(Vocabulary::layers, type, types_)),
        "\"");
  }

  const SyntaxTree& tree_;
  std::vector<Diagnostic>& found_;
  const std::vector<std::string> types_;
};

}  // namespace

std::string suggested(const std::string& text) {
  constexpr std::string_view kQuestion = "did you mean \"";
  const size_t at = text.find(kQuestion);
  if (at == std::string::npos) return "";
  const size_t begin = at + kQuestion.size(), end = text.find('"', begin);
  return end == std::string::npos ? "" : text.substr(begin, end - begin);
}

std::vector<Diagnostic> diagnose_statements(const Document& document) {
  const SyntaxTree& tree = document.tree();
  std::vector<Diagnostic> found;
  for (const SyntaxMistake& mistake : tree.mistakes)
    found.push_back(
        {mistake.begin, mistake.end, Severity::error, mistake.text, fix_of(tree, mistake)});
  StatementDiagnosis diagnosis(tree, &found);
  each_statement(tree, type_of(tree), [&](const TypedPlace& place) { diagnosis.look_at(place); });
  return found;
}

}  // namespace crema
