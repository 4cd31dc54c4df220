#include "tools/docs/error_index.h"

#include "base/error.h"

namespace crema {

std::vector<IndexedError> indexed_errors() {
  constexpr std::string_view kTopic = "## ";
  std::vector<IndexedError> errors;
  std::string topic;
  for (const std::string& line : split(error_index_bytes(), '\n')) {
    if (starts_with(line, kTopic)) topic = line.substr(kTopic.size());
    if (line.empty() || line[0] == '#') continue;
    const std::vector<std::string> cells = split(line, '|');
    require(cells.size() == 3, "tools/docs/error_index.rows: not three parts: ", line);
    errors.push_back({topic, std::string(trim(cells[0])), std::string(trim(cells[1])),
                      std::string(trim(cells[2]))});
  }
  return errors;
}

}  // namespace crema
