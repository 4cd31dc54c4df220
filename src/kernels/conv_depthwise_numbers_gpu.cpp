// How the kernels of depthwise convolutions divide their work; see conv_depthwise.cuh and
// conv_depthwise_strips.cuh.
#include <algorithm>

#include "kernels/conv_depthwise.cuh"
#include "kernels/conv_depthwise_strips.cuh"

namespace crema {
namespace {

int over(int a, int b) { return (a + b - 1) / b; }
int number(int64_t value) { return static_cast<int>(value); }

}  // namespace

DepthwiseNumbers depthwise_numbers(const Shape& in, const Shape& out, DType dtype,
                                   const DepthwiseWindow& window) {
  DepthwiseNumbers n{};
  n.channels = number(in[1]), n.dilation = number(window.dilation);
  n.out_height = number(out[2]), n.out_width = number(out[3]);
  n.tile_height = window.tile_height, n.tile_width = window.tile_width;
  // Cut evenly, in chunks of 16 bytes and blocks of whole warps.
  const int most = kDepthwiseLine / (kDepthwisePack * number(size_of(dtype)));
  const int packs = n.channels / kDepthwisePack, least = over(packs, most);
  n.lanes = over(over(packs, least), 2) * 2;
  n.cuts = over(packs, n.lanes);
  const int tiles_across = over(over(n.out_width, n.dilation), n.tile_width);
  const int tiles_down = over(over(n.out_height, n.dilation), n.tile_height);
  n.patch_width = std::min(tiles_across, 4);
  n.patch_height = std::min(tiles_down, 4);
  n.sheets = number(in[0]) * n.dilation * n.dilation;
  n.patches_across = over(tiles_across, n.patch_width);
  const int patches = n.patches_across * over(tiles_down, n.patch_height);
  n.by_lanes = FastDivide(n.lanes);
  n.by_patch_width = FastDivide(n.patch_width), n.by_patch_height = FastDivide(n.patch_height);
  n.by_patches_across = FastDivide(n.patches_across), n.by_patches = FastDivide(patches);
  n.by_phases = FastDivide(n.dilation * n.dilation), n.by_dilation = FastDivide(n.dilation);
  n.by_chunks = FastDivide(n.lanes * kDepthwisePack * number(size_of(dtype)) / 16);
  const auto region = [&](const Shape& image, int spread, const DepthwiseWindow& w) {
    DepthwiseRegion r{};
    r.height = number(image[2]), r.width = number(image[3]);
    r.top = number(w.top), r.left = number(w.left), r.stride = number(w.stride);
    r.rows = (n.patch_height * n.tile_height / spread - 1) * r.stride + number(w.kernel);
    r.columns = (n.patch_width * n.tile_width / spread - 1) * r.stride + number(w.kernel);
    r.by_rows = FastDivide(r.rows);
    r.bytes = r.rows * r.columns * kDepthwiseLine;
    return r;
  };
  n.in = region(in, window.spread, window);
  n.out = region(out, 1, {1, 1, 1, 0, 0, 0, 0, 1});
  // Of small images a patch has several, as many as two stages of them fit into shared memory.
  constexpr int kStage = 88 << 10;
  n.patch_sheets = std::clamp(kStage / (n.in.bytes + n.out.bytes), 1,
                              kDepthwiseTiles / (n.patch_width * n.patch_height));
  n.in.bytes *= n.patch_sheets, n.out.bytes *= n.patch_sheets;
  n.work = patches * over(n.sheets, n.patch_sheets);
  return n;
}

StripNumbers::StripNumbers(const Shape& shape, const Shape& x, int window, int zeros, int rows,
                           int blocks_at_once) {
  constexpr int kMostColumns = 28;  // with the places beside them 32
  images = number(shape[0]), channels = number(shape[1]);
  height = number(shape[2]), width = number(shape[3]);
  image_height = number(x[2]), image_width = number(x[3]);
  const int bands = over(width, kMostColumns);
  band = over(width, bands), strips = over(band, 8);
  pitch = over(band + window - 1, 8) * 8;
  stage_rows = strips > 2 ? rows : 2 * rows;
  const int padded = height + zeros, cuts = over(channels, kStripChannels);
  const int stages = over(images * padded, stage_rows);
  steps = over(stages, std::clamp(blocks_at_once / (cuts * bands), 1, stages));
  blocks = dim3(static_cast<unsigned>(cuts), static_cast<unsigned>(over(stages, steps)),
                static_cast<unsigned>(bands));
  by_padded = FastDivide(padded), by_columns = FastDivide(band + window - 1);
  by_two_columns = FastDivide(2 * (band + window - 1));
  by_band = FastDivide(band), by_two_bands = FastDivide(2 * band);
  by_strips = FastDivide(strips);
}

}  // namespace crema
