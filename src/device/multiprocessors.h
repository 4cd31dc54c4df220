// How large a GPU kernels are laid out for.
#pragma once

namespace crema {

// Of an H100 or H200. Most kernels derive the number of their blocks from this and not from the
// card, so that how a sum is split, and with it the result's last bits, does not differ between
// cards of one architecture.
inline constexpr int kTypicalMultiprocessors = 132;

}  // namespace crema
