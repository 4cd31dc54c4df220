#include "tools/scale/network.h"

#include <algorithm>
#include <cmath>

namespace crema {

namespace {

struct Layout {
  int hosts, local;
  double link;  // bytes per second of the slowest link
};

Layout layout_of(const Network& network, int ranks) {
  const int hosts = (ranks + network.per_host - 1) / network.per_host;
  return {hosts, ranks / hosts,
          hosts > 1 ? std::min(network.inside, network.between) : network.inside};
}

// Time of one pass around the ring; a sum takes two.
double around(const Network& network, int ranks, double bytes) {
  const Layout layout = layout_of(network, ranks);
  const double between = layout.hosts - 1, inside = ranks - 1 - between;
  return inside * network.inside_latency + between * network.between_latency +
         bytes * (ranks - 1) / ranks / layout.link;
}

double tree(const Network& network, const Layout& layout, double bytes) {
  return 2 * ((layout.local - 1) * network.inside_latency +
              std::ceil(std::log2(layout.hosts)) * network.between_latency + bytes / layout.link);
}

double two_levels(const Network& network, const Layout& layout, double bytes) {
  const double inside = (layout.local - 1) * network.inside_latency +
                        bytes * (layout.local - 1) / layout.local / network.inside;
  const double between = (layout.hosts - 1) * network.between_latency +
                         bytes * (layout.hosts - 1) / layout.hosts / network.between;
  return 2 * (inside + between);
}

}  // namespace

Transfer sum_over(const Network& network, int ranks, double bytes) {
  if (ranks <= 1) return {};
  const Layout layout = layout_of(network, ranks);
  Transfer best{2 * around(network, ranks, bytes), "ring"};
  const auto consider = [&](double seconds, const char* algorithm) {
    if (seconds < best.seconds) best = {seconds, algorithm};
  };
  consider(tree(network, layout, bytes), "tree");
  if (network.two_levels && layout.hosts > 1 && layout.local > 1)
    consider(two_levels(network, layout, bytes), "two levels");
  best.seconds += network.start;
  return best;
}

Transfer part_over(const Network& network, int ranks, double bytes) {
  if (ranks <= 1) return {};
  return {network.start + around(network, ranks, bytes), "ring"};
}

}  // namespace crema
