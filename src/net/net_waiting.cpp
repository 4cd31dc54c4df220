// How long the layers have waited for data.
#include <algorithm>

#include "net/net.h"

namespace crema {

double Net::waited() const {
  double seconds = 0;
  for (const Node& node : graph_.nodes) seconds += node.layer->waited();
  return seconds;
}

std::string Net::waiting_hint() const {
  const auto longest = std::max_element(
      graph_.nodes.begin(), graph_.nodes.end(),
      [](const Node& a, const Node& b) { return a.layer->waited() < b.layer->waited(); });
  if (longest == graph_.nodes.end()) return "";
  return cat("layer \"", longest->message.name(), "\": ", longest->layer->waiting_hint());
}

}  // namespace crema
