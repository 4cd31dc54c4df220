#include "solver/readers/named_values.h"

#include <map>

#include "base/strings.h"

namespace crema {

void add_outputs(NamedValues& values, const std::vector<OutputValue>& outputs) {
  std::map<std::string, int> sizes, seen;
  for (const OutputValue& output : outputs) ++sizes[output.name];
  for (const auto& [name, value] : values) seen[name] = 1;
  for (const OutputValue& output : outputs) {
    if (sizes[output.name] > 1) {
      values.emplace_back(cat(output.name, "[", seen[output.name]++, "]"), output.value);
    } else if (seen.count(output.name) == 0) {
      values.emplace_back(output.name, output.value);
    }
  }
}

}  // namespace crema
