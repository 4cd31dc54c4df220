// The tiling of channels-last images in depthwise convolutions in 16 bits on tensor cores. A tap of
// eight channels is a diagonal matrix, and `mma` multiplies sixteen positions by two of them at
// once: only an eighth of its products are useful, but there are four times fewer instructions than
// with multiply-adds of single elements, and memory is the bound. A warp has eight channels and
// walks down a strip: some groups of eight columns of one image, or of several small ones. The
// block's threads copy the rows of all its strips to shared memory, some steps ahead, and write
// finished rows from there, sixteen bytes (an octet of channels) at a time. On an H200 these
// kernels beat depthwise.cuh for large images with stride 2 (112x112) and for the gradients of 5x5
// (28x28).
//
// With a dilation, the dilation * dilation sets of positions do not interact: each is treated as an
// image of its own, a sheet.
#pragma once

#include "kernels/conv/depthwise/depthwise.cuh"

namespace crema {

// Groups of eight columns per strip; warps per block and blocks per multiprocessor, at most; rows
// that a strip processes before its first result.
struct DepthwiseBudget {
  int column_groups, warps, resident, before;
};

struct DepthwiseTensorTiling {
  int channels, dilation, sheets;
  int octets, strips_per_block;         // a warp for each octet of each strip
  int images_per_strip, column_groups;  // sheets per strip, and groups of eight columns of each
  int rows;                             // steps per strip
  int strip_count;                      // per piece of the channels
  DepthwiseRange down, across;
  dim3 blocks;  // pieces of the channels, blocks per piece
  bool full;    // the blocks take most of the block slots of a large card
  Divisor by_tiles, by_pieces, by_phases, by_dilation, by_warps, by_octets;

  DepthwiseTensorTiling(int images, int channels, int dilation, DepthwiseRange down,
                        DepthwiseRange across, const DepthwiseBudget& budget);
  dim3 threads() const { return dim3(static_cast<unsigned>(32 * octets * strips_per_block)); }
};

// channels must be a multiple of eight.
DepthwiseTensorTiling depthwise_sums_tensor_tiling(const ConvCase& c, bool of_dx);
void start_depthwise_sums(const Gpu& gpu, const DepthwiseTensorTiling& n, const DepthwiseKind& kind,
                          const DepthwiseSums& sums);
DepthwiseTensorTiling depthwise_gradients_tensor_tiling(const ConvCase& c);
int64_t depthwise_parts(const DepthwiseTensorTiling& n, int taps);
void start_depthwise_gradients(const Gpu& gpu, const DepthwiseTensorTiling& n,
                               const DepthwiseKind& kind, const DepthwiseGradients& gradients);

#ifdef __CUDACC__

// Pitch of a position in shared memory: eight octets, and one more so that eight adjacent positions
// have no bank conflicts.
constexpr int kPositionBytes = 9 * 16;

// A thread's share of copies: one octet of every 32nd column.
struct DepthwiseOctet {
  int slot, column, channel;  // slot: among the octets of a position in shared memory
  int strip_in_block;

  __device__ explicit DepthwiseOctet(const DepthwiseTensorTiling& n) {
    column = n.by_warps.split(static_cast<int>(threadIdx.x), slot);
    int octet;
    strip_in_block = n.by_octets.split(slot, octet);
    channel = (static_cast<int>(blockIdx.x) * n.octets + octet) * 8;
  }
  __device__ int offset() const { return column * kPositionBytes + slot * 16; }
};

// The location of a thread's strip, in steps. If it has several sheets, which are images then, that
// of the first.
struct DepthwiseTile {
  int first_sheet, image, down_phase, across_phase;
  int row, column, end;
  bool none;  // no such strip or channels

  __device__ DepthwiseTile(const DepthwiseTensorTiling& n, const DepthwiseOctet& own,
                           int strip_set) {
    const int strip = strip_set * n.strips_per_block + own.strip_in_block;
    none = strip >= n.strip_count || own.channel >= n.channels;
    int tile, piece, phase = 0;
    first_sheet = image =
        n.by_pieces.split(n.by_tiles.split(strip, tile), piece) * n.images_per_strip;
    if (n.dilation > 1) image = n.by_phases.split(first_sheet, phase);
    down_phase = n.by_dilation.split(phase, across_phase);
    row = n.down.first + piece * n.rows, end = min(row + n.rows, n.down.end);
    column = n.across.first + tile * n.column_groups * 8;
  }
};

// The part of an image that the octets of a row cover: columns from scale * (the tile's first -
// before) - left on; in shared memory as `scale` planes of every scale-th column each, in which a
// sheet has `margin` columns more than it has steps.
struct DepthwiseView {
  DepthwiseImage image;
  int top, left, scale, before, margin;
};

// Rows of a tensor from `first` on; each thread has an octet of every 32nd position. Rows outside
// [first_own, end_own) are zeros. Rows are in a tile's steps times scale.
template <typename T, int kColumns, int kPlanes>
struct DepthwiseOctetRowCursor {
  static constexpr int kPositions = kColumns * kPlanes, kPasses = (kPositions + 31) / 32;
  T* data;
  int offsets[kPasses];
  uint32_t inside = 0;
  int ahead, count;  // the current row relative to the first of its own, and the number of its own
  int dilation, row_step, column;

  DepthwiseOctetRowCursor() = default;
  __device__ DepthwiseOctetRowCursor(const DepthwiseTensorTiling& n, const DepthwiseTile& tile,
                                     const DepthwiseOctet& own, const DepthwiseView& view,
                                     int first, int first_own, int end_own, T* data_)
      : data(data_), dilation(n.dilation), column(own.column) {
    row_step = dilation * view.image.width * n.channels;
    const auto of_row = [&](int step) { return step * dilation + tile.down_phase - view.top; };
    const int low = max(0, of_row(first_own)), of_sheet = n.column_groups * 8 + view.margin;
    ahead = of_row(first) - low;
    count = max(0, min(view.image.height, of_row(end_own)) - low);
    const int row = (tile.image * view.image.height + of_row(first)) * view.image.width;
    const int to_next = view.image.height * view.image.width;
#pragma unroll
    for (int pass = 0; pass < kPasses; ++pass) {
      const int position = own.column + pass * 32, plane = position / kColumns,
                i = position % kColumns;
      const int beside = (i >= of_sheet) + (i >= 2 * of_sheet) + (i >= 3 * of_sheet);
      const int step = (tile.column + i - beside * of_sheet - view.before) * view.scale + plane;
      const int at = step * dilation + tile.across_phase - view.left;
      offsets[pass] = (row + beside * to_next + at) * n.channels + own.channel;
      if (!tile.none && plane < kPlanes && beside < n.images_per_strip &&
          tile.first_sheet + beside < n.sheets && at >= 0 && at < view.image.width)
        inside |= 1u << pass;
    }
  }

  // Starts copying a row to the thread's slots in shared memory; zeros outside of the image.
  __device__ void fetch(uint32_t to) {
    const uint32_t mask = own() ? inside : 0;
#pragma unroll
    for (int pass = 0; pass < kPasses; ++pass) {
      if (pass * 32 + 32 <= kPositions || column < kPositions - pass * 32)
        copy_octet(to + pass * 32 * kPositionBytes, data + offsets[pass], mask & 1u << pass);
    }
    next();
  }
  __device__ void store(const unsigned char* from) {
    const uint32_t mask = own() ? inside : 0;
#pragma unroll
    for (int pass = 0; pass < kPasses; ++pass) {
      if (mask & 1u << pass)
        *reinterpret_cast<uint4*>(data + offsets[pass]) =
            *reinterpret_cast<const uint4*>(from + pass * 32 * kPositionBytes);
    }
    next();
  }

 private:
  __device__ bool own() const {
    return static_cast<uint32_t>(ahead) < static_cast<uint32_t>(count);
  }
  __device__ void next() {
#pragma unroll
    for (int& offset : offsets) offset += row_step;
    ahead += dilation;
  }
};

// A warp's octet of channels, and a lane's role in products.
struct DepthwiseLane {
  int warp, lane, octet, channel, strip;  // channel: the octet's first
  bool diagonal;  // holds an element of the diagonal matrices, that of channel lane / 4

  __device__ explicit DepthwiseLane(const DepthwiseTensorTiling& n)
      : warp(static_cast<int>(threadIdx.x) / 32), lane(static_cast<int>(threadIdx.x) % 32) {
    strip = n.by_octets.split(warp, octet);
    channel = (static_cast<int>(blockIdx.x) * n.octets + octet) * 8;
    diagonal = lane / 8 == lane % 4 && channel < n.channels;
  }
  // Loads the weights of all taps as B operands.
  template <int kKernel, typename T>
  __device__ void load_taps(const T* w, uint32_t (&taps)[kKernel][kKernel]) const {
    constexpr int kTaps = kKernel * kKernel;
    const auto* const own =
        reinterpret_cast<const uint16_t*>(w) + (diagonal ? (channel + lane / 4) * kTaps : 0);
#pragma unroll
    for (int i = 0; i < kTaps; ++i) {
      const uint32_t tap = own[i];
      taps[i / kKernel][i % kKernel] = diagonal ? tap << (lane / 4 % 2 * 16) : 0;
    }
  }
  // The first column of a group of eight columns in a row whose sheets are of_sheet positions wide.
  // Groups that the strip's sheets do not need are zeros there.
  __device__ int column(const DepthwiseTensorTiling& n, int column_group, int of_sheet) const {
    const int shift = n.column_groups >> 1;  // log2 of the 1, 2 or 4 groups
    return (column_group >> shift) * of_sheet + (column_group & (n.column_groups - 1)) * 8;
  }
  // The address of row lane % 8 of the matrix that starts at a column.
  __device__ uint32_t address(const unsigned char* memory, int column) const {
    return shared_address(memory) + (column + lane % 8) * kPositionBytes + warp * 16;
  }
  // Writes sums of sixteen positions, rounded to T, from `position` on.
  template <typename T>
  __device__ void write(unsigned char* row, int position, const float (&sums)[4]) const {
    unsigned char* const to =
        row + (position + lane / 4) * kPositionBytes + warp * 16 + lane % 4 * 4;
    *reinterpret_cast<uint32_t*>(to) = ChannelPair<T>({sums[0], sums[1]}).bits;
    *reinterpret_cast<uint32_t*>(to + 8 * kPositionBytes) = ChannelPair<T>({sums[2], sums[3]}).bits;
  }
};

#endif

}  // namespace crema
