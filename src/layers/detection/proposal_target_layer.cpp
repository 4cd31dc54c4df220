// ProposalTarget: samples regions for training and gives them classes and box regression targets.
//   Candidates are the regions and the objects themselves. From an overlap of fg_thr on they count
//   as objects, unless the object is to be ignored; from bg_thr_lw to below bg_thr_hg as
//   background. Up to fg_fraction * batch_size of the former are sampled, and background up to
//   batch_size; if there are too few, other regions in order, and then random boxes that match no
//   object. With batch_size -1 all objects and all background are used, and one random box if
//   there are none. Each of several ranks samples batch_size regions of its own images.
//   target = (encode(region, object) - bbox_mean) / bbox_std, at the values of the object's class,
//   or with cls_aware: false of class 1; inside and outside weights are 1 there, 0 elsewhere
// Shapes: regions (R, 5, ...) of image and first and last pixels, objects (G, 7, ...) of image,
// box, class and whether to ignore it. Tops, B = batch_size rows of each (1 to R + G with -1),
// objects first: regions (B, 5, 1, 1), classes (B, 1, 1, 1), targets and weights (B, 4 * cls_num,
// 1, 1), or (B, 8, 1, 1) with cls_aware: false, matched objects (B, 6, 1, 1) of class, box and
// overlap, zero for background; a seventh top (B, 1, 1, 1) has weights that give objects
// fg_fraction of the sum, by their overlap with iou_weighted.
// Parameters: none.
// Gradient: none.
#include <numeric>

#include "layers/detection/box_regression.h"
#include "layers/layer.h"
#include "proto/layer.pb.h"
#include "tensor/part.h"

namespace crema {
namespace {

struct Region {
  int image = 0;
  Box box;          // given by its edges
  int object = -1;  // that it overlaps most
  float overlap = 0;
};

struct Object {
  int image;
  Box box;
  int label;
  bool ignored;
};

class ProposalTargetLayer : public Layer {
 public:
  static constexpr LayerFacts facts = {.kind = LayerKind::detection, .in_use = InUse::bypassed};

 private:
  const ProposalTargetParameter& p() const { return params<ProposalTargetParameter>(); }
  bool class_aware() const { return params<BBoxRegParameter>().cls_aware(); }
  int64_t numbers() const { return class_aware() ? 4 * p().cls_num() : 8; }
  Arity bottoms() const override { return {2, 2}; }
  Arity tops() const override { return {6, 7}; }
  bool takes_all() const { return p().batch_size() == -1; }
  bool differentiable(int) const override { return false; }
  LayerTraits traits() const override {
    return {.dynamic = takes_all(), .reads = {false, false}, .works_on_host = true};
  }

  void setup(Context&, const std::vector<Shape>&) override {
    require(takes_all() || p().batch_size() > 0, "batch_size is ", p().batch_size(),
            ", but must be above 0, or -1 for all regions");
    require(p().cls_num() > 1 && p().num_img_per_batch() > 0,
            "proposal_target_param needs num_img_per_batch above 0 and cls_num, with the "
            "background, above 1");
    require(p().fg_thr() >= p().bg_thr_hg(), "fg_thr is ", p().fg_thr(),
            ", but must not be below bg_thr_hg, ", p().bg_thr_hg());
    require(p().img_width() > kSide && p().img_height() > kSide,
            "proposal_target_param needs img_width and img_height above ", kSide);
    static_cast<void>(BoxRegression(params<BBoxRegParameter>()));
  }

  Inference infer(const std::vector<Shape>& bottoms) const override {
    require(bottoms[0].axes() >= 2 && bottoms[0].count(1) == 5, "the regions are ",
            bottoms[0].brief(), ", but must be Rx5: image, left, top, right, bottom");
    require(bottoms[1].axes() >= 2 && bottoms[1].count(1) == 7, "the objects are ",
            bottoms[1].brief(), ", but must be Gx7: image, box, class, whether to ignore it");
    const int64_t maximum = takes_all() ? bottoms[0][0] + bottoms[1][0] : p().batch_size();
    std::vector<Shape> tops;
    for (const int64_t each :
         {int64_t{5}, int64_t{1}, numbers(), numbers(), numbers(), int64_t{6}, int64_t{1}})
      tops.push_back({maximum, each, 1, 1});
    tops.resize(message().top_size());
    return {tops, {}};
  }

  int image_of(float number) const {
    require(number >= 0 && number < static_cast<float>(p().num_img_per_batch()),
            "a region or an object is of image ", number, ", but num_img_per_batch is ",
            p().num_img_per_batch());
    return static_cast<int>(number);
  }

  static void match(Region* region, const std::vector<Object>& objects) {
    for (size_t j = 0; j < objects.size(); ++j) {
      if (objects[j].image != region->image) continue;
      const float common = overlap(region->box, objects[j].box);
      if (region->object >= 0 && common <= region->overlap) continue;
      region->object = static_cast<int>(j);
      region->overlap = common;
    }
  }

  // Random sample of `count`, shuffled, if there are more.
  static void draw(std::vector<Region>* from, size_t count, const Random& random) {
    if (from->size() <= count) return;
    for (size_t i = 0; i < count; ++i)
      std::swap((*from)[i], (*from)[i + random.word(i) % (from->size() - i)]);
    from->resize(count);
  }

  // A random box that matches no object; `number` is the attempt.
  Region anywhere(const std::vector<Object>& objects, const Random& random, uint64_t number) const {
    const auto below = [&](uint64_t k, uint32_t end) {
      return static_cast<float>(random.word(number * 8 + k) % end);
    };
    Region region;
    region.image = static_cast<int>(below(0, p().num_img_per_batch()));
    const float x = below(1, p().img_width() - kSide), y = below(2, p().img_height() - kSide);
    const float width = below(3, p().img_width() - static_cast<uint32_t>(x)),
                height = below(4, p().img_height() - static_cast<uint32_t>(y));
    constexpr auto minimum = static_cast<float>(kSide);
    region.box = {x, y, x + std::max(width, minimum), y + std::max(height, minimum)};
    match(&region, objects);
    return region;
  }

  struct Drawn {
    std::vector<Region> regions;  // objects first
    size_t objects = 0;           // number of objects among them
  };

  Drawn drawn(const std::vector<Region>& all, const std::vector<Object>& objects,
              const Context& context, const Forward& pass) const {
    // Other ranks have other numbers.
    const auto random = [&](uint64_t purpose) -> Random {
      const Random all = context.random(mix(id(), purpose), pass.pass);
      const int64_t first = pass.share.first;
      return first == 0 ? all : Random{all.seed, mix(all.stream, static_cast<uint64_t>(first))};
    };
    std::vector<Region> found, background, others;
    for (const Region& region : all) {
      if (region.object >= 0 && region.overlap >= p().fg_thr()) {
        if (!objects[region.object].ignored) found.push_back(region);
      } else if (region.overlap >= p().bg_thr_lw() && region.overlap < p().bg_thr_hg()) {
        background.push_back(region);
      } else {
        others.push_back(region);
      }
    }
    const size_t batch = takes_all() ? std::max<size_t>(1, found.size() + background.size())
                                     : static_cast<size_t>(p().batch_size());
    if (takes_all()) {
      others.clear();
    } else {
      draw(&found, std::lround(p().fg_fraction() * static_cast<float>(batch)), random(0));
    }
    draw(&background, batch - found.size(), random(1));
    Drawn result{found, found.size()};
    result.regions.insert(result.regions.end(), background.begin(), background.end());
    const size_t more = std::min(others.size(), batch - result.regions.size());
    result.regions.insert(result.regions.end(), others.begin(),
                          others.begin() + static_cast<int64_t>(more));
    for (uint64_t number = 0; result.regions.size() < batch; ++number) {
      require(number < 1000 * batch, "the objects leave no room for background: ", kSide, "x",
              kSide, " boxes and larger overlap them by fg_thr, ", p().fg_thr());
      const Region region = anywhere(objects, random(2), number);
      if (region.overlap < p().fg_thr()) result.regions.push_back(region);
    }
    return result;
  }

  Prepared prepare(Context&, const Preparation&) const override {
    Prepared prepared;
    prepared.make_state<DynamicTops>();
    return prepared;
  }

  void forward(Context& context, const Forward& pass) const override {
    const std::vector<float> regions = to_floats(context, pass.bottom[0]),
                             boxes = to_floats(context, pass.bottom[1]);
    std::vector<Object> objects;
    std::vector<Region> all;
    for (size_t i = 0; i < regions.size(); i += 5)
      all.push_back({image_of(regions[i]), edges_of(&regions[i + 1])});
    for (size_t i = 0; i < boxes.size(); i += 7) {
      const float* b = &boxes[i];
      objects.push_back({image_of(b[0]), edges_of(b + 1), static_cast<int>(b[5]), b[6] != 0});
      all.push_back({objects.back().image, objects.back().box});
    }
    for (Region& region : all) match(&region, objects);
    write(context, drawn(all, objects, context, pass), objects, pass);
  }

  void write(Context& context, const Drawn& drawn, const std::vector<Object>& objects,
             const Forward& pass) const {
    const std::vector<Tensor>& tops = pass.top;
    std::vector<Shape>& shapes = state_of<DynamicTops>(pass).tops;
    const BoxRegression regression(params<BBoxRegParameter>());
    std::vector<std::vector<float>> values;
    shapes.clear();
    for (const Tensor& top : tops) {
      shapes.push_back(top.shape());
      shapes.back()[0] = static_cast<int64_t>(drawn.regions.size());
      values.emplace_back(shapes.back().count(), 0.f);
    }
    const auto put = [&](int top, size_t at, float first, const Box& box) {
      const float five[] = {first, box.x1, box.y1, box.x2, box.y2};
      std::copy(five, five + 5, values[top].begin() + static_cast<int64_t>(at));
    };
    for (size_t i = 0; i < drawn.regions.size(); ++i) {
      const Region& region = drawn.regions[i];
      put(0, i * 5, static_cast<float>(region.image), pixels_of(region.box));
      if (i >= drawn.objects) continue;
      const Object& object = objects[region.object];
      const int label = object.label;
      require(label > 0 && label < static_cast<int>(p().cls_num()), "an object is of class ", label,
              ", but must be of 1 to ", p().cls_num() - 1);
      values[1][i] = static_cast<float>(label);
      const size_t at = i * numbers() + 4 * (class_aware() ? label : 1);
      const Box target = regression.encoded(region.box, object.box);
      const float four[] = {target.x1, target.y1, target.x2, target.y2};
      for (int k = 0; k < 4; ++k) {
        values[2][at + k] = four[k];
        values[3][at + k] = values[4][at + k] = 1;
      }
      put(5, i * 6, static_cast<float>(label), pixels_of(object.box));
      values[5][i * 6 + 5] = region.overlap;
    }
    if (tops.size() > 6) values[6] = sample_weights(drawn);
    for (size_t j = 0; j < tops.size(); ++j)
      from_floats(context, values[j].data(), part(tops[j], shapes[j]));
  }

  std::vector<float> sample_weights(const Drawn& drawn) const {
    std::vector<float> weights(drawn.regions.size(), 1.f);
    if (drawn.objects == 0) return weights;
    for (size_t i = 0; p().iou_weighted() && i < drawn.objects; ++i)
      weights[i] = drawn.regions[i].overlap;
    const auto scale = [](auto begin, auto end, float total) {
      const float sum = std::accumulate(begin, end, 0.f);
      for (auto weight = begin; weight != end; ++weight) *weight *= total / sum;
    };
    const auto all = static_cast<float>(weights.size());
    const auto middle = weights.begin() + static_cast<int64_t>(drawn.objects);
    scale(weights.begin(), middle, p().fg_fraction() * all);
    scale(middle, weights.end(), (1 - p().fg_fraction()) * all);
    return weights;
  }

  static constexpr uint32_t kSide = 32;  // minimum side of random boxes
};

}  // namespace
REGISTER_LAYER(ProposalTarget, ProposalTargetLayer);
}  // namespace crema
