// A random permutation of 0 .. count-1 for rows that are read in blocks and of which only a window
// fits into memory: blocks come in random order, and the rows of so many neighbours in that order
// are permuted together. A pure function of (count, block, blocks_in_window, seed, stream).
#pragma once

#include <algorithm>

#include "data/loader/permutation.h"

namespace crema {

class BlockOrder {
 public:
  // `block`: rows of each block but the last one, which may have fewer.
  BlockOrder(int64_t count, int64_t block, int64_t blocks_in_window, Random random)
      : block_(block),
        in_window_(blocks_in_window),
        whole_(count / block),
        short_rows_(count % block),
        slots_(whole_ + (short_rows_ > 0)),
        random_(random) {
    // The short block takes the place of any: all others are permuted around it.
    if (short_rows_ > 0)
      short_slot_ = static_cast<int64_t>(random.word64(0) % static_cast<uint64_t>(slots_));
  }

  int64_t operator()(int64_t index) const {
    const int64_t window = slot_of(index) / in_window_;
    const int64_t begin = begin_of(window * in_window_),
                  end = begin_of(std::min(slots_, (window + 1) * in_window_));
    const Random of_window{random_.seed, mix(random_.stream, 1 + static_cast<uint64_t>(window))};
    const int64_t at = begin + Permutation(end - begin, of_window)(index - begin);
    const int64_t slot = slot_of(at);
    return block_in(slot) * block_ + at - begin_of(slot);
  }

 private:
  // The slot in the order of blocks that contains position `at`.
  int64_t slot_of(int64_t at) const {
    const int64_t slot = at / block_;
    if (slot < short_slot_) return slot;
    const int64_t after = at - short_slot_ * block_ - short_rows_;
    return after < 0 ? short_slot_ : short_slot_ + 1 + after / block_;
  }
  int64_t begin_of(int64_t slot) const {
    return slot <= short_slot_ ? slot * block_ : (slot - 1) * block_ + short_rows_;
  }
  int64_t block_in(int64_t slot) const {
    if (slot == short_slot_) return whole_;
    const Random of_blocks{random_.seed, mix(random_.stream, 0)};
    return Permutation(whole_, of_blocks)(slot < short_slot_ ? slot : slot - 1);
  }

  int64_t block_, in_window_, whole_, short_rows_, slots_;
  int64_t short_slot_ = INT64_MAX;  // none
  Random random_;
};

}  // namespace crema
