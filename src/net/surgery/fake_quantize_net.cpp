#include "net/surgery/fake_quantize_net.h"

#include <set>

#include "base/strings.h"
#include "layers/layer_facts.h"
#include "proto/layer.pb.h"

namespace crema {
namespace {

bool computes_in_float(const LayerParameter& layer) {
  const bool takes_weights =
      facts_of(layer.type()).kind == LayerKind::dense && layer.bottom_size() > 1;
  const InnerProductParameter& dense = layer.inner_product_param();
  return facts_of(layer.type()).quantizes && !takes_weights && !dense.transpose() &&
         !dense.normalize() && !layer.has_quantization_param() && layer.stored();
}

class FakeQuantizer {
 public:
  FakeQuantizer(const NetParameter& net, const FakeQuantization& how) : given_(net), how_(how) {
    result_.net = net;
    result_.net.clear_layer();
    for (const LayerParameter& layer : net.layer()) {
      names_.insert(layer.name());
      names_.insert(layer.top().begin(), layer.top().end());
    }
  }

  FakeQuantizedNet run() {
    for (int i = 0; i < given_.layer_size(); ++i) {
      LayerParameter layer = given_.layer(i);
      if (computes_in_float(layer)) {
        const bool taken = !how_.takes || how_.takes(layer.name());
        for (int j = 0; j < layer.bottom_size(); ++j) round(i, j, taken, &layer);
        if (taken) {
          layer.mutable_quantization_param()->set_bw_params(how_.weight_bits);
          layer.mutable_quantization_param()->set_params_follow(true);
        }
      }
      for (const std::string& top : layer.top()) {
        ++versions_[top];
        const bool is_rounded = layer.type() == "FakeQuantize";
        if (is_rounded)
          rounded_.insert(top);
        else
          rounded_.erase(top);
      }
      add(layer, i);
    }
    return std::move(result_);
  }

 private:
  struct Range {
    std::string name, top;
    bool is_added = false;
  };

  void add(const LayerParameter& layer, int origin) {
    *result_.net.add_layer() = layer;
    result_.origins.push_back(origin);
  }

  std::string unused(std::string name) {
    while (!names_.insert(name).second) name += "_";
    return name;
  }

  // Bottom j of layer i.
  void round(int i, int j, bool taken, LayerParameter* layer) {
    const std::string blob = layer->bottom(j);
    if (rounded_.count(blob) > 0) return;
    Range& range = ranges_[{blob, versions_[blob]}];
    if (range.name.empty()) {
      range.name = unused(blob + "/range");
      range.top = unused(blob + "/rounded");
    }
    if (!taken) return;
    if (!range.is_added) {
      LayerParameter added;
      added.set_name(range.name);
      added.set_type("FakeQuantize");
      added.add_bottom(blob);
      added.add_top(range.top);
      *added.mutable_fake_quantize_param() = how_.values;
      if (how_.values.range() == FakeQuantizeParameter::LEARNED) {
        added.add_param();
        added.add_param()->set_decay_mult(0);
      }
      add(added, i);
      range.is_added = true;
    }
    layer->set_bottom(j, range.top);
    if (j == 0) result_.ranges[layer->name()] = range.name;
  }

  const NetParameter& given_;
  const FakeQuantization& how_;
  FakeQuantizedNet result_;
  std::map<std::string, int> versions_;  // how often a blob has been written
  std::map<std::pair<std::string, int>, Range> ranges_;
  std::set<std::string> names_, rounded_;
};

}  // namespace

FakeQuantizedNet add_fake_quantize(const NetParameter& net, const FakeQuantization& how) {
  return FakeQuantizer(net, how).run();
}

}  // namespace crema
