#include "layers/norm/batch_norm_base.h"

#include "proto/layer.pb.h"
#include "proto/params/activation.pb.h"
#include "tensor/part.h"

namespace crema {
namespace {

Tensor at(const std::vector<Tensor>& tensors, size_t index) {
  return index < tensors.size() ? tensors[index] : Tensor();
}

// Part `part` of `parts` along the first axis; an empty tensor stays empty.
Tensor cut(const Tensor& tensor, int64_t part, int64_t parts) {
  if (!tensor || parts == 1) return tensor;
  Shape shape = tensor.shape();
  shape[0] /= parts;
  return crema::part(tensor, shape, tensor.elements() / parts * part);
}

BatchNormSaved cut_saved(const std::vector<Tensor>& tensors, int64_t part, int64_t parts) {
  return {cut(tensors[0], part, parts), cut(tensors[1], part, parts),
          cut(at(tensors, 2), part, parts)};
}

}  // namespace

const FillerParameter& BatchNormBase::ones() {
  static const FillerParameter filler = [] {
    FillerParameter one;
    one.set_value(1);
    return one;
  }();
  return filler;
}

void BatchNormBase::synchronize(const Context& context) {
  require(images_together_ == 0, "sync_bn gives the batches of all ranks the same statistics, but ",
          "stats_batch_size ", images_together_, " gives each group of images its own: write one ",
          "of the two");
  // In testing, each rank has whole batches.
  settings_.over_ranks = settings_.batch_statistics && training() && context.ranks() > 1;
}

BackwardReads BatchNormBase::reads() const {
  // Unfused, the gradient needs y, the normalized x; fused, it needs x, and y for the sign before
  // the ReLU only if that cannot be computed from x.
  if (plain()) return {false, settings_.batch_statistics};
  return {true, fuses("Sum"), true};
}

Edge BatchNormBase::top_edge() const {
  return {.affine = fuses("ReLU") && !fuses("Sum") &&
                    params<ReLUParameter>().negative_slope() == 0 && of_own_batch()};
}

std::optional<ChannelMap> BatchNormBase::channel_map() const {
  if (settings_.batch_statistics || message().top_size() > 1) return std::nullopt;
  return ChannelMap{position_.mean,  position_.variance, position_.factor,
                    position_.scale, position_.shift,    settings_.eps};
}

Inference BatchNormBase::infer(const std::vector<Shape>& bottoms) const {
  for (const Shape& bottom : bottoms) {
    require(bottom == bottoms[0], "what is added must have the shape ", bottoms[0].brief(),
            ", but has ", bottom.brief());
  }
  require(images_together_ == 0 || bottoms[0][0] % images_together_ == 0, "stats_batch_size is ",
          images_together_, ", but the batch has ", bottoms[0][0],
          " images: stats_batch_size must divide that");
  // saved: mean and 1 / sqrt(variance + eps)
  const Shape channels{parts(bottoms[0]) * channels_of(bottoms[0])};
  return {{bottoms[0]}, {{channels, {}}, {channels, {}}}};
}

int64_t BatchNormBase::parts(const Shape& x) const {
  return images_together_ == 0 ? 1 : x[0] / images_together_;
}

Prepared BatchNormBase::prepare(Context& context, const Preparation& preparation) const {
  Shape x = preparation.bottoms[0];
  if (x.axes() > 0) x[0] /= parts(x);
  const BatchNormCase c = case_of(x, {preparation.bottom_orders[0], nullptr});
  Prepared prepared;
  prepared.workspace = batch_norm_workspace(context, c.view, c.over_ranks);
  if (!c.relu || !batch_norm_takes_packs(context, c, preparation.storage)) return prepared;
  prepared.top_edge.gradient_parts = 2;
  if (c.added && preparation.backward) {
    const auto bytes = static_cast<int64_t>(size_of(preparation.storage));
    prepared.saved = {{Shape{preparation.bottoms[0].count() * bytes / 16}, DType::u8}};
    prepared.reads = {true, false, true};
  }
  return prepared;
}

BatchNormCase BatchNormBase::case_of(const Shape& x, const Format& format) const {
  BatchNormCase c = settings_;
  c.view = ChannelView::of(x, format);
  c.added = fuses("Sum");
  c.relu = fuses("ReLU");
  c.slope = params<ReLUParameter>().negative_slope();
  return c;
}

BatchNormParameters BatchNormBase::blobs(const std::vector<Tensor>& parameters) const {
  // An index of -1 (absent) is beyond the last.
  const auto of = [&](int position) { return at(parameters, static_cast<size_t>(position)); };
  return {of(position_.mean), of(position_.variance), of(position_.factor), of(position_.scale),
          of(position_.shift)};
}

template <typename Kernel>
void BatchNormBase::run(const Forward& pass, const Kernel& kernel) const {
  const int64_t count = parts(pass.bottom[0].shape());
  for (int64_t i = 0; i < count; ++i) {
    const Tensor x = cut(pass.bottom[0], i, count);
    kernel(case_of(x.shape(), x.format()), blobs(pass.parameters), x,
           cut(at(pass.bottom, 1), i, count), cut(pass.top[0], i, count),
           cut_saved(pass.saved, i, count));
  }
}

void BatchNormBase::forward(Context& context, const Forward& pass) const {
  if (pass.top_edge.affine) {
    const Tensor& x = pass.bottom[0];
    return batch_norm_affine(context, case_of(x.shape(), x.format()), blobs(pass.parameters), x,
                             pass.bottom_edge(0).statistics, pass.top_edge.affine,
                             cut_saved(pass.saved, 0, 1), pass.workspace);
  }
  run(pass, [&](const BatchNormCase& c, const BatchNormParameters& parameters, const Tensor& x,
                const Tensor& added, const Tensor& y, const BatchNormSaved& saved) {
    batch_norm_forward(context, c, parameters, x, added, pass.bottom_edge(0).statistics, y, saved,
                       pass.workspace);
  });
}

void BatchNormBase::recompute(Context& context, const Forward& pass) const {
  run(pass, [&](const BatchNormCase& c, const BatchNormParameters& parameters, const Tensor& x,
                const Tensor& added, const Tensor& y, const BatchNormSaved& saved) {
    batch_norm_recompute(context, c, parameters, x, added, y, saved, pass.workspace);
  });
}

void BatchNormBase::parameter_gradients(const Backward& pass, bool further,
                                        BatchNormGradients& gradients) const {
  if (position_.scale >= 0) {
    gradients.d_scale = pass.parameter_diff[position_.scale];
    gradients.accumulate_scale = further || pass.accumulate[position_.scale];
  }
  if (position_.shift >= 0) {
    gradients.d_shift = pass.parameter_diff[position_.shift];
    gradients.accumulate_shift = further || pass.accumulate[position_.shift];
  }
}

void BatchNormBase::backward(Context& context, const Backward& pass) const {
  const int64_t count = parts(pass.top_diff[0].shape());
  for (int64_t i = 0; i < count; ++i) {
    BatchNormGradients gradients;
    gradients.dx = cut(pass.bottom_diff[0], i, count);
    gradients.d_added = cut(at(pass.bottom_diff, 1), i, count);
    parameter_gradients(pass, i > 0, gradients);
    const Tensor dy = cut(pass.top_diff[0], i, count);
    batch_norm_backward(context, case_of(dy.shape(), dy.format()), blobs(pass.parameters),
                        cut(pass.bottom[0], i, count), cut(pass.top[0], i, count), dy,
                        cut(at(pass.top_edge.gradient_parts, 0), i, count),
                        cut_saved(pass.saved, i, count), gradients, pass.workspace);
  }
}

}  // namespace crema
