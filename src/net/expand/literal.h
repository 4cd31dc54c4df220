// Literal: a value of a variable or in a prototxt file.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <variant>
#include <vector>

namespace crema {

// A text's content between double quotes, with its escapes.
struct Text {
  std::string escaped;
  bool operator==(const Text&) const = default;
};

// A word without quotes that is not true or false, such as MAX.
struct Word {
  std::string name;
  bool operator==(const Word&) const = default;
};

struct Literal {
  using List = std::vector<Literal>;
  std::variant<int64_t, double, bool, Text, Word, List> held = int64_t{0};

  Literal() = default;
  template <typename T>
  Literal(T value) : held(std::move(value)) {}  // NOLINT(google-explicit-constructor)

  template <typename T>
  const T* as() const {
    return std::get_if<T>(&held);
  }
  bool is_number() const { return as<int64_t>() || as<double>(); }
  // The value of a number.
  double real() const {
    return as<int64_t>() ? static_cast<double>(*as<int64_t>()) : *as<double>();
  }
  // A text equals the word of the same letters; numbers compare by value.
  bool operator==(const Literal& other) const;
};

// As written in a prototxt file: 3, 0.5, true, "a text", MAX, [1, 2].
std::string written(const Literal& value);
// As written inside a quoted text.
std::string inside_text(const Literal& value);
// For messages: "the whole number 3", "the list [1, 2]".
std::string described(const Literal& value);

using Variables = std::map<std::string, Literal>;

}  // namespace crema
