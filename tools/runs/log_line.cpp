#include "tools/runs/log_line.h"

#include <chrono>

namespace crema {

namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// The number of `count` digits at `at`; -1: something else is there.
int digits(std::string_view text, size_t at, size_t count) {
  if (at + count > text.size()) return -1;
  int number = 0;
  for (size_t i = at; i < at + count; ++i) {
    if (!is_digit(text[i])) return -1;
    number = 10 * number + (text[i] - '0');
  }
  return number;
}

// "I0210 13:39:22.381027 25210 solver.cpp:204] ", since glog 0.6 with the year: "I20260210 ...".
// Sets the end of the stamp.
std::optional<LogStamp> stamp_at(std::string_view text, size_t at, size_t* end) {
  if (std::string_view("IWEF").find(text[at]) == std::string_view::npos) return std::nullopt;
  if (at > 0 && (is_digit(text[at - 1]) || std::isalpha(static_cast<unsigned char>(text[at - 1]))))
    return std::nullopt;
  size_t days = at + 1;
  while (days < text.size() && is_digit(text[days])) ++days;
  const size_t count = days - at - 1;
  if (count != 4 && count != 8) return std::nullopt;
  LogStamp stamp;
  if (count == 8) stamp.year = digits(text, at + 1, 4);
  stamp.month = digits(text, days - 4, 2);
  stamp.day = digits(text, days - 2, 2);
  const int hours = digits(text, days + 1, 2), minutes = digits(text, days + 4, 2),
            seconds = digits(text, days + 7, 2);
  if (hours < 0 || minutes < 0 || seconds < 0 || text[days] != ' ' || text[days + 3] != ':' ||
      text[days + 6] != ':' || stamp.month < 1 || stamp.month > 12 || stamp.day < 1 ||
      stamp.day > 31)
    return std::nullopt;
  stamp.seconds = 3600.0 * hours + 60.0 * minutes + seconds;
  size_t next = days + 9;
  if (next < text.size() && text[next] == '.') {
    double part = 0.1;
    for (++next; next < text.size() && is_digit(text[next]); ++next, part /= 10)
      stamp.seconds += part * (text[next] - '0');
  }
  *end = next;
  return stamp;
}

// "[1]" or "[1,0]<stderr>:" at the beginning of `text`; "": none.
std::string rank_in(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  if (text.empty() || text.front() != '[') return "";
  const size_t end = text.find(']');
  if (end == std::string_view::npos || end == 1) return "";
  for (const char c : text.substr(1, end - 1)) {
    if (!is_digit(c) && c != ',' && c != '.') return "";
  }
  return std::string(text.substr(1, end - 1));
}

std::chrono::sys_days day_of(const LogStamp& stamp, int year) {
  return std::chrono::year(year) / stamp.month / stamp.day;
}

}  // namespace

LogLine parse_log_line(std::string_view line) {
  LogLine parsed;
  parsed.message = line;
  for (size_t at = 0; at < line.size(); ++at) {
    size_t end = 0;
    parsed.stamp = stamp_at(line, at, &end);
    if (!parsed.stamp) continue;
    parsed.rank = rank_in(line.substr(0, at));
    const size_t message = line.find("] ", end);
    parsed.message = message == std::string_view::npos ? "" : line.substr(message + 2);
    break;
  }
  if (const std::string rank = rank_in(parsed.message); !rank.empty() && parsed.stamp)
    parsed.rank = rank;
  return parsed;
}

double seconds_between(const LogStamp& before, const LogStamp& after) {
  constexpr int leap = 2000;
  int first = before.year, second = after.year;
  if (first == 0 || second == 0) {
    first = leap;
    second = after.month < before.month ? leap + 4 : leap;
  }
  auto days = (day_of(after, second) - day_of(before, first)).count();
  if (second == leap + 4) days -= 3 * 365;
  const auto is_after_february = [](const LogStamp& stamp) { return stamp.month > 2; };
  const auto is_before_29th = [](const LogStamp& stamp) {
    return stamp.month == 1 || (stamp.month == 2 && stamp.day < 29);
  };
  if (first == leap && second == leap && before.year == 0 && is_before_29th(before) &&
      is_after_february(after))
    --days;
  return 86400.0 * static_cast<double>(days) + after.seconds - before.seconds;
}

}  // namespace crema
