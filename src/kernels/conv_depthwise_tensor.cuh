// How the kernels of depthwise convolutions in 16 bits divide channels-last images. A tap of eight
// channels is a diagonal matrix, and `mma` multiplies sixteen places by two of them at once: an
// eighth of its products are of use, but there are four times fewer instructions than numbers have
// multiply-adds, and memory is the limit. A warp has eight channels and walks down a strip, some
// eights of columns of one image or of small ones side by side. The block's threads copy the rows
// of all its strips to shared memory, some steps ahead, and write finished rows from there: sixteen
// bytes, an octet of channels, at a time.
//
// With a dilation, places that are so far apart never meet the others: each of the
// dilation * dilation sets is an image of its own, a sheet.
#pragma once

#include "kernels/conv_depthwise.cuh"

namespace crema {

// Columns of a strip, in eights; warps of a block and blocks of a multiprocessor, at most; rows
// that a strip begins with before its first result; a block for each strip, or as many as the card
// holds.
struct DepthwiseBudget {
  int groups, warps, resident, before;
  bool once;
};

struct DepthwiseTiles {
  int channels, dilation, sheets;
  int octets, strips;   // of a block, a warp for each pair of them
  int abreast, groups;  // sheets side by side in a strip, and eights of columns of each
  int rows;             // steps of a strip
  int all_strips;       // of each piece of the channels
  DepthwiseRange down, across;
  dim3 blocks;  // pieces of the channels, blocks for each
  FastDivide by_tiles, by_pieces, by_phases, by_dilation;

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
  int slot, column, channel, strip;  // slot: among the octets of a place in shared memory

  __device__ DepthwiseOctet(const DepthwiseTiles& n, int first_strip) {
    const int thread = static_cast<int>(threadIdx.x), warps = static_cast<int>(blockDim.x) / 32;
    slot = thread % warps, column = thread / warps;
    const int octet = static_cast<int>(blockIdx.x) * n.octets + slot % n.octets;
    channel = octet * 8;
    strip = first_strip + slot / n.octets;
    if (channel >= n.channels || strip >= n.all_strips) strip = -1;
  }
  __device__ int offset() const { return column * kPlaceBytes + slot * 16; }
};

// Where a strip is, in steps.
struct DepthwiseTile {
  int first_sheet, row, column, end;

  __device__ DepthwiseTile(const DepthwiseTiles& n, int strip) {
    int tile, piece;
    first_sheet = n.by_pieces.split(n.by_tiles.split(max(strip, 0), tile), piece) * n.abreast;
    row = n.down.first + piece * n.rows, column = n.across.first + tile * n.groups * 8;
    end = min(row + n.rows, n.down.end);
  }
};

// What of an image the octets of a row are: columns scale * (the tile's first - before) on, less
// `left`; in shared memory as `scale` planes, of every scale-th column each, where a sheet's has
// `margin` columns more than it has steps.
struct DepthwiseView {
  DepthwiseImage image;
  int top, left, scale, before, margin;
};

// The rows of a tensor from `row` on, an octet of every 32nd place for each thread. Rows outside
// [low, high) are none of its own. In a tile's steps times scale.
template <typename T, int kColumns, int kPlanes>
struct DepthwiseOctetRows {
  static constexpr int kPlaces = kColumns * kPlanes, kPasses = (kPlaces + 31) / 32;
  T* data;
  int offsets[kPasses];
  uint32_t inside = 0;
  int row, low, high, dilation, row_step, column;

  __device__ DepthwiseOctetRows(const DepthwiseTiles& n, const DepthwiseTile& tile,
                                const DepthwiseOctet& own, const DepthwiseView& view, int row_,
                                int low_, int high_, T* data_)
      : data(data_), row(row_), low(0), high(0), dilation(n.dilation), column(own.column) {
    row_step = dilation * view.image.width * n.channels;
    const int of_sheet = n.groups * 8 + view.margin;
#pragma unroll
    for (int pass = 0; pass < kPasses; ++pass) {
      const int place = own.column + pass * 32, plane = place / kColumns, i = place % kColumns;
      const int beside = i / of_sheet, sheet = tile.first_sheet + beside;
      int phase, across;
      const int image = n.by_phases.split(sheet, phase), down = n.by_dilation.split(phase, across);
      const auto of_row = [&](int step) { return step * dilation + down - view.top; };
      const int step = (tile.column + i - beside * of_sheet - view.before) * view.scale + plane;
      const int at = step * dilation + across - view.left;
      offsets[pass] =
          ((image * view.image.height + of_row(row_)) * view.image.width + at) * n.channels +
          own.channel;
      // Several sheets have the same rows: they are images then.
      if (pass == 0)
        row = of_row(row_), low = max(0, of_row(low_)),
        high = min(view.image.height, of_row(high_));
      if (own.strip >= 0 && plane < kPlanes && beside < n.abreast && sheet < n.sheets && at >= 0 &&
          at < view.image.width)
        inside |= 1u << pass;
    }
  }

  // Starts copying a row to the thread's place in shared memory; zeros where there is none.
  __device__ void fetch(uint32_t to) {
    const uint32_t mask = row >= low && row < high ? inside : 0;
#pragma unroll
    for (int pass = 0; pass < kPasses; ++pass) {
      if (pass * 32 + 32 <= kPlaces || column < kPlaces - pass * 32)
        copy_octet(to + pass * 32 * kPlaceBytes, data + offsets[pass], mask & 1u << pass);
    }
    next();
  }
  __device__ void store(const unsigned char* from) {
    const uint32_t mask = row >= low && row < high ? inside : 0;
#pragma unroll
    for (int pass = 0; pass < kPasses; ++pass) {
      if (mask & 1u << pass)
        *reinterpret_cast<uint4*>(data + offsets[pass]) =
            *reinterpret_cast<const uint4*>(from + pass * 32 * kPlaceBytes);
    }
    next();
  }

 private:
  __device__ void next() {
#pragma unroll
    for (int& offset : offsets) offset += row_step;
    row += dilation;
  }
};

// A warp's octet of channels, and what a lane does in products.
struct DepthwiseLane {
  int warp, lane, channel, strip;  // channel: the octet's first
  bool diagonal;  // has a number of the diagonal matrices, that of channel lane / 4

  __device__ explicit DepthwiseLane(const DepthwiseTiles& n)
      : warp(static_cast<int>(threadIdx.x) / 32), lane(static_cast<int>(threadIdx.x) % 32) {
    channel = (static_cast<int>(blockIdx.x) * n.octets + warp % n.octets) * 8;
    strip = warp / n.octets;
    diagonal = lane / 8 == lane % 4 && channel < n.channels;
  }
  // The weights of a tap as the second operand.
  template <typename T>
  __device__ uint32_t tap(const T* w, int taps, int tap) const {
    if (!diagonal) return 0;
    const T* const at = w + static_cast<int64_t>(channel + lane / 4) * taps + tap;
    return uint32_t{*reinterpret_cast<const uint16_t*>(at)} << (lane / 4 % 2 * 16);
  }
  // Where an eight of columns begins in a row whose sheets are of_sheet places wide. Eights that
  // the strip's sheets do not need are zeros there.
  __device__ int column(const DepthwiseTiles& n, int group, int of_sheet) const {
    return group / n.groups * of_sheet + group % n.groups * 8;
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
