#include <algorithm>

#include "base/ceil_div.h"
#include "device/multiprocessors.h"
#include "kernels/conv/implicit_gemm/split_product.h"

namespace crema {

SplitProduct::SplitProduct(Context& context, const ConvCase& c, ConvCall call,
                           std::span<const TileExtent> tiles, int step)
    : geometry_(implicit_gemm_geometry(c, call)), step_(step) {
  const std::vector<FilterTap> taps = filter_taps(c, call);
  taps_ = Tensor(context, {static_cast<int64_t>(taps.size() * sizeof(FilterTap))}, DType::u8);
  copy_bytes(context, taps_.raw(), Device::gpu, taps.data(), Device::cpu, taps_.bytes());
  const int64_t rows = geometry_.rows, columns = geometry_.columns;
  const int64_t steps = ceil_div<int64_t>(geometry_.depth, step);
  const auto blocks = [&](const Choice& choice) {
    const TileExtent& tile = tiles[static_cast<size_t>(choice.shape)];
    return ceil_div<int64_t>(rows, tile.rows) * ceil_div<int64_t>(columns, tile.columns) *
           c.groups * choice.pieces;
  };
  for (int shape = 0; shape < std::ssize(tiles); ++shape) {
    const TileExtent& tile = tiles[static_cast<size_t>(shape)];
    const int64_t count = blocks({shape}), results = int64_t{tile.rows} * tile.columns;
    choices_.push_back({shape, 1});
    for (const int64_t each : {1, 2, 4, 8}) {
      const int64_t pieces = std::min(each * kTypicalMultiprocessors / count, steps / 2);
      if (pieces <= choices_.back().pieces || count > Gpu::kCounters ||
          count * pieces * results > Gpu::kPartialSums)
        continue;
      choices_.push_back({shape, static_cast<int>(pieces)});
    }
  }
  const auto found = std::find_if(choices_.begin(), choices_.end(), [&](const Choice& choice) {
    return blocks(choice) >= kTypicalMultiprocessors;
  });
  take(static_cast<size_t>(std::min(found, choices_.end() - 1) - choices_.begin()));
}

std::string SplitProduct::choice_name(size_t choice) const {
  return cat(choices_[choice].shape, "/", choices_[choice].pieces);
}

ImplicitGemmParams SplitProduct::params(const Gpu& gpu, size_t choice) const {
  ImplicitGemmParams n{};
  n.geometry = geometry_;
  n.split.pieces = choices_[choice].pieces;
  n.split.steps_each = ceil_div(ceil_div(geometry_.depth, step_), n.split.pieces);
  n.operands.taps = static_cast<const FilterTap*>(taps_.raw());
  n.operands.partial_sums = gpu.partial_sums;
  n.operands.counters = gpu.counters;
  return n;
}

}  // namespace crema
