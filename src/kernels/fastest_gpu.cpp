// For each call of a convolution or a fully connected layer the fastest on this card of a library's
// kernel; our own product that gathers its operands, which pads no channels, writes float32
// gradients and takes ReLU and bias along, so that small kernels are often ours; and of the
// implementations that serve few cases but serve those well.
#include <algorithm>
#include <functional>
#include <utility>

#include "device/memory.h"
#include "kernels/bias.h"
#include "kernels/conv_bodies.h"
#include "kernels/dense.h"
#include "kernels/gather_product.h"
#include "tensor/on.h"

namespace crema {
namespace {

// Not worth timing: with channels enough for its tensor-core kernels, libraries win large products.
constexpr double kLargestOwn = 40e9;
constexpr double kSmall = 1e9;  // ours where nothing is timed

double operations(const ConvCase& c) {
  return 2.0 * static_cast<double>(c.y.count()) * static_cast<double>(c.w.count(1));
}

// One of the ways is for these, and our own product has none.
bool depthwise(const ConvCase& c) {
  return is_half(c.dtype) && c.order == Order::channels_last && c.x.axes() == 4 && c.groups > 1 &&
         c.groups == c.x[1] && c.groups == c.y[1];
}

// Backward takes the gradient through the ReLU.
bool masks(const ConvCase& c) { return c.relu && !c.relu_taken; }

// One of those to choose from, with what it noted in context.served. The first letters of the names
// differ.
struct Way {
  const char* name;
  std::unique_ptr<WeightedSum> sum;
  std::vector<std::string> served;
};

class FastestSum final : public WeightedSum {
 public:
  // ways: at least the library's, as the first; the last is taken where nothing is timed.
  FastestSum(Context& context, std::vector<Way> ways, const ConvCase& c)
      : ways_(std::move(ways)),
        c_(c),
        gathers_(!depthwise(c)),
        format_(ways_[0].sum->weights_format()),
        forward_(context, c, GatherRole::forward, false),
        data_(context, c, GatherRole::data, masks(c)),
        weights_(context, c, GatherRole::weights, masks(c)) {}

  // False: the library has all calls.
  bool choose(Context& context) {
    Tuning& tuning = context.gpu().tuning;
    std::string key = cat("fastest ", forward_.key(), c_.bias ? " bias" : "",
                          c_.relu ? " relu" : "", c_.relu_taken ? " taken" : "",
                          c_.dropout ? " dropout" : "", c_.backward_data ? " data" : "",
                          c_.backward_weights ? " weights" : "", context.repeatable ? "" : " adds");
    for (size_t i = 1; i < ways_.size(); ++i) key += cat(" or ", ways_[i].name);
    const std::optional<std::string> known = tuning.find(key);
    if (known && is_answer(*known)) {
      answer_ = *known;
    } else if (tuning.candidates() <= 1 || free_memory(context) < Trial::bytes(*this)) {
      answer_ = untimed();
    } else {
      answer_ = Trial(context, *this).answer();
      tuning.remember(key, answer_);
    }
    // Tuned before: what the products remember, or what they take without timing.
    if (c_.forward && own(kForward)) forward_.tune(context, {});
    if (c_.backward_data && own(kData)) data_.tune(context, {});
    if (c_.backward_weights && own(kWeights)) weights_.tune(context, {});
    note_served(context);
    return answer_ != kLibraryAlone;
  }

  std::unique_ptr<WeightedSum> library() { return std::move(ways_[0].sum); }

  Format weights_format() const override { return format_; }
  size_t workspace() const override {
    size_t bytes = 0;
    for (const Way& way : ways_) {
      if (some(*way.name)) bytes = std::max(bytes, way.sum->workspace());
    }
    return bytes;
  }
  bool takes_relu() const override {
    return gathers_ && (c_.backward_data || c_.backward_weights) &&
           (!c_.backward_data || along(kData)) && (!c_.backward_weights || along(kWeights));
  }

  bool adds_weights() const override { return own(kWeights) && weights_.adds(); }

  void forward(Context& context, const Tensor& x, const Tensor& w, const Tensor& b, const Tensor& y,
               const Tensor& workspace) override {
    if (!own(kForward)) return with(kForward).forward(context, x, w, b, y, workspace);
    run_forward(context, x, w, b, y, {});
  }
  void forward_dropping(Context& context, const Tensor& x, const Tensor& w, const Tensor& b,
                        const Tensor& y, const DropoutMask& mask,
                        const Tensor& workspace) override {
    if (own(kForward)) return run_forward(context, x, w, b, y, mask);
    WeightedSum::forward_dropping(context, x, w, b, y, mask, workspace);
  }

  void backward_data(Context& context, const OutputGradient& g, const Tensor& w, const Tensor& dx,
                     const Tensor& workspace) override {
    if (!own(kData)) return with(kData).backward_data(context, g, w, dx, workspace);
    GatherTensors t = gradient(g);
    t.w = w.raw(), t.out = dx.raw();
    data_.run(context, t);
  }

  void backward_weights(Context& context, const Tensor& x, const OutputGradient& g,
                        const Tensor& dw, const Tensor& db, bool accumulate_w, bool accumulate_b,
                        const Tensor& workspace) override {
    if (!own(kWeights)) {
      return with(kWeights).backward_weights(context, x, g, dw, db, accumulate_w, accumulate_b,
                                             workspace);
    }
    GatherTensors t = gradient(g);
    t.x = x.raw(), t.out = dw.raw(), t.db = db.data<float>();
    t.accumulate_w = accumulate_w, t.accumulate_b = accumulate_b;
    weights_.run(context, t);
  }

  bool joins_gradients() const override { return answer_[kBoth] != kApart; }
  void backward_both(Context& context, const Tensor& x, const OutputGradient& g, const Tensor& w,
                     const Tensor& dx, const Tensor& dw, const Tensor& db, bool accumulate_w,
                     bool accumulate_b, const Tensor& workspace) override {
    if (joins_gradients()) {
      with(kBoth).backward_both(context, x, g, w, dx, dw, db, accumulate_w, accumulate_b,
                                workspace);
    } else {
      WeightedSum::backward_both(context, x, g, w, dx, dw, db, accumulate_w, accumulate_b,
                                 workspace);
    }
  }

 private:
  enum Call { kForward, kData, kWeights, kBoth };
  static constexpr char kOwn = 'o', kApart = '-';
  static constexpr const char* kLibraryAlone = "lll-";

  std::string untimed() const {
    const Way &first = ways_[0], &last = ways_.back();
    if (!gathers_) return {'l', 'l', 'l', first.sum->joins_gradients() ? *first.name : kApart};
    return std::string(3, operations(c_) < kSmall ? kOwn : *last.name) + kApart;
  }

  void run_forward(Context& context, const Tensor& x, const Tensor& w, const Tensor& b,
                   const Tensor& y, const DropoutMask& mask) const {
    forward_.run(context,
                 {.x = x.raw(), .w = w.raw(), .b = b.raw(), .out = y.raw(), .dropout = mask});
  }

  static GatherTensors gradient(const OutputGradient& g) {
    return {.dy = g.dy.raw(), .y = g.y ? g.y->raw() : nullptr, .dropout = {{}, 0, g.factor}};
  }

  bool own(Call call) const { return answer_[call] == kOwn; }
  // Takes ReLU and bias along.
  bool along(Call call) const { return own(call) || with(call).takes_relu(); }
  WeightedSum& with(Call call) const {
    for (const Way& way : ways_) {
      if (*way.name == answer_[call]) return *way.sum;
    }
    return *ways_[0].sum;
  }
  // Whether some call that will be made has this letter.
  bool some(char letter) const {
    return (c_.forward && answer_[kForward] == letter) ||
           (c_.backward_data && answer_[kData] == letter) ||
           (c_.backward_weights && answer_[kWeights] == letter) || answer_[kBoth] == letter;
  }
  bool is_answer(const std::string& text) const {
    const auto has = [this](char letter, bool joined) {
      return std::any_of(ways_.begin(), ways_.end(), [&](const Way& way) {
        return *way.name == letter && (!joined || way.sum->joins_gradients());
      });
    };
    return text.size() == 4 && (text[kBoth] == kApart || has(text[kBoth], true)) &&
           std::all_of(text.begin(), text.begin() + kBoth, [&](char letter) {
             return (letter == kOwn && gathers_) || has(letter, false);
           });
  }
  size_t most_workspace() const {
    size_t bytes = 0;
    for (const Way& way : ways_) bytes = std::max(bytes, way.sum->workspace());
    return bytes;
  }
  // What those that have calls noted, then "gather forward", "blocks weights".
  void note_served(Context& context) const {
    const auto note_call = [&](bool made, Call call, const char* what) {
      if (made && own(call)) context.served.push_back(cat("gather ", what));
      for (size_t i = 1; made && i < ways_.size(); ++i) {
        if (*ways_[i].name == answer_[call])
          context.served.push_back(cat(ways_[i].name, " ", what));
      }
    };
    for (const Way& way : ways_) {
      if (!some(*way.name)) continue;
      context.served.insert(context.served.end(), way.served.begin(), way.served.end());
    }
    note_call(c_.forward, kForward, "forward");
    note_call(c_.backward_data && !joins_gradients(), kData, "data");
    note_call(c_.backward_weights && !joins_gradients(), kWeights, "weights");
    note_call(joins_gradients(), kBoth, "both gradients");
  }

  // Tensors of the case, to time calls on.
  class Trial {
   public:
    Trial(Context& context, FastestSum& sum)
        : context_(context),
          sum_(sum),
          x_(context, sum.c_.x, sum.c_.dtype, {Order::channels_last, nullptr, sum.c_.x_channels}),
          w_(context, sum.c_.w, sum.c_.dtype, sum.format_),
          b_(context, Shape{sum.c_.w[0]}, sum.c_.dtype),
          y_(context, sum.c_.y, sum.c_.dtype, Format::channels_last()),
          dy_(context, sum.c_.y, sum.c_.dtype, Format::channels_last()),
          dw_(context, sum.c_.w, DType::f32, sum.format_),
          db_(context, Shape{sum.c_.w[0]}, DType::f32),
          workspace_(context, Shape{static_cast<int64_t>(sum.most_workspace())}, DType::u8) {
      // Small numbers that are not zero: see Tuning::scratch.
      for (const Tensor* tensor : {&x_, &w_, &b_, &y_, &dy_}) {
        check_cuda(cudaMemsetAsync(tensor->raw(), 0x23, tensor->bytes(), context.gpu().stream),
                   "filling memory");
      }
    }

    static size_t bytes(const FastestSum& sum) {
      const ConvCase& c = sum.c_;
      const auto count = static_cast<size_t>(c.x.count() / c.x[1] * std::max(c.x[1], c.x_channels) +
                                             2 * c.y.count() + 4 * c.w.count());
      return 2 * count + sum.most_workspace() + (size_t{16} << 20);
    }

    std::string answer() {
      const ConvCase& c = sum_.c_;
      std::string answer = kLibraryAlone, along = kLibraryAlone;
      double best[4] = {1e30, 1e30, 1e30, 1e30}, best_along[4] = {1e30, 1e30, 1e30, 1e30};
      const auto offer = [&](Call call, char letter, double seconds, bool takes_relu) {
        if (seconds < best[call]) best[call] = seconds, answer[call] = letter;
        if (takes_relu && seconds < best_along[call])
          best_along[call] = seconds, along[call] = letter;
      };
      const double dropping = c.dropout ? time([&] { dropout(context_, kHalf, y_, y_); }) : 0;
      const auto offer_all = [&](char letter, WeightedSum& sum) {
        const bool takes = sum.takes_relu();
        if (c.forward) offer(kForward, letter, forward_of(sum) + dropping, false);
        if (c.backward_data) offer(kData, letter, data_of(sum), takes);
        if (c.backward_weights) offer(kWeights, letter, weights_of(sum), takes);
        if (c.backward_data && c.backward_weights && sum.joins_gradients())
          offer(kBoth, letter, both_of(sum), false);
      };
      for (const Way& way : sum_.ways_) offer_all(*way.name, *way.sum);
      if (best[kBoth] >= best[kData] + best[kWeights]) answer[kBoth] = kApart;
      if (!sum_.gathers_) return answer;
      if (c.forward) offer(kForward, kOwn, own_forward(), false);
      if (!c.backward_data && !c.backward_weights) return answer;
      if (c.backward_data) offer(kData, kOwn, own_data_gradient(), true);
      if (c.backward_weights) offer(kWeights, kOwn, own_weights_gradient(), true);
      // Gradients that take ReLU and bias along spare their own pass, when there are no others.
      double apart = c.bias || masks(c) ? time([&] { separate(); }) : 0, together = 0;
      if (c.backward_data) apart += best[kData], together += best_along[kData];
      if (c.backward_weights) apart += best[kWeights], together += best_along[kWeights];
      if (together < apart) answer[kData] = along[kData], answer[kWeights] = along[kWeights];
      return answer;
    }

   private:
    static constexpr DropoutMask kHalf{{}, 1u << 31, 2};
    double time(const std::function<void()>& work) {
      return context_.gpu().tuning.time_repeated(context_, work);
    }
    double forward_of(WeightedSum& sum) {
      return time([&] { sum.forward(context_, x_, w_, bias(), y_, workspace_); });
    }
    double data_of(WeightedSum& sum) {
      return time([&] { sum.backward_data(context_, dy_, w_, x_, workspace_); });
    }
    double weights_of(WeightedSum& sum) {
      const bool along = sum_.gathers_ && sum.takes_relu();
      const OutputGradient g = along && sign() ? OutputGradient(dy_, y_) : OutputGradient(dy_);
      const Tensor db = along && sum_.c_.bias ? db_ : Tensor();
      return time(
          [&] { sum.backward_weights(context_, x_, g, dw_, db, false, false, workspace_); });
    }
    double both_of(WeightedSum& sum) {
      const Tensor& dx = sum_.c_.y == sum_.c_.x ? y_ : x_;
      return time([&] {
        sum.backward_both(context_, x_, dy_, w_, dx, dw_, Tensor(), false, false, workspace_);
      });
    }
    double tuned(GatherProduct& product, const GatherTensors& t) {
      product.tune(context_, t);
      return time([&] { product.run(context_, t); });
    }
    double own_forward() {
      GatherTensors t{.x = x_.raw(), .w = w_.raw(), .b = bias().raw(), .out = y_.raw()};
      if (sum_.c_.dropout) t.dropout = kHalf;
      return tuned(sum_.forward_, t);
    }
    double own_data_gradient() {
      return tuned(sum_.data_, {.w = w_.raw(), .dy = dy_.raw(), .y = sign(), .out = x_.raw()});
    }
    double own_weights_gradient() {
      GatherTensors t{.x = x_.raw(), .dy = dy_.raw(), .y = sign(), .out = dw_.raw()};
      if (sum_.c_.bias) t.db = db_.data<float>();
      t.accumulate_w = t.accumulate_b = !context_.repeatable;
      return tuned(sum_.weights_, t);
    }
    void separate() {
      const ConvCase& c = sum_.c_;
      on_real(dy_, [&]<typename T>() {
        relu_and_bias_gradient(context_, c.y.count() / c.y[1], c.y[1], 1,
                               masks(c) ? y_.data<T>() : nullptr, {}, dy_.data<T>(),
                               c.bias ? db_.data<Compute<T>>() : nullptr, false);
      });
    }
    Tensor bias() const { return sum_.c_.bias ? b_ : Tensor(); }
    const void* sign() const { return masks(sum_.c_) ? y_.raw() : nullptr; }

    Context& context_;
    FastestSum& sum_;
    Tensor x_, w_, b_, y_, dy_, dw_, db_, workspace_;
  };

  std::vector<Way> ways_;
  ConvCase c_;
  bool gathers_;  // our own product serves the case
  Format format_;
  GatherProduct forward_, data_, weights_;
  // For each call who has it: the first letter of a way's name, or kOwn; of both gradients kApart
  // when two calls are faster.
  std::string answer_ = kLibraryAlone;
};

using Ways = std::vector<std::pair<const char*, std::function<std::unique_ptr<WeightedSum>()>>>;

// The winner, or the library's kernel alone. ways: the library's first; some may make nothing.
std::unique_ptr<WeightedSum> fastest(Context& context, const ConvCase& c, std::string& reason,
                                     const Ways& ways) {
  if (context.device() != Device::gpu) {
    reason = "it needs a GPU";
    return nullptr;
  }
  if (!depthwise(c) && !GatherProduct::serves(c, reason)) return nullptr;
  if (!has_tensor_cores(context, reason)) return nullptr;
  if (operations(c) > kLargestOwn && c.x_channels == 0 && c.groups == 1) {
    reason = "a large product of many channels";
    return nullptr;
  }
  std::vector<Way> made;
  for (const auto& [name, make] : ways) {
    const auto noted = static_cast<int64_t>(context.served.size());
    std::unique_ptr<WeightedSum> sum = make();
    Way way{name, std::move(sum), {context.served.begin() + noted, context.served.end()}};
    context.served.resize(static_cast<size_t>(noted));
    if (way.sum) made.push_back(std::move(way));
    if (made.empty()) return nullptr;
  }
  auto sum = std::make_unique<FastestSum>(context, std::move(made), c);
  if (!sum->choose(context)) return sum->library();
  return sum;
}

}  // namespace

std::unique_ptr<WeightedSum> make_conv_fastest(Context& context, const ConvCase& c,
                                               std::string& reason) {
  std::string refusal;
  const Ways ours = {{"depthwise", [&] { return make_conv_depthwise(context, c, refusal); }},
                     {"tensor", [&] { return make_conv_tensor(context, c, refusal); }}};
  // cuDNN would compile candidates for these, for seconds, and was slower where it was measured.
  if (depthwise(c) && ours[0].second()) return fastest(context, c, reason, ours);
  return fastest(context, c, reason,
                 {{"library", [&] { return make_conv_cudnn(context, c, reason); }},
                  {"groups", [&] { return make_conv_groups(context, c, refusal); }},
                  {"blocks", [&] { return make_conv_blocks(context, c, refusal); }},
                  {"rows", [&] { return make_conv_rows(context, c, refusal); }},
                  {"pixels", [&] { return make_conv_pixels(context, c, refusal); }}});
}

std::unique_ptr<WeightedSum> make_dense_fastest(Context& context, const DenseCase& c,
                                                std::string& reason) {
  if (c.transposed) {
    reason = "transposed weights";
    return nullptr;
  }
  return fastest(context, conv_case_of(c), reason,
                 {{"library", [&] { return make_dense_cublas(context, c, reason); }}});
}

}  // namespace crema
