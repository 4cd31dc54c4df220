// How the kernels of depthwise convolutions in 16 bits divide channels-last images. A tap of eight
// channels is a diagonal matrix, and `mma` multiplies sixteen places by two of them at once: an
// eighth of its products are of use, but there are four times fewer instructions than numbers have
// multiply-adds, and memory is the limit. A warp has eight channels and walks down a strip, some
// eights of columns of one image or of small ones side by side. The block's threads copy the rows
// of all its strips to shared memory, some steps ahead, and write finished rows from there: sixteen
// bytes, an octet of channels, at a time. On an H200 they win over depthwise.cuh for large
// images with stride 2 (112x112) and for the gradients of 5x5 (28x28): see tests/bench.
//
// With a dilation, places that are so far apart never meet the others: each of the
// dilation * dilation sets is an image of its own, a sheet.
#pragma once

#include "kernels/conv/depthwise/depthwise.cuh"

namespace crema {

// Columns of a strip, in eights; warps of a block and blocks of a multiprocessor, at most; rows
// that a strip begins with before its first result.
struct DepthwiseBudget {
  int groups, warps, resident, before;
};

struct DepthwiseTiles {
  int channels, dilation, sheets;
  int octets, strips;   // of a block, a warp for each pair of them
  int abreast, groups;  // sheets side by side in a strip, and eights of columns of each
  int rows;             // steps of a strip
  int all_strips;       // for each piece of the channels
  DepthwiseRange down, across;
  dim3 blocks;  // pieces of the channels, blocks for each
  bool full;    // they take most of the places of a large card
  FastDivide by_tiles, by_pieces, by_phases, by_dilation, by_warps, by_octets;

  DepthwiseTiles(int images, int channels, int dilation, DepthwiseRange down, DepthwiseRange across,
                 const DepthwiseBudget& budget);
  dim3 threads() const { return dim3(static_cast<unsigned>(32 * octets * strips)); }
};

// For a multiple of eight channels.
DepthwiseTiles depthwise_sums_tiles(const ConvCase& c, bool of_dx);
void start_depthwise_sums(const Gpu& gpu, const DepthwiseTiles& n, const DepthwiseKind& kind,
                          const DepthwiseSums& sums);
DepthwiseTiles depthwise_gradients_tiles(const ConvCase& c);
int64_t depthwise_parts(const DepthwiseTiles& n, int taps);
void start_depthwise_gradients(const Gpu& gpu, const DepthwiseTiles& n, const DepthwiseKind& kind,
                               const DepthwiseGradients& gradients);

#ifdef __CUDACC__

// Of a place in shared memory: eight octets, and one more so that eight neighbouring places lie in
// different banks.
constexpr int kPlaceBytes = 9 * 16;

// What a thread copies: an octet of every 32nd column.
struct DepthwiseOctet {
  int slot, column, channel;  // slot: among the octets of a place in shared memory
  int beside;                 // of the block's strips

  __device__ explicit DepthwiseOctet(const DepthwiseTiles& n) {
    column = n.by_warps.split(static_cast<int>(threadIdx.x), slot);
    int octet;
    beside = n.by_octets.split(slot, octet);
    channel = (static_cast<int>(blockIdx.x) * n.octets + octet) * 8;
  }
  __device__ int offset() const { return column * kPlaceBytes + slot * 16; }
};

// Where a thread's strip is, in steps. Of several sheets side by side, which are images then, the
// first.
struct DepthwiseTile {
  int first_sheet, image, down_phase, across_phase;
  int row, column, end;
  bool none;  // no such strip or channels

  __device__ DepthwiseTile(const DepthwiseTiles& n, const DepthwiseOctet& own, int group) {
    const int strip = group * n.strips + own.beside;
    none = strip >= n.all_strips || own.channel >= n.channels;
    int tile, piece, phase = 0;
    first_sheet = image = n.by_pieces.split(n.by_tiles.split(strip, tile), piece) * n.abreast;
    if (n.dilation > 1) image = n.by_phases.split(first_sheet, phase);
    down_phase = n.by_dilation.split(phase, across_phase);
    row = n.down.first + piece * n.rows, end = min(row + n.rows, n.down.end);
    column = n.across.first + tile * n.groups * 8;
  }
};

// What of an image the octets of a row are: columns scale * (the tile's first - before) on, less
// `left`; in shared memory as `scale` planes, of every scale-th column each, where a sheet's has
// `margin` columns more than it has steps.
struct DepthwiseView {
  DepthwiseImage image;
  int top, left, scale, before, margin;
};

// The rows of a tensor from `first` on, an octet of every 32nd place for each thread. Rows outside
// [first_own, end_own) are zeros. In a tile's steps times scale.
template <typename T, int kColumns, int kPlanes>
struct DepthwiseOctetRows {
  static constexpr int kPlaces = kColumns * kPlanes, kPasses = (kPlaces + 31) / 32;
  T* data;
  int offsets[kPasses];
  uint32_t inside = 0;
  int ahead, count;  // the row from the first of its own on, and how many these are
  int dilation, row_step, column;

  DepthwiseOctetRows() = default;
  __device__ DepthwiseOctetRows(const DepthwiseTiles& n, const DepthwiseTile& tile,
                                const DepthwiseOctet& own, const DepthwiseView& view, int first,
                                int first_own, int end_own, T* data_)
      : data(data_), dilation(n.dilation), column(own.column) {
    row_step = dilation * view.image.width * n.channels;
    const auto of_row = [&](int step) { return step * dilation + tile.down_phase - view.top; };
    const int low = max(0, of_row(first_own)), of_sheet = n.groups * 8 + view.margin;
    ahead = of_row(first) - low;
    count = max(0, min(view.image.height, of_row(end_own)) - low);
    const int row = (tile.image * view.image.height + of_row(first)) * view.image.width;
    const int to_next = view.image.height * view.image.width;
#pragma unroll
    for (int pass = 0; pass < kPasses; ++pass) {
      const int place = own.column + pass * 32, plane = place / kColumns, i = place % kColumns;
      const int beside = (i >= of_sheet) + (i >= 2 * of_sheet) + (i >= 3 * of_sheet);
      const int step = (tile.column + i - beside * of_sheet - view.before) * view.scale + plane;
      const int at = step * dilation + tile.across_phase - view.left;
      offsets[pass] = (row + beside * to_next + at) * n.channels + own.channel;
      if (!tile.none && plane < kPlanes && beside < n.abreast &&
          tile.first_sheet + beside < n.sheets && at >= 0 && at < view.image.width)
        inside |= 1u << pass;
    }
  }

  // Starts copying a row to the thread's place in shared memory; zeros where there is none.
  __device__ void fetch(uint32_t to) {
    const uint32_t mask = own() ? inside : 0;
#pragma unroll
    for (int pass = 0; pass < kPasses; ++pass) {
      if (pass * 32 + 32 <= kPlaces || column < kPlaces - pass * 32)
        copy_octet(to + pass * 32 * kPlaceBytes, data + offsets[pass], mask & 1u << pass);
    }
    next();
  }
  __device__ void store(const unsigned char* from) {
    const uint32_t mask = own() ? inside : 0;
#pragma unroll
    for (int pass = 0; pass < kPasses; ++pass) {
      if (mask & 1u << pass)
        *reinterpret_cast<uint4*>(data + offsets[pass]) =
            *reinterpret_cast<const uint4*>(from + pass * 32 * kPlaceBytes);
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

// A warp's octet of channels, and what a lane does in products.
struct DepthwiseLane {
  int warp, lane, octet, channel, strip;  // channel: the octet's first
  bool diagonal;  // has a number of the diagonal matrices, that of channel lane / 4

  __device__ explicit DepthwiseLane(const DepthwiseTiles& n)
      : warp(static_cast<int>(threadIdx.x) / 32), lane(static_cast<int>(threadIdx.x) % 32) {
    strip = n.by_octets.split(warp, octet);
    channel = (static_cast<int>(blockIdx.x) * n.octets + octet) * 8;
    diagonal = lane / 8 == lane % 4 && channel < n.channels;
  }
  // The weights of all taps as second operands.
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
  // Where an eight of columns begins in a row whose sheets are of_sheet places wide. Eights that
  // the strip's sheets do not need are zeros there.
  __device__ int column(const DepthwiseTiles& n, int group, int of_sheet) const {
    const int of_group = n.groups >> 1;  // 1, 2 or 4 eights
    return (group >> of_group) * of_sheet + (group & (n.groups - 1)) * 8;
  }
  // Row lane % 8 of the matrix that begins at a column.
  __device__ uint32_t address(const unsigned char* memory, int column) const {
    return shared_address(memory) + (column + lane % 8) * kPlaceBytes + warp * 16;
  }
  // Sums of sixteen places as they are written, from the first place on.
  template <typename T>
  __device__ void write(unsigned char* row, int place, const float (&sums)[4]) const {
    unsigned char* const to = row + (place + lane / 4) * kPlaceBytes + warp * 16 + lane % 4 * 4;
    *reinterpret_cast<uint32_t*>(to) = ChannelPair<T>({sums[0], sums[1]}).bits;
    *reinterpret_cast<uint32_t*>(to + 8 * kPlaceBytes) = ChannelPair<T>({sums[2], sums[3]}).bits;
  }
};

#endif

}  // namespace crema
