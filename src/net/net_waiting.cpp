// How long the layers have waited for data.
#include <algorithm>

#include "net/net.h"

namespace crema {

double Net::waited() const {
  double seconds = 0;
  for (const auto& [node, source] : sources_of(graph_)) seconds += source.waited();
  return seconds;
}

std::string Net::waiting_hint() const {
  const std::vector<SourceNode> sources = sources_of(graph_);
  const auto longest = std::max_element(sources.begin(), sources.end(),
                                        [](const SourceNode& a, const SourceNode& b) {
                                          return a.source.waited() < b.source.waited();
                                        });
  if (longest == sources.end()) return "";
  return cat("layer \"", longest->node.message.name(), "\": ", longest->source.waiting_hint());
}

}  // namespace crema
