// The GPU size that kernels are laid out for.
#pragma once

namespace crema {

// The number of an H100 or H200. Most kernels derive their number of blocks from this instead of
// the card, so that the split of a sum, and with it the result's last bits, is the same on all
// cards of one architecture.
inline constexpr int kTypicalMultiprocessors = 132;

}  // namespace crema
