#include "base/strings.h"

#include <algorithm>
#include <cctype>
#include <cstdio>

namespace crema {

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  if (text.empty()) return parts;
  size_t begin = 0;
  while (true) {
    const size_t end = text.find(separator, begin);
    parts.emplace_back(text.substr(begin, end - begin));
    if (end == std::string_view::npos) return parts;
    begin = end + 1;
  }
}

std::string join(const std::vector<std::string>& parts, std::string_view separator) {
  std::string out;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (i > 0) out += separator;
    out += parts[i];
  }
  return out;
}

std::string_view trim(std::string_view text) {
  const char* blanks = " \t\r\n";
  const size_t begin = text.find_first_not_of(blanks);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(blanks) - begin + 1);
}

std::string lower_case(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

bool starts_with(std::string_view text, std::string_view prefix) {
  return text.substr(0, prefix.size()) == prefix;
}

bool ends_with(std::string_view text, std::string_view suffix) {
  return text.size() >= suffix.size() && text.substr(text.size() - suffix.size()) == suffix;
}

namespace {

double replace_cost(char a, char b) {
  if (a == b) return 0;
  return std::tolower(static_cast<unsigned char>(a)) == std::tolower(static_cast<unsigned char>(b))
             ? 0.5
             : 1;
}

}  // namespace

std::string hex_of(uint64_t number, int digits) {
  char text[20];
  std::snprintf(text, sizeof text, "%0*llx", digits, static_cast<unsigned long long>(number));
  return text;
}

std::string size_text(size_t bytes) {
  if (bytes < 1024) return cat(bytes, " bytes");
  const char* const units[] = {"KiB", "MiB", "GiB", "TiB"};
  double number = static_cast<double>(bytes) / 1024;
  size_t unit = 0;
  for (; number >= 1023.95 && unit + 1 < std::size(units); ++unit) number /= 1024;
  char text[32];
  std::snprintf(text, sizeof text, "%.1f %s", number, units[unit]);
  return text;
}

double edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<double>> cost(a.size() + 1, std::vector<double>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i) cost[i][0] = static_cast<double>(i);
  for (size_t j = 0; j <= b.size(); ++j) cost[0][j] = static_cast<double>(j);
  for (size_t i = 1; i <= a.size(); ++i) {
    for (size_t j = 1; j <= b.size(); ++j) {
      cost[i][j] = std::min({cost[i - 1][j] + 1, cost[i][j - 1] + 1,
                             cost[i - 1][j - 1] + replace_cost(a[i - 1], b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        cost[i][j] = std::min(cost[i][j], cost[i - 2][j - 2] + 1);
      }
    }
  }
  return cost[a.size()][b.size()];
}

std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates) {
  // The edit distance takes time and memory proportional to the product of both lengths, and no
  // real name is so long.
  constexpr size_t kMaxLetters = 200;
  if (word.size() > kMaxLetters) return "";
  const std::string* best = nullptr;
  double nearest = std::max<double>(1.0, static_cast<double>(word.size()) / 3) + 0.01;
  const std::string lower = lower_case(std::string(word));
  for (const std::string& candidate : candidates) {
    const size_t longer = std::max(word.size(), candidate.size()),
                 shorter = std::min(word.size(), candidate.size());
    if (static_cast<double>(longer - shorter) >= nearest) continue;
    // A difference in case alone is never too far.
    const bool same = lower == lower_case(candidate);
    const double distance = same ? 0.5 : edit_distance(word, candidate);
    if (distance < nearest) {
      nearest = distance;
      best = &candidate;
    }
  }
  return best ? cat(" (did you mean \"", *best, "\"?)") : "";
}

}  // namespace crema
