// For each call of a convolution or a fully connected layer the fastest on this card of a library's
// kernel; our own product that gathers its operands, which pads no channels, writes float32
// gradients and takes ReLU and bias along, so that small kernels are often ours; and of the
// implementations that serve few cases but serve those well.
#include <algorithm>
#include <functional>
#include <utility>

#include "device/memory.h"
#include "kernels/conv/benchmark.h"
#include "kernels/conv/conv_bodies.h"
#include "kernels/conv/dense.h"

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
    std::string key =
        cat("fastest ", forward_.key(), c_.bias ? " bias" : "", c_.relu ? " relu" : "",
            c_.relu_taken ? " taken" : "", c_.dropout ? " dropout" : "", c_.sums ? " sums" : "",
            c_.backward_data ? " data" : "", c_.backward_weights ? " weights" : "",
            context.repeatable ? "" : " adds");
    for (size_t i = 1; i < ways_.size(); ++i) key += cat(" or ", ways_[i].name);
    const std::optional<std::string> known = tuning.find(key);
    if (known && is_answer(*known)) {
      answer_ = *known;
    } else if (tuning.candidates() <= 1 ||
               free_memory(context) < Trial::bytes(c_, most_workspace())) {
      answer_ = untimed();
    } else {
      answer_ = measured(context);
      const std::optional<std::string> others = tuning.remember(key, answer_);
      if (others && is_answer(*others)) answer_ = *others;
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

  bool gives_sums() const override {
    return c_.forward && !own(kForward) && with(kForward).gives_sums();
  }
  bool takes_affine() const override { return gives_sums() && with(kForward).takes_affine(); }
  bool gradient_takes_affine() const override {
    return takes_affine() && !joins_gradients() && !own(kWeights) &&
           with(kWeights).gradient_takes_affine();
  }
  void backward_weights_affine(Context& context, const Tensor& x, const Tensor& affine,
                               const Tensor& dy, const Tensor& dw, bool accumulate,
                               const Tensor& workspace) override {
    with(kWeights).backward_weights_affine(context, x, affine, dy, dw, accumulate, workspace);
  }
  void forward_summing(Context& context, const Tensor& x, const Tensor& affine, const Tensor& w,
                       const Tensor& y, const Tensor& sums, const Tensor& workspace) override {
    with(kForward).forward_summing(context, x, affine, w, y, sums, workspace);
  }

  bool adds_weights() const override {
    if (joins_gradients()) return with(kBoth).adds_weights();
    return own(kWeights) ? weights_.adds() : with(kWeights).adds_weights();
  }

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

  // Times all ways on tensors of the case.
  std::string measured(Context& context) {
    Trial trial(context, c_, format_, most_workspace());
    std::string answer = kLibraryAlone, along = kLibraryAlone;
    double best[4] = {1e30, 1e30, 1e30, 1e30}, best_along[4] = {1e30, 1e30, 1e30, 1e30};
    const auto offer = [&](Call call, char letter, double time, bool takes_relu) {
      if (time < best[call]) best[call] = time, answer[call] = letter;
      if (takes_relu && time < best_along[call]) best_along[call] = time, along[call] = letter;
    };
    const double dropping = c_.dropout ? trial.dropping() : 0;
    const double summing = c_.sums ? trial.summing() : 0;
    for (const Way& way : ways_) {
      WeightedSum& sum = *way.sum;
      const bool takes = sum.takes_relu(), masked = gathers_ && takes;
      if (c_.forward) {
        const double more = dropping + (sum.gives_sums() ? 0 : summing);
        offer(kForward, *way.name, trial.forward(sum) + more, false);
      }
      if (c_.backward_data) offer(kData, *way.name, trial.data(sum), takes);
      if (c_.backward_weights) offer(kWeights, *way.name, trial.weights(sum, masked), takes);
      if (c_.backward_data && c_.backward_weights && sum.joins_gradients())
        offer(kBoth, *way.name, trial.both(sum), false);
    }
    if (best[kBoth] >= best[kData] + best[kWeights]) answer[kBoth] = kApart;
    if (!gathers_) return answer;
    const auto tuned = [&](GatherProduct& product, const GatherTensors& tensors) {
      product.tune(context, tensors);
      return trial.time([&] { product.run(context, tensors); });
    };
    if (c_.forward) offer(kForward, kOwn, tuned(forward_, trial.gather_forward()) + summing, false);
    if (!c_.backward_data && !c_.backward_weights) return answer;
    if (c_.backward_data) offer(kData, kOwn, tuned(data_, trial.gather_data()), true);
    if (c_.backward_weights) offer(kWeights, kOwn, tuned(weights_, trial.gather_weights()), true);
    // Gradients that take ReLU and bias along spare their own pass, when there are no others.
    double apart = c_.bias || masks(c_) ? trial.separate() : 0, together = 0;
    if (c_.backward_data) apart += best[kData], together += best_along[kData];
    if (c_.backward_weights) apart += best[kWeights], together += best_along[kWeights];
    if (together < apart) answer[kData] = along[kData], answer[kWeights] = along[kWeights];
    return answer;
  }

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
