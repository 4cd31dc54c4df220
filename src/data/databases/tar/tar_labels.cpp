#include "data/databases/tar/tar_labels.h"

#include <charconv>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/visible.h"

namespace crema {
namespace {

constexpr double kExactTo = 1 << 24;  // integers that a float32 can represent

TarLabel as_label(const std::vector<double>& numbers) {
  TarLabel label;
  for (const double number : numbers) {
    if (!std::isfinite(number) || std::abs(number) > 3e38) fail("the label ", number, " is none");
    const bool whole = number == std::floor(number);
    if (numbers.size() == 1 && whole && std::abs(number) <= INT32_MAX) {
      label.number = static_cast<int32_t>(number);
      return label;
    }
    const auto held = static_cast<float>(number);
    if (whole && std::abs(number) > kExactTo && static_cast<double>(held) != number) {
      char digits[64];
      std::snprintf(digits, sizeof(digits), "%.0f", number);
      fail("the label ", digits,
           " cannot be kept: blobs are float32, which holds every integer up to ", 1 << 24,
           " but not this one");
    }
    label.several.push_back(held);
  }
  return label;
}

}  // namespace

TarLabel label_of_cls(std::string_view text) {
  constexpr const char* kBetween = " \t\r\n,";
  std::vector<double> numbers;
  for (size_t at = 0; (at = text.find_first_not_of(kBetween, at)) != std::string_view::npos;) {
    const size_t end = std::min(text.find_first_of(kBetween, at), text.size());
    const std::string_view word = text.substr(at, end - at);
    double number = 0;
    const auto [stop, problem] = std::from_chars(word.data(), word.data() + word.size(), number);
    if (stop != word.data() + word.size() || problem != std::errc()) {
      constexpr size_t kShown = 40;
      fail("found \"", visible(word.substr(0, kShown)),
           "\" where the number of the class was expected");
    }
    numbers.push_back(number);
    at = end;
  }
  require(!numbers.empty(), "is empty; expected the number of the class");
  return as_label(numbers);
}

std::optional<TarLabel> label_of_json(const std::string& text) {
  using Json = nlohmann::json;
  const Json json = Json::parse(text, nullptr, false);
  require(!json.is_discarded(), "is not JSON");
  const auto found = json.is_object() ? json.find("label") : json.end();
  if (found == json.end()) return {};
  std::vector<double> numbers;
  const auto add = [&](const Json& value) {
    require(value.is_number(), "\"label\" holds ", value.type_name(),
            "; expected a number, or a list of numbers");
    numbers.push_back(value.get<double>());
  };
  if (found->is_array()) {
    for (const Json& value : *found) add(value);
  } else {
    add(*found);
  }
  require(!numbers.empty(), "\"label\" is an empty list; expected a number, or a list of numbers");
  return as_label(numbers);
}

}  // namespace crema
