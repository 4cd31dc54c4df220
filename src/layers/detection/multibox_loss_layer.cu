// MultiBoxLoss: the loss of SSD, over priors matched to objects and background priors.
//   loss = 1 / D * (loc_weight * sum of f(x - code) + sum of c(scores, label))
//   f: SMOOTH_L1 z^2 / 2 where |z| < 1, else |z| - 1/2; L2 z^2 / 2; over the matched priors
//   c: SOFTMAX -log(softmax(scores)[label]), LOGISTIC the cross-entropy of each class by itself
//   Matching: each object gets the prior that overlaps it most, with match_type PER_PREDICTION also
//   all that overlap it by overlap_threshold. The code of an object relative to its prior by
//   code_type: CORNER, CENTER_SIZE, CORNER_SIZE (kernels/detection/boxes.h).
//   mining_type: the priors whose classification loss counts. NONE: all; MAX_NEGATIVE: the matched
//   ones and neg_pos_ratio times as many with the largest loss among those that overlap no object
//   by neg_overlap; HARD_EXAMPLE: the sample_size priors of an image with the largest losses, after
//   NMS by nms_param. An image without objects counts with NONE only. D, by loss_param's
//   normalization: VALID (the default) matched priors, FULL all, BATCH_SIZE images, NONE 1; at
//   least 1.
// MultiBoxFocalLoss: the same with alpha * (1 - p)^gamma * -log(p) of focal_loss_param for SOFTMAX.
// Shapes: coordinates (N, P * 4), or (N, P * classes * 4) with share_location: false; scores (N, P
// * classes); priors (1, 2, P * 4) of PriorBox; objects (1, 1, G, 8) of AnnotatedData: image,
// label, instance, x1, y1, x2, y2, difficult; rows with image -1 are unused. The loss is a scalar.
// If propagate_down of a bottom is false, its part of the loss is omitted.
// Parameters: none.
// Gradient: that of both sums, times the loss weight; none for priors and objects. The matching is
// treated as constant.
#include "device/aligned.h"
#include "kernels/pointwise/pointwise.h"
#include "kernels/reduce/reduce.h"
#include "layers/detection/multibox_assignment.h"
#include "layers/detection/multibox_device.h"
#include "layers/detection/multibox_terms.h"
#include "layers/layer.h"
#include "layers/loss/loss_normalizer.h"
#include "proto/layer.pb.h"
#include "proto/params/forks_detection.pb.h"
#include "tensor/on.h"
#include "tensor/part.h"

namespace crema {
namespace {

template <typename T>
struct PriorLoss {
  ClassTerm<T> scores;
  CoordinateTerm<T> coordinates;
  T score_weight, coordinate_weight;
  T* y;
  bool known = false;  // y has the class losses, computed for mining
  CREMA_HD void operator()(int64_t prior) const {
    T sum = scores.labels[prior] == kUncounted ? T(0)
            : known                            ? score_weight * y[prior]
                                               : score_weight * scores.loss(prior);
    const int64_t each = coordinates.coordinate_classes;
    for (int64_t k = 0; k < each; ++k)
      sum += coordinate_weight * coordinates.loss(prior * each + k);
    y[prior] = sum;
  }
};

template <typename T>
struct PriorSum {
  const T* losses;
  template <typename>
  CREMA_HD T operator()(int64_t, int64_t, int64_t i) const {
    return losses[i];
  }
};

// Divides the loss by `given` or the number of matched priors, at least 1.
template <typename T>
struct DivideByMatched {
  const int32_t* matched;  // per image
  int64_t images;
  double given;  // 0: none
  T *divisor, *loss;
  CREMA_HD void operator()(int64_t) const {
    int64_t all = 0;
    for (int64_t n = 0; n < images; ++n) all += matched[n] > 0 ? matched[n] : 0;
    divisor[0] = static_cast<T>(given > 0 ? given : static_cast<double>(all > 1 ? all : 1));
    divisor[1] = static_cast<T>(all);
    *loss /= divisor[0];
  }
};

template <typename T>
struct ClassGradient {
  ClassTerm<T> term;
  const T *weight, *divisor;
  T* dx;
  CREMA_HD void operator()(int64_t prior, int64_t k) const {
    dx[prior * term.classes + k] = *weight / *divisor * term.gradient(prior, k);
  }
};

template <typename T>
struct CoordinateGradient {
  CoordinateTerm<T> term;
  const T *weight, *divisor;
  T factor;
  T* dx;
  CREMA_HD void operator()(int64_t slot) const {
    term.gradient(slot, factor * *weight / *divisor, dx);
  }
};

void to_device(Context& context, const std::vector<int32_t>& values, const Tensor& to) {
  copy_bytes(context, to.raw(), to.device(), values.data(), Device::cpu,
             values.size() * sizeof(int32_t));
}

class MultiBoxLossLayer : public Layer {
 public:
  static constexpr LayerFacts facts = {.kind = LayerKind::loss};

  explicit MultiBoxLossLayer(bool focal = false) : focal_(focal) {}

 private:
  using Param = MultiBoxLossParameter;
  const Param& p() const { return params<Param>(); }
  Arity bottoms() const override { return {4, 4}; }
  bool is_loss() const override { return true; }
  LayerTraits traits() const override {
    return {.reads = {true, false}, .works_on_host = !on_device_};
  }
  bool differentiable(int bottom) const override { return bottom < 2; }

  void setup(Context& context, const std::vector<Shape>&) override {
    classes_ = p().num_classes();
    require(p().has_num_classes() && classes_ >= 1,
            "multibox_loss_param needs num_classes, the number of classes with background");
    background_ = static_cast<int>(p().background_label_id());
    mining_ = p().mining_type();
    if (p().has_do_neg_mining() && !p().has_mining_type())
      mining_ = p().do_neg_mining() ? Param::MAX_NEGATIVE : Param::NONE;
    require(!p().has_do_neg_mining() || p().do_neg_mining() == (mining_ != Param::NONE),
            "do_neg_mining: ", p().do_neg_mining() ? "true" : "false",
            " and mining_type: ", Param::MiningType_Name(mining_),
            " contradict each other: leave do_neg_mining out");
    require(mining_ == Param::NONE || p().share_location(),
            "mining_type: ", Param::MiningType_Name(mining_),
            " needs share_location: true; with share_location: false give mining_type: NONE");
    require(p().conf_loss_type() != Param::SOFTMAX || background_ < classes_,
            "background_label_id is ", background_, ", but with SOFTMAX it must be one of ",
            classes_, " classes");
    require(!p().map_object_to_agnostic() || classes_ == 2,
            "map_object_to_agnostic needs num_classes: 2, an object and background, not ",
            classes_);
    require(p().sample_size() > 0, "sample_size must be positive, but is ", p().sample_size());
    const bool neg_ratio = mining_ != Param::MAX_NEGATIVE || p().neg_pos_ratio() > 0;
    require(neg_ratio, "neg_pos_ratio must be positive, but is ", p().neg_pos_ratio());
    const bool suppresses = mining_ != Param::NONE && p().has_nms_param();
    on_device_ = context.device() == Device::gpu && p().use_prior_for_matching() &&
                 p().share_location() && !suppresses;
  }

  int64_t coordinate_classes() const { return p().share_location() ? 1 : classes_; }

  // kDivisor: as loss_count() says; kScoreSums: of ClassTerm.
  enum Saved { kMatches, kLabels, kDivisor, kNote, kScoreSums };

  Inference infer(const std::vector<Shape>& bottoms) const override {
    const Shape &x = bottoms[0], &scores = bottoms[1], &priors = bottoms[2], &objects = bottoms[3];
    require(priors.axes() >= 2 && priors[1] == 2 && priors.count() % 8 == 0,
            "bottom 2 must be priors, (1, 2, 4 * priors), but is ", priors.brief());
    require(objects.axes() > 0 && objects[objects.axes() - 1] == 8,
            "bottom 3 must be rows of 8 numbers (image, label, instance, x1, y1, x2, y2, "
            "difficult), but is ",
            objects.brief());
    const int64_t count = prior_count(priors), images = x.axes() > 0 ? x[0] : 0;
    const int64_t each = coordinate_classes();
    require(x.count() == Shape{images, count, each, 4}.count(), "bottom 0 must have ",
            count * each * 4, " coordinates for each image, 4 for each of ", count, " priors",
            each > 1 ? " and each class" : "", ", but is ", x.brief());
    require(scores.axes() > 0 && scores[0] == images &&
                scores.count() == Shape{images, count, classes_}.count(),
            "bottom 1 must have ", classes_, " scores for each of ", count, " priors and each of ",
            images, " images, but is ", scores.brief());
    return {{Shape()},
            {{{images * count * each}, DType::i32},
             {{images * count}, DType::i32},
             {{2}, {}},
             {{LabelNote::kCount}, DType::i32, true},
             {{images * count, 2}, {}}}};
  }

  // Workspace: the loss of each prior, and what matching on the device needs.
  static size_t loss_bytes(int64_t priors, DType dtype) {
    return aligned(static_cast<size_t>(priors) * size_of(dtype));
  }
  Prepared prepare(Context&, const Preparation& preparation) const override {
    const std::vector<Shape>& bottoms = preparation.bottoms;
    Prepared prepared;
    prepared.workspace = loss_bytes(bottoms[0][0] * prior_count(bottoms[2]), preparation.dtype) +
                         (on_device_ ? matching_of(bottoms[0], bottoms[2], bottoms[3]).bytes() : 0);
    return prepared;
  }

  DeviceMatching matching_of(const Shape& x, const Shape& priors, const Shape& objects) const {
    const MatchRule rule = MultiBoxAssigner(p(), mining_).match_rule();
    return {x[0],
            prior_count(priors),
            objects.count() / 8,
            static_cast<int32_t>(classes_),
            background_,
            rule,
            p().use_difficult_gt(),
            p().map_object_to_agnostic(),
            {}};
  }

  template <typename T>
  ClassTerm<T> class_term(const std::vector<Tensor>& bottom,
                          const std::vector<Tensor>& saved) const {
    ClassTerm<T> term{ClassLoss::softmax, classes_, coordinate_classes(), background_};
    if (p().conf_loss_type() == Param::LOGISTIC) {
      term.kind = ClassLoss::logistic;
    } else if (focal_) {
      const auto& focal = params<FocalLossParameter>();
      term.kind = ClassLoss::focal;
      term.alpha = static_cast<T>(focal.alpha());
      term.gamma = static_cast<T>(focal.gamma());
    }
    term.background_is_a_target = mining_ != Param::NONE;
    term.scores = bottom[1].data<T>();
    term.labels = saved[kLabels].data<int32_t>();
    term.matches = saved[kMatches].data<int32_t>();
    term.sums = saved[kScoreSums].data<T>();
    return term;
  }

  template <typename T>
  CoordinateTerm<T> coordinate_term(const std::vector<Tensor>& bottom,
                                    const std::vector<Tensor>& saved) const {
    return {prior_count(bottom[2].shape()),
            coordinate_classes(),
            box_coding(p().code_type()),
            p().loc_loss_type() == Param::SMOOTH_L1,
            !p().encode_variance_in_target(),
            p().bp_inside(),
            !p().use_prior_for_matching(),
            bottom[0].data<T>(),
            bottom[2].data<T>(),
            bottom[3].data<T>(),
            saved[kMatches].data<int32_t>()};
  }

  // Whether a bottom's part belongs to the loss.
  bool has_part(int bottom) const {
    return message().propagate_down_size() <= bottom || message().propagate_down(bottom);
  }

  // by_valid: divided by the number of matched priors.
  LossNormalizer normalizer(int64_t images, int64_t priors) const {
    const auto& loss = params<LossParameter>();
    LossNormalizer normalizer =
        loss_normalizer(loss, LossParameter::VALID, images, images * priors);
    normalizer.by_valid = loss.has_normalization() ? loss.normalization() == LossParameter::VALID
                                                   : !loss.has_normalize() || loss.normalize();
    return normalizer;
  }
  LossParts loss_parts(const std::vector<Shape>& bottoms) const override {
    return normalizer(bottoms[0][0], prior_count(bottoms[2])).parts();
  }
  Tensor loss_count(const std::vector<Tensor>& saved) const override { return saved[kDivisor]; }

  // The divisor of the loss; 0: the number of matched priors.
  double given_divisor(int64_t images, int64_t priors) const {
    const LossNormalizer divided = normalizer(images, priors);
    return divided.by_valid ? 0 : divided.constant;
  }

  void forward(Context& context, const Forward& pass) const override {
    if (on_device_) return forward_on_device(context, pass);
    const int64_t priors = prior_count(pass.bottom[2].shape()), images = pass.bottom[0].shape()[0];
    const MultiBoxAssigner assigner(p(), mining_);
    MultiBoxAssignment a = assigner.assign(context, pass.bottom);
    to_device(context, a.matches, pass.saved[kMatches]);
    to_device(context, a.labels, pass.saved[kLabels]);
    on(pass.bottom[0], [&]<typename T>() {
      if (mining_ != Param::NONE) {
        const Tensor losses = mining_losses<T>(context, pass);
        assigner.mine(a, to_floats(context, losses));
        to_device(context, a.matches, pass.saved[kMatches]);
        to_device(context, a.labels, pass.saved[kLabels]);
      }
      const int64_t matched =
          std::count_if(a.matches.begin(), a.matches.end(), [](int32_t m) { return m >= 0; });
      const double given = given_divisor(images, priors), count = static_cast<double>(matched);
      const double divisor[] = {given > 0 ? given : std::max(count, 1.0), count};
      from_doubles(context, divisor, pass.saved[kDivisor]);
      sum_losses<T>(context, pass, static_cast<T>(1 / divisor[0]));
    });
  }

  // The loss of each prior before mining: (images * priors), in the workspace.
  template <typename T>
  Tensor mining_losses(Context& context, const Forward& pass) const {
    const int64_t all = pass.saved[kLabels].count();
    T* const losses = pass.workspace.data<T>();
    const PriorLoss<T> body{class_term<T>(pass.bottom, pass.saved),
                            coordinate_term<T>(pass.bottom, pass.saved), 1,
                            T(mining_ == Param::HARD_EXAMPLE), losses};
    parallel_for(context, all, body, 64);
    return part_of(pass.workspace, 0, {all}, pass.bottom[0].dtype());
  }

  template <typename T>
  void sum_losses(Context& context, const Forward& pass, T factor) const {
    const int64_t all = pass.saved[kLabels].count();
    T* const losses = pass.workspace.data<T>();
    const PriorLoss<T> body{class_term<T>(pass.bottom, pass.saved),
                            coordinate_term<T>(pass.bottom, pass.saved),
                            T(has_part(1)),
                            has_part(0) ? static_cast<T>(p().loc_weight()) : T(0),
                            losses,
                            mining_ == Param::MAX_NEGATIVE};
    parallel_for(context, all, body, 64);
    parallel_sum<T>(context, {1, 1, all}, PriorSum<T>{losses}, {pass.top[0].data<T>(), factor});
  }

  void forward_on_device(Context& context, const Forward& pass) const {
    const Shape& x = pass.bottom[0].shape();
    DeviceMatching matching = matching_of(x, pass.bottom[2].shape(), pass.bottom[3].shape());
    matching.note = {pass.saved[kNote].data<int32_t>(), classes_, 1, pass.pass, pass.live_pass};
    matching.matches = pass.saved[kMatches].data<int32_t>();
    matching.labels = pass.saved[kLabels].data<int32_t>();
    matching.assign_workspace(pass.workspace.data<char>() +
                              loss_bytes(pass.saved[kLabels].count(), pass.bottom[0].dtype()));
    match_boxes_kernels.run(context, matching, pass.bottom[2], pass.bottom[3]);
    on(pass.bottom[0], [&]<typename T>() {
      if (mining_ != Param::NONE) {
        const Tensor losses = mining_losses<T>(context, pass);
        mine_boxes_kernels.run(context, matching, MultiBoxAssigner(p(), mining_).mining_rule(),
                               losses);
      }
      sum_losses<T>(context, pass, 1);
      parallel_for(context, 1,
                   DivideByMatched<T>{matching.matched, matching.images,
                                      given_divisor(matching.images, matching.priors),
                                      pass.saved[kDivisor].data<T>(), pass.top[0].data<T>()});
    });
  }

  void check(Context& context, const Forward& pass) const override {
    const std::optional<NotedLabel> bad = take_label_note(context, pass.saved[kNote]);
    require(!bad, "row ", bad ? bad->position : 0, " of the objects of forward pass ",
            bad ? bad->pass : 0, " has label ", bad ? bad->label : 0,
            ", but with num_classes: ", classes_, " labels are 0 to ", classes_ - 1,
            " without the background, ", background_);
  }

  void backward(Context& context, const Backward& pass) const override {
    on(pass.bottom[0], [&]<typename T>() {
      const T *weight = pass.top_diff[0].data<T>(), *divisor = pass.saved[kDivisor].data<T>();
      if (const Tensor& dx = pass.bottom_diff[0]) {
        parallel_for(context, pass.saved[kMatches].count(),
                     CoordinateGradient<T>{coordinate_term<T>(pass.bottom, pass.saved), weight,
                                           divisor, static_cast<T>(p().loc_weight()), dx.data<T>()},
                     64);
      }
      if (const Tensor& dx = pass.bottom_diff[1]) {
        parallel_rows(context, pass.saved[kLabels].count(), classes_,
                      ClassGradient<T>{class_term<T>(pass.bottom, pass.saved), weight, divisor,
                                       dx.data<T>()});
      }
    });
  }

  int64_t classes_ = 0;
  int32_t background_ = 0;
  Param::MiningType mining_ = Param::MAX_NEGATIVE;
  bool on_device_ = false;  // matching and mining included
  const bool focal_;        // MultiBoxFocalLoss
};

}  // namespace

constexpr const char* kElsewhereOnHost = "MultiBoxAssigner does it on the host";
constinit decltype(match_boxes_kernels) match_boxes_kernels("matching priors with objects",
                                                            kElsewhereOnHost);
constinit decltype(mine_boxes_kernels) mine_boxes_kernels("mining hard examples", kElsewhereOnHost);

REGISTER_LAYER(MultiBoxLoss, MultiBoxLossLayer);
REGISTER_LAYER(MultiBoxFocalLoss, MultiBoxLossLayer, true);
}  // namespace crema
