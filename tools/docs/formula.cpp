#include "tools/docs/formula.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <vector>

#include "base/strings.h"
#include "tools/docs/manual/markup.h"

namespace crema {

namespace {

struct Token {
  enum class Kind { word, number, sign, end };
  Kind kind = Kind::end;
  std::string text{};
  size_t gap = 0;  // blanks before it
};

bool begins_word(char c) { return std::isalpha(static_cast<unsigned char>(c)) || c == '_'; }
bool goes_on(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '\'';
}

std::vector<Token> tokens_of(std::string_view line) {
  constexpr std::array<std::string_view, 5> kLong = {"...", "<=", ">=", "!=", "->"};
  std::vector<Token> tokens;
  size_t gap = 0;
  for (size_t at = 0; at < line.size();) {
    size_t end = at + 1;
    Token::Kind kind = Token::Kind::sign;
    if (line[at] == ' ') {
      ++gap;
      ++at;
      continue;
    }
    if (begins_word(line[at])) {
      kind = Token::Kind::word;
      while (end < line.size() && goes_on(line[end])) ++end;
    } else if (std::isdigit(static_cast<unsigned char>(line[at]))) {
      kind = Token::Kind::number;
      while (end < line.size() && (std::isdigit(static_cast<unsigned char>(line[end])) ||
                                   (line[end] == '.' && end + 1 < line.size() &&
                                    std::isdigit(static_cast<unsigned char>(line[end + 1])))))
        ++end;
    } else {
      for (const std::string_view sign : kLong) {
        if (line.substr(at, sign.size()) == sign) end = at + sign.size();
      }
    }
    tokens.push_back({kind, std::string(line.substr(at, end - at)), gap});
    gap = 0;
    at = end;
  }
  tokens.push_back({});
  return tokens;
}

// Words that connect expressions; they end a fraction and need no more than that in prose.
bool connects(const std::string& word) {
  constexpr std::array<std::string_view, 13> kWords = {
      "product", "where", "elsewhere", "if",  "else", "and", "or",
      "over",    "of",    "in",        "for", "with", "sum"};
  return std::find(kWords.begin(), kWords.end(), word) != kWords.end();
}

// Whether words follow one another as in a sentence. A name of two words is none: "stored mean", if
// that is all that is left of the sign of equality.
bool is_prose(const std::vector<Token>& tokens) {
  // Not x or w_s.
  const auto is_plain = [&](size_t i) {
    const std::string& word = tokens[i].text;
    return tokens[i].kind == Token::Kind::word && word.size() > 1 && word.find('_') > 1 &&
           !connects(word);
  };
  const bool has_long_name =
      tokens.size() > 3 && is_plain(0) && is_plain(1) && tokens[2].text == "=";
  bool relates = false;
  for (size_t i = 0; i + 1 < tokens.size(); ++i) {
    const bool labels =
        tokens[i].text == ":" && tokens[i + 1].text != "," && tokens[i + 1].text != "]";
    if (labels || tokens[i].text == "\"" || tokens[i].text == "`") return true;
    relates |= tokens[i].text == "=";
    if (!is_plain(i) || !is_plain(i + 1)) continue;
    const bool named = has_long_name && tokens[i].text == tokens[0].text;
    if (!named) return true;
  }
  return !relates;
}

// A parser by recursive descent; its parts fail by returning false.
class MathParser {
 public:
  explicit MathParser(std::string_view line) : tokens_(tokens_of(line)) {}

  std::optional<std::string> row() {
    if (is_prose(tokens_)) return {};
    std::string row;
    while (tokens_[at_].kind != Token::Kind::end) {
      if (!item(&row)) return {};
    }
    return row;
  }

 private:
  const Token& next() const { return tokens_[at_]; }
  bool is(std::string_view text) const { return next().text == text; }
  bool take(std::string_view text) {
    if (!is(text)) return false;
    ++at_;
    return true;
  }

  // An expression, or what is between two of them.
  bool item(std::string* row) {
    if (next().gap > 1 && at_ > 0) *row += "<mspace width=\"1.5em\"/>";
    if (at_connector()) {
      *row += "<mspace width=\"0.5em\"/><mtext>" + tokens_[at_++].text +
              "</mtext><mspace width=\"0.5em\"/>";
      return true;
    }
    constexpr std::array<std::string_view, 13> kBetween = {
        ":", "=", "<", ">", "<=", ">=", "!=", "->", ",", ";", "...", ".", "!"};
    if (std::find(kBetween.begin(), kBetween.end(), next().text) != kBetween.end()) {
      *row += sign_of(tokens_[at_++].text);
      return true;
    }
    return sum(row);
  }

  // A word between expressions: "in" is one in "for k in rows", but not in "(in + 2)".
  bool at_connector() const {
    if (next().kind != Token::Kind::word || !connects(next().text) || is("sum") || is("product"))
      return false;
    constexpr std::string_view kSigns = "+-*/^)[=";
    const std::string& after = tokens_[at_ + 1].text;
    return after.empty() || kSigns.find(after[0]) == std::string_view::npos;
  }

  static std::string sign_of(const std::string& sign) {
    if (sign == "<=") return "<mo>≤</mo>";
    if (sign == ">=") return "<mo>≥</mo>";
    if (sign == "!=") return "<mo>≠</mo>";
    if (sign == "->") return "<mo>→</mo>";
    if (sign == "...") return "<mo>…</mo>";
    if (sign == ",") return "<mo>,</mo><mspace width=\"0.2em\"/>";
    if (sign == ";") return "<mo>;</mo><mspace width=\"1em\"/>";
    return "<mo>" + html_of(sign) + "</mo>";
  }

  // a + b - c
  bool sum(std::string* out) {
    if (!product(out)) return false;
    while (is("+") || is("-")) {
      *out += take("+") ? "<mo>+</mo>" : (++at_, "<mo>−</mo>");
      if (!product(out)) return false;
    }
    return true;
  }

  // a * b / c, and a b.
  bool product(std::string* out) {
    std::string row;
    if (!factor(&row)) return false;
    std::string above = group_;  // a fraction needs no brackets
    while (true) {
      if (take("*")) {
        row += "<mo>·</mo>";
        above.clear();
        if (!factor(&row)) return false;
      } else if (take("/")) {
        std::string below;
        if (!factor(&below)) return false;
        row = cat("<mfrac><mrow>", above.empty() ? row : above, "</mrow><mrow>",
                  group_.empty() ? below : group_, "</mrow></mfrac>");
        above.clear();
      } else if (next().gap <= 1 && begins_factor()) {
        row += "<mspace width=\"0.25em\"/>";
        above.clear();
        if (!factor(&row)) return false;
      } else {
        break;
      }
    }
    *out += row;
    return true;
  }

  bool begins_factor() const {
    return (next().kind == Token::Kind::word && !at_connector()) ||
           next().kind == Token::Kind::number;
  }

  // Sets group_ to what is in the brackets if it is nothing but a pair of them.
  bool factor(std::string* out) {
    group_.clear();
    if (take("-")) {
      *out += "<mo>−</mo>";
      if (!factor(out)) return false;
      group_.clear();
      return true;
    }
    if ((is("sum") || is("product")) && tokens_[at_ + 1].kind == Token::Kind::word)
      return large_sum(out);
    std::string base, group;
    if (!primary(&base, &group)) return false;
    while (true) {
      if (is("[") && next().gap == 0) {
        ++at_;
        std::string index;
        if (!list("]", &index)) return false;
        group.clear();
        base = "<msub><mrow>" + base + "</mrow><mrow>" + index + "</mrow></msub>";
      } else if (take("^")) {
        std::string power;
        if (!factor(&power)) return false;
        group.clear();
        base = "<msup><mrow>" + base + "</mrow><mrow>" + power + "</mrow></msup>";
      } else {
        break;
      }
    }
    *out += base;
    group_ = group;
    return true;
  }

  // "sum over i and j of x", "sum of x".
  bool large_sum(std::string* out) {
    const std::string sign = is("sum") ? "<mo>∑</mo>" : "<mo>∏</mo>";
    ++at_;
    std::string below, body;
    if (take("over")) {
      while (!is("of")) {
        if (next().kind == Token::Kind::end) return false;
        if (take("and") || take(",")) {
          below += "<mo>,</mo>";
        } else if (!factor(&below)) {
          return false;
        }
      }
    }
    if (!take("of") || !product(&body)) return false;
    *out += below.empty() ? sign : "<munder>" + sign + "<mrow>" + below + "</mrow></munder>";
    *out += body;
    group_.clear();
    return true;
  }

  bool primary(std::string* out, std::string* group) {
    if (next().kind == Token::Kind::number) {
      *out += "<mn>" + tokens_[at_++].text + "</mn>";
      return true;
    }
    if (next().kind == Token::Kind::word) return name(out);
    for (const auto& [open, close] : {std::pair("(", ")"), {"[", "]"}, {"|", "|"}}) {
      if (!take(open)) continue;
      std::string inside;
      if (!list(close, &inside)) return false;
      if (*open == '(') *group = inside;
      *out += cat("<mrow><mo>", open, "</mo>", inside, "<mo>", close, "</mo></mrow>");
      return true;
    }
    return false;
  }

  bool name(std::string* out) {
    const std::string word = tokens_[at_++].text;
    const bool calls = is("(") && next().gap == 0;
    std::string set = "<mi>" + word + "</mi>";
    const size_t line = word.find('_');
    if (line != std::string::npos && line > 0) {
      const std::string base = word.substr(0, line), below = word.substr(line + 1);
      set = base.size() <= 2 && !below.empty() && below.find('_') == std::string::npos
                ? "<msub><mi>" + base + "</mi><mi>" + below + "</mi></msub>"
                : "<mtext>" + word + "</mtext>";
    }
    if (!calls) {
      *out += set;
      return true;
    }
    ++at_;
    std::string inside;
    if (!list(")", &inside)) return false;
    *out += word == "sqrt" ? "<msqrt>" + inside + "</msqrt>"
                           : set + "<mrow><mo>(</mo>" + inside + "<mo>)</mo></mrow>";
    return true;
  }

  // What is up to a closing bracket, and that.
  bool list(std::string_view close, std::string* out) {
    while (!take(close)) {
      if (next().kind == Token::Kind::end || !item(out)) return false;
    }
    return true;
  }

  std::vector<Token> tokens_;
  size_t at_ = 0;
  std::string group_;
};

std::string words_of(std::string_view text) { return "<mtext>" + html_of(text) + "</mtext>"; }

// The row of an expression. "y = x / 2, rounded down": what follows a comma or a semicolon may be
// words.
std::optional<std::string> row_of(std::string_view text) {
  auto row = MathParser(text).row();
  for (size_t at = text.find_last_of(",;"); !row && at != std::string_view::npos && at > 0;
       at = text.find_last_of(",;", at - 1)) {
    if (text.substr(at + 1, 1) != " ") continue;
    if (text.find('=', at) != std::string_view::npos) break;
    row = MathParser(text.substr(0, at)).row();
    if (row) *row += words_of(text.substr(at));
  }
  return row;
}

// Parts of a line that wide gaps divide; a gap before a sign of equality only aligns it.
std::vector<std::string_view> cells_of(std::string_view line) {
  constexpr std::string_view kGap = "   ";
  std::vector<std::string_view> cells;
  for (size_t at = line.find(kGap); at != std::string_view::npos; at = line.find(kGap, at)) {
    const size_t next = std::min(line.find_first_not_of(' ', at), line.size());
    if (next < line.size() && line[next] == '=') {
      at = next;
      continue;
    }
    cells.push_back(line.substr(0, at));
    line.remove_prefix(next);
    at = 0;
  }
  cells.push_back(line);
  return cells;
}

// "SUM: y = a + b": a label before an expression.
std::optional<std::string> labelled_row(std::string_view cell) {
  if (auto row = row_of(cell)) return row;
  const size_t colon = cell.find(": ");
  if (colon == std::string_view::npos) return {};
  auto row = row_of(trim(cell.substr(colon + 1)));
  if (row) *row = words_of(cell.substr(0, colon + 1)) + "<mspace width=\"1em\"/>" + *row;
  return row;
}

}  // namespace

std::optional<std::string> math_of(std::string_view line) {
  std::string all;
  bool has_math = false;
  for (const std::string_view cell : cells_of(trim(line))) {
    const auto row = labelled_row(cell);
    has_math |= row.has_value();
    if (!all.empty()) all += "<mspace width=\"2em\"/>";
    all += row ? *row : words_of(cell);
  }
  if (!has_math) return {};
  return "<math display=\"block\"><mrow>" + all + "</mrow></math>";
}

}  // namespace crema
