// Convolution as matrix products (im2col): on a GPU conv_im2col_batched.cu, on the CPU a piece of the
// patch matrix at a time so that it stays in the cache. Supports float32 and float64, any number of
// spatial axes, groups and both orders; it is used for training where oneDNN is missing or declines.
//   channels-last   patches are rows (points x taps*channels), weights (O, taps, C):
//                   y = patches * w'
//   row-major       patches are columns (channels*taps x points), weights (O, C, taps):
//                   y = w * patches
#include <algorithm>
#include <cstring>

#include "kernels/conv/conv_geometry.h"
#include "kernels/conv/im2col.h"
#include "kernels/core/threads.h"
#include "kernels/gemm/gemm.h"
#include "tensor/on.h"

namespace crema {
namespace {

constexpr int64_t kPatchBytes = 384 << 10;  // per thread: a share of the L2 cache
constexpr int64_t kFewestPoints = 128;      // fewer would not amortize packing the weights again
constexpr size_t kMaxPartialBytes = size_t{256} << 20;

class Im2colConv final : public LinearKernel {
 public:
  explicit Im2colConv(const ConvCase& c) : c_(c), g_(geometry_of(c)), patches_(g_, c.order) {
    const int64_t row = patches_.row() * static_cast<int64_t>(size_of(c.dtype));
    piece_ = std::clamp<int64_t>(kPatchBytes / row / 16 * 16, kFewestPoints,
                                 std::max<int64_t>(kFewestPoints, g_.out_points));
    piece_ = std::min(piece_, g_.out_points);
    threads_ = threads_here();
    patch_bytes_ = patches_.needed() ? aligned(static_cast<size_t>(piece_ * row)) : 0;
    // Each thread has its own partial weight gradient if that fits.
    const size_t weights = aligned(static_cast<size_t>(c.w.count()) * size_of(c.dtype));
    if (c.backward_weights && weights * threads_ <= kMaxPartialBytes) partial_bytes_ = weights;
  }

  Format weights_format() const override { return {c_.order, nullptr}; }
  size_t workspace() const override {
    return static_cast<size_t>(threads_) * (patch_bytes_ + partial_bytes_);
  }

  void forward(Context& context, const Tensor& x, const Tensor& w, const Tensor& b, const Tensor& y,
               const Tensor& workspace) override {
    on(y, [&]<typename T>() {
      const T* bias = b ? b.data<T>() : nullptr;
      for_pieces(
          threads_for(g_.images * pieces()), g_.images * pieces(), [&](int64_t task, int thread) {
            T* const patches = patches_of<T>(workspace, thread);
            const Piece p = piece_at(task);
            for (int64_t group = 0; group < g_.groups; ++group) {
              const Patches::View<T> view =
                  patches_.gather(image(x.data<T>(), p, true), group, p.first, p.points, patches);
              forward_piece(context, p, group, view, w.data<T>() + group * weights_of_group(),
                            image(y.data<T>(), p, false));
            }
            finish_piece(p, bias, image(y.data<T>(), p, false));
          });
    });
  }

  // Patches overlap, so each image is processed by one thread.
  void backward_data(Context& context, const OutputGradient& g, const Tensor& w, const Tensor& dx,
                     const Tensor& workspace) override {
    on(dx, [&]<typename T>() {
      for_pieces(threads_for(g_.images), g_.images, [&](int64_t n, int thread) {
        T* const patches = patches_of<T>(workspace, thread);
        T* const goal = dx.data<T>() + n * g_.all_in_channels() * g_.in_points;
        if (patches_.needed())
          std::memset(goal, 0, sizeof(T) * g_.all_in_channels() * g_.in_points);
        for (int64_t i = 0; i < pieces(); ++i) {
          const Piece p = piece_at(n * pieces() + i);
          for (int64_t group = 0; group < g_.groups; ++group) {
            const Patches::View<T> view = patches_.goal(goal, group, p.first, p.points, patches);
            data_piece(context, p, group, image(g.dy.data<T>(), p, false),
                       w.data<T>() + group * weights_of_group(), view);
            if (patches_.needed()) patches_.scatter(patches, group, p.first, p.points, goal);
          }
        }
      });
    });
  }

  void backward_weights(Context& context, const Tensor& x, const OutputGradient& g,
                        const Tensor& dw, const Tensor&, bool accumulate, bool,
                        const Tensor& workspace) override {
    on(dw, [&]<typename T>() {
      const int64_t count = dw.count();
      const int threads = partial_bytes_ > 0 ? threads_for(g_.images * pieces()) : 1;
      // The first thread accumulates directly in dw.
      if (!accumulate) std::memset(dw.raw(), 0, sizeof(T) * count);
      for (int t = 1; t < threads; ++t)
        std::memset(partial_of<T>(workspace, t), 0, sizeof(T) * count);
      for_pieces(threads, g_.images * pieces(), [&](int64_t task, int thread) {
        T* const patches = patches_of<T>(workspace, thread);
        T* const goal = thread == 0 ? dw.data<T>() : partial_of<T>(workspace, thread);
        const Piece p = piece_at(task);
        for (int64_t group = 0; group < g_.groups; ++group) {
          const Patches::View<T> view =
              patches_.gather(image(x.data<T>(), p, true), group, p.first, p.points, patches);
          weights_piece(context, p, group, view, image(g.dy.data<T>(), p, false),
                        goal + group * weights_of_group());
        }
      });
      T* const sum = dw.data<T>();
      for (int t = 1; t < threads; ++t) {
        const T* const part = partial_of<T>(workspace, t);
#pragma omp parallel for simd schedule(static) if (count > 16384)
        for (int64_t i = 0; i < count; ++i) sum[i] += part[i];
      }
    });
  }

 private:
  struct Piece {
    int64_t image, first, points;
  };

  bool last() const { return c_.order == Order::channels_last; }
  int64_t pieces() const { return (g_.out_points + piece_ - 1) / piece_; }
  int64_t weights_of_group() const { return g_.out_channels * patches_.row(); }
  Piece piece_at(int64_t task) const {
    const int64_t first = task % pieces() * piece_;
    return {task / pieces(), first, std::min(piece_, g_.out_points - first)};
  }
  int threads_for(int64_t tasks) const {
    return static_cast<int>(std::min<int64_t>(threads_, tasks));
  }

  template <typename T>
  T* image(T* base, const Piece& p, bool in) const {
    return base + p.image * (in ? g_.all_in_channels() * g_.in_points
                                : g_.all_out_channels() * g_.out_points);
  }
  template <typename T>
  T* patches_of(const Tensor& workspace, int thread) const {
    return reinterpret_cast<T*>(workspace.data<char>() + thread * patch_bytes_);
  }
  template <typename T>
  T* partial_of(const Tensor& workspace, int thread) const {
    return reinterpret_cast<T*>(workspace.data<char>() + threads_ * patch_bytes_ +
                                thread * partial_bytes_);
  }

  // body(task, thread) for every task, each thread a contiguous share. With a single thread, the
  // products inside use all threads.
  template <typename Body>
  static void for_pieces([[maybe_unused]] int threads, int64_t tasks, const Body& body) {
    RegionError error;
#pragma omp parallel for schedule(static) num_threads(threads) if (threads > 1)
    for (int64_t task = 0; task < tasks; ++task) {
      error.run([&] { body(task, thread_number()); });
    }
    error.rethrow();
  }

  // The address of y (or dy) of one group and piece; output_row() is its row pitch.
  template <typename T>
  T* outputs(T* y, const Piece& p, int64_t group) const {
    return last() ? y + p.first * g_.all_out_channels() + group * g_.out_channels
                  : y + group * g_.out_channels * g_.out_points + p.first;
  }
  int64_t output_row() const { return last() ? g_.all_out_channels() : g_.out_points; }

  template <typename T>
  void forward_piece(Context& context, const Piece& p, int64_t group,
                     const Patches::View<T>& patches, const T* w, T* y) const {
    Gemm g;
    g.k = patches_.row();
    g.ldc = output_row();
    if (last()) {
      g.m = p.points;
      g.n = g_.out_channels;
      g.transpose_b = true;
      g.lda = patches.row;
      gemm(context, g, patches.data, w, outputs(y, p, group));
    } else {
      g.m = g_.out_channels;
      g.n = p.points;
      g.ldb = patches.row;
      gemm(context, g, w, patches.data, outputs(y, p, group));
    }
  }

  template <typename T>
  void data_piece(Context& context, const Piece& p, int64_t group, const T* dy, const T* w,
                  const Patches::View<T>& patches) const {
    Gemm g;
    g.k = g_.out_channels;
    g.ldc = patches.row;
    if (last()) {
      g.m = p.points;
      g.n = patches_.row();
      g.lda = output_row();
      gemm(context, g, outputs(dy, p, group), w, patches.data);
    } else {
      g.m = patches_.row();
      g.n = p.points;
      g.transpose_a = true;
      g.ldb = output_row();
      gemm(context, g, w, outputs(dy, p, group), patches.data);
    }
  }

  template <typename T>
  void weights_piece(Context& context, const Piece& p, int64_t group,
                     const Patches::View<T>& patches, const T* dy, T* dw) const {
    Gemm g;
    g.m = g_.out_channels;
    g.n = patches_.row();
    g.k = p.points;
    g.beta = 1;
    g.lda = output_row();
    g.ldb = patches.row;
    (last() ? g.transpose_a : g.transpose_b) = true;
    gemm(context, g, outputs(dy, p, group), patches.data, dw);
  }

  template <typename T>
  void finish_piece(const Piece& p, const T* b, T* y) const {
    if (!b && !c_.relu.on) return;
    const int64_t channels = g_.all_out_channels();
    const int64_t rows = last() ? p.points : channels, length = last() ? channels : p.points;
    const T slope = c_.relu.on ? static_cast<T>(c_.relu.slope) : T(1);
    for (int64_t row = 0; row < rows; ++row) {
      T* out = last() ? y + (p.first + row) * channels : y + row * g_.out_points + p.first;
      for (int64_t i = 0; i < length; ++i) {
        const T value = out[i] + (b ? b[last() ? i : row] : T(0));
        out[i] = value > 0 ? value : slope * value;
      }
    }
  }

  ConvCase c_;
  ConvGeometry g_;
  Patches patches_;
  int64_t piece_ = 0;  // output positions whose patches are computed together
  int threads_ = 1;
  size_t patch_bytes_ = 0, partial_bytes_ = 0;
};

std::unique_ptr<LinearKernel> make_conv_im2col(Context&, const ConvCase& c,
                                               std::string& /*reason*/) {
  return std::make_unique<Im2colConv>(c);
}

REGISTER_KERNEL(conv_kernels, "im2col", RunsOn::cpu, 30, make_conv_im2col);

}  // namespace

}  // namespace crema
