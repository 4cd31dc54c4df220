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
    members_.push_back({make_layer(message, training(), folder()), spec.bottoms, 0});
  }
  for (size_t k = 0; k < members_.size(); ++k) add_in_order(k);
  // The random numbers are those of the last member, whose name the fused layer does not have.
  members_[last()].layer->share_rng_of(*this);
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

Preparation FusedLayer::preparation_of(size_t k, const Chain& chain,
                                       const Preparation& preparation) const {
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
    p.bottom_orders.push_back(inside ? chain.links[static_cast<size_t>(source.member)].format.order
                                     : preparation.bottom_orders[bottom]);
    p.bottom_channels.push_back(inside ? 0 : preparation.bottom_channels[bottom]);
    p.bottom_needs_diff.push_back(inside ? preparation.backward
                                         : preparation.bottom_needs_diff[bottom]);
  }
  if (k != last()) {
    p.tops = {chain.links[k].top};
    p.top_orders = {chain.links[k].format.order};
  }
  p.parameter_needs_diff = parameters_of(k, preparation.parameter_needs_diff);
  p.parameter_formats = parameters_of(k, preparation.parameter_formats);
  return p;
}

Prepared FusedLayer::prepare(Context& context, const Preparation& preparation) const {
  std::optional<Prepared> prepared = prepare_kernels(context, preparation);
  if (!prepared) return prepare_chain(context, preparation);
  if (!prepared->state) prepared->make_state<State>();
  return std::move(*prepared);
}

void FusedLayer::forward(Context& context, const Forward& pass) const {
  return state_of<State>(pass).chain ? forward_chain(context, pass)
                                     : forward_kernels(context, pass);
}

// The tops of the members before the last are saved already.
void FusedLayer::recompute(Context& context, const Forward& pass) const {
  if (!state_of<State>(pass).chain) return recompute_kernels(context, pass);
  members_[last()].layer->recompute(context, pass_of(last(), pass));
}

void FusedLayer::backward(Context& context, const Backward& pass) const {
  return state_of<State>(pass).chain ? backward_chain(context, pass)
                                     : backward_kernels(context, pass);
}

Prepared FusedLayer::prepare_chain(Context& context, const Preparation& preparation) const {
  Prepared all;
  Chain& chain = all.make_state<Chain>();
  chain.chain = true;
  chain.bottom_edge = preparation.bottom_edge;
  chain.links.resize(members_.size());
  all.parameter_formats.resize(parameters().size());
  all.half_parameters.assign(parameters().size(), false);
  size_t saved = 0;
  for (size_t k = 0; k < members_.size(); ++k) {
    Link& link = chain.links[k];
    const Inference inference = members_[k].layer->infer(bottoms_of(k, preparation.bottoms));
    link.top = inference.tops[0];
    const bool last_axes = link.top.axes() >= 3;
    link.format = {last_axes ? preparation.bottom_orders[0] : Order::row_major, nullptr};
    for (size_t i = 0; i < inference.saved.size(); ++i) link.saved.push_back(saved++);
  }
  for (size_t k : order_) {
    const Member& member = members_[k];
    Link& link = chain.links[k];
    Prepared one = member.layer->prepare(context, preparation_of(k, chain, preparation));
    link.state = std::move(one.state);
    all.workspace = std::max(all.workspace, one.workspace);
    all.adds_gradients = all.adds_gradients || one.adds_gradients;
    std::copy(one.parameter_formats.begin(), one.parameter_formats.end(),
              all.parameter_formats.begin() + static_cast<int64_t>(member.first_parameter));
    std::copy(one.half_parameters.begin(), one.half_parameters.end(),
              all.half_parameters.begin() + static_cast<int64_t>(member.first_parameter));
    for (const TensorSpec& spec : one.saved) {
      link.saved.push_back(saved++);
      all.saved.push_back(spec);
    }
    if (k == last()) continue;
    link.value = saved;
    saved += 2;
    all.saved.insert(all.saved.end(), 2, {link.top, preparation.storage});
  }
  all.reads = BackwardReads{true, true, false};
  return all;
}

Tensor FusedLayer::Link::value_in(const std::vector<Tensor>& all) const {
  return all[value].reshaped(top, format);
}

Tensor FusedLayer::Link::gradient_in(const std::vector<Tensor>& all) const {
  return all[value + 1].reshaped(top, format);
}

std::vector<Tensor> FusedLayer::Link::saved_in(const std::vector<Tensor>& all) const {
  std::vector<Tensor> own;
  for (size_t at : saved) own.push_back(all[at]);
  return own;
}

Forward FusedLayer::pass_of(size_t k, const Forward& pass) const {
  const Member& member = members_[k];
  const std::vector<Link>& links = state_of<Chain>(pass).links;
  Forward part = pass;
  part.bottom.clear();
  part.bottom_edges.clear();
  for (const Source& source : member.bottoms) {
    const auto bottom = static_cast<size_t>(std::max(source.bottom, 0));
    const bool inside = source.member >= 0;
    part.bottom.push_back(inside ? links[static_cast<size_t>(source.member)].value_in(pass.saved)
                                 : pass.bottom[bottom]);
    part.bottom_edges.push_back(inside ? EdgeTensors() : pass.bottom_edge(bottom));
  }
  if (k != last()) part.top = {links[k].value_in(pass.saved)};
  part.parameters = parameters_of(k, pass.parameters);
  part.saved = links[k].saved_in(pass.saved);
  part.state = links[k].state.get();
  return part;
}

void FusedLayer::forward_chain(Context& context, const Forward& pass) const {
  for (size_t k : order_) members_[k].layer->forward(context, pass_of(k, pass));
}

void FusedLayer::check(Context& context, const Forward& pass) const {
  if (!state_of<State>(pass).chain) return check_kernels(context, pass);
  for (size_t k : order_) members_[k].layer->check(context, pass_of(k, pass));
}

void FusedLayer::backward_chain(Context& context, const Backward& pass) const {
  const Chain& chain = state_of<Chain>(pass);
  for (auto k = order_.rbegin(); k != order_.rend(); ++k) {
    const Member& member = members_[*k];
    const Link& link = chain.links[*k];
    Backward part = pass;
    part.state = link.state.get();
    part.bottom.clear();
    part.bottom_diff.clear();
    for (const Source& source : member.bottoms) {
      const auto from = static_cast<size_t>(std::max(source.member, 0)),
                 bottom = static_cast<size_t>(std::max(source.bottom, 0));
      const bool inside = source.member >= 0;
      const Link& source_link = chain.links[from];
      part.bottom.push_back(inside ? source_link.value_in(pass.saved) : pass.bottom[bottom]);
      part.bottom_diff.push_back(inside ? source_link.gradient_in(pass.saved)
                                        : pass.bottom_diff[bottom]);
    }
    if (*k != last()) {
      part.top = {link.value_in(pass.saved)};
      part.top_diff = {link.gradient_in(pass.saved)};
    }
    part.parameters = parameters_of(*k, pass.parameters);
    part.parameter_diff = parameters_of(*k, pass.parameter_diff);
    part.accumulate = parameters_of(*k, pass.accumulate);
    part.begun = parameters_of(*k, pass.begun);
    part.saved = link.saved_in(pass.saved);
    member.layer->backward(context, part);
  }
  const Tensor& dx = pass.bottom_diff[0];
  if (!chain.bottom_edge.relu || !dx) return;
  on_real(dx, [&]<typename T>() {
    relu_gradient(context, dx.count(), pass.bottom[0].data<T>(), {0, chain.bottom_edge.relu_factor},
                  dx.data<T>());
  });
}

}  // namespace crema
