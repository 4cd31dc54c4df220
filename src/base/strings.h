// Text helpers: concatenation, splitting, and "did you mean".
#pragma once

#include <limits>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace crema {

// What is not a number has no sign: those who read logs know nan, and -nan stops them.
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

// The parts one after another, each as operator<< shows it; numbers that are none or infinite as
// nan, inf and -inf.
template <typename... Parts>
std::string cat(const Parts&... parts) {
  std::ostringstream out;
  (out << ... << shown(parts));
  return out.str();
}

// "a,b,,c" -> {"a", "b", "", "c"}; an empty text gives no part.
std::vector<std::string> split(std::string_view text, char separator);
std::string join(const std::vector<std::string>& parts, std::string_view separator);
std::string_view trim(std::string_view text);
std::string lower_case(std::string text);
bool starts_with(std::string_view text, std::string_view prefix);
bool ends_with(std::string_view text, std::string_view suffix);

// "512 bytes", "3.2 KiB", "512.0 MiB", "11.4 GiB".
std::string size_text(size_t bytes);

// Number of single-character edits (insert, delete, replace, swap of neighbours) between two words;
// case counts half.
double edit_distance(std::string_view a, std::string_view b);

// ` (did you mean "ReLU"?)`, or "" when no candidate is near.
std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates);

}  // namespace crema
