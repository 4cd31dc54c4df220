#include <google/protobuf/descriptor.h>

#include <algorithm>
#include <cctype>
#include <set>

#include "fuzz/damage.h"

namespace crema::tests {
namespace {

enum class Kind { word, number, text, sign, blank };
struct Token {
  Kind kind;
  std::string text;
};

bool in_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

std::vector<Token> tokens_of(const std::string& text) {
  std::vector<Token> tokens;
  for (size_t at = 0; at < text.size();) {
    const char c = text[at];
    size_t end = at + 1;
    Kind kind = Kind::sign;
    if (std::isspace(static_cast<unsigned char>(c))) {
      kind = Kind::blank;
      while (end < text.size() && std::isspace(static_cast<unsigned char>(text[end]))) ++end;
    } else if (c == '#') {
      kind = Kind::blank;
      end = std::min(text.find('\n', at), text.size());
    } else if (c == '"' || c == '\'') {
      kind = Kind::text;
      end = text.find(c, at + 1);
      end = end == std::string::npos ? text.size() : end + 1;
    } else if (std::isdigit(static_cast<unsigned char>(c)) || c == '-' || c == '.') {
      kind = Kind::number;
      while (end < text.size() && (in_word(text[end]) || text[end] == '.' || text[end] == '-'))
        ++end;
    } else if (in_word(c)) {
      kind = Kind::word;
      while (end < text.size() && in_word(text[end])) ++end;
    }
    tokens.push_back({kind, text.substr(at, end - at)});
    at = end;
  }
  return tokens;
}

std::string odd_digits(Dice& dice) {
  static const std::vector<std::string> small = {"0", "1", "2", "3",  "4",
                                                 "5", "7", "8", "16", "-1"};
  static const std::vector<std::string> odd = {"-2",
                                               "32",
                                               "33",
                                               "100",
                                               "255",
                                               "256",
                                               "65536",
                                               "1000000",
                                               "2147483647",
                                               "-2147483648",
                                               "2147483648",
                                               "4294967295",
                                               "4294967296",
                                               "9223372036854775807",
                                               "-9223372036854775808",
                                               "18446744073709551615",
                                               "99999999999999999999999",
                                               "0.5",
                                               "-0.0",
                                               "1e-45",
                                               "1e38",
                                               "-1e38",
                                               "1e39",
                                               "1e400",
                                               "nan",
                                               "inf",
                                               "-inf",
                                               "0x10",
                                               "010",
                                               "1.",
                                               ".5",
                                               "-",
                                               "1e",
                                               "true"};
  return dice.pick(dice.one_in(2) ? small : odd);
}

// Some token of this kind, from `from` on, round the end; the number of tokens when there is none.
size_t find_kind(const std::vector<Token>& tokens, size_t from, Kind kind) {
  for (size_t i = 0; i < tokens.size(); ++i) {
    const size_t at = (from + i) % tokens.size();
    if (tokens[at].kind == kind) return at;
  }
  return tokens.size();
}

// One past the brace that closes the one at `open`.
size_t end_of_block(const std::vector<Token>& tokens, size_t open) {
  int depth = 0;
  for (size_t at = open; at < tokens.size(); ++at) {
    if (tokens[at].text == "{") ++depth;
    if (tokens[at].text == "}" && --depth == 0) return at + 1;
  }
  return tokens.size();
}

// The tokens of a field with its block, "layer { ... }".
std::vector<Token> some_block(Dice& dice, const std::vector<Token>& tokens, size_t* begin,
                              size_t* end) {
  *begin = *end = 0;
  const size_t from = dice.below(tokens.size());
  for (size_t i = 0; i < tokens.size(); ++i) {
    const size_t at = (from + i) % tokens.size();
    if (tokens[at].text != "{") continue;
    *begin = at;
    while (*begin > 0 && tokens[*begin].kind != Kind::word) --*begin;
    *end = end_of_block(tokens, at);
    break;
  }
  return {tokens.begin() + static_cast<std::ptrdiff_t>(*begin),
          tokens.begin() + static_cast<std::ptrdiff_t>(*end)};
}

std::string odd_words(Dice& dice, const std::vector<Token>& tokens,
                      const std::vector<std::string>& words) {
  const size_t same = find_kind(tokens, dice.below(tokens.size()), Kind::text);
  switch (dice.below(10)) {
    case 0:
      return "\"\"";
    case 1:
      return "\"" + std::string(1 + dice.below(70000), 'x') + "\"";
    case 2:
      return "\"a\\n\\033[31m\\377\\000b\"";
    case 3:
    case 4:
      return words.empty() ? "\"x\"" : "\"" + dice.pick(words) + "\"";
    default:
      return same < tokens.size() ? tokens[same].text : "\"x\"";
  }
}

using Position = std::vector<Token>::difference_type;

void damage_tokens(Dice& dice, std::vector<Token>& tokens, const std::vector<std::string>& words,
                   const std::vector<Token>& others) {
  const size_t from = dice.below(tokens.size());
  size_t begin, end;
  switch (dice.below(12)) {
    case 0:
    case 1:
    case 2:
      if (const size_t at = find_kind(tokens, from, Kind::number); at < tokens.size())
        tokens[at].text = odd_digits(dice);
      break;
    case 3:
    case 4:
      if (const size_t at = find_kind(tokens, from, Kind::text); at < tokens.size())
        tokens[at].text = odd_words(dice, tokens, words);
      break;
    case 5:
      if (const size_t at = find_kind(tokens, from, Kind::word);
          at < tokens.size() && !words.empty())
        tokens[at].text = dice.pick(words);
      break;
    case 6: {
      const size_t count = std::min(1 + dice.below(4), tokens.size() - from);
      tokens.erase(tokens.begin() + static_cast<Position>(from),
                   tokens.begin() + static_cast<Position>(from + count));
      break;
    }
    case 7:
      some_block(dice, tokens, &begin, &end);
      tokens.erase(tokens.begin() + static_cast<Position>(begin),
                   tokens.begin() + static_cast<Position>(end));
      break;
    case 8:
    case 9: {
      const bool foreign = !others.empty() && dice.one_in(2);
      std::vector<Token> block = some_block(dice, foreign ? others : tokens, &begin, &end);
      block.push_back({Kind::blank, "\n"});
      const size_t at = foreign ? from : dice.one_in(2) ? end : from;
      tokens.insert(tokens.begin() + static_cast<Position>(std::min(at, tokens.size())),
                    block.begin(), block.end());
      break;
    }
    case 10:
      if (!words.empty()) {
        const std::string value =
            dice.one_in(2) ? odd_digits(dice) : odd_words(dice, tokens, words);
        tokens.insert(tokens.begin() + static_cast<Position>(from),
                      {Kind::word, " " + dice.pick(words) + ": " + value + " "});
      }
      break;
    case 11:
      if (dice.one_in(50)) {  // depth
        std::string nest;
        const std::string one =
            dice.one_in(2) || words.empty() ? "layer {" : dice.pick(words) + " <";
        for (size_t i = dice.below(20000); i > 0; --i) nest += one;
        tokens.insert(tokens.begin() + static_cast<Position>(from), {Kind::word, nest});
      } else {
        std::swap(tokens[from], tokens[dice.below(tokens.size())]);
      }
      break;
  }
}

}  // namespace

void damage_text(Dice& dice, std::string& text, const std::vector<std::string>& words,
                 const std::string& other) {
  if (dice.one_in(10)) return damage_bytes(dice, text, other);
  std::vector<Token> tokens = tokens_of(text);
  const std::vector<Token> others = tokens_of(other);
  const size_t times = 1 + dice.below(4);
  for (size_t i = 0; i < times && !tokens.empty(); ++i) damage_tokens(dice, tokens, words, others);
  text.clear();
  for (const Token& token : tokens) text += token.text;
}

namespace {

void collect_words(const google::protobuf::Descriptor* type,
                   std::set<const google::protobuf::Descriptor*>& seen,
                   std::set<std::string>& words) {
  if (!seen.insert(type).second) return;
  for (int i = 0; i < type->field_count(); ++i) {
    const auto* field = type->field(i);
    words.insert(field->name());
    if (const auto* choices = field->enum_type()) {
      for (int k = 0; k < choices->value_count(); ++k) words.insert(choices->value(k)->name());
    }
    if (field->message_type()) collect_words(field->message_type(), seen, words);
  }
}

}  // namespace

std::vector<std::string> words_of(const google::protobuf::Descriptor* type) {
  std::set<const google::protobuf::Descriptor*> seen;
  std::set<std::string> words;
  collect_words(type, seen, words);
  return {words.begin(), words.end()};
}

}  // namespace crema::tests
