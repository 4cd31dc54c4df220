#include "net/check/finding.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <tuple>

namespace crema {
namespace {

// Where "FILE:LINE:COLUMN" in front of a text ends, and FILE; 0: there is none.
struct Place {
  size_t end = 0;
  std::string file;
  long line = 0, column = 0;
};

Place place_of(const std::string& text) {
  for (size_t at = text.find(':'); at != std::string::npos; at = text.find(':', at + 1)) {
    char* after = nullptr;
    if (at + 1 >= text.size() || !std::isdigit(static_cast<unsigned char>(text[at + 1]))) continue;
    const long line = std::strtol(text.c_str() + at + 1, &after, 10);
    if (*after != ':' || !std::isdigit(static_cast<unsigned char>(after[1]))) continue;
    const long column = std::strtol(after + 1, &after, 10);
    return {static_cast<size_t>(after - text.c_str()), text.substr(0, at), line, column};
  }
  return {0, text, 0, 0};
}

std::string counted(int64_t count, const char* what) {
  return cat(count, " ", what, count == 1 ? "" : "s");
}

}  // namespace

Finding finding_of(Severity severity, const std::string& line, const std::string& otherwise) {
  const Place place = place_of(line);
  if (place.end == 0 || place.file.find(": ") != std::string::npos ||
      line.compare(place.end, 2, ": ") != 0) {
    const bool named = !otherwise.empty() && starts_with(line, otherwise + ": ");
    return {severity, otherwise, named ? line.substr(otherwise.size() + 2) : line};
  }
  return {severity, line.substr(0, place.end), line.substr(place.end + 2)};
}

void tidy(Findings* findings) {
  const auto key = [](const Finding& finding) {
    const Place place = place_of(finding.where);
    return std::tuple(place.file, place.line, place.column, finding.where, finding.text);
  };
  std::stable_sort(findings->begin(), findings->end(),
                   [&](const Finding& a, const Finding& b) { return key(a) < key(b); });
  const auto equal = [](const Finding& a, const Finding& b) {
    return a.where == b.where && a.text == b.text;
  };
  findings->erase(std::unique(findings->begin(), findings->end(), equal), findings->end());
}

std::string line_of(const Finding& finding) {
  const char* const kind = finding.severity == Severity::error     ? "error"
                           : finding.severity == Severity::warning ? "warning"
                                                                   : "note";
  return cat(finding.where, ": ", kind, ": ", finding.text);
}

std::string summary_of(const Findings& findings) {
  const auto count = [&](Severity severity) {
    return std::count_if(findings.begin(), findings.end(),
                         [&](const Finding& finding) { return finding.severity == severity; });
  };
  std::vector<std::string> parts;
  const auto tell = [&](Severity severity, const char* what) {
    if (const auto found = count(severity); found > 0) parts.push_back(counted(found, what));
  };
  tell(Severity::info, "note");
  tell(Severity::warning, "warning");
  tell(Severity::error, "error");
  return parts.empty() ? "no problems found" : join(parts, ", ");
}

}  // namespace crema
