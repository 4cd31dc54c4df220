#include "tools/quantize/calibration_feed.h"

#include <algorithm>

#include "base/error.h"
#include "net/preparation.h"
#include "proto/layer.pb.h"
#include "tools/inputs/random_inputs.h"

namespace crema {
namespace {

std::string image_input_of(Net& net) {
  std::vector<std::string> found;
  for (const Node& node : net.graph().nodes) {
    if (node.message.type() != "Input") continue;
    for (const int id : node.tops) found.push_back(net.graph().values[id].blob);
  }
  require(
      found.size() == 1 && net.input(found[0]).shape().axes() == 4,
      "-calibrate: pictures fit nets with one input of samples x channels x height x width, but "
      "the inputs are ",
      join(found, ", "), "; -calibrate random fills any");
  return found[0];
}

}  // namespace

CalibrationFeed::CalibrationFeed(const std::string& source, const NetPreparation& preparation,
                                 std::string folder)
    : is_random_(source == "random"), preparation_(preparation), folder_(std::move(folder)) {
  if (is_random_) return;
  sources_ = sources_of({source}, "", folder_);
  for (const ImageSource& one : sources_) images_ += one.size();
  require(images_ > 0, "-calibrate ", source, ": there is no picture");
}

void CalibrationFeed::prepare(Net& net) {
  const std::string input = image_input_of(net);
  const Shape shape = net.input(input).shape();
  if (pictures_ && pictures_->shape == shape) return;
  const InputPreparation* const stated = find_preparation(preparation_, input);
  const PicturePreparation how = prepare_pictures(
      stated ? *stated : assumed_preparation(input, shape), folder_, {shape[1], shape[2], shape[3]},
      false, {"crema deploy -resize WIDTHxHEIGHT", "-assume"}, silent_log());
  pictures_ = Pictures{input, shape, {}};
  for (const ImageSource& source : sources_) pictures_->datasets.push_back(dataset_of(source, how));
}

void CalibrationFeed::fill(Net& net, int64_t batch) {
  if (is_random_) {
    const uint64_t seed = net.context().seed;
    net.context().seed = seed + static_cast<uint64_t>(batch);
    fill_random_inputs(net);
    net.context().seed = seed;
    return;
  }
  prepare(net);
  const Shape& shape = pictures_->shape;
  const Shape sample{shape[1], shape[2], shape[3]};
  std::vector<float> values(static_cast<size_t>(shape.count()));
  for (int64_t i = 0; i < shape[0];) {
    int64_t at = (batch * shape[0] + i) % images_;
    size_t source = 0;
    while (at >= sources_[source].size()) at -= sources_[source++].size();
    const int64_t count = std::min(shape[0] - i, sources_[source].size() - at);
    std::vector<float> part(static_cast<size_t>(count * sample.count()));
    for (const LoadedImage& image :
         load_images(sources_[source], *pictures_->datasets[source], sample, at, count, &part))
      require(image.error.empty(), image.error);
    std::copy(part.begin(), part.end(), values.begin() + i * sample.count());
    i += count;
  }
  net.set_input(pictures_->input, values.data());
}

}  // namespace crema
