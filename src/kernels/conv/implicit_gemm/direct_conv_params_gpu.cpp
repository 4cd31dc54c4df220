// The tilings of a DirectConv, and the parameters of its kernels.
#include <algorithm>

#include "kernels/conv/implicit_gemm/direct_conv_launch.cuh"
#include "kernels/conv/implicit_gemm/implicit_gemm.cuh"

namespace crema {
namespace {

int over(int64_t a, int64_t b) { return static_cast<int>((a + b - 1) / b); }

int vector_for(int channels) { return channels % 8 == 0 ? 8 : channels % 4 == 0 ? 4 : 2; }

// Bytes of so many 16-byte slots, made an odd number.
int odd_slots(int slots) { return (slots | 1) * 16; }

DirectConvTile tile_of(int rows, int columns, int channels) {
  DirectConvTile tile{};
  tile.rows = rows, tile.columns = columns;
  tile.chunks = over(channels, 8);
  tile.by_chunks = Divisor(tile.chunks);
  tile.pixel = odd_slots(tile.chunks);
  tile.row = columns * tile.pixel;
  return tile;
}

constexpr int kMaxWarps[2] = {8, 12};  // per block: for positions; for wgrad
// DirectConv::Choice::parts
constexpr int max_parts(ConvOperator op) {
  return op == ConvOperator::wgrad ? 16 : op == ConvOperator::fprop ? 4 : 1;
}

void clear(const Gpu& gpu, void* sums, int64_t count) {
  check_cuda(cudaMemsetAsync(sums, 0, static_cast<size_t>(count) * sizeof(float), gpu.stream),
             "clearing a gradient");
}

}  // namespace

DirectConv::DirectConv(Context& context, const ConvCase& c, ConvOperator op, bool with_sign)
    : c_(c), op_(op), with_sign_(with_sign) {
  const auto ask = [&](cudaDeviceAttr what) {
    int value = 0;
    check_cuda(cudaDeviceGetAttribute(&value, what, context.ordinal()), "asking for the device");
    return value;
  };
  processors_ = ask(cudaDevAttrMultiProcessorCount);
  shared_bytes_ = ask(cudaDevAttrMaxSharedMemoryPerBlockOptin);
  cluster_ = ask(cudaDevAttrComputeCapabilityMajor) >= 9 ? 8 : 1;
  adds_ = op == ConvOperator::wgrad && !context.repeatable;
  add_choices();
}

bool DirectConv::cells() const { return !c_.pooled.empty() && op_ == ConvOperator::fprop; }

void DirectConv::add_choices() {
  const ImplicitGemmParams g = implicit_gemm_params(c_, op_);
  const int64_t positions = g.by_plane.value;
  const int64_t rows = cells() ? 2 * c_.pooled[0] : positions / g.by_row.value;
  const bool strided = op_ == ConvOperator::dgrad && g.strided;
  if (c_.groups != 1 || strided || positions < 16) return;
  int64_t before = 0;
  for (int64_t strips : {8, 6, 4, 3, 2, 1}) {
    int64_t strip = (rows + strips - 1) / strips;
    if (cells()) strip += strip % 2;
    if (strip == before) continue;
    before = strip;
    for (int shape = cells() ? 1 : 0; shape < kShapes; ++shape) {
      int warps = 0;
      for (int parts = 1; parts <= max_parts(op_); ++parts) {
        const Choice choice{static_cast<int>(strip), shape, parts};
        const DirectConvParams n = params(choice);
        if (n.warps_m * n.warps_n > kMaxWarps[op_ == ConvOperator::wgrad] || n.warps_n == warps)
          continue;
        warps = n.warps_n;
        if (n.shared_bytes <= shared_bytes_) choices_.push_back(choice);
        add_slices(choice);
      }
    }
  }
}

// Profitable if a block has few warps with many steps each.
void DirectConv::add_slices(Choice choice) {
  constexpr int kMinEntries = 16;  // per slice
  if (op_ == ConvOperator::wgrad) return;
  for (choice.slices = 2; choice.slices <= 4; choice.slices *= 2) {
    const DirectConvParams n = params(choice);
    if (n.entries < kMinEntries * choice.slices || n.shared_bytes > shared_bytes_ ||
        n.warps_m * n.warps_n * choice.slices > kMaxWarps[0])
      return;
    choices_.push_back(choice);
  }
}

// A small weight gradient runs concurrently with kernels that others depend on, and leaves them
// half of each multiprocessor. A large one uses all of it.
bool DirectConv::leaves_room() const {
  return c_.backward_data &&
         2 * static_cast<double>(c_.y.count()) * static_cast<double>(c_.w.count(1)) < 2e9;
}

DirectConvParams DirectConv::params(const Choice& choice) const {
  const ImplicitGemmParams g = implicit_gemm_params(c_, op_);
  const bool data = op_ == ConvOperator::dgrad, weights = op_ == ConvOperator::wgrad;
  const int outputs = static_cast<int>(c_.w[0]);
  const WarpShape warp = shapes(op_, choice.shape);
  DirectConvParams n{};
  n.image = {nullptr, g.height, g.width, g.channels, vector_for(g.channels), g.image};
  n.positions[1] = static_cast<int>(g.by_row.value);
  n.positions[0] = static_cast<int>(g.by_plane.value) / n.positions[1];
  n.factor = 1;
  for (size_t i = 0; i < c_.pooled.size(); ++i) {
    n.pool.cells[i] = static_cast<int>(c_.pooled[i]);
    n.pool.positions[i] = static_cast<int>(c_.y[2 + static_cast<int>(i)]);
    if (cells()) n.positions[i] = 2 * n.pool.cells[i];
  }
  n.kernel_width = g.kernel_width;
  n.taps = static_cast<int>(c_.w.count(2));
  const int kernel[2] = {n.taps / n.kernel_width, n.kernel_width};
  int reach[2];
  for (int i = 0; i < 2; ++i) {
    reach[i] = (kernel[i] - 1) * g.tap[i];
    n.first_tap[i] = std::max(0, -reach[i]);
    n.origin[i] = g.start[i] - n.first_tap[i];
    n.step[i] = g.step[i];
    n.tap[i] = g.tap[i];
  }
  n.strip = choice.strip;
  n.strips = over(n.positions[0], n.strip);
  n.units = static_cast<int>(c_.x[0]) * n.strips;
  n.by_strips = Divisor(n.strips);
  n.by_positions = Divisor(n.positions[1]);
  n.image_tile = tile_of((n.strip - 1) * n.step[0] + std::abs(reach[0]) + 1,
                         (n.positions[1] - 1) * n.step[1] + std::abs(reach[1]) + 1, g.channels);
  n.entries = n.taps * n.image_tile.chunks;
  const int image_bytes = n.image_tile.rows * n.image_tile.row;
  const int strip_tiles = over(n.strip * n.positions[1], 16);
  const int maximum = kMaxWarps[weights];
  if (weights) {
    n.columns = g.w_output;
    n.warps_m = over(over(outputs, 16), warp.rows);
    n.warps_n = over(n.entries + 1, warp.columns * choice.parts);  // including the bias's tile
    n.other = {nullptr, n.positions[0],      n.positions[1],
               outputs, vector_for(outputs), n.positions[0] * n.positions[1] * outputs};
    n.other_tile = tile_of(n.strip, n.positions[1], outputs);
    n.other_tile.at = image_bytes;
    // The last tile of 16 outputs may extend past the last pixel.
    const int dy_bytes = strip_tiles * 16 * n.other_tile.pixel + n.warps_m * warp.rows * 32;
    n.sign_at = image_bytes + dy_bytes;
    n.stage = n.sign_at + (with_sign_ ? dy_bytes : 0);
    n.stages_at = over(strip_tiles * 16 * 4, 128) * 128;
  } else {
    n.columns = data ? g.columns : outputs;
    const int inputs = data ? g.columns : g.channels;
    n.warps_n = over(over(n.columns, 8), warp.columns * choice.parts);
    n.columns_each = n.warps_n * warp.columns * 8;
    n.slices = choice.slices;
    n.warps_m =
        std::max(1, std::min(maximum / (n.warps_n * n.slices), over(strip_tiles, warp.rows)));
    n.other = {nullptr, outputs, n.taps, inputs, vector_for(inputs), 0};
    // An odd number of chunks is padded with a chunk of zeros.
    const int odd = n.entries % 2, steps = (n.entries + 1) / 2;
    if (data) {
      n.other_tile = tile_of((n.image_tile.chunks + odd) * 8, n.taps, inputs);
      n.other_tile.row = odd_slots(n.other_tile.row / 16);
    } else {
      n.other_tile = tile_of(std::min(outputs, n.columns_each), n.taps, inputs);
      n.other_tile.pixel = n.other_tile.chunks * 16;
      n.other_tile.row = odd_slots(steps * 2);
    }
    n.other_tile.at = over(steps * 4 * 4, 128) * 128;
    const int columns = n.warps_n * warp.columns * 8;  // the last ones may be unused
    const int weights_bytes = (data ? n.other_tile.rows : columns) * n.other_tile.row + columns * 2;
    n.stages_at = n.other_tile.at + over(weights_bytes, 128) * 128;
    n.sign_at = image_bytes;
    n.stage = image_bytes * (data && with_sign_ ? 2 : 1);
  }
  if (n.pool.cells[0] > 0) {
    n.pool.by_row = Divisor(n.pool.cells[1]);
    // dy's tile starts at position origin; cells start at even positions.
    const DirectConvTile& tile = weights ? n.other_tile : n.image_tile;
    const int first = weights ? 0 : n.origin[1], last = first + tile.columns - 1;
    n.pool.slots = ((last >> 1) - (first >> 1) + 1) * tile.chunks;
    n.pool.by_slots = Divisor(n.pool.slots);
    n.pool.quads = over(outputs, 4);
    n.pool.by_quads = Divisor(n.pool.quads);
    n.pool.whole = outputs / 4;
    n.pool.by_whole = Divisor(std::max(1, n.pool.whole));
    if (cells()) {
      n.pool.rng_at = n.stage;
      n.stage += n.strip / 2 * n.pool.cells[1] * n.pool.quads;
    }
  }
  n.stage = over(n.stage, 128) * 128;
  n.tile_pitch = n.warps_n * warp.columns * 8 + 4;
  const int slices_bytes =
      weights ? 0 : (n.slices - 1) * n.warps_m * n.warps_n * warp.rows * warp.columns * 512;
  const auto bytes_of = [&](int stages) {
    const int tile = weights && !adds_ ? n.warps_m * warp.rows * 16 * n.tile_pitch * 4 : 0;
    return std::max(n.stages_at + stages * n.stage + slices_bytes, tile);
  };
  // As many blocks as run concurrently, in whole clusters; two stages only if a block has several
  // units.
  const int threads = n.warps_m * n.warps_n * std::max(1, n.slices) * 32;
  for (n.stages = 1; n.stages <= 2; ++n.stages) {
    n.shared_bytes = bytes_of(n.stages);
    n.slices_at = n.stages_at + n.stages * n.stage;
    const int64_t fit = std::min<int64_t>(shared_bytes_ / (n.shared_bytes + 1024), 1024 / threads);
    const int64_t at_once = weights && leaves_room() ? 1 : std::max<int64_t>(1, fit);
    n.blocks =
        static_cast<int>(std::clamp<int64_t>(processors_ * at_once / choice.parts, 1, n.units));
    n.cluster = weights && !adds_ ? static_cast<int>(cluster_) : 1;
    while (n.cluster > n.blocks) n.cluster /= 2;
    n.blocks -= n.blocks % n.cluster;
    if (n.units == n.blocks || n.stages == 2) break;
  }
  return n;
}

void DirectConv::run(Context& context, const ImplicitGemmTensors& t, const Choice& choice) const {
  const Gpu& gpu = context.gpu();
  DirectConvParams n = params(choice);
  const bool data = op_ == ConvOperator::dgrad, weights = op_ == ConvOperator::wgrad;
  n.image.data = data ? t.dy : t.x;
  n.other.data = weights ? t.dy : t.w;
  n.sign = t.y;
  n.bias = op_ == ConvOperator::fprop ? t.b : nullptr;
  n.out = t.out;
  n.db = t.db;
  n.adds = adds_;
  if (adds_ && !t.accumulate_w) clear(gpu, n.out, int64_t{n.other.channels} * n.columns);
  if (adds_ && n.db && !t.accumulate_b) clear(gpu, n.db, n.other.channels);
  n.accumulate_w = t.accumulate_w;
  n.accumulate_b = t.accumulate_b;
  n.relu = op_ == ConvOperator::fprop && c_.relu;
  n.pool.kept = t.kept;
  n.pool.dropout = t.dropout;
  n.factor = t.dropout.factor;
  n.parts = gpu.parts;
  n.counters = gpu.counters;
  const WindowGrid grid{n.blocks, choice.parts, n.warps_m * n.warps_n * choice.slices * 32,
                        n.cluster};
  if (weights) {
    start_direct_conv_wgrad(gpu, n, c_.dtype, choice.shape, grid);
  } else {
    start_direct_conv(gpu, n, c_.dtype, data, choice.shape, grid);
  }
}

}  // namespace crema
