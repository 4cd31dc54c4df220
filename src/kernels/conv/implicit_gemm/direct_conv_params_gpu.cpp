// The tilings of a DirectConv, and the parameters of its kernels.
#include <algorithm>

#include "base/ceil_div.h"
#include "kernels/conv/implicit_gemm/direct_conv_launch.cuh"
#include "kernels/conv/implicit_gemm/implicit_gemm.cuh"
#include "kernels/pointwise/batch_values.h"

namespace crema {
namespace {

int vector_for(int channels) { return channels % 8 == 0 ? 8 : channels % 4 == 0 ? 4 : 2; }

// Bytes of so many 16-byte slots, made an odd number.
int odd_slots(int slots) { return (slots | 1) * 16; }

DirectConvTile tile_of(int rows, int columns, int channels) {
  DirectConvTile tile{};
  tile.rows = rows, tile.columns = columns;
  tile.chunks = ceil_div(channels, 8);
  tile.by_chunks = Divisor(tile.chunks);
  tile.pixel = odd_slots(tile.chunks);
  tile.row = columns * tile.pixel;
  return tile;
}

int aligned_128(int bytes) { return ceil_div(bytes, 128) * 128; }

// The limits of a block.
constexpr int max_warps(ConvCall call) { return call == ConvCall::wgrad ? 12 : 8; }
constexpr int max_column_blocks(ConvCall call) {
  return call == ConvCall::wgrad ? 16 : call == ConvCall::fprop ? 4 : 1;
}

// Forward stores an element for each pool window.
bool stores_pooled(const ConvCase& c, ConvCall call) {
  return !c.pooled.empty() && call == ConvCall::fprop;
}

DirectConvWindows windows_of(const ConvCase& c, ConvCall call, const ImplicitGemmGeometry& g,
                             int strip_rows) {
  DirectConvWindows w{};
  w.image = {g.height, g.width, g.channels, vector_for(g.channels), g.image};
  w.positions[1] = static_cast<int>(g.by_row.value);
  w.positions[0] = static_cast<int>(g.by_plane.value) / w.positions[1];
  w.kernel_width = g.kernel_width;
  w.taps = static_cast<int>(c.w.count(2));
  const int kernel[2] = {w.taps / w.kernel_width, w.kernel_width};
  for (int i = 0; i < 2; ++i) {
    if (stores_pooled(c, call))
      w.positions[i] = 2 * static_cast<int>(c.pooled[static_cast<size_t>(i)]);
    w.first_tap[i] = std::max(0, (1 - kernel[i]) * g.tap[i]);
    w.origin[i] = g.start[i] - w.first_tap[i];
    w.step[i] = g.step[i];
    w.tap[i] = g.tap[i];
  }
  w.strip_rows = strip_rows;
  w.strips_per_image = ceil_div(w.positions[0], strip_rows);
  w.strip_count = static_cast<int>(c.x[0]) * w.strips_per_image;
  w.by_columns = Divisor(w.positions[1]);
  w.by_strips = Divisor(w.strips_per_image);
  return w;
}

// Pixels under the windows of a strip.
DirectConvTile image_tile_of(const DirectConvWindows& w) {
  const int kernel[2] = {w.taps / w.kernel_width, w.kernel_width};
  const int positions[2] = {w.strip_rows, w.positions[1]};
  int pixels[2];
  for (int i = 0; i < 2; ++i)
    pixels[i] = (positions[i] - 1) * w.step[i] + (kernel[i] - 1) * std::abs(w.tap[i]) + 1;
  return tile_of(pixels[0], pixels[1], w.image.channels);
}

// Tiles of 16 positions.
int tiles_of_strip(const DirectConvWindows& w) {
  return ceil_div(w.strip_rows * w.positions[1], 16);
}

// Steps of two chunks along the reduction; not for wgrad.
int steps_of(const DirectConvTiling& t) { return ceil_div(t.k_chunks, 2); }

// For fprop and dgrad.
DirectConvTiling position_tiling(const ConvCase& c, ConvCall call, const DirectConvWindows& w,
                                 const DirectConv::Choice& choice) {
  const bool dgrad = call == ConvCall::dgrad;
  const DirectConv::WarpShape warp = DirectConv::shapes(call, choice.shape);
  const int outputs = static_cast<int>(c.w[0]);
  const int inputs = dgrad ? implicit_gemm_geometry(c, call).columns : w.image.channels;
  DirectConvTiling t{};
  t.image_tile = image_tile_of(w);
  t.k_chunks = w.taps * t.image_tile.chunks;
  t.columns = dgrad ? inputs : outputs;
  t.warps_n = ceil_div(ceil_div(t.columns, 8), warp.columns * choice.column_blocks);
  t.columns_per_block = t.warps_n * warp.columns * 8;
  t.slices = choice.slices;
  t.warps_m = std::clamp(max_warps(call) / (t.warps_n * t.slices), 1,
                         ceil_div(tiles_of_strip(w), warp.rows));
  t.second = {outputs, w.taps, inputs, vector_for(inputs), 0};
  // An odd number of chunks is padded with a chunk of zeros.
  if (dgrad) {
    t.second_tile = tile_of((t.image_tile.chunks + t.k_chunks % 2) * 8, w.taps, inputs);
    t.second_tile.row = odd_slots(t.second_tile.row / 16);
  } else {
    t.second_tile = tile_of(std::min(outputs, t.columns_per_block), w.taps, inputs);
    t.second_tile.pixel = t.second_tile.chunks * 16;
    t.second_tile.row = odd_slots(steps_of(t) * 2);
  }
  return t;
}

DirectConvTiling wgrad_tiling(const ConvCase& c, const DirectConvWindows& w,
                              const DirectConv::Choice& choice) {
  const DirectConv::WarpShape warp = DirectConv::shapes(ConvCall::wgrad, choice.shape);
  const int outputs = static_cast<int>(c.w[0]);
  DirectConvTiling t{};
  t.image_tile = image_tile_of(w);
  t.k_chunks = w.taps * t.image_tile.chunks;
  t.warps_m = ceil_div(ceil_div(outputs, 16), warp.rows);
  // Including the tile of the bias's gradient.
  t.warps_n = ceil_div(t.k_chunks + 1, warp.columns * choice.column_blocks);
  t.slices = 1;
  t.second = {w.positions[0], w.positions[1], outputs, vector_for(outputs),
              w.positions[0] * w.positions[1] * outputs};
  t.second_tile = tile_of(w.strip_rows, w.positions[1], outputs);
  return t;
}

DirectConvPool pool_of(const ConvCase& c, ConvCall call, const DirectConvWindows& w,
                       const DirectConvTiling& t) {
  DirectConvPool p{};
  for (size_t i = 0; i < c.pooled.size(); ++i) {
    p.extent[i] = static_cast<int>(c.pooled[i]);
    p.positions[i] = static_cast<int>(c.y[2 + static_cast<int>(i)]);
  }
  if (p.extent[0] == 0) return p;
  p.by_columns = Divisor(p.extent[1]);
  // dy's tile starts at position origin; pool windows start at even positions.
  const bool wgrad = call == ConvCall::wgrad;
  const DirectConvTile& tile = wgrad ? t.second_tile : t.image_tile;
  const int first = wgrad ? 0 : w.origin[1], last = first + tile.columns - 1;
  p.slots = ((last >> 1) - (first >> 1) + 1) * tile.chunks;
  p.by_slots = Divisor(p.slots);
  const int outputs = static_cast<int>(c.w[0]);
  p.quads = ceil_div(outputs, 4);
  p.by_quads = Divisor(p.quads);
  p.whole = outputs / 4;
  p.by_whole = Divisor(std::max(1, p.whole));
  return p;
}

// n: windows, tiling and pool. tile_of_sums: a block's sums need shared memory, which may be that
// of the stages (wgrad).
DirectConvLayout shared_layout(const ConvCase& c, ConvCall call, const DirectConvParams& n,
                               const DirectConv::Choice& choice, int stages, bool with_relu_y,
                               bool tile_of_sums) {
  const DirectConvWindows& w = n.windows;
  const DirectConvTiling& t = n.tiling;
  const DirectConv::WarpShape warp = DirectConv::shapes(call, choice.shape);
  const int image_bytes = t.image_tile.rows * t.image_tile.row;
  const int columns = t.warps_n * warp.columns * 8;  // the last ones may be unused
  DirectConvLayout l{};
  if (call == ConvCall::wgrad) {
    // The last tile of 16 outputs may extend past the last pixel.
    const int dy_bytes = tiles_of_strip(w) * 16 * t.second_tile.pixel + t.warps_m * warp.rows * 32;
    l.dy_at = image_bytes;
    l.relu_y_at = l.dy_at + dy_bytes;
    l.stage = l.relu_y_at + (with_relu_y ? dy_bytes : 0);
    l.stages_at = aligned_128(tiles_of_strip(w) * 16 * 4);
  } else {
    const bool dgrad = call == ConvCall::dgrad;
    const int w_bytes = (dgrad ? t.second_tile.rows : columns) * t.second_tile.row + columns * 2;
    l.w_at = aligned_128(steps_of(t) * 4 * 4);
    l.relu_y_at = image_bytes;
    l.stage = image_bytes * (dgrad && with_relu_y ? 2 : 1);
    l.stages_at = l.w_at + aligned_128(w_bytes);
  }
  if (stores_pooled(c, call)) {
    l.dropout_at = l.stage;
    l.stage += w.strip_rows / 2 * n.pool.extent[1] * n.pool.quads;
  }
  l.stage = aligned_128(l.stage);
  l.stages = stages;
  l.slices_at = l.stages_at + stages * l.stage;
  l.tile_pitch = columns + 4;
  const int slices_bytes = (t.slices - 1) * t.warps_m * t.warps_n * warp.rows * warp.columns * 512;
  const int tile_bytes = tile_of_sums ? t.warps_m * warp.rows * 16 * l.tile_pitch * 4 : 0;
  l.bytes = std::max(l.slices_at + slices_bytes, tile_bytes);
  return l;
}

void clear(const Gpu& gpu, void* sums, int64_t count) {
  check_cuda(cudaMemsetAsync(sums, 0, static_cast<size_t>(count) * sizeof(float), gpu.stream),
             "clearing a gradient");
}

}  // namespace

DirectConv::DirectConv(Context& context, const ConvCase& c, ConvCall call)
    : c_(c),
      call_(call),
      with_relu_y_(call != ConvCall::fprop && c.pooled.empty() && c.needs_relu_gradient()) {
  const GpuCard& card = context.gpu().card;
  processors_ = card.multiprocessors;
  shared_bytes_ = card.shared_bytes;
  shared_limit_ = card.dynamic_shared_limit();
  cluster_ = card.has_clusters() ? 8 : 1;
  adds_ = call == ConvCall::wgrad && !context.repeatable;
  add_choices();
}

void DirectConv::add_choices() {
  const ImplicitGemmGeometry g = implicit_gemm_geometry(c_, call_);
  const bool pooled = stores_pooled(c_, call_);
  const int64_t positions = g.by_plane.value;
  const int64_t rows = pooled ? 2 * c_.pooled[0] : positions / g.by_row.value;
  const bool strided = call_ == ConvCall::dgrad && g.strided;
  if (c_.groups != 1 || strided || positions < 16) return;
  int64_t before = 0;
  for (int64_t strips : {8, 6, 4, 3, 2, 1}) {
    int64_t strip_rows = ceil_div(rows, strips);
    if (pooled) strip_rows += strip_rows % 2;
    if (strip_rows == before) continue;
    before = strip_rows;
    for (int shape = pooled ? 1 : 0; shape < kShapes; ++shape) {
      int warps = 0;
      for (int blocks = 1; blocks <= max_column_blocks(call_); ++blocks) {
        const Choice choice{static_cast<int>(strip_rows), shape, blocks};
        const DirectConvParams n = params(choice);
        const DirectConvTiling& t = n.tiling;
        if (t.warps_m * t.warps_n > max_warps(call_) || t.warps_n == warps) continue;
        warps = t.warps_n;
        if (n.layout.bytes <= shared_limit_) choices_.push_back(choice);
        add_slices(choice);
      }
    }
  }
}

// Profitable if a block has few warps with many steps each.
void DirectConv::add_slices(Choice choice) {
  constexpr int kMinChunks = 16;  // per slice
  if (call_ == ConvCall::wgrad) return;
  for (choice.slices = 2; choice.slices <= 4; choice.slices *= 2) {
    const DirectConvParams n = params(choice);
    const DirectConvTiling& t = n.tiling;
    if (t.k_chunks < kMinChunks * choice.slices || n.layout.bytes > shared_limit_ ||
        t.warps_m * t.warps_n * choice.slices > max_warps(call_))
      return;
    choices_.push_back(choice);
  }
}

// A small weight gradient runs concurrently with kernels that others depend on, and leaves them
// half of each multiprocessor. A large one uses all of it: half cost seed_cifar_cnn with
// batch 512 5 % of a step.
bool DirectConv::leaves_room() const {
  return c_.backward_data &&
         2 * static_cast<double>(c_.y.count()) * static_cast<double>(c_.w.count(1)) < 2e9;
}

// As many blocks as run concurrently, in whole clusters.
DirectConvGrid DirectConv::grid(const DirectConvParams& n, const Choice& choice) const {
  constexpr int kMaxThreads = 1024;  // of the blocks on a multiprocessor
  const bool wgrad = call_ == ConvCall::wgrad;
  DirectConvGrid grid{};
  grid.column_blocks = choice.column_blocks;
  grid.threads = n.tiling.warps_m * n.tiling.warps_n * n.tiling.slices * 32;
  const int64_t fit = std::min<int64_t>(shared_bytes_ / (n.layout.bytes + GpuCard::kReservedShared),
                                        kMaxThreads / grid.threads);
  const int64_t at_once = wgrad && leaves_room() ? 1 : std::max<int64_t>(1, fit);
  grid.blocks = static_cast<int>(
      std::clamp<int64_t>(processors_ * at_once / choice.column_blocks, 1, n.windows.strip_count));
  grid.cluster = wgrad && !adds_ ? static_cast<int>(cluster_) : 1;
  while (grid.cluster > grid.blocks) grid.cluster /= 2;
  grid.blocks -= grid.blocks % grid.cluster;
  return grid;
}

// Everything but the operands.
DirectConvParams DirectConv::params(const Choice& choice) const {
  const ImplicitGemmGeometry g = implicit_gemm_geometry(c_, call_);
  const bool wgrad = call_ == ConvCall::wgrad;
  DirectConvParams n{};
  n.windows = windows_of(c_, call_, g, choice.strip_rows);
  n.tiling =
      wgrad ? wgrad_tiling(c_, n.windows, choice) : position_tiling(c_, call_, n.windows, choice);
  n.pool = pool_of(c_, call_, n.windows, n.tiling);
  // Two stages only if a block has several strips.
  for (int stages = 1; stages <= 2; ++stages) {
    n.layout = shared_layout(c_, call_, n, choice, stages, with_relu_y_, wgrad && !adds_);
    n.grid = grid(n, choice);
    if (n.grid.blocks == n.windows.strip_count) break;
  }
  return n;
}

std::string DirectConv::choice_name(size_t choice) const {
  const Choice& one = choices_[choice];
  return cat(one.strip_rows, "/", one.shape, "/", one.column_blocks, "/", one.slices);
}

void DirectConv::launch(Context& context, const ProductTensors& t, size_t index) const {
  const Choice& choice = choices_[index];
  const Gpu& gpu = context.gpu();
  DirectConvParams n = params(choice);
  const bool fprop = call_ == ConvCall::fprop, dgrad = call_ == ConvCall::dgrad,
             wgrad = call_ == ConvCall::wgrad;
  if (adds_ && !t.accumulate_w)
    clear(gpu, t.out, c_.w[0] * n.windows.taps * n.windows.image.channels);
  if (adds_ && t.db && !t.accumulate_b) clear(gpu, t.db, c_.w[0]);
  n.operands = {.image = dgrad ? t.dy : t.x,
                .second = wgrad ? t.dy : t.w,
                .relu_y = t.y,
                .bias = fprop ? t.b : nullptr,
                .out = t.out,
                .db = t.db,
                .argmax = t.argmax,
                .dropout = t.dropout,
                .dropout_first_image = values_before(t.dropout.samples, c_.y[0]),
                .accumulate_w = t.accumulate_w,
                .accumulate_b = t.accumulate_b,
                .relu = fprop && c_.relu.on,
                .adds = adds_,
                .gradient_factor = t.gradient_factor,
                .partial_sums = gpu.partial_sums,
                .counters = gpu.counters};
  if (wgrad) {
    start_direct_conv_wgrad(gpu, n, c_.dtype, choice.shape);
  } else {
    start_direct_conv(gpu, n, c_.dtype, dgrad, choice.shape);
  }
}

}  // namespace crema
