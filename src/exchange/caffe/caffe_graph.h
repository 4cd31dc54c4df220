// CaffeGraph: the net under construction while layers are rewritten for a dialect. Bottoms and tops
// are values, which get names when the net is written.
#pragma once

#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "net/graph/graph.h"

namespace crema {

// Values of the exported net, which must outlive them, or new ones.
struct CaffeBlob {
  Shape shape;
  std::span<const float> values;

  CaffeBlob() = default;
  CaffeBlob(Shape s, std::vector<float> v)
      : shape(std::move(s)), owned_(std::make_shared<const std::vector<float>>(std::move(v))) {
    values = *owned_;
  }
  explicit CaffeBlob(const Parameter& parameter)
      : shape(parameter.shape),
        values(parameter.data.data<float>(), static_cast<size_t>(parameter.data.count())) {}

  std::vector<float> copy() const { return {values.begin(), values.end()}; }

 private:
  std::shared_ptr<const std::vector<float>> owned_;
};

struct CaffeLayer {
  LayerParameter message;  // without bottoms and tops
  std::vector<int> bottoms, tops;
  std::vector<CaffeBlob> blobs;
  LayerPlace place;  // the original layer's position
};

struct CaffeValue {
  std::string blob;  // its name in the net, or a wish
  Shape shape;
  bool of_net = false;  // a version of a blob of the net, not an intermediate value
  bool output = false;  // a result of the net
  int same_as = -1;     // the value that takes its place; -1: none
};

class CaffeGraph {
 public:
  // The values of the net keep their numbers.
  explicit CaffeGraph(const Graph& net);

  std::vector<CaffeValue> values;
  std::vector<CaffeLayer> layers;

  int add_value(const std::string& wish, const Shape& shape);
  // The value that takes the place of this one.
  int find(int value) const;
  std::string unique_layer(const std::string& wish);
  // The layer that makes the value; -1: none yet.
  int maker_of(int value) const;
  // For each value, how often layers read it.
  std::vector<int> reads() const;
  // Adds a Silence for tops that no layer reads and that are no results of the net.
  void silence(const std::string& type);

  // The layers with names of bottoms and tops. Blobs have their names: the last version of each, and
  // earlier ones where the layer between works in place; other versions are called "blob/layer".
  NetParameter write(const std::string& net_name) const;

 private:
  std::set<std::string> layer_names_;
};

}  // namespace crema
