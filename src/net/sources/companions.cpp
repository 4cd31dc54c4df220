#include "net/sources/companions.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "layers/layer_facts.h"
#include "net/sources/batch_size.h"

namespace crema {
namespace {

// The sources that a blob depends on.
struct Origin {
  std::set<int> sources;
  // Its samples are those of one source and then of another: places in the batch do not say what
  // belongs together.
  bool appended = false;
};

// Sources that traverse records; others make their samples of nothing, or are filled by a program.
bool traverses(const LayerParameter& layer) {
  const SourceContent content = facts_of(layer.type()).content;
  return is_source(layer) && content != SourceContent::generated &&
         content != SourceContent::given && content != SourceContent::regions;
}

bool appends_samples(const LayerParameter& layer) {
  return layer.type() == "Concat" && layer.bottom_size() > 1 &&
         (layer.concat_param().has_concat_dim() ? layer.concat_param().concat_dim() == 0
                                                : layer.concat_param().axis() == 0);
}

// Losses and metrics compare bottoms of the same samples.
bool compares(const LayerParameter& layer) {
  const LayerKind kind = facts_of(layer.type()).kind;
  return kind == LayerKind::loss || kind == LayerKind::metric;
}

bool within(const std::set<int>& all, int one) { return all.count(one) > 0; }

}  // namespace

std::vector<Companions> find_companions(const NetParameter& net) {
  std::vector<Companions> found;
  std::map<std::string, Origin> origins;
  const auto add = [&](int a, int b, int reader) {
    const int first = std::min(a, b), second = std::max(a, b);
    const bool known = std::any_of(found.begin(), found.end(), [&](const Companions& pair) {
      return pair.first == first && pair.second == second;
    });
    if (!known) found.push_back({first, second, reader});
  };
  for (int i = 0; i < net.layer_size(); ++i) {
    const LayerParameter& layer = net.layer(i);
    std::vector<Origin> bottoms;
    Origin all;
    if (traverses(layer)) all.sources.insert(i);
    for (const std::string& bottom : layer.bottom()) {
      bottoms.push_back(origins[bottom]);
      all.sources.insert(bottoms.back().sources.begin(), bottoms.back().sources.end());
      all.appended |= bottoms.back().appended;
    }
    all.appended |= appends_samples(layer) && all.sources.size() > 1;
    for (const std::string& top : layer.top()) origins[top] = all;
    if (!compares(layer)) continue;
    for (const Origin& a : bottoms) {
      for (const Origin& b : bottoms) {
        if (a.appended || b.appended) continue;
        for (const int of_a : a.sources) {
          for (const int of_b : b.sources) {
            if (within(a.sources, of_b)) continue;
            // A bottom that depends on both, as whether their classes are equal, takes any pair.
            const bool derived = std::any_of(bottoms.begin(), bottoms.end(), [&](const Origin& c) {
              return &c != &a && &c != &b && within(c.sources, of_a) && within(c.sources, of_b);
            });
            if (!derived) add(of_a, of_b, i);
          }
        }
      }
    }
  }
  return found;
}

}  // namespace crema
