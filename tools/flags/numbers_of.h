// Flags that are numbers with commas.
#pragma once

#include <charconv>
#include <cmath>
#include <string>
#include <vector>

#include "base/error.h"

namespace crema {

// The numbers of a flag, at most `most`.
template <typename T>
std::vector<T> numbers_of(const char* flag, const std::string& text, size_t most, T least) {
  std::vector<T> numbers;
  for (const std::string& part : split(text, ',')) {
    T number{};
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), number);
    require(error == std::errc() && end == part.data() + part.size() && number >= least &&
                std::isfinite(static_cast<double>(number)),
            "-", flag, " ", text, ": \"", part, "\" is not a number of at least ", least);
    numbers.push_back(number);
  }
  require(!numbers.empty() && numbers.size() <= most, "-", flag, " ", text, ": expected ",
          most == 2 ? "one number, or two with a comma"
                    : cat("at most ", most, " numbers with commas"));
  return numbers;
}

}  // namespace crema
