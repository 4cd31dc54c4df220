// FusedLayer: base of the layers that the fuse pass makes of several. It keeps the members, knows
// which parameters and saved tensors belong to which, and runs them one after the other if the
// fused kernels do not support a case, as on a CPU; tests compare the two.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "layers/layer.h"

namespace crema {

class FusedLayer : public Layer {
 public:
  // The members' saved tensors, concatenated, and the tops of the last one to run.
  Inference infer(const std::vector<Shape>& bottoms) const override;
  Prepared prepare(Context& context, const Preparation& preparation) const override;
  void forward(Context& context, const Forward& pass) const override;
  void recompute(Context& context, const Forward& pass) const override;
  void backward(Context& context, const Backward& pass) const override;
  void check(Context& context, const Forward& pass) const override;

 protected:
  struct State : LayerState {
    bool chain = false;  // the members run instead of the kernels
  };
  // A bottom of a member: a bottom of the fused layer, or the top of another member.
  struct Source {
    int bottom = -1, member = -1;
  };
  struct MemberSpec {
    std::string type;
    std::vector<Source> bottoms;
  };
  // --- the fused kernels ---
  // None: the kernels do not support the case, and the members run. Its state, if any, derives from
  // State.
  virtual std::optional<Prepared> prepare_kernels(Context& context,
                                                  const Preparation& preparation) const = 0;
  virtual void forward_kernels(Context& context, const Forward& pass) const = 0;
  virtual void backward_kernels(Context& context, const Backward& pass) const = 0;
  virtual void recompute_kernels(Context&, const Forward&) const {}
  virtual void check_kernels(Context&, const Forward&) const {}

  // --- the members ---
  // To be called by setup(): makes the members, which read their parameters from the fused layer's
  // message, and declares their parameters in this order.
  void set_up_members(Context& context, const std::vector<Shape>& bottoms,
                      const std::vector<MemberSpec>& specs);

  const Layer& member(size_t k) const { return *members_[k].layer; }
  // The shapes of member k's bottoms, and of its top.
  std::vector<Shape> bottoms_of(size_t k, const std::vector<Shape>& bottoms) const;
  Shape top_of(size_t k, const std::vector<Shape>& bottoms) const;
  // Member k's entries of a list with one entry per parameter, and its part of infer()'s saved
  // tensors.
  template <typename T>
  std::vector<T> parameters_of(size_t k, const std::vector<T>& list) const {
    if (list.empty()) return {};
    const auto begin = list.begin() + static_cast<int64_t>(members_[k].first_parameter);
    return {begin, begin + static_cast<int64_t>(members_[k].layer->parameters().size())};
  }

 private:
  struct Member {
    std::unique_ptr<Layer> layer;
    std::vector<Source> bottoms;
    size_t first_parameter = 0;
  };
  // What a member has in a chain: its state; indices of its saved tensors, of its top, and, at
  // value + 1, of the top's gradient (not for the last member).
  struct Link {
    std::unique_ptr<LayerState> state;
    std::vector<size_t> saved;
    size_t value = 0;
    Shape top;
    Format format;
    // From the fused layer's saved tensors.
    Tensor value_in(const std::vector<Tensor>& all) const;
    Tensor gradient_in(const std::vector<Tensor>& all) const;
    std::vector<Tensor> saved_in(const std::vector<Tensor>& all) const;
  };
  struct Chain : State {
    std::vector<Link> links;  // one per member
    Edge bottom_edge;
  };
  // The blobs between members are kept in saved tensors between the passes.
  Prepared prepare_chain(Context& context, const Preparation& preparation) const;
  void forward_chain(Context& context, const Forward& pass) const;
  void backward_chain(Context& context, const Backward& pass) const;
  size_t last() const { return order_.back(); }
  void add_in_order(size_t k);
  Preparation preparation_of(size_t k, const Chain& chain, const Preparation& preparation) const;
  Forward pass_of(size_t k, const Forward& pass) const;

  std::vector<Member> members_;
  std::vector<size_t> order_;  // the order in which they run
};

}  // namespace crema
