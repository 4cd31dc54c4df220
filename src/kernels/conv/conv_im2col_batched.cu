// Convolution as matrix products over many images at once (im2col), for GPUs: what a build without
// cuDNN trains with, and what cuDNN declines. Any real type, any number of spatial axes, groups,
// both orders. The patches of some images are written to the workspace and multiplied by cuBLAS:
//   channels-last   patches (position, group, tap, channel), weights (O, taps, C):
//                   y = patches * w'
//   row-major       patches (image, group, channel, tap, position), weights (O, C, taps):
//                   y = w * patches
// With windows of one pixel the image itself has this layout. It also runs on a CPU, for tests:
// there im2col keeps its pieces in the cache (conv_im2col.cpp).
#include <algorithm>

#include "device/parallel.h"
#include "kernels/conv/conv_geometry.h"
#include "kernels/conv/im2col.h"
#include "kernels/conv/im2col_patches.h"
#include "kernels/gemm/gemm_groups.h"
#include "kernels/pointwise/bias.h"
#include "tensor/on.h"
#include "tensor/part.h"

namespace crema {
namespace {

bool needs_patches(const ConvGeometry& g) {
  bool needs = g.taps > 1;
  for (int axis = 0; axis < g.axes; ++axis)
    needs = needs || g.stride[axis] != 1 || g.pad[axis] != 0;
  return needs;
}

ConvGeometry padded_geometry(const ConvCase& c) {
  ConvGeometry g = geometry_of(c);
  if (c.x_channels > 0) g.in_channels = c.x_channels;  // zeros: as good as any other channel
  return g;
}

class BatchedIm2col final : public LinearKernel {
 public:
  BatchedIm2col(const ConvCase& c, size_t limit)
      : c_(c),
        g_(padded_geometry(c)),
        last_(c.order == Order::channels_last),
        needed_(needs_patches(g_)) {
    const size_t real = size_of(is_half(c.dtype) ? DType::f32 : c.dtype);
    // dx is summed up from float32.
    patch_bytes_ = needed_ ? elements(patch()) * (c.backward_data ? real : size_of(c.dtype)) : 0;
    part_bytes_ = !last_ && c.backward_weights ? elements(outputs() * row()) * real : 0;
    const int64_t fit =
                      static_cast<int64_t>(limit / std::max<size_t>(patch_bytes_ + part_bytes_, 1)),
                  indexed = Divisor::kMax / std::max(patch(), image());
    images_ = std::clamp<int64_t>(std::min(fit, indexed), 1, g_.images);
    patch_bytes_ = aligned(patch_bytes_ * static_cast<size_t>(images_));
    part_bytes_ = aligned(part_bytes_ * static_cast<size_t>(images_));
    if (!last_ && g_.groups > 1) group_bytes_ = gemm_groups_scratch(images_, g_.groups);
  }

  // Elements of one image, of its patches.
  int64_t image() const { return g_.all_in_channels() * g_.in_points; }
  int64_t patch() const { return g_.groups * row() * g_.out_points; }

  Format weights_format() const override { return {c_.order, nullptr, c_.x_channels}; }
  size_t workspace() const override { return patch_bytes_ + part_bytes_ + group_bytes_; }

  void forward(Context& context, const Tensor& x, const Tensor& w, const Tensor& b, const Tensor& y,
               const Tensor& workspace) override {
    on_real(y, [&]<typename T>() {
      for_chunks([&](int64_t first, int64_t images) {
        const T* const patches = gathered(context, x.data<T>(), first, images, workspace);
        Gemm p = product();
        if (last_) {
          p.transpose_b = true;
          p.m = images * g_.out_points, p.n = g_.out_channels, p.k = row();
          p.lda = g_.groups * row(), p.ldc = outputs();
          p.batch_stride_a = row(), p.batch_stride_b = g_.out_channels * row(),
          p.batch_stride_c = g_.out_channels;
          multiply(context, p, {}, patches, w.data<T>(), output(y.data<T>(), first), workspace);
        } else {
          p.m = g_.out_channels, p.n = g_.out_points, p.k = row(), p.batch = images;
          p.batch_stride_b = patch(), p.batch_stride_c = outputs() * g_.out_points;
          multiply(context, p,
                   {g_.groups, g_.out_channels * row(), row() * g_.out_points,
                    g_.out_channels * g_.out_points},
                   w.data<T>(), patches, output(y.data<T>(), first), workspace);
        }
      });
      add_bias(context, outer(), outputs(), inner(), b ? b.data<T>() : nullptr, c_.relu,
               y.data<T>());
    });
  }

  void backward_data(Context& context, const OutputGradient& g, const Tensor& w, const Tensor& dx,
                     const Tensor& workspace) override {
    on_real(dx, [&]<typename T>() {
      for_chunks([&](int64_t first, int64_t images) {
        T* const goal = dx.data<T>() + first * image();
        const T* const dy = output(g.dy.data<T>(), first);
        if (!needed_) return data_product(context, images, dy, w.data<T>(), goal, workspace);
        Compute<T>* const patches = static_cast<Compute<T>*>(workspace.raw());
        data_product(context, images, dy, w.data<T>(), patches, workspace);
        parallel_for(context, images * image(), SumPatches<T>{PatchIndex(g_, last_), patches, goal},
                     1024);
      });
    });
  }

  void backward_weights(Context& context, const Tensor& x, const OutputGradient& g,
                        const Tensor& dw, const Tensor&, bool accumulate, bool,
                        const Tensor& workspace) override {
    on_real(x, [&]<typename T>() {
      Compute<T>* const goal = dw.data<Compute<T>>();
      for_chunks([&](int64_t first, int64_t images) {
        const bool add = accumulate || first > 0;
        const T* const patches = gathered(context, x.data<T>(), first, images, workspace);
        const T* const dy = output(g.dy.data<T>(), first);
        Gemm p = product();
        if (last_) {
          p.transpose_a = true, p.beta = add ? 1.f : 0.f;
          p.m = g_.out_channels, p.n = row(), p.k = images * g_.out_points;
          p.lda = outputs(), p.ldb = g_.groups * row();
          p.batch_stride_a = g_.out_channels, p.batch_stride_b = row(),
          p.batch_stride_c = g_.out_channels * row();
          return multiply(context, p, {}, dy, patches, goal, workspace);
        }
        Compute<T>* const parts =
            reinterpret_cast<Compute<T>*>(workspace.data<char>() + patch_bytes_);
        p.transpose_b = true;
        p.m = g_.out_channels, p.n = row(), p.k = g_.out_points, p.batch = images;
        p.batch_stride_a = outputs() * g_.out_points, p.batch_stride_b = patch(),
        p.batch_stride_c = outputs() * row();
        multiply(context, p,
                 {g_.groups, g_.out_channels * g_.out_points, row() * g_.out_points,
                  g_.out_channels * row()},
                 dy, patches, parts, workspace);
        parallel_for(context, outputs() * row(),
                     SumImages<Compute<T>>{outputs() * row(), images, parts, goal, add}, 1024);
      });
    });
  }

 private:
  static size_t elements(int64_t count) { return static_cast<size_t>(count); }
  // Elements of a patch in one group.
  int64_t row() const { return g_.in_channels * g_.taps; }
  int64_t outputs() const { return g_.all_out_channels(); }
  // The extents of y as outer x channels x inner.
  int64_t outer() const { return last_ ? g_.images * g_.out_points : g_.images; }
  int64_t inner() const { return last_ ? 1 : g_.out_points; }
  template <typename T>
  T* output(T* y, int64_t image) const {
    return y + image * outputs() * g_.out_points;
  }

  // Calls body(first, images) for all images.
  template <typename Body>
  void for_chunks(const Body& body) const {
    for (int64_t first = 0; first < g_.images; first += images_)
      body(first, std::min(images_, g_.images - first));
  }

  // The patches of a chunk.
  template <typename T>
  const T* gathered(Context& context, const T* x, int64_t first, int64_t images,
                    const Tensor& workspace) const {
    const T* const from = x + first * image();
    if (!needed_) return from;
    T* const patches = static_cast<T*>(workspace.raw());
    parallel_for(context, images * patch(), GatherPatches<T>{PatchIndex(g_, last_), from, patches},
                 4096);
    return patches;
  }

  // The gradient of the patches.
  template <typename T, typename C>
  void data_product(Context& context, int64_t images, const T* dy, const T* w, C* patches,
                    const Tensor& workspace) const {
    Gemm p = product();
    if (last_) {
      p.m = images * g_.out_points, p.n = row(), p.k = g_.out_channels;
      p.lda = outputs(), p.ldc = g_.groups * row();
      p.batch_stride_a = g_.out_channels, p.batch_stride_b = g_.out_channels * row(),
      p.batch_stride_c = row();
      return multiply(context, p, {}, dy, w, patches, workspace);
    }
    p.transpose_a = true;
    p.m = row(), p.n = g_.out_points, p.k = g_.out_channels, p.batch = images;
    p.batch_stride_b = outputs() * g_.out_points, p.batch_stride_c = patch();
    multiply(context, p,
             {g_.groups, g_.out_channels * row(), g_.out_channels * g_.out_points,
              row() * g_.out_points},
             w, dy, patches, workspace);
  }

  // Channels-last, the groups are the batch; row-major, the images are.
  Gemm product() const {
    Gemm p;
    p.precision = c_.precision;
    p.batch = g_.groups;
    return p;
  }
  template <typename T, typename C>
  void multiply(Context& context, const Gemm& p, const GemmGroups& groups, const T* a, const T* b,
                C* c, const Tensor& workspace) const {
    const Tensor scratch = group_bytes_ == 0
                               ? Tensor()
                               : part_of(workspace, patch_bytes_ + part_bytes_,
                                         {static_cast<int64_t>(group_bytes_)}, DType::u8);
    gemm_groups(context, p, groups, a, b, c, scratch);
  }

  ConvCase c_;
  ConvGeometry g_;
  bool last_, needed_;
  int64_t images_ = 1;  // at a time
  size_t patch_bytes_ = 0, part_bytes_ = 0, group_bytes_ = 0;
};

}  // namespace

std::unique_ptr<LinearKernel> make_conv_im2col_batched(const ConvCase& c, std::string& reason,
                                                       size_t limit) {
  if (c.x.count() == 0 || c.y.count() == 0) {
    reason = "nothing to compute";
    return nullptr;
  }
  // A product for each channel: the plain loop is faster, but it has no 16 bits.
  if (c.groups > 1 && c.w[1] == 1 && !is_half(c.dtype)) {
    reason = "groups of one channel";
    return nullptr;
  }
  bool fits = true;
  for (size_t axis = 0; axis < c.pad.size(); ++axis)
    fits = fits && c.x[static_cast<int>(axis) + 2] + c.pad[axis] < Divisor::kMax;
  auto conv = std::make_unique<BatchedIm2col>(c, limit);
  if (fits && std::max(conv->image(), conv->patch()) < Divisor::kMax) return conv;
  reason = "an image of 2^31 elements and more, or patches of it";
  return nullptr;
}

namespace {

REGISTER_KERNEL(conv_kernels, "im2col", RunsOn::gpu, 30,
                [](Context&, const ConvCase& c, std::string& reason) {
                  return make_conv_im2col_batched(c, reason);
                });

}  // namespace
}  // namespace crema
