#include "fuzz/random_nets/shrink.h"

#include <set>

#include "base/error.h"
#include "proto/layer.pb.h"

namespace crema::tests {
namespace {

// A removed layer's readers read its bottom instead, or go with it.
enum class Removal { bridge, cut };

NetParameter without(const NetParameter& net, int removed, Removal removal) {
  NetParameter smaller = net;
  smaller.clear_layer();
  const LayerParameter& gone = net.layer(removed);
  std::set<std::string> lost;
  for (int i = 0; i < net.layer_size(); ++i) {
    LayerParameter layer = net.layer(i);
    if (i == removed) {
      const bool in_place =
          layer.top_size() > 0 && layer.bottom_size() > 0 && layer.top(0) == layer.bottom(0);
      if (!in_place) lost.insert(layer.top().begin(), layer.top().end());
      continue;
    }
    bool cut = false;
    for (std::string& bottom : *layer.mutable_bottom()) {
      if (!lost.count(bottom)) continue;
      if (removal == Removal::bridge && bottom == gone.top(0) && gone.bottom_size() > 0)
        bottom = gone.bottom(0);
      else
        cut = true;
    }
    if (cut) {
      lost.insert(layer.top().begin(), layer.top().end());
      continue;
    }
    for (std::string& top : *layer.mutable_top()) {
      if (lost.count(top) && removal == Removal::bridge && gone.bottom_size() > 0)
        top = gone.bottom(0);  // of an in-place layer
    }
    *smaller.add_layer() = layer;
  }
  return smaller;
}

bool fails(const RandomNet& net, const Comparison& comparison) {
  try {
    Rounding rounding(net);
    rounding.exact();
    const Judgement judgement = judge(comparison, net, rounding);
    return judgement.verdict == Verdict::different && judgement.text.compare(0, 8, "stopped:") != 0;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace

RandomNet shrink(RandomNet net, const Comparison& comparison) {
  if (!comparison.judge) return net;
  for (bool again = true; again;) {
    again = false;
    for (int i = net.net.layer_size() - 1; i >= 0; --i) {
      for (const Removal removal : {Removal::cut, Removal::bridge}) {
        if (i >= net.net.layer_size()) continue;
        RandomNet smaller = net;
        smaller.net = without(net.net, i, removal);
        if (smaller.net.layer_size() == 0 || !fails(smaller, comparison)) continue;
        net = smaller;
        again = true;
        break;
      }
    }
  }
  return net;
}

}  // namespace crema::tests
