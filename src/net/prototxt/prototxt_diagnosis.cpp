#include "net/prototxt/prototxt_diagnosis.h"

#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <algorithm>
#include <cctype>
#include <limits>
#include <map>
#include <vector>

#include "base/strings.h"
#include "net/prototxt/number_hints.h"
#include "net/prototxt/prototxt_hints.h"
#include "proto/legacy.pb.h"

namespace crema {

namespace pb = google::protobuf;
using pb::io::Tokenizer;

namespace {

// Walks the text by the schema, as protobuf's parser does, but keeps only the data that messages
// need, and no values. Throws the first mistake as a Problem.
class Diagnosis : private pb::io::ErrorCollector {
 public:
  Diagnosis(const SourceText& text, const pb::Descriptor* root)
      : source_(text),
        text_(text.text()),
        stream_(text_.data(), static_cast<int>(text_.size())),
        tokens_(&stream_, this) {
    // TextFormat's settings.
    tokens_.set_allow_f_after_float(true);
    tokens_.set_comment_style(Tokenizer::SH_COMMENT_STYLE);
    blocks_.push_back({root, "", 0, 0, ""});
  }

  void run() {
    next();
    fields("");
  }

 private:
  const Tokenizer::Token& token() const { return tokens_.current(); }
  bool at(std::string_view symbol) const { return token().text == symbol; }
  bool at(Tokenizer::TokenType type) const { return token().type == type; }
  void next() { tokens_.Next(); }
  bool consume(std::string_view symbol) {
    if (!at(Tokenizer::TYPE_SYMBOL) || !at(symbol)) return false;
    next();
    return true;
  }

  [[noreturn]] void stop(int line, int column, const std::string& what) const {
    for (size_t i = blocks_.size(); i-- > 0;) {
      if (!blocks_[i].layer.empty()) {
        throw Problem{line, column, cat("layer \"", blocks_[i].layer, "\": ", what)};
      }
    }
    throw Problem{line, column, what};
  }
  [[noreturn]] void stop(const std::string& what) const {
    stop(token().line, token().column, what);
  }

  // A mistake inside a token: an unterminated string, an invalid escape, a strange character.
  void AddError(int line, pb::io::ColumnNumber column, const std::string& what) override {
    if (what.find("cross line") != std::string::npos ||
        what.find("Unexpected end of string") != std::string::npos) {
      stop(line, column, "the text in quotes does not end on this line: a quote is missing");
    }
    if (what.find("escape") != std::string::npos) {
      stop(line, column,
           "\"\\\" in a text starts an escape: write paths with \"/\", or \"\\\\\" for one \"\\\"");
    }
    if (what.find("non ascii") != std::string::npos) {
      stop(line, column, "a character outside ASCII is allowed only in comments and in quotes");
    }
    if (what.find("Need space") != std::string::npos) letters_after_number(line, column);
    stop(line, column, what);
  }

  // 10k, 5abc: a person sees the whole word as one value.
  [[noreturn]] void letters_after_number(int line, int column) const {
    const size_t inside = std::min(source_.offset_of(line, column), text_.size());
    const std::string_view word = word_around(inside);
    const auto begin = static_cast<size_t>(word.data() - text_.data());
    const int start = column - static_cast<int>(inside - begin);
    if (current_ && takes_numbers(*current_)) {
      stop(line, start,
           cat('"', current_->name(), "\" expects ", wanted(*current_), ", found ", word,
               write_hint(*current_, word)));
    }
    stop(line, column, "a number ends here and letters follow: a text needs quotes");
  }

  // The letters, digits and signs of a number around this place.
  std::string_view word_around(size_t inside) const {
    const auto belongs = [&](size_t at) {
      return std::isalnum(static_cast<unsigned char>(text_[at])) || text_[at] == '_' ||
             text_[at] == '.' || text_[at] == '-' || text_[at] == '+' ||
             (text_[at] == ',' && at + 1 < text_.size() &&
              std::isdigit(static_cast<unsigned char>(text_[at + 1])));
    };
    size_t begin = inside, end = inside;
    while (begin > 0 && belongs(begin - 1)) --begin;
    while (end < text_.size() && belongs(end)) ++end;
    return text_.substr(begin, end - begin);
  }

  // 0,01 or 10,000: to the text format two values.
  void no_comma_inside(const pb::FieldDescriptor& field, const Tokenizer::Token& start) const {
    if (!at(",") || !takes_numbers(field)) return;
    const size_t comma = offset_of(token());
    const auto digit_at = [&](size_t i) {
      return i < text_.size() && std::isdigit(static_cast<unsigned char>(text_[i]));
    };
    if (comma == 0 || !digit_at(comma - 1) || !digit_at(comma + 1)) return;
    const std::string_view word = word_around(comma);
    const std::string hint = field.is_repeated() ? cat("; write ", field.name(), ": [", word, "]")
                                                 : write_hint(field, word);
    stop(start.line, start.column,
         cat('"', field.name(), "\" expects ", wanted(field), ", found ", word, hint));
  }

  // All fields up to `closing`; "" is the end of the file.
  void fields(std::string_view closing) {
    // The first of each field that may appear only once.
    std::map<const pb::FieldDescriptor*, Tokenizer::Token> firsts;
    while (true) {
      if (at(Tokenizer::TYPE_END)) {
        if (closing.empty()) return;
        const OpenBlock open = blocks_.back();
        stop(open.line, open.column,
             cat("the block \"", open.field, "\" is not closed: the file ends before its \"",
                 closing, '"'));
      }
      if (!closing.empty() && at(closing)) return next();
      field(&firsts);
    }
  }

  void field(std::map<const pb::FieldDescriptor*, Tokenizer::Token>* firsts) {
    if (!at(Tokenizer::TYPE_IDENTIFIER)) stray();
    const Tokenizer::Token word = token();
    const pb::FieldDescriptor* field = blocks_.back().type->FindFieldByName(word.text);
    if (!field) stop(unknown_field(word.text, blocks_, closed_));
    closed_.clear();
    if (!field->is_repeated()) {
      const auto [first, is_new] = firsts->try_emplace(field, word);
      if (!is_new) {
        stop(cat('"', word.text, "\" is given twice; the first one is ", place_of(first->second)));
      }
    }
    next();
    if (field->message_type()) {
      consume(":");
      if (!field->is_repeated() || !list(*field, word)) block(*field, word);
    } else {
      current_ = field;
      if (!consume(":")) no_colon(*field);
      if (!field->is_repeated() || !list(*field, word)) {
        const Tokenizer::Token start = token();
        value(*field);
        no_comma_inside(*field, start);
      }
      current_ = nullptr;
    }
    if (!consume(";")) consume(",");
  }

  // [a, b]; false when no list starts here.
  bool list(const pb::FieldDescriptor& field, const Tokenizer::Token& word) {
    if (!consume("[")) return false;
    if (consume("]")) return true;
    while (true) {
      if (field.message_type()) {
        block(field, word);
      } else {
        value(field);
      }
      if (consume("]")) return true;
      if (!consume(",")) {
        stop(cat("the list of \"", field.name(), "\" goes on with \",\" or ends with \"]\"",
                 found()));
      }
    }
  }

  void block(const pb::FieldDescriptor& field, const Tokenizer::Token& word) {
    const bool angle = at("<");
    if (!angle && !at("{")) stop(cat('"', field.name(), "\" expects ", wanted(field), found()));
    blocks_.push_back({field.message_type(), field.name(), word.line, word.column, ""});
    next();
    fields(angle ? ">" : "}");
    closed_.push_back(blocks_.back());
    blocks_.pop_back();
  }

  void value(const pb::FieldDescriptor& field) {
    const Tokenizer::Token start = token();
    const bool negative = consume("-");
    switch (field.cpp_type()) {
      case pb::FieldDescriptor::CPPTYPE_STRING:
        if (!at(Tokenizer::TYPE_STRING)) unquoted(field, start);
        remember_layer(field);
        while (at(Tokenizer::TYPE_STRING)) next();
        return;
      case pb::FieldDescriptor::CPPTYPE_BOOL: {
        if (!negative && (at("true") || at("false") || at("True") || at("False") || at("t") ||
                          at("f") || at("0") || at("1")))
          return next();
        break;
      }
      case pb::FieldDescriptor::CPPTYPE_ENUM:
        if (enum_value(field, negative)) return next();
        break;
      case pb::FieldDescriptor::CPPTYPE_FLOAT:
      case pb::FieldDescriptor::CPPTYPE_DOUBLE:
        if (at(Tokenizer::TYPE_FLOAT) || at(Tokenizer::TYPE_INTEGER) || infinite()) return next();
        break;
      default:
        if (whole_number(field, negative)) return next();
        break;
    }
    mistyped(field, start, negative);
  }

  bool infinite() const {
    const std::string word = lower_case(token().text);
    return word == "inf" || word == "infinity" || word == "nan";
  }

  bool whole_number(const pb::FieldDescriptor& field, bool negative) const {
    if (!at(Tokenizer::TYPE_INTEGER)) return false;
    uint64_t limit = 0;
    switch (field.cpp_type()) {
      case pb::FieldDescriptor::CPPTYPE_INT32:
        limit = std::numeric_limits<int32_t>::max();
        break;
      case pb::FieldDescriptor::CPPTYPE_INT64:
        limit = std::numeric_limits<int64_t>::max();
        break;
      case pb::FieldDescriptor::CPPTYPE_UINT32:
        limit = std::numeric_limits<uint32_t>::max();
        break;
      default:
        limit = std::numeric_limits<uint64_t>::max();
        break;
    }
    const bool is_signed = field.cpp_type() == pb::FieldDescriptor::CPPTYPE_INT32 ||
                           field.cpp_type() == pb::FieldDescriptor::CPPTYPE_INT64;
    if (negative && !is_signed) return false;
    uint64_t number = 0;
    if (Tokenizer::ParseInteger(token().text, limit + (negative ? 1 : 0), &number)) return true;
    stop(cat('"', field.name(), "\" is at most ", limit, ", found ", token().text));
  }

  bool enum_value(const pb::FieldDescriptor& field, bool negative) const {
    const pb::EnumDescriptor* type = field.enum_type();
    if (at(Tokenizer::TYPE_IDENTIFIER)) {
      if (!negative && type->FindValueByName(token().text)) return true;
      stop(unknown_value(token().text, field));
    }
    if (!at(Tokenizer::TYPE_INTEGER)) return false;
    uint64_t number = 0;
    if (!negative && Tokenizer::ParseInteger(token().text, 1 << 30, &number) &&
        type->FindValueByNumber(static_cast<int>(number)))
      return true;
    stop(unknown_value(cat(negative ? "-" : "", token().text), field));
  }

  // A value of another kind than the field takes.
  [[noreturn]] void mistyped(const pb::FieldDescriptor& field, const Tokenizer::Token& start,
                             bool negative) const {
    std::string hint;
    if (at(Tokenizer::TYPE_STRING)) {
      std::string inside;
      Tokenizer::ParseString(token().text, &inside);
      if (&field == V1LayerParameter::descriptor()->FindFieldByName("type")) {
        hint = cat("; blocks with type: \"", inside, "\" are called \"layer\", not \"layers\"");
      } else {
        hint = write_hint(field, inside);
      }
    } else if (at("+")) {
      hint = write_hint(field, word_around(offset_of(token())));
    } else {
      hint = write_hint(field, cat(negative ? "-" : "", token().text));
    }
    const std::string shown = cat(negative ? "-" : "", token().text);
    stop(start.line, start.column,
         cat('"', field.name(), "\" expects ", wanted(field),
             at(Tokenizer::TYPE_END) ? ", and the file ends here" : cat(", found ", shown), hint));
  }

  // A string without quotes: the message shows the line with them.
  [[noreturn]] void unquoted(const pb::FieldDescriptor& field,
                             const Tokenizer::Token& start) const {
    const bool brace = at("{") || at("}") || at("<") || at(Tokenizer::TYPE_END);
    const std::string what = cat('"', field.name(), "\" expects a text in quotes");
    if (brace) stop(start.line, start.column, what + found());
    const std::string_view rest = text_.substr(offset_of(start));
    const std::string_view word = rest.substr(0, rest.find_first_of(" \t\r\n#;,[]{}'\""));
    stop(start.line, start.column, cat(what, ": write ", field.name(), ": \"", word, '"'));
  }

  size_t offset_of(const Tokenizer::Token& place) const {
    return source_.offset_of(place.line, place.column);
  }

  // "in line 3", or where that was written.
  std::string place_of(const Tokenizer::Token& place) const {
    return source_.expanded() ? "at " + source_.where(place.line, place.column)
                              : cat("in line ", place.line + 1);
  }

  [[noreturn]] void no_colon(const pb::FieldDescriptor& field) const {
    if (at("{") || at("<")) {
      stop(cat('"', field.name(), "\" is not a block, it expects ", wanted(field)));
    }
    if (at("=")) stop(cat("found \"=\": write ", field.name(), ": ..."));
    stop(cat("a \":\" is missing after \"", field.name(), '"', found()));
  }

  // Something else is in the position of a field name.
  [[noreturn]] void stray() const {
    if (at("}") || at(">")) {
      stop(blocks_.size() == 1 ? cat("this \"", token().text, "\" closes nothing: one too many")
                               : cat("found \"", token().text, "\" where \"", at("}") ? ">" : "}",
                                     "\" should close the block"));
    }
    const std::string_view here = text_.substr(std::min(offset_of(token()), text_.size()));
    if (starts_with(here, "<<<<<<<") || starts_with(here, "=======")) {
      stop("a merge conflict was left in this file");
    }
    if (at("/")) stop("found \"/\" where a field should start: comments start with \"#\"");
    if (at("{") || at("<")) {
      stop(cat("found \"", token().text, "\" without a field name before it"));
    }
    stop(cat("found ", token().text, " where the name of a field should be"));
  }

  std::string found() const {
    return at(Tokenizer::TYPE_END) ? ", and the file ends here" : cat(", found ", token().text);
  }

  void remember_layer(const pb::FieldDescriptor& field) {
    if (field.name() == "name" && ends_with(field.containing_type()->name(), "LayerParameter")) {
      Tokenizer::ParseString(token().text, &blocks_.back().layer);
    }
  }

  const SourceText& source_;
  std::string_view text_;
  pb::io::ArrayInputStream stream_;
  mutable Tokenizer tokens_;  // reading the current token is not a const call in protobuf
  std::vector<OpenBlock> blocks_;
  std::vector<OpenBlock> closed_;                 // since the last field, the innermost first
  const pb::FieldDescriptor* current_ = nullptr;  // whose value is read
};

}  // namespace

std::optional<Problem> diagnose(const SourceText& text, const pb::Descriptor* root) {
  try {
    Diagnosis(text, root).run();
    return std::nullopt;
  } catch (const Problem& problem) {
    return problem;
  }
}

}  // namespace crema
