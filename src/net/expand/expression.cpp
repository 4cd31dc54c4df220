#include "net/expand/expression.h"

#include <charconv>
#include <optional>

#include "base/error.h"
#include "net/expand/arithmetic.h"

namespace crema {

namespace {

// The operators of two values, from those that bind loosest.
constexpr std::string_view kLevels[][6] = {
    {"||"}, {"&&"}, {"==", "!=", "<", "<=", ">", ">="}, {"+", "-"}, {"*", "/", "//", "%"}};
constexpr int kLevelCount = 5;
constexpr int64_t kMaxValues = 1 << 20;
constexpr int kMaxNesting = 100;  // of parentheses and lists in each other

// Recursive descent that evaluates as it reads. Parts that a condition skips are read with
// `skipping_` set: nothing is looked up or computed there.
class Evaluator {
 public:
  Evaluator(Cursor& cursor, Scopes& scopes, bool in_angle_block, bool in_text = false)
      : cursor_(cursor), scopes_(scopes), angle_(in_angle_block), in_text_(in_text) {}

  Literal condition() {
    if (++depth_ > kMaxNesting) fail(cursor_.here(), ": an expression with too many parentheses");
    const Place at = cursor_.here();
    Literal value = binary(0);
    if (cursor_.consume("?")) {
      const bool first = !skipping_ && is_true(value, at);
      const Literal yes = unless(!first, &Evaluator::condition);
      cursor_.expect(":", "\":\" and the value for the other case");
      const Literal no = unless(first, &Evaluator::condition);
      value = first ? yes : no;
    }
    --depth_;
    return value;
  }

 private:
  Literal unless(bool skip, Literal (Evaluator::*read)()) {
    const bool before = skipping_;
    skipping_ |= skip;
    Literal value = (this->*read)();
    skipping_ = before;
    return value;
  }

  std::optional<std::string_view> operator_of(int level) const {
    for (const std::string_view symbol : kLevels[level]) {
      const bool ends_block = angle_ && brackets_ == 0 && symbol == ">";
      if (!symbol.empty() && !ends_block && cursor_.token().is(symbol)) return symbol;
    }
    return std::nullopt;
  }

  Literal binary(int level) {
    if (level == kLevelCount) return unary();
    Literal left = binary(level + 1);
    while (const auto symbol = operator_of(level)) {
      const Place at = cursor_.here();
      ++cursor_.at;
      if (level < 2) {
        left = logical(*symbol, left, level, at);
      } else {
        const Literal right = binary(level + 1);
        if (!skipping_) left = apply(*symbol, left, right, at);
      }
    }
    return left;
  }

  Literal logical(std::string_view symbol, const Literal& left, int level, const Place& at) {
    const bool first = !skipping_ && is_true(left, at);
    const bool known = first == (symbol == "||");
    const bool before = skipping_;
    skipping_ |= known;
    const Literal right = binary(level + 1);
    const bool second = !skipping_ && is_true(right, at);
    skipping_ = before;
    return known ? first : second;
  }

  Literal unary() {
    const Place at = cursor_.here();
    const auto operand = [this] {
      if (++depth_ > kMaxNesting) fail(cursor_.here(), ": an expression with too many signs");
      Literal value = unary();
      --depth_;
      return value;
    };
    if (cursor_.consume("-")) {
      const Literal value = operand();
      if (skipping_) return value;
      require(value.is_number(), at, ": \"-\" cannot take ", described(value));
      return apply("-", int64_t{0}, value, at);
    }
    if (cursor_.consume("!")) {
      const Literal value = operand();
      return skipping_ ? value : Literal(!is_true(value, at));
    }
    const Literal base = postfix();
    const Place sign = cursor_.here();
    if (!cursor_.consume("**")) return base;
    const Literal exponent = operand();
    return skipping_ ? base : apply("**", base, exponent, sign);
  }

  Literal postfix() {
    Literal value = primary();
    // After a blank a bracket would be the next field, an extension.
    while (cursor_.token().is("[") && cursor_.token().gap.empty()) {
      const Place at = cursor_.here();
      ++cursor_.at;
      const Literal index = in_brackets("]", "\"]\" after the index");
      if (!skipping_) value = element(value, index, at);
    }
    return value;
  }

  Literal element(const Literal& value, const Literal& index, const Place& at) const {
    const auto* list = value.as<Literal::List>();
    require(list, at, ": an index needs a list, found ", described(value));
    const auto* number = index.as<int64_t>();
    const auto size = static_cast<int64_t>(list->size());
    require(number && *number >= 0 && *number < size, at, ": the index is ", written(index),
            ", but the list has ", size, " values, counted from 0");
    return (*list)[*number];
  }

  Literal in_brackets(std::string_view closing, std::string_view what) {
    ++brackets_;
    Literal value = condition();
    --brackets_;
    cursor_.expect(closing, what);
    return value;
  }

  Literal primary() {
    const Token& token = cursor_.token();
    const Place at = cursor_.here();
    switch (token.kind) {
      case Token::Kind::variable:
        ++cursor_.at;
        return skipping_ ? Literal() : variable(std::string(token.text.substr(1)), at);
      case Token::Kind::number:
        ++cursor_.at;
        return number(token.text, at);
      case Token::Kind::text:
        return text();
      case Token::Kind::word:
        ++cursor_.at;
        if (cursor_.token().is("(")) return function(std::string(token.text), at);
        if (token.text == "true" || token.text == "false") return token.text == "true";
        // As in a shell, a name in ${...} needs no other dollar sign.
        if (in_text_) return skipping_ ? Literal() : variable(std::string(token.text), at);
        return Word{std::string(token.text)};
      default:
        break;
    }
    if (cursor_.consume("(")) return in_brackets(")", "\")\"");
    if (cursor_.consume("[")) return list("]");
    fail(cursor_.where(token), ": expected a value", cursor_.found());
  }

  Literal variable(const std::string& name, const Place& at) {
    const Literal* value = scopes_.find(name);
    if (!value)
      fail(at, ": there is no variable $", name, did_you_mean("$" + name, scopes_.names()),
           "; set it with $", name, " = VALUE");
    constexpr size_t kLetters = 64;  // that are copied in the time of a number
    const auto* list = value->as<Literal::List>();
    const auto* text = value->as<Text>();
    scopes_.spend(list   ? count(*list)
                  : text ? static_cast<int64_t>(1 + text->escaped.size() / kLetters)
                         : 1,
                  at);
    return *value;
  }

  static Literal number(std::string_view text, const Place& at) {
    const bool hex = text.size() > 2 && (text[1] == 'x' || text[1] == 'X');
    const char *begin = text.data() + (hex ? 2 : 0), *end = text.data() + text.size();
    int64_t whole = 0;
    const auto result = std::from_chars(begin, end, whole, hex ? 16 : 10);
    if (result.ec == std::errc() && result.ptr == end) return whole;
    if (end[-1] == 'f' || end[-1] == 'F') --end;
    double real = 0;
    const auto parsed = std::from_chars(begin, end, real);
    require(parsed.ec == std::errc() && parsed.ptr == end && !hex, at, ": ", text,
            " is not a number that can be computed with");
    return real;
  }

  Literal list(std::string_view closing) {
    Literal::List values;
    ++brackets_;
    while (!cursor_.consume(closing)) {
      values.push_back(condition());
      if (!cursor_.token().is(closing)) cursor_.expect(",", cat("\",\" or \"", closing, "\""));
    }
    --brackets_;
    if (count(values) > kMaxValues)
      fail(cursor_.here(), ": a list of more than ", kMaxValues, " values");
    return values;
  }

  // Also counts nested lists: they could double with every step of a repeat.
  static int64_t count(const Literal::List& values) {
    int64_t all = 0;
    for (const Literal& value : values) {
      const auto* list = value.as<Literal::List>();
      all += list ? count(*list) : 1;
      if (all > kMaxValues) break;
    }
    return all;
  }

  Literal function(const std::string& name, const Place& at) {
    ++cursor_.at;
    const Literal arguments = list(")");
    return skipping_ ? Literal() : call(name, *arguments.as<Literal::List>(), at);
  }

  // Texts side by side are one.
  Literal text() {
    Text all;
    while (cursor_.token().kind == Token::Kind::text) {
      if (!skipping_) all.escaped += replaced(cursor_.token());
      ++cursor_.at;
    }
    return all;
  }

  // The content of a text with its variables replaced, as between double quotes.
  std::string replaced(const Token& token) {
    const std::string_view quoted = token.text;
    const char quote = quoted[0];
    if (quoted.size() < 2 || quoted.back() != quote)
      fail(cursor_.where(token),
           ": the text in quotes does not end on this line: a quote is missing");
    std::string out;
    for (size_t i = 1; i + 1 < quoted.size(); ++i) {
      const char c = quoted[i];
      if (c == '\\' && i + 2 < quoted.size()) {
        out += {c, quoted[++i]};
      } else if (c == '"') {
        out += "\\\"";
      } else if (c == '$' && quoted[i + 1] == '$') {
        out += '$';
        ++i;
      } else if (c == '$') {
        out += interpolated(token, &i);
      } else {
        out += c;
      }
    }
    return out;
  }

  // $name or ${expression} at `i` of a text; moves `i` to its last letter.
  std::string interpolated(const Token& token, size_t* i) {
    const bool braces = token.text[*i + 1] == '{';
    size_t begin = *i, end = 0;
    if (braces) {
      begin += 2;
      end = token.text.find('}', begin);
      if (end == std::string_view::npos)
        fail(Place{&cursor_, cursor_.base + token.begin + *i}, ": \"${\" without its \"}\"");
    }
    const std::string_view rest =
        braces ? token.text.substr(begin, end - begin) : token.text.substr(begin);
    Cursor inside{cursor_.file, tokens_of(rest), 0, cursor_.base + token.begin + begin,
                  cursor_.context};
    if (!braces) {
      if (inside.token().kind != Token::Kind::variable) return "$";
      inside.tokens = {inside.tokens[0], Token{}};
      end = begin + inside.token().text.size();
    }
    const Literal value = Evaluator(inside, scopes_, false, true).condition();
    if (inside.token().kind != Token::Kind::end)
      fail(inside.here(), ": expected \"}\"", inside.found());
    *i = braces ? end : end - 1;
    return inside_text(value);
  }

  Cursor& cursor_;
  Scopes& scopes_;
  bool angle_, in_text_, skipping_ = false;
  int brackets_ = 0, depth_ = 0;
};

}  // namespace

Literal evaluate(Cursor& cursor, Scopes& scopes, bool in_angle_block) {
  return Evaluator(cursor, scopes, in_angle_block).condition();
}

bool is_true(const Literal& value, const Place& at) {
  if (const auto* truth = value.as<bool>()) return *truth;
  require(value.is_number(), at, ": expected true, false or a number, found ", described(value));
  return value.real() != 0;
}

int64_t whole_number(const Literal& value, const Place& at) {
  require(value.as<int64_t>(), at, ": expected a whole number, found ", described(value));
  return *value.as<int64_t>();
}

}  // namespace crema
