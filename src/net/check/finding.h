// Finding: a problem in a solver's or a net's file that should be fixed before training.
#pragma once

#include <string>
#include <vector>

#include "base/log.h"
#include "base/strings.h"

namespace crema {

struct Finding {
  Severity severity = Severity::warning;  // info: worth knowing, perhaps meant so
  std::string where;                      // "net.prototxt:12:3"
  std::string text;                       // what was found, why it matters, what to do
};

using Findings = std::vector<Finding>;

template <typename... Parts>
void add(Findings* findings, Severity severity, const std::string& where, const Parts&... parts) {
  findings->push_back({severity, where, cat(parts...)});
}

// From the line of an error or a note, "net.prototxt:12:3: what"; without a position `otherwise` is
// used.
Finding finding_of(Severity severity, const std::string& line, const std::string& otherwise);

// Sorts by file, line and column, and leaves one of those that are equal, as a net for training and
// testing gives them.
void tidy(Findings* findings);

// "net.prototxt:12:3: warning: ...".
std::string line_of(const Finding& finding);

// "3 warnings, 1 error", or "no problems found".
std::string summary_of(const Findings& findings);

}  // namespace crema
