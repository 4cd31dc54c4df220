#include "tools/pages/drawing/net_grouping.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/strings.h"
#include "layers/layer_facts.h"
#include "net/sources/batch_size.h"
#include "tools/pages/drawing/layer_detail.h"
#include "tools/pages/drawing/net_layout.h"

namespace crema {

namespace {

// Rows between a data layer and a reader of its top from which on no line is drawn: labels would
// cross the whole net.
constexpr int kFar = 3;

// Layers that join the box of their bottom, if nothing else reads it.
bool is_small(const std::string& type) {
  const LayerFacts facts = facts_of(type);
  switch (facts.kind) {
    case LayerKind::activation:
      return facts.elementwise;  // not a Softmax, which gives the result
    case LayerKind::math:
    case LayerKind::affine:
    case LayerKind::dropout:
    case LayerKind::norm:
    case LayerKind::shape:
      return true;
    default:
      return false;
  }
}

NetBoxKind kind_of(const LayerParameter& layer) {
  if (is_source(layer)) return NetBoxKind::data;
  switch (facts_of(layer.type()).kind) {
    case LayerKind::loss:
    case LayerKind::metric:
    case LayerKind::sink:
      return NetBoxKind::loss;
    case LayerKind::convolution:
    case LayerKind::dense:
    case LayerKind::embedding:
    case LayerKind::attention:
    case LayerKind::recurrent:
      return NetBoxKind::weights;
    case LayerKind::pooling:
      return NetBoxKind::pooling;
    case LayerKind::norm:
      return NetBoxKind::norm;
    case LayerKind::join:
      return NetBoxKind::join;
    default:
      return NetBoxKind::other;
  }
}

}  // namespace

// Afterwards box_of says the box of each layer.
void NetGrouping::make() {
  for (size_t i = 0; i < layers.size(); ++i) {
    for (const int value : layers[i].reads) values[value].readers.push_back(static_cast<int>(i));
    for (const int value : layers[i].writes) values[value].producer = static_cast<int>(i);
  }
  group();
  for (size_t i = 0; i < layers.size(); ++i) add_row(static_cast<int>(i));
  connect();
  for (size_t i = 0; i < values.size(); ++i) add_result(static_cast<int>(i));
  for (NetBox& box : result_.boxes) {
    if (box.results.size() == 1)
      box.results[0] = box.results[0].substr(box.results[0].rfind(' ') + 1);
  }
}

// Layers of a step share a box; so does a small step with the only one that it reads from.
void NetGrouping::group() {
  std::map<int, std::vector<int>> steps;
  for (size_t i = 0; i < layers.size(); ++i) steps[layers[i].step].push_back(static_cast<int>(i));
  box_of.assign(layers.size(), -1);
  int boxes = 0;
  for (size_t i = 0; i < layers.size(); ++i) {
    if (box_of[i] >= 0) continue;
    const std::vector<int>& members = steps[layers[i].step];
    const int joined = box_before(members);
    const int box = joined >= 0 ? joined : boxes++;
    for (const int member : members) box_of[member] = box;
  }
  // A fused step may be in the file where its last layer is: orders boxes so that each follows its
  // inputs.
  renumber(boxes);
}

int NetGrouping::box_before(const std::vector<int>& members) const {
  const int step = layers[members[0]].step;
  int read = -1;
  for (const int member : members) {
    if (!is_small(layers[member].message->type())) return -1;
    for (const int value : layers[member].reads) {
      const int producer = values[value].producer;
      if (producer >= 0 && layers[producer].step == step) continue;
      if (producer < 0 || (read >= 0 && read != value)) return -1;
      read = value;
    }
  }
  if (read < 0 || is_source(*layers[values[read].producer].message)) return -1;
  for (const int reader : values[read].readers) {
    if (layers[reader].step != step) return -1;
  }
  return box_of[values[read].producer];
}

void NetGrouping::renumber(int boxes) {
  std::vector<std::set<int>> before(boxes), after(boxes);
  for (const DrawnValue& value : values) {
    for (const int reader : value.readers) {
      const int from = value.producer < 0 ? -1 : box_of[value.producer], to = box_of[reader];
      if (from < 0 || from == to) continue;
      before[to].insert(from);
      after[from].insert(to);
    }
  }
  std::vector<int> number(boxes, -1);
  std::set<int> ready;
  for (int box = 0; box < boxes; ++box) {
    if (before[box].empty()) ready.insert(box);
  }
  for (int next = 0; !ready.empty(); ++next) {
    const int box = *ready.begin();
    ready.erase(ready.begin());
    number[box] = next;
    for (const int reader : after[box]) {
      before[reader].erase(box);
      if (before[reader].empty()) ready.insert(reader);
    }
  }
  for (int& box : box_of) box = number[box];
  result_.boxes.resize(boxes);
}

void NetGrouping::add_row(int i) {
  const LayerParameter& message = *layers[i].message;
  NetBox& box = result_.boxes[box_of[i]];
  const NetBoxKind kind = kind_of(message);
  // A box is named after its first operation, a normalization that ends in a sum after the sum.
  const bool sum = kind == NetBoxKind::join && box.kind == NetBoxKind::norm && !box.rows.empty();
  if (box.rows.empty() || sum) box.kind = kind;
  box.rows.insert(sum ? box.rows.begin() : box.rows.end(),
                  {message.name(), message.type(), layer_detail(message), layers[i].step});
}

void NetGrouping::connect() {
  std::set<std::pair<int, int>> pairs;
  std::vector<LayoutLine> lines;
  const auto each = [&](const auto& body) {
    for (const DrawnValue& value : values) {
      for (const int reader : value.readers) {
        if (value.producer < 0 || box_of[value.producer] == box_of[reader]) continue;
        body(value, box_of[value.producer], box_of[reader]);
      }
    }
  };
  each([&](const DrawnValue&, int from, int to) { lines.push_back({from, to}); });
  const std::vector<int> rows = rows_of(result_.boxes.size(), lines);
  each([&](const DrawnValue& value, int from, int to) {
    NetBox& reader = result_.boxes[to];
    if (result_.boxes[from].kind == NetBoxKind::data && rows[to] - rows[from] > kFar) {
      if (std::find(reader.from_afar.begin(), reader.from_afar.end(), value.blob) ==
          reader.from_afar.end())
        reader.from_afar.push_back(value.blob);
    } else if (pairs.emplace(from, to).second) {
      result_.lines.push_back({from, to});
    }
  });
}

// For a value that leaves its box.
void NetGrouping::add_result(int id) {
  const DrawnValue& value = values[id];
  if (value.producer < 0) return;
  const int box = box_of[value.producer];
  const bool leaves =
      value.readers.empty() || std::any_of(value.readers.begin(), value.readers.end(),
                                           [&](const int reader) { return box_of[reader] != box; });
  if (!leaves || (value.shape.empty() && layers[value.producer].writes.size() == 1)) return;
  result_.boxes[box].results.push_back(value.shape.empty() ? value.blob
                                                           : cat(value.blob, " ", value.shape));
}

}  // namespace crema
