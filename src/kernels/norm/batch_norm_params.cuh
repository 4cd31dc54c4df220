// Per-channel parameters of batch normalization's GPU kernels, and their grids. Only for .cu files
// of a CUDA build.
#pragma once

#include "kernels/norm/batch_norm_kernels.h"
#include "kernels/norm/batch_norm_ranks.h"
#include "kernels/pointwise/channel_terms.h"
#include "kernels/reduce/column_reduce.cuh"
#include "tensor/on.h"

namespace crema::batch_norm {

// Each array has one value per channel.
struct ChannelParams {
  const float *scale, *shift;  // learned; null: 1 and 0
  StoredStatistics<float> stored;
  float *mean, *inverse;       // saved for backward
  float *x_factor, *constant;  // of GradientTerms
  LearnedGradients<float> learned;
  double each;        // elements per channel
  const float *sums;  // of x, followed by those of its squares; null: mean and inverse are known
  // With ranks: where kernels leave what is of this rank's elements, instead of mean and inverse,
  // or of x_factor and constant.
  RankValues<float> own;

  // The saved statistics or, where sums are given, those computed from them; notes: then also saves
  // them.
  __device__ void statistics(int64_t c, int64_t channels, bool notes, float &mean_c,
                             float &inverse_c) const {
    if (!sums) {
      mean_c = mean[c];
      inverse_c = inverse[c];
      return;
    }
    const auto count = static_cast<float>(each);
    mean_c = sums[c] / count;
    const float variance = fmaxf(fmaf(-mean_c, mean_c, sums[channels + c] / count), 0.f);
    inverse_c = 1 / sqrtf(variance + stored.eps);
    if (!notes) return;
    mean[c] = mean_c;
    inverse[c] = inverse_c;
    stored.add(c, mean_c, variance, each);
  }
  __device__ float factor(int64_t c, float inverse_c) const {
    return factor_of(inverse_c, scale, c);
  }
  __device__ float factor(int64_t c) const { return factor(c, inverse[c]); }
  __device__ float bias(int64_t c) const { return shift ? shift[c] : 0; }

  // y = x factor + constant.
  struct Line {
    float factor, constant;
  };
  __device__ Line line(int64_t c, float mean_c, float inverse_c) const {
    const float factor_c = factor(c, inverse_c);
    return {factor_c, bias(c) - mean_c * factor_c};
  }
  // The gradient of an element, from x instead of x - mean.
  struct GradientLine {
    float factor, x_factor, constant;
    __device__ float of(float g, float x) const {
      return element_gradient(factor, g, x, x_factor, constant);
    }
  };
  __device__ GradientLine gradient_line(int64_t c) const {
    return {factor(c), x_factor[c], constant[c] - mean[c] * x_factor[c]};
  }

  // x_factor and constant from the sums over `count` elements.
  __device__ void finish_terms(int64_t c, double sum_g, double sum_gh, double count,
                               bool h_is_y) const {
    const float inverse_c = inverse[c];
    const auto terms =
        gradient_terms(factor(c, inverse_c), inverse_c, sum_g, sum_gh, count, h_is_y);
    x_factor[c] = terms.x_factor;
    constant[c] = terms.constant;
  }
  // From the sums of g and of g h, where g is the gradient. h_is_y: h is not x - mean.
  __device__ void finish_gradients(int64_t c, double sum_g, double sum_gh, bool h_is_y,
                                   bool through_statistics) const {
    if (own.values && through_statistics) {
      own.write(c, sum_g, sum_gh, each);
    } else {
      finish_terms(c, through_statistics ? sum_g : 0, through_statistics ? sum_gh : 0, each,
                   h_is_y);
    }
    learned.write(c, inverse[c], sum_g, sum_gh);
  }
};

// room: for two values per channel.
inline ChannelParams channel_params(const BatchNormCase &c, const BatchNormParameters &p,
                                    const BatchNormSaved &saved, float *room) {
  ChannelParams n{};
  n.scale = p.scale.data<float>();
  n.shift = p.shift.data<float>();
  n.stored = {c, p};
  n.mean = saved.mean.data<float>();
  n.inverse = saved.inverse.data<float>();
  n.x_factor = room;
  n.constant = n.x_factor + c.view.channels;
  n.each = static_cast<double>(c.view.each());
  return n;
}

// Checks the alignment that batch_norm_takes_packs() promises.
template <typename T, int kPack>
void require_packs(const Tensor &given) {
  require(!given || kPack == kPackCount<T>,
          "batch normalization in packs of 16 bytes needs tensors "
          "that begin at multiples of 16 bytes");
}

// Calls body<T, kPack>(grid for kernels without sums) for the tensor's dtype and the widest pack.
template <typename Body, typename... Tensors>
void with_grid(const ChannelView &view, const Tensor &x, const Body &body,
               const Tensors &...others) {
  on_real(x, [&]<typename T>() {
    if constexpr (!std::is_same_v<T, double>) {
      with_column_pack<T>(
          view.channels,
          [&]<int kPack>() {
            body.template operator()<T, kPack>(ColumnGrid(view.each(), view.channels, kPack));
          },
          x.raw(), others.raw()...);
    }
  });
}

}  // namespace crema::batch_norm
