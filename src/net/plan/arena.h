// ArenaPool: one block of memory for activations and gradients that several nets use in turn.
#pragma once

#include <algorithm>
#include <memory>
#include <vector>

#include "device/memory.h"

namespace crema {

// Grows to the largest plan. A plan binds its tensors when it first runs, and again after the pool
// has grown.
class ArenaPool {
 public:
  void reserve(size_t bytes) { wanted_ = std::max(wanted_, bytes); }
  const std::shared_ptr<Buffer>& buffer(Context& context) {
    if (!buffer_ || buffer_->bytes() < wanted_) {
      const size_t before = held();
      buffer_.reset();  // before allocating the new one: both may not fit
      try {
        buffer_ = std::make_shared<Buffer>(context, wanted_);
      } catch (...) {
        wanted_ = before;  // a plan that needs more asks again
        throw;
      }
    }
    return buffer_;
  }
  size_t bytes() const { return wanted_; }
  size_t held() const { return buffer_ ? buffer_->bytes() : 0; }
  // Additional bytes that buffer() would allocate if a further plan needed `bytes`.
  size_t growth(size_t bytes) const { return std::max({wanted_, bytes, held()}) - held(); }

 private:
  size_t wanted_ = 0;
  std::shared_ptr<Buffer> buffer_;
};

// One piece of memory and the steps that need it, [first, last].
struct Lifetime {
  size_t bytes = 0;
  int first = 0, last = 0;
  size_t offset = 0;  // result
};

// Gives each piece an offset so that pieces alive at the same time do not overlap: largest first,
// lowest gap that fits. Returns the total number of bytes needed.
size_t assign_offsets(std::vector<Lifetime>& pieces);

}  // namespace crema
