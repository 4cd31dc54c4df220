// Layers as they were written until 2014, in today's form: only the words that differ change, so comments and lines stay.
// What the result means is what net/prototxt/upgrade_v1 makes of the old form.
#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

#include "base/strings.h"
#include "net/prototxt/upgrade_layers.h"
#include "proto/legacy.pb.h"
#include "tools/lsp/features.h"
#include "tools/lsp/names.h"

namespace crema {
namespace {

struct Edit {
  size_t begin = 0, end = 0;  // offsets
  std::string text;
};

constexpr std::array<std::string_view, 4> kTransformFields = {"scale", "mean_file", "crop_size",
                                                              "mirror"};

// Fields of a layer that became one block for each parameter, and their names in it.
struct ParameterField {
  std::string_view old_name, name;
};
constexpr std::array<ParameterField, 4> kParameterFields = {{{"param", "name"},
                                                             {"blob_share_mode", "share_mode"},
                                                             {"blobs_lr", "lr_mult"},
                                                             {"weight_decay", "decay_mult"}}};

bool is_blank(std::string_view text) { return trim(text).empty(); }

// Rewrites a statement `layers { }`.
class Rewriting {
 public:
  explicit Rewriting(const SyntaxTree& tree) : tree_(tree) {}

  // No edits where the text alone does not tell what to write: layers of 2013 (V0), and parts that are computed or
  // included.
  std::optional<std::vector<Edit>> of(const Statement& layers) {
    const Token& name = tree_.token(layers.name.begin);
    edits_ = {{name.begin, end_of(name), "layer"}};
    removed_.clear();
    if (layers.blocks.empty() || !std::all_of(layers.blocks.begin(), layers.blocks.end(),
                                              [&](const Block& block) { return layer(block); }))
      return std::nullopt;
    remove_statements();
    std::stable_sort(edits_.begin(), edits_.end(),
                     [](const Edit& a, const Edit& b) { return a.begin < b.begin; });
    return edits_;
  }

 private:
  struct Element {
    const Statement* statement;
    std::string text;
  };

  bool layer(const Block& block) {
    if (!is_plain(block)) return false;
    std::array<std::vector<Element>, kParameterFields.size()> values;
    std::string_view transformed;  // the block whose fields are now in transform_param
    for (const Statement& s : block.statements) {
      const std::string word = word_of(tree_, s);
      if (word == "layer") return false;
      if (word == "type" && !type(s, &transformed)) return false;
      if (word == "strict_dim") removed_.push_back(&s);
      for (size_t i = 0; i < kParameterFields.size(); ++i) {
        if (word == kParameterFields[i].old_name && !add_elements(s, &values[i])) return false;
      }
    }
    parameters(values);
    return transformed.empty() || transforms(block, transformed);
  }

  // Whether a block is closed and has only fields.
  bool is_plain(const Block& block) const {
    return block.close >= 0 &&
           std::all_of(block.statements.begin(), block.statements.end(), [&](const Statement& s) {
             return s.kind == Statement::Kind::field && (!s.value.empty() || !s.blocks.empty());
           });
  }

  bool type(const Statement& s, std::string_view* transformed) {
    if (s.value.end - s.value.begin != 1) return false;
    const Token& value = tree_.token(s.value.begin);
    const auto* const types = V1LayerParameter::LayerType_descriptor();
    const auto* known = types->FindValueByName(std::string(value.text));
    int number = 0;
    const auto result =
        std::from_chars(value.text.data(), value.text.data() + value.text.size(), number);
    if (!known && result.ec == std::errc()) known = types->FindValueByNumber(number);
    if (!known) return false;
    const auto type = static_cast<V1LayerParameter::LayerType>(known->number());
    edits_.push_back({value.begin, end_of(value), cat('"', layer_type(type), '"')});
    if (type == V1LayerParameter::DATA) *transformed = "data_param";
    if (type == V1LayerParameter::IMAGE_DATA || type == V1LayerParameter::VIDEO_DATA)
      *transformed = "image_data_param";
    if (type == V1LayerParameter::WINDOW_DATA) *transformed = "window_data_param";
    return true;
  }

  // The values of a repeated field: 1, or [1, 2].
  bool add_elements(const Statement& s, std::vector<Element>* elements) const {
    if (s.value.empty()) return false;
    const bool is_list = tree_.token(s.value.begin).is("[");
    const int end = s.value.end - (is_list ? 1 : 0);
    for (int begin = s.value.begin + (is_list ? 1 : 0); begin < end;) {
      int next = begin;
      for (; next < end && !tree_.token(next).is(","); ++next) {
        const Token& token = tree_.token(next);
        const bool is_text = token.kind == Token::Kind::text;
        if (token.is("[") || token.is("(") || token.text.find('$') != std::string_view::npos ||
            (is_text && token.text.size() < 2))
          return false;
      }
      if (next == begin) return false;
      elements->push_back({&s, source(begin, next)});
      begin = next + 1;
    }
    return true;
  }

  // One block for each parameter, where the longest list of values is; the other lists go.
  void parameters(const std::array<std::vector<Element>, kParameterFields.size()>& values) {
    size_t longest = 0;
    for (const size_t i : {2, 3, 1, 0}) {  // rates first
      if (i == 2 || values[i].size() > values[longest].size()) longest = i;
    }
    for (size_t i = 0; i < values.size(); ++i) {
      const Statement* last = nullptr;
      for (const Element& element : values[i]) {
        if (i != longest && element.statement != last) removed_.push_back(element.statement);
        last = element.statement;
      }
    }
    const std::vector<Element>& places = values[longest];
    for (size_t k = 0; k < places.size(); ++k) {
      std::string text = "param {";
      for (size_t i = 0; i < values.size(); ++i) {
        if (k < values[i].size())
          text += cat(" ", kParameterFields[i].name, ": ", values[i][k].text);
      }
      text += " }";
      const Statement& s = *places[k].statement;
      if (k > 0 && places[k - 1].statement == &s)
        edits_.back().text += separator(s) + text;
      else
        edits_.push_back({begin_of(s), end_of(tree_.token(s.value.end - 1)), text});
    }
  }

  // Fields of a source of data that are now in transform_param.
  bool transforms(const Block& layer, std::string_view source_name) {
    const Statement* const from = field(layer, source_name);
    if (!from || from->blocks.empty()) return true;
    const Statement* const to = field(layer, "transform_param");
    if (!is_plain(from->blocks[0]) || (to && (to->blocks.empty() || !is_plain(to->blocks[0]))))
      return false;
    std::vector<std::string> moved;
    for (const std::string_view name : kTransformFields) {
      const Statement* const old = field(from->blocks[0], name);
      if (!old) continue;
      removed_.push_back(old);
      moved.push_back(source(old->all.begin, old->value.end));
      const Statement* const other = to ? field(to->blocks[0], name) : nullptr;
      if (other) removed_.push_back(other);
    }
    if (moved.empty()) return true;
    if (to) {
      const Token& open = tree_.token(to->blocks[0].open);
      const bool has_lines = ends_line(end_of(open));
      const std::string line = cat("\n", indentation(*to), "  ");
      const size_t at = has_lines ? line_end(end_of(open)) : end_of(open);
      for (const std::string& text : moved)
        edits_.push_back({at, at, (has_lines ? line : " ") + text});
      return true;
    }
    const size_t end = end_of(tree_.token(from->all.end - 1));
    const bool has_lines = is_first_on_line(*from) && ends_line(end);
    const std::string line = cat("\n", indentation(*from));
    std::string text = has_lines ? line : " ";
    text += "transform_param {";
    for (const std::string& one : moved) text += (has_lines ? line + "  " : " ") + one;
    text += cat(has_lines ? line : " ", "}");
    const size_t at = has_lines ? line_end(end) : end;
    edits_.push_back({at, at, text});
    return true;
  }

  // Those next to each other go together, with their lines if nothing else is there.
  void remove_statements() {
    std::sort(removed_.begin(), removed_.end(),
              [](const Statement* a, const Statement* b) { return a->all.begin < b->all.begin; });
    const std::string& text = tree_.text;
    for (size_t i = 0; i < removed_.size(); ++i) {
      size_t begin = begin_of(*removed_[i]), end = end_of(tree_.token(removed_[i]->all.end - 1));
      while (i + 1 < removed_.size() && removed_[i + 1]->all.begin == removed_[i]->all.end) {
        const size_t next = begin_of(*removed_[i + 1]);
        if (text.substr(end, next - end).find_first_not_of(" \t") != std::string::npos) break;
        end = end_of(tree_.token(removed_[++i]->all.end - 1));
      }
      const size_t line = tree_.lines[tree_.line_of(begin)];
      const size_t after = std::min(text.find_first_not_of(" \t\r", end), text.size());
      const bool is_first = is_blank(text.substr(line, begin - line));
      if (is_first && (after == text.size() || text[after] == '\n')) {
        begin = line;
        end = std::min(after + 1, text.size());
      } else if (is_first) {
        end = after;
      } else {
        begin = text.find_last_not_of(" \t", begin - 1) + 1;
      }
      edits_.push_back({begin, end, ""});
    }
  }

  const Statement* field(const Block& block, std::string_view name) const {
    const auto found = std::find_if(block.statements.begin(), block.statements.end(),
                                    [&](const Statement& s) { return word_of(tree_, s) == name; });
    return found == block.statements.end() ? nullptr : &*found;
  }

  std::string source(int begin, int end) const {
    const size_t first = tree_.token(begin).begin;
    return tree_.text.substr(first, end_of(tree_.token(end - 1)) - first);
  }
  size_t begin_of(const Statement& s) const { return tree_.token(s.all.begin).begin; }
  bool is_first_on_line(const Statement& s) const { return tree_.is_first_on_line(s.all.begin); }
  std::string indentation(const Statement& s) const {
    const size_t line = tree_.lines[tree_.line_of(begin_of(s))];
    return tree_.text.substr(
        line, std::min(tree_.text.find_first_not_of(" \t", line), begin_of(s)) - line);
  }
  std::string separator(const Statement& s) const {
    return is_first_on_line(s) ? cat("\n", indentation(s)) : " ";
  }
  // Without a carriage return in front of it.
  size_t line_end(size_t offset) const {
    const size_t end = std::min(tree_.text.find('\n', offset), tree_.text.size());
    return end > offset && tree_.text[end - 1] == '\r' ? end - 1 : end;
  }
  // Whether only a comment follows in the line.
  bool ends_line(size_t offset) const {
    const std::string_view rest =
        trim(std::string_view(tree_.text).substr(offset, line_end(offset) - offset));
    return rest.empty() || rest[0] == '#';
  }

  const SyntaxTree& tree_;
  std::vector<Edit> edits_;
  std::vector<const Statement*> removed_;
};

Json action(const Document& document, const std::string& title, bool is_preferred,
            const std::vector<Edit>& edits) {
  Json changes = Json::array();
  for (const Edit& edit : edits)
    changes.push_back({{"range", document.range(edit.begin, edit.end)}, {"newText", edit.text}});
  return {{"title", title},
          {"kind", "quickfix"},
          {"isPreferred", is_preferred},
          {"edit", {{"changes", {{document.uri(), changes}}}}}};
}

}  // namespace

Json modern_forms_at(const Document& document, size_t begin, size_t end) {
  const SyntaxTree& tree = document.tree();
  Json actions = Json::array();
  std::vector<const Statement*> old;
  each_statement(tree, type_of(tree), [&](const TypedPlace& place) {
    if (is_old_layer(tree, place)) old.push_back(place.statement);
  });
  const Statement* here = nullptr;
  for (const Statement* const s : old) {
    const size_t last = end_of(tree.token(s->all.end - 1));
    if (!here && tree.token(s->all.begin).begin <= end && begin <= last) here = s;
  }
  if (!here) return actions;
  std::vector<Edit> all;
  bool is_simple = tree.mistakes.empty();
  for (const Statement* const s : old) {
    if (!is_simple && s != here) continue;
    const std::optional<std::vector<Edit>> edits = Rewriting(tree).of(*s);
    is_simple = is_simple && edits;
    if (!edits) continue;
    all.insert(all.end(), edits->begin(), edits->end());
    if (s == here && old.size() > 1)
      actions.push_back(action(document, "Write this layer in today's form", false, *edits));
  }
  if (is_simple)
    actions.insert(actions.begin(),
                   action(document, "Write all layers in today's form", true, all));
  return actions;
}

}  // namespace crema
