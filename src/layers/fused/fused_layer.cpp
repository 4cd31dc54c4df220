#include "layers/fused/fused_layer.h"

#include <algorithm>

#include "kernels/pointwise/bias.h"
#include "proto/layer.pb.h"
#include "tensor/on.h"

namespace crema {

void FusedLayer::set_up_members(Context& context, const std::vector<Shape>& bottoms,
                                const std::vector<MemberSpec>& specs) {
  LayerParameter message = this->message();
  for (const MemberSpec& spec : specs) {
    message.set_type(spec.type);
    members_.push_back({make_layer(message, training(), folder()), spec.bottoms, 0, {}, 0, {}, {}});
  }
  for (size_t k = 0; k < members_.size(); ++k) add_in_order(k);
  for (size_t k : order_) members_[k].layer->setup(context, bottoms_of(k, bottoms));
  for (Member& member : members_) {
    member.first_parameter = parameters().size();
    for (const ParameterSpec& spec : member.layer->parameters())
      add_parameter(spec.shape, *spec.filler, spec.learned);
  }
}

void FusedLayer::add_in_order(size_t k) {
  if (std::find(order_.begin(), order_.end(), k) != order_.end()) return;
  for (const Source& source : members_[k].bottoms) {
    if (source.member >= 0) add_in_order(static_cast<size_t>(source.member));
  }
  order_.push_back(k);
}

std::vector<Shape> FusedLayer::bottoms_of(size_t k, const std::vector<Shape>& bottoms) const {
  std::vector<Shape> shapes;
  for (const Source& source : members_[k].bottoms) {
    shapes.push_back(source.member >= 0 ? top_of(static_cast<size_t>(source.member), bottoms)
                                        : bottoms[static_cast<size_t>(source.bottom)]);
  }
  return shapes;
}

Shape FusedLayer::top_of(size_t k, const std::vector<Shape>& bottoms) const {
  return members_[k].layer->infer(bottoms_of(k, bottoms)).tops[0];
}

Inference FusedLayer::infer(const std::vector<Shape>& bottoms) const {
  Inference all;
  for (size_t k = 0; k < members_.size(); ++k) {
    const Inference one = members_[k].layer->infer(bottoms_of(k, bottoms));
    all.saved.insert(all.saved.end(), one.saved.begin(), one.saved.end());
    if (k == last()) all.tops = one.tops;
  }
  return all;
}

Preparation FusedLayer::preparation_of(size_t k, const Preparation& preparation) const {
  const Member& member = members_[k];
  Preparation p = preparation;
  p.bottoms = bottoms_of(k, preparation.bottoms);
  p.bottom_orders.clear();
  p.bottom_channels.clear();
  p.bottom_needs_diff.clear();
  p.bottom_edge = p.top_edge = {};
  for (const Source& source : member.bottoms) {
    const auto bottom = static_cast<size_t>(std::max(source.bottom, 0));
    const bool inside = source.member >= 0;
    p.bottom_orders.push_back(inside ? members_[static_cast<size_t>(source.member)].format.order
                                     : preparation.bottom_orders[bottom]);
    p.bottom_channels.push_back(inside ? 0 : preparation.bottom_channels[bottom]);
    p.bottom_needs_diff.push_back(inside ? preparation.backward
                                         : preparation.bottom_needs_diff[bottom]);
  }
  if (k != last()) {
    p.tops = {member.top};
    p.top_orders = {member.format.order};
  }
  p.parameter_needs_diff = parameters_of(k, preparation.parameter_needs_diff);
  p.parameter_formats = parameters_of(k, preparation.parameter_formats);
  return p;
}

Prepared FusedLayer::prepare(Context& context, const Preparation& preparation) {
  std::optional<Prepared> prepared = prepare_kernels(context, preparation);
  chain_ = !prepared;
  return prepared ? std::move(*prepared) : prepare_chain(context, preparation);
}

void FusedLayer::forward(Context& context, const Forward& pass) {
  return chain_ ? forward_chain(context, pass) : forward_kernels(context, pass);
}

// The tops of the members before the last are saved already.
void FusedLayer::recompute(Context& context, const Forward& pass) {
  if (!chain_) return recompute_kernels(context, pass);
  members_[last()].layer->recompute(context, pass_of(last(), pass));
}

void FusedLayer::backward(Context& context, const Backward& pass) {
  return chain_ ? backward_chain(context, pass) : backward_kernels(context, pass);
}

Prepared FusedLayer::prepare_chain(Context& context, const Preparation& preparation) {
  bottom_edge_ = preparation.bottom_edge;
  Prepared all;
  all.parameter_formats.resize(parameters().size());
  all.half_parameters.assign(parameters().size(), false);
  size_t saved = 0;
  for (size_t k = 0; k < members_.size(); ++k) {
    Member& member = members_[k];
    const Inference inference = member.layer->infer(bottoms_of(k, preparation.bottoms));
    member.top = inference.tops[0];
    const bool last_axes = member.top.axes() >= 3;
    member.format = {last_axes ? preparation.bottom_orders[0] : Order::row_major, nullptr};
    member.saved.clear();
    for (size_t i = 0; i < inference.saved.size(); ++i) member.saved.push_back(saved++);
  }
  for (size_t k : order_) {
    Member& member = members_[k];
    const Prepared one = member.layer->prepare(context, preparation_of(k, preparation));
    all.workspace = std::max(all.workspace, one.workspace);
    all.adds_gradients = all.adds_gradients || one.adds_gradients;
    std::copy(one.parameter_formats.begin(), one.parameter_formats.end(),
              all.parameter_formats.begin() + static_cast<int64_t>(member.first_parameter));
    std::copy(one.half_parameters.begin(), one.half_parameters.end(),
              all.half_parameters.begin() + static_cast<int64_t>(member.first_parameter));
    for (const TensorSpec& spec : one.saved) {
      member.saved.push_back(saved++);
      all.saved.push_back(spec);
    }
    if (k == last()) continue;
    member.value = saved;
    saved += 2;
    all.saved.insert(all.saved.end(), 2, {member.top, preparation.storage});
  }
  all.reads = BackwardReads{true, true, false};
  return all;
}

Tensor FusedLayer::value_of(size_t k, const std::vector<Tensor>& saved) const {
  return saved[members_[k].value].reshaped(members_[k].top, members_[k].format);
}

Tensor FusedLayer::gradient_of(size_t k, const std::vector<Tensor>& saved) const {
  return saved[members_[k].value + 1].reshaped(members_[k].top, members_[k].format);
}

std::vector<Tensor> FusedLayer::saved_of(size_t k, const std::vector<Tensor>& saved) const {
  std::vector<Tensor> own;
  for (size_t at : members_[k].saved) own.push_back(saved[at]);
  return own;
}

Forward FusedLayer::pass_of(size_t k, const Forward& pass) const {
  const Member& member = members_[k];
  Forward part = pass;
  part.bottom.clear();
  part.bottom_edges.clear();
  for (const Source& source : member.bottoms) {
    const auto bottom = static_cast<size_t>(std::max(source.bottom, 0));
    const bool inside = source.member >= 0;
    part.bottom.push_back(inside ? value_of(static_cast<size_t>(source.member), pass.saved)
                                 : pass.bottom[bottom]);
    part.bottom_edges.push_back(inside ? EdgeTensors() : pass.bottom_edge(bottom));
  }
  if (k != last()) part.top = {value_of(k, pass.saved)};
  part.parameters = parameters_of(k, pass.parameters);
  part.saved = saved_of(k, pass.saved);
  return part;
}

void FusedLayer::forward_chain(Context& context, const Forward& pass) const {
  // The random numbers are those of the last member, whose name the fused layer does not have.
  members_[last()].layer->share_rng_of(*this);
  for (size_t k : order_) members_[k].layer->forward(context, pass_of(k, pass));
}

void FusedLayer::check(Context& context, const Forward& pass) const {
  if (chain_) {
    for (size_t k : order_) members_[k].layer->check(context, pass_of(k, pass));
  }
}

void FusedLayer::backward_chain(Context& context, const Backward& pass) const {
  members_[last()].layer->share_rng_of(*this);
  for (auto k = order_.rbegin(); k != order_.rend(); ++k) {
    const Member& member = members_[*k];
    Backward part = pass;
    part.bottom.clear();
    part.bottom_diff.clear();
    for (const Source& source : member.bottoms) {
      const auto from = static_cast<size_t>(std::max(source.member, 0)),
                 bottom = static_cast<size_t>(std::max(source.bottom, 0));
      const bool inside = source.member >= 0;
      part.bottom.push_back(inside ? value_of(from, pass.saved) : pass.bottom[bottom]);
      part.bottom_diff.push_back(inside ? gradient_of(from, pass.saved) : pass.bottom_diff[bottom]);
    }
    if (*k != last()) {
      part.top = {value_of(*k, pass.saved)};
      part.top_diff = {gradient_of(*k, pass.saved)};
    }
    part.parameters = parameters_of(*k, pass.parameters);
    part.parameter_diff = parameters_of(*k, pass.parameter_diff);
    part.accumulate = parameters_of(*k, pass.accumulate);
    part.begun = parameters_of(*k, pass.begun);
    part.saved = saved_of(*k, pass.saved);
    member.layer->backward(context, part);
  }
  const Tensor& dx = pass.bottom_diff[0];
  if (!bottom_edge_.relu || !dx) return;
  on_real(dx, [&]<typename T>() {
    relu_gradient(context, dx.count(), pass.bottom[0].data<T>(), {0, bottom_edge_.relu_factor},
                  dx.data<T>());
  });
}

}  // namespace crema
