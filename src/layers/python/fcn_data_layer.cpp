#include "layers/python/fcn_data_layer.h"

#include <algorithm>

#include "base/error.h"
#include "base/files.h"
#include "data/loader/to_tensor.h"
#include "proto/layer.pb.h"
#include "tensor/part.h"

namespace crema {

std::string FcnDataLayer::find(const ParamStr& params, const std::string& key) const {
  return find_file(params.needed_word(key), folder());
}

std::array<double, 3> FcnDataLayer::mean(const ParamStr& params) {
  const std::vector<double> given = params.numbers("mean", {});
  std::array<double, 3> mean{};
  require(given.size() == mean.size(), "param_str has a mean of ", given.size(),
          " values; it needs three, for blue, green and red");
  std::copy(given.begin(), given.end(), mean.begin());
  return mean;
}

void FcnDataLayer::setup(Context& context, const std::vector<Shape>&) {
  const ParamStr params(message());
  std::vector<NamedFile> files = this->files(params);
  require(static_cast<int>(files.size()) == message().top_size(), "it has ", message().top_size(),
          " tops, but there are ", files.size(), " with this param_str");
  const std::string names = list(params);
  const bool random = params.flag("randomize", true);
  LoaderOptions options = loader_options(context, 1, 0);
  // Evaluation goes through the list in order, whatever the settings.
  options.shuffle = random && params.needed_word("split").find("train") != std::string::npos;
  const ParamValue* seed = params.value().find("seed");
  if (seed && seed->kind != ParamValue::Kind::none)
    options.random.seed = static_cast<uint64_t>(params.integer("seed", 0));
  params.has("seed");
  params.has("native");
  params.refuse_others();
  for (const NamedFile& file : files) channels_.push_back(file.channels());
  context.log().info("Opening file " + names);
  images_ = std::make_shared<NamedImages>(names, std::move(files));
  context.log().info(cat("A total of ", images_->size(), " images."));
  start(context, images_, options);
  const Shape first = LoaderLayer::infer({}).tops[0];
  height_ = first[2];
  width_ = first[3];
}

std::vector<Shape> FcnDataLayer::usual_tops() const {
  std::vector<Shape> tops;
  for (const NamedFile& file : files(ParamStr(message())))
    tops.push_back({1, file.channels(), usual_size().first, usual_size().second});
  return tops;
}

std::vector<Shape> FcnDataLayer::shapes_of(int64_t height, int64_t width) const {
  std::vector<Shape> shapes;
  for (const int64_t channels : channels_) shapes.push_back({1, channels, height, width});
  return shapes;
}

bool FcnDataLayer::reshapes(uint64_t pass) {
  const Shape& next = batch(pass).shape;
  if (next[1] <= height_ && next[2] <= width_) return false;
  height_ = std::max(height_, next[1]);
  width_ = std::max(width_, next[2]);
  return true;
}

Inference FcnDataLayer::infer(const std::vector<Shape>&) const {
  return {shapes_of(height_, width_), {}};
}

void FcnDataLayer::forward(Context& context, const Forward& pass) const {
  const Batch& batch = this->batch(pass.pass);
  std::vector<Shape>& tops = state_of<DynamicTops>(pass).tops;
  tops = shapes_of(batch.shape[1], batch.shape[2]);
  to_tensor(context, batch.data, part(pass.top[0], tops[0]));
  auto from = batch.labels.begin();
  for (size_t i = 1; i < pass.top.size(); ++i) {
    const auto end = from + tops[i].count();
    to_tensor(context, {from, end}, part(pass.top[i], tops[i]));
    from = end;
  }
}

}  // namespace crema
