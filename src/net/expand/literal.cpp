#include "net/expand/literal.h"

#include <array>
#include <charconv>

#include "base/strings.h"

namespace crema {

bool Literal::operator==(const Literal& other) const {
  if (is_number() && other.is_number()) return real() == other.real();
  // -set size=small gives a word, where a file says "small".
  const bool letters = (as<Text>() || as<Word>()) && (other.as<Text>() || other.as<Word>());
  return letters ? inside_text(*this) == inside_text(other) : held == other.held;
}

std::string written(const Literal& value) {
  if (const auto* whole = value.as<int64_t>()) return std::to_string(*whole);
  if (const auto* real = value.as<double>()) {
    std::array<char, 40> digits;
    const auto end = std::to_chars(digits.begin(), digits.end(), *real).ptr;
    return std::string(digits.begin(), end);
  }
  if (const auto* truth = value.as<bool>()) return *truth ? "true" : "false";
  if (const auto* text = value.as<Text>()) return cat('"', text->escaped, '"');
  if (const auto* word = value.as<Word>()) return word->name;
  std::vector<std::string> items;
  for (const Literal& item : *value.as<Literal::List>()) items.push_back(written(item));
  return "[" + join(items, ", ") + "]";
}

std::string inside_text(const Literal& value) {
  const auto* text = value.as<Text>();
  return text ? text->escaped : written(value);
}

std::string described(const Literal& value) {
  const char* kind = value.as<int64_t>()  ? "the whole number "
                     : value.as<double>() ? "the number "
                     : value.as<Text>()   ? "the text "
                     : value.as<Word>()   ? "the word "
                     : value.as<bool>()   ? ""
                                          : "the list ";
  return kind + written(value);
}

}  // namespace crema
