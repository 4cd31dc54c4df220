#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>

#include "base/error.h"
#include "layers/python/param_str.h"

namespace crema {

std::string place_in(std::string_view text, size_t at) {
  const std::string_view before = text.substr(0, std::min(at, text.size()));
  const auto line = std::count(before.begin(), before.end(), '\n') + 1;
  const size_t start = before.rfind('\n') + 1;  // npos + 1 is 0
  return cat("line ", line, ", column ", before.size() - start + 1);
}

namespace {

using ValueKind = ParamValue::Kind;

constexpr int kDeepest = 50;  // nesting depth of lists and dicts

bool is_one_of(std::string_view word, std::initializer_list<const char*> words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

// The meaning of a word without quotes.
ParamValue meaning(std::string_view word, size_t at) {
  ParamValue value;
  value.at = at;
  value.text = std::string(word);
  if (is_one_of(word, {"", "~", "None", "null", "Null", "NULL"})) return value;
  if (is_one_of(word, {"True", "true", "TRUE", "False", "false", "FALSE"})) {
    value.kind = ValueKind::boolean;
    value.boolean = word[0] == 'T' || word[0] == 't';
    return value;
  }
  value.kind = ValueKind::text;
  const bool can_be_number = word.find_first_not_of("0123456789+-.eE") == word.npos &&
                             word.find_first_of("0123456789") != word.npos;
  if (can_be_number) {
    char* end = nullptr;
    value.real = std::strtod(value.text.c_str(), &end);
    if (*end == '\0') {
      value.kind = ValueKind::real;
      // Larger ones stay real.
      if (word.find_first_of(".eE") == word.npos && std::abs(value.real) < 9e18) {
        value.kind = ValueKind::integer;
        value.integer = std::strtoll(value.text.c_str(), nullptr, 10);
      }
    }
  } else if (is_one_of(word, {"inf", ".inf", ".Inf", "+.inf", "-inf", "-.inf", "-.Inf"})) {
    value.kind = ValueKind::real;
    value.real = std::numeric_limits<double>::infinity() * (word[0] == '-' ? -1 : 1);
  }
  return value;
}

class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  ParamValue all() {
    skip_lines();
    if (text_.substr(at_, 3) == "---") {
      at_ += 3;
      skip_lines();
    }
    skip_tag();
    if (ended()) return {};
    ParamValue value;
    if (begins_structure()) {
      value = flow(0);
    } else if (begins_key() || begins_item()) {
      value = block(0);
    } else if (is_quoted(at_)) {
      value = quoted();
    } else {
      const std::string_view word = trim(text_.substr(at_));
      value = meaning(word, at_);
      at_ = text_.size();
    }
    skip_lines();
    if (!ended()) complain("the end of the text");
    return value;
  }

 private:
  bool ended() const { return at_ >= text_.size(); }
  char here() const { return ended() ? '\0' : text_[at_]; }
  char next(size_t ahead = 1) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }
  static bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

  [[noreturn]] void complain(const std::string& wanted) const {
    fail("param_str, ", place_in(text_, at_), ": expected ", wanted, ", found ",
         ended() ? "the end of the text" : cat("\"", text_.substr(at_, 12), "\""));
  }

  void skip_blanks() {
    while (!ended() && is_blank(text_[at_])) ++at_;
    const bool comment =
        here() == '#' && (at_ == 0 || std::isspace(static_cast<unsigned char>(text_[at_ - 1])));
    if (comment) at_ = std::min(text_.find('\n', at_), text_.size());
  }
  void skip_lines() {
    for (skip_blanks(); here() == '\n'; skip_blanks()) ++at_;
  }
  // Tags such as !!python/tuple.
  void skip_tag() {
    if (here() != '!') return;
    while (!ended() && !std::isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
    skip_blanks();
  }

  // Columns before this place in its line.
  size_t indentation() const {
    const size_t line = at_ == 0 ? 0 : text_.rfind('\n', at_ - 1) + 1;  // npos + 1 is 0
    return at_ - line;
  }

  bool begins_structure() const { return here() == '{' || here() == '[' || here() == '('; }
  bool begins_item() const { return here() == '-' && (is_blank(next()) || next() == '\n'); }
  // Also after a prefix of Python: u'text', b"text".
  bool is_quoted(size_t at) const {
    const auto is_quote = [&](size_t i) {
      return i < text_.size() && (text_[i] == '\'' || text_[i] == '"');
    };
    const bool prefix = at < text_.size() && (text_[at] == 'u' || text_[at] == 'b');
    return is_quote(at) || (prefix && is_quote(at + 1));
  }

  // A line of YAML that starts with a key.
  bool begins_key() const {
    Reader ahead = *this;
    try {
      ahead.key(true);
    } catch (const Error&) {
      return false;
    }
    return true;
  }

  ParamValue quoted() {
    ParamValue value;
    value.kind = ValueKind::text;
    value.at = at_;
    if (here() == 'u' || here() == 'b') ++at_;
    const size_t start = at_;
    const char quote = text_[at_++];
    for (; !ended(); ++at_) {
      const char c = text_[at_];
      if (c == quote) {
        const bool doubled = quote == '\'' && next() == quote && !value.text.empty();
        ++at_;
        if (!doubled) return value;
        value.text += quote;
      } else if (c == '\\' && at_ + 1 < text_.size()) {
        ++at_;
        switch (text_[at_]) {
          case 'n':
            value.text += '\n';
            break;
          case 't':
            value.text += '\t';
            break;
          case '\\':
          case '\'':
          case '"':
          case '/':
            value.text += text_[at_];
            break;
          default:  // as Python does
            (value.text += '\\') += text_[at_];
        }
      } else {
        value.text += c;
      }
    }
    at_ = start;
    complain("a closing quote for this text");
  }

  // A word without quotes, up to one of `ends`, a line's end or a comment.
  std::string_view plain(std::string_view ends) {
    const size_t start = at_;
    while (!ended() && text_[at_] != '\n' && ends.find(text_[at_]) == ends.npos &&
           !(text_[at_] == '#' && at_ > start && is_blank(text_[at_ - 1])))
      ++at_;
    return trim(text_.substr(start, at_ - start));
  }

  // A key and its colon. In YAML's lines a blank follows the colon, unless the key has quotes.
  std::string key(bool line) {
    std::string name;
    const bool has_quotes = is_quoted(at_);
    if (has_quotes) {
      name = quoted().text;
    } else {
      const size_t start = at_;
      const auto is_end = [&] {
        const char after = next();
        return here() == ':' && (!line || after == '\0' || after == '\n' || is_blank(after));
      };
      while (!ended() && !is_end() && here() != '\n' && (line || !std::strchr("{}[](),", here())))
        ++at_;
      name = std::string(trim(text_.substr(start, at_ - start)));
      if (name.empty()) complain("a key");
    }
    skip_blanks();
    if (here() != ':') complain(cat("a colon after the key ", name));
    ++at_;
    return name;
  }

  static void put(ParamValue& dict, std::string name, ParamValue value) {
    for (auto& [known, old] : dict.fields) {
      if (known == name) {
        old = std::move(value);  // the last one counts, as in Python
        return;
      }
    }
    dict.fields.push_back({std::move(name), std::move(value)});
  }

  // A value between brackets, or one after a colon that begins with a bracket or a quote.
  ParamValue flow(int depth) {
    if (depth > kDeepest) complain("fewer lists within lists");
    skip_lines();
    skip_tag();
    if (is_quoted(at_)) return quoted();
    if (here() == '{') return dict(depth);
    if (here() == '[' || here() == '(') return list(depth);
    const size_t start = at_;
    const std::string_view word = plain(",]})");
    if (word.empty()) complain("a value");
    return meaning(word, start);
  }

  ParamValue dict(int depth) {
    ParamValue value;
    value.kind = ValueKind::dict;
    value.at = at_++;
    for (skip_lines(); here() != '}'; skip_lines()) {
      std::string name = key(false);
      put(value, std::move(name), flow(depth + 1));
      skip_lines();
      if (here() == '}') break;
      if (here() != ',') complain("a comma or }");
      ++at_;
    }
    ++at_;
    return value;
  }

  ParamValue list(int depth) {
    ParamValue value;
    value.kind = ValueKind::list;
    const char close = here() == '[' ? ']' : ')';
    value.at = at_++;
    bool comma = false;
    for (skip_lines(); here() != close; skip_lines()) {
      value.items.push_back(flow(depth + 1));
      skip_lines();
      if (here() == close) break;
      if (here() != ',') complain(cat("a comma or ", close));
      comma = true;
      ++at_;
    }
    ++at_;
    // Python's brackets around one value mean nothing.
    if (close == ')' && value.items.size() == 1 && !comma) return ParamValue(value.items[0]);
    return value;
  }

  // The lines of a mapping or a list from here on that are indented like this one.
  ParamValue block(int depth) {
    if (depth > kDeepest) complain("fewer blocks within blocks");
    ParamValue value;
    value.at = at_;
    const size_t column = indentation();
    value.kind = begins_item() ? ValueKind::list : ValueKind::dict;
    do {
      if (value.kind == ValueKind::list) {
        if (!begins_item()) complain("an item that starts with -");
        ++at_;
        skip_blanks();
        const bool nested = begins_item() || begins_key();
        value.items.push_back(nested ? block(depth + 1) : line_value(column, depth));
      } else {
        std::string name = key(true);
        put(value, std::move(name), line_value(column, depth));
      }
      skip_lines();
      if (here() == ',') {  // a dict of Python without its brackets
        ++at_;
        skip_lines();
      }
    } while (!ended() && (depth == 0 || (indentation() == column &&
                                         (value.kind == ValueKind::dict || begins_item()))));
    return value;
  }

  // The value after a key or a dash.
  ParamValue line_value(size_t column, int depth) {
    skip_blanks();
    skip_tag();
    if (begins_structure()) return flow(depth + 1);
    if (is_quoted(at_)) return quoted();
    if (here() != '\n' && !ended()) {
      const size_t start = at_;
      const size_t comma = text_.find(',', at_);
      const size_t line_end = std::min(text_.find('\n', at_), text_.size());
      // "'a': 1, 'b': 2"
      if (comma < line_end && is_quoted(text_.find_first_not_of(" \t", comma + 1)))
        return meaning(plain(","), start);
      return meaning(plain(""), start);
    }
    const size_t start = at_;
    skip_lines();
    const bool deeper =
        !ended() && (indentation() > column || (indentation() == column && begins_item()));
    if (deeper && (begins_item() || begins_key())) return block(depth + 1);
    if (deeper && begins_structure()) return flow(depth + 1);
    return meaning("", start);
  }

  std::string_view text_;
  size_t at_ = 0;
};

}  // namespace

ParamValue read_param_str(std::string_view text) { return Reader(text).all(); }

}  // namespace crema
