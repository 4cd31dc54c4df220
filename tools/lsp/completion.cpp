#include <algorithm>
#include <set>

#include "base/strings.h"
#include "kernels/optim/update_rule.h"
#include "layers/layer_types.h"
#include "solver/rates/learning_rate.h"
#include "tools/lsp/features.h"
#include "tools/lsp/names.h"

namespace crema {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;

// Of the protocol.
enum CompletionKind {
  kCompletesField = 5,
  kCompletesVariable = 6,
  kCompletesType = 7,
  kCompletesValue = 12,
  kCompletesEnum = 20
};
constexpr int kSnippet = 2;

class Completion {
 public:
  Completion(const Document& document, size_t offset)
      : document_(document),
        tree_(document.tree()),
        offset_(offset),
        place_(place_at(tree_, type_of(tree_), offset)) {}

  Json items() {
    if (is_in_comment()) return items_;
    const Token* const token = token_at(tree_, offset_);
    if (token && token->kind == Token::Kind::variable) return variables();
    if (place_.statement && is_value()) return values();
    if (place_.type()) fields();
    return items_;
  }

 private:
  bool is_in_comment() const {
    for (const Token& token : tree_.tokens) {
      if (offset_ > token.begin) continue;
      const size_t begin = token.begin - token.gap.size();
      if (offset_ < begin) return false;
      const std::string_view before = token.gap.substr(0, offset_ - begin);
      const size_t hash = before.rfind('#'), line = before.rfind('\n');
      return hash != std::string_view::npos && (line == std::string_view::npos || hash > line);
    }
    return false;
  }
  // Behind the colon of a field.
  bool is_value() const {
    const Statement& s = *place_.statement;
    return s.kind == Statement::Kind::field && s.blocks.empty() &&
           tree_.token(s.name.end).is(":") && offset_ > tree_.token(s.name.end).begin;
  }

  Json variables() {
    std::set<std::string> names;
    for (const Token& token : tree_.tokens)
      each_variable(token, [&](size_t begin, size_t end) {
        names.insert(tree_.text.substr(begin, end - begin));
      });
    for (const std::string& name : names)
      items_.push_back({{"label", "$" + name}, {"kind", kCompletesVariable}});
    return items_;
  }

  // A text, which replaces what is between the quotes that are there.
  void add_text(const std::string& text, CompletionKind kind) {
    const Token* const token = token_at(tree_, offset_);
    Json item = {{"label", text}, {"kind", kind}};
    if (token && token->kind == Token::Kind::text && offset_ > token->begin) {
      const bool closed = token->text.size() > 1 && token->text.back() == token->text.front();
      const size_t end = closed ? end_of(*token) - 1 : offset_;
      item["textEdit"] = {
          {"range", document_.range(token->begin + 1, std::max(end, token->begin + 1))},
          {"newText", text}};
    } else {
      item["insertText"] = cat('"', text, '"');
    }
    items_.push_back(std::move(item));
  }

  Json values() {
    const FieldDescriptor* const field = field_of(tree_, place_);
    if (!field) return items_;
    if (const auto* const type = field->enum_type()) {
      for (int i = 0; i < type->value_count(); ++i)
        items_.push_back({{"label", type->value(i)->name()}, {"kind", kCompletesEnum}});
    } else if (field->type() == FieldDescriptor::TYPE_BOOL) {
      for (const char* const value : {"true", "false"})
        items_.push_back({{"label", value}, {"kind", kCompletesValue}});
    } else if (field->full_name() == "crema.LayerParameter.type") {
      for (const std::string& type : layer_types()) add_text(type, kCompletesType);
    } else if (field->full_name() == "crema.LayerParameter.bottom") {
      for (const std::string& blob : blobs_above()) add_text(blob, kCompletesValue);
    } else if (field->full_name() == "crema.FillerParameter.type") {
      for (const std::string& filler : filler_types()) add_text(filler, kCompletesValue);
    } else if (field->full_name() == "crema.SolverParameter.lr_policy") {
      for (const std::string& policy : rate_policies()) add_text(policy, kCompletesValue);
    } else if (field->full_name() == "crema.SolverParameter.type") {
      for (const RuleTraits& rule : update_rules()) add_text(rule.name, kCompletesValue);
    }
    return items_;
  }

  std::vector<std::string> blobs_above() const {
    std::vector<std::string> blobs;
    each_blob(tree_, [&](const Token& token, bool writes, const TypedPlace& place) {
      if (!writes || token.begin > offset_ || (place_.layer && place.layer == place_.layer)) return;
      const std::string blob = unquoted(token.text);
      if (std::find(blobs.begin(), blobs.end(), blob) == blobs.end()) blobs.push_back(blob);
    });
    std::reverse(blobs.begin(), blobs.end());  // the nearest first
    return blobs;
  }

  void fields() {
    const Descriptor* const type = place_.type();
    std::set<std::string> set;
    for (const Statement& s : place_.block->statements) {
      if (&s != place_.statement) set.insert(word_of(tree_, s));
    }
    for (int i = 0; i < type->field_count(); ++i) {
      const FieldDescriptor& field = *type->field(i);
      if (!field.is_repeated() && set.count(field.name()) > 0) continue;
      Json item = {
          {"label", field.name()}, {"kind", kCompletesField}, {"insertTextFormat", kSnippet}};
      item["insertText"] = field.message_type() ? field.name() + " {\n  $0\n}"
                           : field.type() == FieldDescriptor::TYPE_STRING
                               ? field.name() + ": \"$1\"$0"
                               : field.name() + ": $0";
      items_.push_back(std::move(item));
    }
  }

  const Document& document_;
  const SyntaxTree& tree_;
  const size_t offset_;
  TypedPlace place_;
  Json items_ = Json::array();
};

}  // namespace

Json completions_at(const Document& document, size_t offset) {
  return Completion(document, offset).items();
}

}  // namespace crema
