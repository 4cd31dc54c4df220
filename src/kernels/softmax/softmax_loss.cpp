// Softmax cross-entropy on the CPU, and the total.
#include "kernels/softmax/softmax_loss.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/ceil_div.h"
#include "kernels/labels/labels.h"
#include "kernels/pointwise/pointwise_math.h"
#include "kernels/softmax/softmax_kernels.h"
#include "kernels/softmax/softmax_labels.h"
#include "kernels/softmax/softmax_positions.h"
#include "kernels/softmax/softmax_shares_loss.h"
#include "tensor/on.h"

namespace crema {
namespace {

constexpr int64_t kSmall = 1 << 12;  // fewer elements are not worth a second thread
constexpr int64_t kLossBlock = kSoftmaxBlock;

template <typename T>
void check_labels(const SoftmaxLossCase& c, const SoftmaxLabels<T>& labels) {
  bool bad = false;
#pragma omp parallel for reduction(|| : bad) if (c.view.positions() > kSmall)
  for (int64_t position = 0; position < c.view.positions(); ++position)
    bad = bad || labels.at(position) == SoftmaxLabels<T>::kBad;
  for (int64_t position = 0; bad && position < c.view.positions(); ++position) {
    if (labels.at(position) == SoftmaxLabels<T>::kBad) {
      fail_for_label(position, labels.labels[position], c.view.classes, c.positions_each());
    }
  }
}

// x, to, dx below point to class 0 of the first position.
template <typename T>
struct CpuLoss {
  SoftmaxLabels<T> labels;
  T smoothing;
  T *largest, *inverse, *losses;  // per position

  CpuLoss(const SoftmaxLossCase& c, const Tensor& labels, const SoftmaxLossSaved& saved)
      : labels(c, labels),
        smoothing(static_cast<T>(c.smoothing)),
        largest(saved.positions.data<T>()),
        inverse(largest + c.view.positions()),
        losses(inverse + c.view.positions()) {}

  // x: points to class 0, and classes are `stride` apart; below: the sum of (top - x).
  void finish(int64_t position, const T* x, int64_t stride, T top, T sum, T below) const {
    const int64_t label = labels.at(position);
    largest[position] = top;
    inverse[position] = 1 / sum;
    losses[position] = 0;
    if (label < 0) return;
    T own = top - x[label * stride];
    if (smoothing > 0) own = (1 - smoothing) * own + smoothing * below / labels.classes;
    losses[position] = labels.weight(position, label) * limited_loss(std::log(sum) + own);
  }

  // Writes the probabilities to `to` unless it is null.
  void row(int64_t position, const T* x, T* to) const {
    T top = x[0], sum = 0, below = 0;
#pragma omp simd reduction(max : top)
    for (int64_t k = 0; k < labels.classes; ++k) top = x[k] > top ? x[k] : top;
#pragma omp simd reduction(+ : sum, below)
    for (int64_t k = 0; k < labels.classes; ++k) {
      sum += exp_of(x[k] - top);
      below += top - x[k];
    }
    if (to) {
#pragma omp simd
      for (int64_t k = 0; k < labels.classes; ++k) to[k] = exp_of(x[k] - top) / sum;
    }
    finish(position, x, 1, top, sum, below);
  }

  void block(int64_t position, const T* x, int64_t stride, int64_t count, T* to) const {
    T top[kLossBlock], sum[kLossBlock], below[kLossBlock];
    std::copy(x, x + count, top);
    std::fill(sum, sum + count, T(0));
    std::fill(below, below + count, T(0));
    for (int64_t k = 1; k < labels.classes; ++k) {
      const T* line = x + k * stride;
#pragma omp simd
      for (int64_t i = 0; i < count; ++i) top[i] = line[i] > top[i] ? line[i] : top[i];
    }
    for (int64_t k = 0; k < labels.classes; ++k) {
      const T* line = x + k * stride;
#pragma omp simd
      for (int64_t i = 0; i < count; ++i) {
        sum[i] += exp_of(line[i] - top[i]);
        below[i] += top[i] - line[i];
      }
    }
    for (int64_t i = 0; i < count; ++i)
      finish(position + i, x + i, stride, top[i], sum[i], below[i]);
    for (int64_t k = 0; to && k < labels.classes; ++k) {
#pragma omp simd
      for (int64_t i = 0; i < count; ++i)
        to[k * stride + i] = exp_of(x[k * stride + i] - top[i]) / sum[i];
    }
  }

  // dx = factor * (softmax - target), 0 where the label is ignored. dx may be x.
  void row_gradient(int64_t position, const T* x, T factor, T* dx) const {
    const int64_t label = labels.at(position);
    const T scale = label < 0 ? T(0) : factor * labels.weight(position, label),
            top = largest[position];
    const T scale_over_sum = scale * inverse[position],
            everywhere = scale * smoothing / labels.classes;
#pragma omp simd
    for (int64_t k = 0; k < labels.classes; ++k)
      dx[k] = exp_of(x[k] - top) * scale_over_sum - everywhere;
    if (label >= 0) dx[label] -= (1 - smoothing) * scale;
  }

  void block_gradient(int64_t position, const T* x, int64_t stride, int64_t count, T factor,
                      T* dx) const {
    T scale[kLossBlock], scale_over_sum[kLossBlock];
    for (int64_t i = 0; i < count; ++i) {
      const int64_t label = labels.at(position + i);
      scale[i] = label < 0 ? T(0) : factor * labels.weight(position + i, label);
      scale_over_sum[i] = scale[i] * inverse[position + i];
    }
    const T everywhere = smoothing / labels.classes;
    const T* top = largest + position;
    for (int64_t k = 0; k < labels.classes; ++k) {
      const int64_t line = k * stride;
#pragma omp simd
      for (int64_t i = 0; i < count; ++i)
        dx[line + i] = exp_of(x[line + i] - top[i]) * scale_over_sum[i] - everywhere * scale[i];
    }
    for (int64_t i = 0; i < count; ++i) {
      const int64_t label = labels.at(position + i);
      if (label >= 0) dx[label * stride + i] -= (1 - smoothing) * scale[i];
    }
  }
};

// Adds the losses in pieces that do not depend on the number of threads.
template <typename T>
void total(const SoftmaxLossCase& c, const SoftmaxLabels<T>& labels, const SoftmaxLossSaved& saved,
           const Tensor& loss) {
  constexpr int64_t kPiece = 4096;
  const int64_t count = c.view.positions(), pieces = ceil_div(count, kPiece);
  const T* losses = saved.positions.data<T>() + 2 * count;
  std::vector<double> sums(pieces), valid(pieces);
#pragma omp parallel for schedule(static) if (pieces > 4)
  for (int64_t piece = 0; piece < pieces; ++piece) {
    for (int64_t position = piece * kPiece; position < std::min(count, (piece + 1) * kPiece);
         ++position) {
      sums[piece] += losses[position];
      valid[piece] += labels.counted(position);
    }
  }
  double sum = 0, counted = 0;
  for (int64_t piece = 0; piece < pieces; ++piece) {
    sum += sums[piece];
    counted += valid[piece];
  }
  const double divisor = c.divide_by_valid ? std::max(counted, 1.0) : c.normalizer;
  saved.normalizer.data<T>()[0] = static_cast<T>(divisor);
  saved.normalizer.data<T>()[1] = static_cast<T>(counted);
  *loss.data<T>() = static_cast<T>(sum / divisor);
}

Refusal loss_backward_vectorized(Context&, const SoftmaxLossCase& c, const Tensor& x,
                                 const Tensor& labels, const SoftmaxLossSaved& saved,
                                 const Tensor& d_loss, const Tensor& dx) {
  on(x, [&]<typename T>() {
    const CpuLoss<T> body(c, labels, saved);
    const T factor = *d_loss.data<T>() / *saved.normalizer.data<T>();
    over_softmax_blocks(c.view, [&](const SoftmaxBlock& block) {
      const T* from = x.data<T>() + block.at;
      T* to = dx.data<T>() + block.at;
      if (softmax_by_rows(c.view)) return body.row_gradient(block.first, from, factor, to);
      SoftmaxTile<T> tile(c.view);
      const T* matrix = tile.read(from, block.count);
      body.block_gradient(block.first, matrix, tile.stride(), block.count, factor, tile.write(to));
      tile.finish(to, block.count);
    });
  });
  return nullptr;
}

Refusal loss_forward_vectorized(Context&, const SoftmaxLossCase& c, const Tensor& x,
                                const Tensor& labels, const Tensor& loss,
                                const SoftmaxLossSaved& saved, const Tensor& probability) {
  on(x, [&]<typename T>() {
    const CpuLoss<T> body(c, labels, saved);
    check_labels(c, body.labels);
    over_softmax_blocks(c.view, [&](const SoftmaxBlock& block) {
      const T* from = x.data<T>() + block.at;
      T* to = probability ? probability.data<T>() + block.at : nullptr;
      if (softmax_by_rows(c.view)) return body.row(block.first, from, to);
      SoftmaxTile<T> tile(c.view);
      const T* matrix = tile.read(from, block.count);
      body.block(block.first, matrix, tile.stride(), block.count, to ? tile.write(to) : nullptr);
      if (to) tile.finish(to, block.count);
    });
    total(c, body.labels, saved, loss);
  });
  return nullptr;
}

Refusal loss_forward_plain(Context& context, const SoftmaxLossCase& c, const Tensor& x,
                           const Tensor& labels, const Tensor& loss, const SoftmaxLossSaved& saved,
                           const Tensor& probability) {
  on(x, [&]<typename T>() {
    const SoftmaxLabels<T> read(c, labels);
    check_labels(c, read);
    softmax_loss_positions(context, c, x, labels, saved, probability);
    total(c, read, saved, loss);
  });
  return nullptr;
}

REGISTER_KERNEL(softmax_loss_forward_kernels, "vectorized", RunsOn::cpu, 10,
                loss_forward_vectorized);
REGISTER_KERNEL(softmax_loss_forward_kernels, "plain", RunsOn::cpu, 0, loss_forward_plain);
REGISTER_KERNEL(softmax_loss_backward_kernels, "vectorized", RunsOn::cpu, 10,
                loss_backward_vectorized);

}  // namespace

constinit decltype(softmax_loss_forward_kernels) softmax_loss_forward_kernels("the softmax loss");
constinit decltype(softmax_loss_backward_kernels) softmax_loss_backward_kernels(
    "the gradient of the softmax loss");

void softmax_loss_forward(Context& context, const SoftmaxLossCase& c, const Tensor& x,
                          const Tensor& labels, const Tensor& loss, const SoftmaxLossSaved& saved,
                          const Tensor& probability) {
  if (c.shares) {
    SoftmaxLossCase unlabelled = c;
    unlabelled.shares = false;
    softmax_loss_forward(context, unlabelled, x, Tensor(), loss, saved, probability);
    return softmax_shares_loss_forward(context, c, x, labels, loss, saved);
  }
  softmax_loss_forward_kernels.run(context, c, x, labels, loss, saved, probability);
}

void softmax_loss_backward(Context& context, const SoftmaxLossCase& c, const Tensor& x,
                           const Tensor& labels, const SoftmaxLossSaved& saved,
                           const Tensor& d_loss, const Tensor& dx) {
  if (c.shares) return softmax_shares_loss_backward(context, c, x, labels, saved, d_loss, dx);
  softmax_loss_backward_kernels.run(context, c, x, labels, saved, d_loss, dx);
}

}  // namespace crema
