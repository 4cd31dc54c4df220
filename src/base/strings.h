// Text helpers: concatenation, splitting, and "did you mean".
#pragma once

#include <cstdint>
#include <limits>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace crema {

// Drops the sign of NaN: programs that parse logs know nan and fail on -nan.
inline float shown(float number) {
  return number != number ? std::numeric_limits<float>::quiet_NaN() : number;
}
inline double shown(double number) {
  return number != number ? std::numeric_limits<double>::quiet_NaN() : number;
}
template <typename Part>
const Part& shown(const Part& part) {
  return part;
}

// Concatenates the parts as operator<< prints them; NaN and infinities as nan, inf and -inf.
template <typename... Parts>
std::string cat(const Parts&... parts) {
  std::ostringstream out;
  (out << ... << shown(parts));
  return out.str();
}

// "a,b,,c" -> {"a", "b", "", "c"}; an empty text gives an empty list.
std::vector<std::string> split(std::string_view text, char separator);
std::string join(const std::vector<std::string>& parts, std::string_view separator);
std::string_view trim(std::string_view text);
std::string lower_case(std::string text);
bool starts_with(std::string_view text, std::string_view prefix);
bool ends_with(std::string_view text, std::string_view suffix);

// In hexadecimal digits, with zeros in front: "00000000000000ff".
std::string hex_of(uint64_t number, int digits = 16);

// "512 bytes", "3.2 KiB", "512.0 MiB", "11.4 GiB".
std::string size_text(size_t bytes);

// The number of single-character edits (insert, delete, replace, transpose) between two words; a
// change of case counts half.
double edit_distance(std::string_view a, std::string_view b);

// ` (did you mean "ReLU"?)`, or "" when no candidate is near.
std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates);

}  // namespace crema
