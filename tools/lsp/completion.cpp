#include <algorithm>
#include <filesystem>
#include <set>

#include "base/files.h"
#include "base/strings.h"
#include "kernels/optim/update_rule.h"
#include "layers/layer_types.h"
#include "proto/net.pb.h"
#include "proto/solver.pb.h"
#include "solver/rates/learning_rate.h"
#include "tools/lsp/features.h"
#include "tools/lsp/field_help.h"
#include "tools/lsp/names.h"
#include "tools/lsp/snippets.h"

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
  kCompletesSnippet = 15,
  kCompletesFile = 17,
  kCompletesFolder = 19,
  kCompletesEnum = 20
};
constexpr int kSnippet = 2;
// Sort keys in front of those of fields: what the file is likely to be, its snippets, the rest.
constexpr const char *kLikely = "a", *kSnippets = "a00005", *kUnlikely = "b";
constexpr size_t kMostOffered = 500;

// Fields whose text is a path of a file or folder that is there before a run.
bool names_file(const FieldDescriptor& field) {
  static constexpr std::string_view kEnds[] = {"source", "_file",    "file", "net",      "weights",
                                               "folder", "filename", "_dir", "directory"};
  return field.type() == FieldDescriptor::TYPE_STRING &&
         std::any_of(std::begin(kEnds), std::end(kEnds),
                     [&](std::string_view end) { return ends_with(field.name(), end); });
}

// "layer {\n  ${1:conv}$0\n}" without its marks, for editors that do not know them.
std::string without_marks(const std::string& snippet) {
  std::string text;
  for (size_t at = 0; at < snippet.size(); ++at) {
    if (snippet[at] != '$') {
      text += snippet[at];
    } else if (snippet.compare(at, 2, "${") == 0) {
      const size_t colon = snippet.find(':', at), close = snippet.find('}', at);
      text += snippet.substr(colon + 1, close - colon - 1);
      at = close;
    } else {
      ++at;  // its number
    }
  }
  return text;
}

class Completion {
 public:
  Completion(const Document& document, size_t offset, bool has_snippets)
      : document_(document),
        tree_(document.tree()),
        offset_(offset),
        has_snippets_(has_snippets),
        place_(place_at(tree_, type_of(tree_), offset)) {}

  Json items() {
    if (is_in_comment()) return items_;
    const Token* const token = token_at(tree_, offset_);
    if (is_in_variable()) return variables();
    if (place_.statement && is_include()) return files(".prototxt");
    if (place_.statement && is_value()) return values();
    if (token && token->kind == Token::Kind::text) return items_;
    if (place_.type()) {
      fields(*place_.type(), help_on_block(place_), kLikely);
    } else if (place_.block == &tree_.file) {
      fields(*NetParameter::descriptor(), help_on_fields("net"),
             is_likely_solver() ? kUnlikely : kLikely);
      fields(*SolverParameter::descriptor(), help_on_fields("solver"),
             is_likely_solver() ? kLikely : kUnlikely);
    }
    if (place_.block == &tree_.file) add_snippets();
    return items_;
  }

 private:
  // Of a file without a field so far.
  bool is_likely_solver() const {
    const std::string& path = document_.path();
    return path.find("solver", path.rfind('/') + 1) != std::string::npos;
  }
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
  // Behind the $ of a variable, also in a text.
  bool is_in_variable() const {
    const std::string& text = tree_.text;
    size_t at = std::min(offset_, text.size());
    const auto is_letter = [](char c) {
      return std::isalnum(static_cast<unsigned char>(c)) || c == '_';
    };
    while (at > 0 && is_letter(text[at - 1])) --at;
    if (at > 0 && text[at - 1] == '{') --at;
    return at > 0 && text[at - 1] == '$';
  }
  bool is_include() const {
    const Statement& s = *place_.statement;
    return s.kind == Statement::Kind::include && s.blocks.empty() &&
           offset_ > tree_.token(s.all.begin).begin + std::string_view("include").size();
  }
  // Behind a field that is complete, where another one may begin.
  bool is_behind(const Statement& s) const {
    return !s.value.empty() && offset_ > end_of(tree_.token(s.value.end - 1));
  }
  // Behind the colon of a field.
  bool is_value() const {
    const Statement& s = *place_.statement;
    return s.kind == Statement::Kind::field && s.blocks.empty() &&
           tree_.token(s.name.end).is(":") && offset_ > tree_.token(s.name.end).begin &&
           !is_behind(s);
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
    } else if (field->full_name() == "crema.LayerParameter.top" && place_.layer) {
      // The layer's name, or in place its bottoms.
      const Block& layer = place_.layer->blocks[0];
      for (const char* const name : {"name", "bottom"}) {
        const std::string text = text_of_field(tree_, layer, name);
        if (!text.empty()) add_text(text, kCompletesValue);
      }
    } else if (field->full_name() == "crema.FillerParameter.type") {
      for (const std::string& filler : filler_types()) add_text(filler, kCompletesValue);
    } else if (field->full_name() == "crema.SolverParameter.lr_policy") {
      for (const std::string& policy : rate_policies()) add_text(policy, kCompletesValue);
    } else if (field->full_name() == "crema.SolverParameter.type") {
      for (const RuleTraits& rule : update_rules()) add_text(rule.name, kCompletesValue);
    } else if (names_file(*field)) {
      return files(ends_with(field->name(), "net") ? ".prototxt" : "");
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

  // The files next to this one and in the working directory, where paths are looked up.
  Json files(std::string_view ending) {
    namespace fs = std::filesystem;
    const Token* const token = token_at(tree_, offset_);
    std::string typed;
    if (token && token->kind == Token::Kind::text && offset_ > token->begin)
      typed = tree_.text.substr(token->begin + 1, offset_ - token->begin - 1);
    const size_t slash = typed.rfind('/');
    const std::string folder = slash == std::string::npos ? "" : typed.substr(0, slash + 1);
    std::set<std::string> found;
    for (const std::string& root : {folder_of(document_.path()), std::string(".")}) {
      std::error_code unknown;
      const std::string path = starts_with(folder, "/") ? folder : cat(root, "/", folder);
      for (fs::directory_iterator at(path, unknown);
           !unknown && at != fs::directory_iterator() && found.size() < kMostOffered;
           at.increment(unknown)) {
        std::error_code gone;
        const std::string name = at->path().filename().string();
        const bool is_folder = at->is_directory(gone);
        if (starts_with(name, ".") || (!is_folder && !ends_with(name, ending))) continue;
        const bool is_database = is_folder && (fs::exists(at->path() / "data.mdb", gone) ||
                                               fs::exists(at->path() / "CURRENT", gone));
        found.insert(cat(folder, name, is_folder && !is_database ? "/" : ""));
      }
    }
    for (const std::string& path : found)
      add_text(path, ends_with(path, "/") ? kCompletesFolder : kCompletesFile);
    return items_;
  }

  // The first top of the nearest layer above: not its labels, and no result of a test.
  std::string data_above() const {
    std::string data = "data";
    const Statement* layer = nullptr;
    each_blob(tree_, [&](const Token& token, bool writes, const TypedPlace& place) {
      if (!writes || token.begin > offset_ || !place.layer || place.layer == layer) return;
      layer = place.layer;
      const std::string type = text_of_field(tree_, layer->blocks[0], "type");
      const std::string blob = unquoted(token.text);
      if (blob != "label" && type != "Accuracy" && !ends_with(type, "Loss")) data = blob;
    });
    return data;
  }

  void add_snippets() {
    const Descriptor* const type = place_.type();
    for (const Snippet& snippet : snippets()) {
      const Descriptor* const of =
          snippet.is_solver ? SolverParameter::descriptor() : NetParameter::descriptor();
      if (type && type != of) continue;
      std::string text(snippet.text);
      const size_t blob = text.find("BLOB");
      if (blob != std::string::npos) text.replace(blob, 4, data_above());
      const bool is_likely = type || snippet.is_solver == is_likely_solver();
      add_snippet({{"label", snippet.label},
                   {"kind", kCompletesSnippet},
                   {"detail", snippet.detail},
                   {"sortText", is_likely ? kSnippets : kUnlikely}},
                  text);
    }
  }

  void add_snippet(Json item, const std::string& text) {
    if (has_snippets_) item["insertTextFormat"] = kSnippet;
    item["insertText"] = has_snippets_ ? text : without_marks(text);
    items_.push_back(std::move(item));
  }

  void fields(const Descriptor& type, const MessageHelp& help, const char* sort_key) {
    std::set<std::string> set;
    for (const Statement& s : place_.block->statements) {
      if (&s != place_.statement || is_behind(s)) set.insert(word_of(tree_, s));
    }
    const FieldOrder order(type, text_of_field(tree_, *place_.block, "type"));
    for (int i = 0; i < type.field_count(); ++i) {
      const FieldDescriptor& field = *type.field(i);
      if (!field.is_repeated() && set.count(field.name()) > 0) continue;
      Json item = {{"label", field.name()},
                   {"kind", kCompletesField},
                   {"sortText", sort_key + order.key_of(field)}};
      for (const FieldHelp& one : help.fields) {
        if (one.name != field.name()) continue;
        item["detail"] = one.type;
        if (!one.comment.empty()) item["documentation"] = one.comment;
      }
      add_snippet(std::move(item), field.message_type() ? field.name() + " {\n  $0\n}"
                                   : field.type() == FieldDescriptor::TYPE_STRING
                                       ? field.name() + ": \"$1\"$0"
                                       : field.name() + ": $0");
    }
  }

  const Document& document_;
  const SyntaxTree& tree_;
  const size_t offset_;
  const bool has_snippets_;
  TypedPlace place_;
  Json items_ = Json::array();
};

}  // namespace

Json completions_at(const Document& document, size_t offset, bool has_snippets) {
  Json items = Completion(document, offset, has_snippets).items();
  std::stable_sort(items.begin(), items.end(), [](const Json& a, const Json& b) {
    return a.value("sortText", "") < b.value("sortText", "");
  });
  return items;
}

}  // namespace crema
