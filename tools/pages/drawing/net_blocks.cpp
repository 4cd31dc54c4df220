#include "tools/pages/drawing/net_blocks.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/strings.h"

namespace crema {

namespace {

// Biconnected components of the undirected graph, as sets of boxes: Tarjan's algorithm with its own
// stack, because a net may be a thousand layers deep.
class Components {
 public:
  explicit Components(const NetBoxes& net)
      : neighbours_(net.boxes.size()), depth_(net.boxes.size(), -1), low_(net.boxes.size()) {
    for (const NetBoxes::Line& line : net.lines) {
      neighbours_[line.from].push_back(line.to);
      neighbours_[line.to].push_back(line.from);
    }
    for (size_t i = 0; i < depth_.size(); ++i) {
      if (depth_[i] < 0) walk(static_cast<int>(i));
    }
  }
  std::vector<std::set<int>> found;

 private:
  struct Place {
    int box, parent;
    size_t next = 0;
  };

  void walk(int root) {
    std::vector<Place> way = {{root, -1}};
    depth_[root] = low_[root] = 0;
    while (!way.empty()) {
      Place& at = way.back();
      if (at.next < neighbours_[at.box].size()) {
        const int box = at.box, other = neighbours_[box][at.next++];
        if (other == at.parent) continue;
        if (depth_[other] < 0) {
          depth_[other] = low_[other] = depth_[box] + 1;
          edges_.emplace_back(box, other);
          way.push_back({other, box});
        } else if (depth_[other] < depth_[box]) {
          edges_.emplace_back(box, other);
          low_[box] = std::min(low_[box], depth_[other]);
        }
        continue;
      }
      const int box = at.box, parent = at.parent;
      way.pop_back();
      if (parent < 0) continue;
      low_[parent] = std::min(low_[parent], low_[box]);
      if (low_[box] >= depth_[parent]) take(parent, box);
    }
  }

  // The edges since parent -> box are a component.
  void take(int parent, int box) {
    std::set<int> boxes;
    while (true) {
      const std::pair<int, int> edge = edges_.back();
      edges_.pop_back();
      boxes.insert({edge.first, edge.second});
      if (edge == std::make_pair(parent, box)) break;
    }
    if (boxes.size() > 2) found.push_back(std::move(boxes));
  }

  std::vector<std::vector<int>> neighbours_;
  std::vector<int> depth_, low_;
  std::vector<std::pair<int, int>> edges_;
};

// Types and sizes of kernels, but not how many outputs: these grow from block to block.
std::string looks_of(const NetBox& box) {
  std::string text;
  for (const NetBox::Row& row : box.rows) {
    text += row.type;
    for (const std::string& part : split(row.detail, ','))
      if (part.find('x') != std::string::npos) text += std::string(trim(part));
    text += ";";
  }
  return text;
}

std::string shared_beginning(const NetBoxes& net, const std::vector<int>& boxes) {
  std::vector<std::string> names;
  for (const int box : boxes) {
    if (net.boxes[box].kind == NetBoxKind::weights) names.push_back(net.boxes[box].rows[0].name);
  }
  if (names.size() < 2) return "";
  std::string name = names[0];
  for (const std::string& other : names) {
    const auto end = std::mismatch(name.begin(), name.end(), other.begin(), other.end()).first;
    name.erase(end, name.end());
  }
  // Not in the middle of a word: "res2a_branch2" of res2a_branch2a and res2a_branch2b.
  const size_t mark = name.find_last_of("/_.-");
  return mark == std::string::npos || mark == 0 ? name : name.substr(0, mark);
}

}  // namespace

std::vector<NetBlock> repeated_blocks(const NetBoxes& net) {
  std::map<std::string, std::vector<NetBlock>> by_looks;
  std::vector<std::string> order;
  std::vector<std::set<int>> components = Components(net).found;
  std::sort(components.begin(), components.end());
  for (const std::set<int>& component : components) {
    std::map<int, std::vector<int>> reads;
    for (const NetBoxes::Line& line : net.lines) {
      if (component.count(line.from) > 0 && component.count(line.to) > 0)
        reads[line.to].push_back(line.from);
    }
    if (reads.size() + 1 != component.size()) continue;  // more than one beginning
    std::map<int, int> local;
    std::string looks;
    NetBlock block;
    for (const int box : component) {
      const int number = static_cast<int>(local.size());
      local[box] = number;
      if (reads.count(box) == 0) continue;
      block.boxes.push_back(box);
      looks += looks_of(net.boxes[box]);
      std::sort(reads[box].begin(), reads[box].end());
      for (const int from : reads[box]) looks += cat(local[from], ",");
      looks += "|";
    }
    block.name = shared_beginning(net, block.boxes);
    if (by_looks[looks].empty()) order.push_back(looks);
    by_looks[looks].push_back(std::move(block));
  }
  std::vector<NetBlock> blocks;
  int kind = 0;
  for (const std::string& looks : order) {
    std::vector<NetBlock>& alike = by_looks[looks];
    if (alike.size() < 2) continue;
    int number = 0;
    for (NetBlock& block : alike) {
      block.kind = kind;
      block.number = ++number;
      block.of = static_cast<int>(alike.size());
      blocks.push_back(std::move(block));
    }
    ++kind;
  }
  return blocks;
}

}  // namespace crema
