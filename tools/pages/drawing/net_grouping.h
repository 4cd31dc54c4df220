// Which layers of a net share a box in its drawing, and which boxes a line connects.
#pragma once

#include <string>
#include <vector>

#include "tools/pages/drawing/net_boxes.h"

namespace crema {

// A layer with the versions of blobs that it reads and writes, whatever they come from.
struct DrawnLayer {
  const LayerParameter* message;
  std::vector<int> reads, writes;  // DrawnValues
  int step = 0;                    // layers of a step of the plan are fused
};

struct DrawnValue {
  std::string blob;
  std::string shape{};         // "": not known
  int producer = -1;           // DrawnLayer
  std::vector<int> readers{};  // DrawnLayers
};

class NetGrouping {
 public:
  explicit NetGrouping(NetBoxes* result) : result_(*result) {}

  // To be filled first, without producers and readers.
  std::vector<DrawnLayer> layers;
  std::vector<DrawnValue> values;

  // Makes boxes, their rows and results, and lines.
  void make();
  std::vector<int> box_of;  // the box of each layer

 private:
  void group();
  int box_before(const std::vector<int>& members) const;
  void renumber(int boxes);
  void add_row(int layer);
  void connect();
  void add_result(int id);

  NetBoxes& result_;
};

}  // namespace crema
