#include "net/expand/tokens.h"

#include <algorithm>
#include <array>
#include <cctype>

namespace crema {

namespace {

bool starts_name(char c) { return std::isalpha(static_cast<unsigned char>(c)) || c == '_'; }
bool in_name(char c) { return starts_name(c) || std::isdigit(static_cast<unsigned char>(c)); }
bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)); }

class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) {}

  std::vector<Token> run() {
    std::vector<Token> tokens;
    do {
      const size_t gap = at_;
      skip_gap();
      Token token;
      token.gap = text_.substr(gap, at_ - gap);
      token.begin = at_;
      token.kind = read();
      token.text = text_.substr(token.begin, at_ - token.begin);
      tokens.push_back(token);
    } while (tokens.back().kind != Token::Kind::end);
    return tokens;
  }

 private:
  char peek(size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : 0; }

  void skip_gap() {
    while (at_ < text_.size()) {
      if (text_[at_] == '#') {
        at_ = std::min(text_.find('\n', at_), text_.size());
      } else if (std::isspace(static_cast<unsigned char>(text_[at_]))) {
        ++at_;
      } else {
        return;
      }
    }
  }

  Token::Kind read() {
    if (at_ == text_.size()) return Token::Kind::end;
    const char c = peek();
    if (starts_name(c)) return name(Token::Kind::word);
    if (c == '$' && starts_name(peek(1))) {
      ++at_;
      return name(Token::Kind::variable);
    }
    if (is_digit(c) || (c == '.' && is_digit(peek(1)))) return number();
    if (c == '"' || c == '\'') return quoted(c);
    static constexpr std::array<std::string_view, 10> kPairs = {
        "..", "**", "//", "==", "!=", "<=", ">=", "&&", "||", "?="};
    const bool pair = std::find(kPairs.begin(), kPairs.end(), text_.substr(at_, 2)) != kPairs.end();
    at_ += pair ? 2 : 1;
    return Token::Kind::symbol;
  }

  Token::Kind name(Token::Kind kind) {
    while (in_name(peek())) ++at_;
    return kind;
  }

  // 1, 0.5, .5, 1e-3, 2.f, 0x1F; the range 1..3 has two numbers.
  Token::Kind number() {
    if (peek() == '0' && (peek(1) == 'x' || peek(1) == 'X')) {
      at_ += 2;
      return name(Token::Kind::number);
    }
    while (is_digit(peek())) ++at_;
    if (peek() == '.' && peek(1) != '.') {
      ++at_;
      while (is_digit(peek())) ++at_;
    }
    if (peek() == 'e' || peek() == 'E') {
      const size_t sign = peek(1) == '+' || peek(1) == '-' ? 2 : 1;
      if (is_digit(peek(sign))) {
        at_ += sign;
        while (is_digit(peek())) ++at_;
      }
    }
    if (peek() == 'f' || peek() == 'F') ++at_;
    return Token::Kind::number;
  }

  // Ends at the end of the line when the closing quote is missing.
  Token::Kind quoted(char quote) {
    ++at_;
    while (at_ < text_.size() && peek() != '\n') {
      const char c = text_[at_++];
      if (c == quote) break;
      if (c == '\\' && at_ < text_.size() && peek() != '\n') ++at_;
    }
    return Token::Kind::text;
  }

  std::string_view text_;
  size_t at_ = 0;
};

}  // namespace

std::vector<Token> tokens_of(std::string_view text) { return Lexer(text).run(); }

bool starts_include(const std::vector<Token>& tokens, size_t at) {
  if (!tokens[at].is_word("include")) return false;
  if (tokens[at + 1].is(":")) ++at;
  return tokens[at + 1].kind == Token::Kind::text;
}

bool starts_repeat(const std::vector<Token>& tokens, size_t at) {
  if (!tokens[at].is_word("repeat")) return false;
  const Token& next = tokens[at + 1];
  return next.kind == Token::Kind::variable || next.kind == Token::Kind::number || next.is("(");
}

bool starts_if(const std::vector<Token>& tokens, size_t at) {
  return tokens[at].is_word("if") && !tokens[at + 1].is(":") && !tokens[at + 1].is("{");
}

bool starts_error(const std::vector<Token>& tokens, size_t at) {
  return tokens[at].is_word("error") && tokens[at + 1].is(":") &&
         tokens[at + 2].kind == Token::Kind::text;
}

namespace {

// 1/255 as the value of a field. A "//" is no division here: it may start a comment of C++.
bool is_fraction(const std::vector<Token>& tokens, size_t at) {
  return tokens[at].is("/") && at > 0 && tokens[at - 1].kind == Token::Kind::number &&
         tokens[at + 1].kind == Token::Kind::number;
}

}  // namespace

bool has_expansions(const std::vector<Token>& tokens) {
  for (size_t i = 0; i + 1 < tokens.size(); ++i) {
    if (tokens[i].kind == Token::Kind::variable || starts_include(tokens, i) ||
        starts_repeat(tokens, i) || starts_if(tokens, i) || is_fraction(tokens, i))
      return true;
  }
  return false;
}

}  // namespace crema
