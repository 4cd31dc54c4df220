// The parts of a net's drawing: a box for a layer and the small ones that only it feeds, such as a
// convolution, its normalization and its ReLU, and the lines between boxes.
#pragma once

#include <string>
#include <vector>

#include "net/graph/graph.h"

namespace crema {

class Plan;

enum class NetBoxKind { data, weights, pooling, norm, join, loss, other };

struct NetBox {
  struct Row {
    std::string name, type;
    std::string detail;  // "64 outputs, 7x7": the fields that a reader asks for first
    int step = -1;       // of the plan; rows of one step are fused
  };
  NetBoxKind kind = NetBoxKind::other;
  std::vector<Row> rows;                   // layers, in the order of the file
  std::vector<std::string> from_afar;      // blobs of data layers that are read without a line
  std::vector<std::string> results;        // "64x20x24x24", or "name 64x20x24x24" where several
  std::string shares;                      // names of parameters that other layers own
  int64_t parameters = 0, operations = 0;  // two operations for a multiply-add, forward
  size_t bytes = 0;                        // of blobs, gradients and parameters
};

struct NetBoxes {
  std::string name;
  bool training = false, has_shapes = false;
  std::vector<NetBox> boxes;
  struct Line {
    int from, to;
  };
  std::vector<Line> lines;
  size_t layers = 0;
  size_t bytes = 0;  // as planned, with parameters and their gradients
};

NetBoxes net_boxes(const Graph& graph, const Plan& plan);

// For a net with unknown shapes: without numbers, and nothing is fused. `net` is upgraded and
// without the layers of other phases.
NetBoxes net_boxes(const NetParameter& net, bool training);

}  // namespace crema
