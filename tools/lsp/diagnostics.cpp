#include "tools/lsp/diagnostics.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <set>

#include "base/error.h"
#include "base/other_names.h"
#include "device/context.h"
#include "layers/layer_types.h"
#include "net/check/finding.h"
#include "net/graph/graph_builder.h"
#include "net/prototxt/net_input.h"
#include "net/prototxt/prototxt.h"
#include "tools/inputs/assume.h"
#include "tools/lsp/names.h"

namespace crema {
namespace {

using google::protobuf::FieldDescriptor;

Diagnostic at_token(const Token& token, const std::string& text) {
  return {token.begin, token.begin + token.text.size(), Severity::error, text, ""};
}

// X of `(did you mean "X"?)`.
std::string suggested(const std::string& text) {
  constexpr std::string_view kQuestion = "did you mean \"";
  const size_t at = text.find(kQuestion);
  if (at == std::string::npos) return "";
  const size_t begin = at + kQuestion.size(), end = text.find('"', begin);
  return end == std::string::npos ? "" : text.substr(begin, end - begin);
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
      Diagnostic unknown = at_token(name, unknown_field(name.text, place.blocks, {}));
      unknown.replacement = suggested(unknown.text);
      found_.push_back(unknown);
      return;
    }
    if (s.value.end - s.value.begin != 1) return;
    const Token& value = tree_.token(s.value.begin);
    if (field->enum_type() && value.kind == Token::Kind::word &&
        !field->enum_type()->FindValueByName(std::string(value.text))) {
      Diagnostic unknown = at_token(value, unknown_value(value.text, *field));
      unknown.replacement = suggested(unknown.text);
      found_.push_back(unknown);
    }
    if (field->full_name() == "crema.LayerParameter.type") look_at_type(value);
  }

 private:
  void look_at_type(const Token& value) {
    if (value.kind != Token::Kind::text || value.text.size() < 2 ||
        value.text.find('$') != std::string_view::npos)
      return;
    const std::string type(value.text.substr(1, value.text.size() - 2));
    if (std::binary_search(types_.begin(), types_.end(), type)) return;
    Diagnostic unknown = at_token(value, cat("there is no layer type \"", type, "\"",
                                             suggestion(Vocabulary::layers, type, types_)));
    unknown.replacement = suggested(unknown.text);
    if (!unknown.replacement.empty()) unknown.replacement = cat('"', unknown.replacement, '"');
    found_.push_back(unknown);
  }

  const SyntaxTree& tree_;
  std::vector<Diagnostic>& found_;
  const std::vector<std::string> types_;
};

// Whether a file takes variables from those that include it.
bool takes_variables(const SyntaxTree& tree) {
  std::set<std::string, std::less<>> set, used;
  for (size_t i = 0; i + 1 < tree.tokens.size(); ++i) {
    const Token& token = tree.tokens[i];
    if (token.kind == Token::Kind::variable) {
      const Token& next = tree.tokens[i + 1];
      size_t first = i;  // repeat $a, $b = ...
      while (first > 1 && tree.tokens[first - 1].is(",")) first -= 2;
      const bool in_repeat = first > 0 && tree.tokens[first - 1].is_word("repeat");
      (next.is("=") || next.is("?=") || in_repeat ? set : used).emplace(token.text.substr(1));
    } else {
      each_variable(token, [&](size_t begin, size_t end) {
        used.insert(tree.text.substr(begin, end - begin));
      });
    }
  }
  return !std::includes(set.begin(), set.end(), used.begin(), used.end());
}

// Collects the library's warnings.
class Warnings : public Log {
 public:
  void write(Severity severity, const std::source_location&, std::string_view line) override {
    if (severity != Severity::info) lines.emplace_back(line);
  }
  std::vector<std::string> lines;
};

class MeaningDiagnosis {
 public:
  explicit MeaningDiagnosis(const Document& document)
      : document_(document), name_(document.path().empty() ? "untitled" : document.path()) {}

  void read_solver() {
    attempt([&] { parse_solver_text(document_.text(), name_); });
  }

  void read_net() {
    for (const Phase phase : {TRAIN, TEST}) {
      Warnings log;
      const std::optional<NetInput> input = read_in(phase, log);
      if (input && has_source(input->net) && !runs_python(input->net)) make_layers(*input, log);
      for (const std::string& line : log.lines) add(Severity::warning, line);
    }
  }

  Meaning take() {
    std::sort(meaning_.shapes.begin(), meaning_.shapes.end(),
              [](const ShapeHint& a, const ShapeHint& b) { return a.offset < b.offset; });
    return std::move(meaning_);
  }

 private:
  std::string folder() const {
    return name_.find('/') == std::string::npos ? "." : name_.substr(0, name_.rfind('/'));
  }

  std::optional<NetInput> read_in(Phase phase, Log& log) {
    std::optional<NetInput> input;
    attempt([&] { input = parse_net_input(document_.text(), name_, phase, {}, log); });
    return input;
  }

  // Without one the file is a part of a net.
  static bool has_source(const NetParameter& net) {
    return std::any_of(net.layer().begin(), net.layer().end(),
                       [](const LayerParameter& layer) { return layer.bottom_size() == 0; });
  }

  // Code that comes with a file does not run because an editor opens it.
  static bool runs_python(const NetParameter& net) {
    return std::any_of(net.layer().begin(), net.layer().end(),
                       [](const LayerParameter& layer) { return layer.type() == "Python"; });
  }

  // Whether the message is about a blob that a layer of another phase or stage makes, or about data that none makes: the
  // file may be for the other one only.
  bool is_of_another_state(const std::string& mistake) const {
    if (mistake.find("no layer above makes data") != std::string::npos) return true;
    const std::string blob = missing_bottom(mistake);
    if (blob.empty()) return false;
    const NetParameter all = parse_net_text(document_.text(), name_).net;
    return std::any_of(all.layer().begin(), all.layer().end(), [&](const LayerParameter& layer) {
      return std::find(layer.top().begin(), layer.top().end(), blob) != layer.top().end();
    });
  }
  // X of `bottom 0 is "X", but`; "" in other messages.
  static std::string missing_bottom(const std::string& text) {
    const size_t word = text.find("bottom "), quote = text.find(" is \"", word);
    if (word == std::string::npos || quote == std::string::npos) return "";
    const size_t begin = quote + 5, end = text.find('"', begin);
    return end == std::string::npos ? "" : text.substr(begin, end - begin);
  }

  // Data that are not here get assumed shapes. What is wrong only with these is no mistake of the file: it has other
  // words with other shapes.
  void make_layers(NetInput input, Log& log) {
    std::vector<int> assumed;
    for (int i = 0; i < input.net.layer_size(); ++i) {
      if (input.net.layer(i).bottom_size() == 0 && input.net.layer(i).type() != "Input")
        assumed.push_back(i);
    }
    try {
      SourceReplacer replacer(silent_log(), "default", 0);
      replacer.replace(input.net, input.options.where);
      replacer.finish();
    } catch (const Error&) {
      return;  // shapes that only a flag can give
    }
    const std::string mistake = made_with(input, log, true);
    if (mistake.empty() || is_of_another_state(mistake)) return;
    for (const int i : assumed) {
      LayerParameter* const layer = input.net.mutable_layer(i);
      for (BlobShape& shape : *layer->mutable_input_param()->mutable_shape()) {
        for (int axis = 0; axis < shape.dim_size(); ++axis)
          shape.set_dim(axis, shape.dim(axis) + (axis < 2 ? 1 : 16));
      }
    }
    if (assumed.empty() || made_with(input, silent_log(), false) == mistake)
      add(Severity::error, mistake);
  }

  // Makes the layers, and notes their shapes if they are to be shown. Returns what is wrong, or "".
  std::string made_with(const NetInput& input, Log& log, bool shows) {
    Context context(Device::cpu);
    context.set_log(log);
    GraphOptions options;
    options.training = input.options.state.phase() == TRAIN;
    options.folder = folder();
    options.where = input.options.where;
    try {
      const Graph graph = build_graph(context, input.net, options);
      if (shows) note_shapes(input, graph);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  }

  void attempt(const std::function<void()>& body) {
    try {
      body();
    } catch (const Error& error) {
      add(Severity::error, error.what());
    }
  }

  // What a text says of a place in this file, "net.prototxt:12:3"; `end`: where that ends.
  std::optional<size_t> place_in(const std::string& text, size_t* end) const {
    const std::string prefix = name_ + ":";
    const size_t at = text.find(prefix);
    if (at == std::string::npos) return std::nullopt;
    size_t row = 0, column = 0;
    *end = number(text, at + prefix.size(), &row);
    if (*end >= text.size() || text[*end] != ':') return std::nullopt;
    *end = number(text, *end + 1, &column);
    if (row == 0 || column == 0) return std::nullopt;
    return document_.offset_at(row, column);
  }
  const Token& token_at(size_t offset) const {
    const std::vector<Token>& tokens = document_.tree().tokens;
    const auto token = std::partition_point(tokens.begin(), tokens.end() - 1, [&](const Token& t) {
      return t.begin + t.text.size() <= offset;
    });
    return *token;
  }

  // A line of a message, "net.prototxt:12:3: what", or "block.prototxt:1:2 (included at net.prototxt:12:3): what".
  void add(Severity severity, const std::string& line) {
    Diagnostic one{0, 0, severity, line, ""};
    size_t end = 0;
    const std::optional<size_t> place = place_in(line, &end);
    one.begin = place.value_or(0);
    if (place && starts_with(line, name_) && line.substr(end, 2) == ": ")
      one.text = line.substr(end + 2);
    const Token& token = token_at(one.begin);
    one.end = std::max(one.begin, token.begin + token.text.size());
    point_at_bottom(&one);
    const std::vector<Diagnostic>& all = meaning_.diagnostics;
    const bool is_known = std::any_of(all.begin(), all.end(), [&](const Diagnostic& other) {
      return other.begin == one.begin && other.text == one.text;
    });
    if (!is_known) meaning_.diagnostics.push_back(one);
  }

  // From a layer to the bottom that the message is about: `bottom 0 is "dta", but`.
  void point_at_bottom(Diagnostic* one) const {
    const std::string name = missing_bottom(one->text);
    if (name.empty()) return;
    const SyntaxTree& tree = document_.tree();
    const TypedPlace layer = place_at(tree, type_of(tree), one->begin);
    if (!layer.statement || layer.statement->blocks.empty()) return;
    for (const Statement& s : layer.statement->blocks[0].statements) {
      if (word_of(tree, s) != "bottom") continue;
      for (int at = s.value.begin; at < s.value.end; ++at) {
        const Token& token = tree.token(at);
        if (token.text.size() < 2 || token.text.substr(1, token.text.size() - 2) != name) continue;
        one->begin = token.begin;
        one->end = token.begin + token.text.size();
        one->replacement = suggested(one->text);
        if (!one->replacement.empty()) one->replacement = cat('"', one->replacement, '"');
        return;
      }
    }
  }

  // The tops of layers that are in this file, once each: in a repeat, those of its first time.
  void note_shapes(const NetInput& input, const Graph& graph) {
    std::map<std::string, int> given;
    for (int i = 0; i < input.net.layer_size(); ++i) given.emplace(input.net.layer(i).name(), i);
    for (int i = 0; i < graph.net.layer_size(); ++i) {
      const LayerParameter& layer = graph.net.layer(i);
      const auto from = given.find(layer.name());
      if (from == given.end()) continue;
      for (size_t k = 0; k < graph.views[i].tops.size(); ++k) {
        const std::string where = input.where_field(from->second, cat("top[", k, "]"));
        size_t end = 0;
        const std::optional<size_t> place =
            starts_with(where, name_) ? place_in(where, &end) : std::nullopt;
        if (!place) continue;
        // A list has one place for all.
        const Token& token = token_at(*place);
        const Value& value = graph.values[graph.views[i].tops[k]];
        if (!noted_.insert(token.begin).second) continue;
        meaning_.shapes.push_back({line_end_of_field(token), value.blob, value.shape.brief()});
      }
    }
  }
  // Behind the value of a field whose name is this token.
  size_t line_end_of_field(const Token& name) const {
    const SyntaxTree& tree = document_.tree();
    const auto at = static_cast<size_t>(&name - tree.tokens.data());
    const Token& value = tree.tokens[std::min(at + 2, tree.tokens.size() - 1)];
    const bool is_field = at + 2 < tree.tokens.size() && tree.tokens[at + 1].is(":");
    return is_field ? value.begin + value.text.size() : name.begin + name.text.size();
  }
  static size_t number(const std::string& text, size_t begin, size_t* value) {
    const auto result = std::from_chars(text.data() + begin, text.data() + text.size(), *value);
    return static_cast<size_t>(result.ptr - text.data());
  }

  const Document& document_;
  const std::string name_;
  Meaning meaning_;
  std::set<size_t> noted_;  // offsets of tops
};

}  // namespace

std::vector<Diagnostic> diagnose_statements(const Document& document) {
  const SyntaxTree& tree = document.tree();
  std::vector<Diagnostic> found;
  for (const SyntaxMistake& mistake : tree.mistakes)
    found.push_back({mistake.begin, mistake.end, Severity::error, mistake.text, ""});
  StatementDiagnosis diagnosis(tree, &found);
  each_statement(tree, type_of(tree), [&](const TypedPlace& place) { diagnosis.look_at(place); });
  return found;
}

Meaning meaning_of(const Document& document) {
  const SyntaxTree& tree = document.tree();
  const google::protobuf::Descriptor* const type = type_of(tree);
  if (!type || takes_variables(tree)) return {};
  MeaningDiagnosis diagnosis(document);
  if (type->name() == "SolverParameter") diagnosis.read_solver();
  if (type->name() == "NetParameter") diagnosis.read_net();
  return diagnosis.take();
}

}  // namespace crema
