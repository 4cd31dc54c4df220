#include "crema/pictures.h"

#include <algorithm>
#include <memory>
#include <numeric>

#include "base/error.h"
#include "base/files.h"
#include "crema/setting_names.h"
#include "net/preparation.h"

namespace crema {
namespace {

// Interleaved, in the order B, G, R, as pictures are decoded.
void copy_pixels(const PictureView& picture, Color wanted, Image* image) {
  const int channels = picture.format == PictureFormat::grey ? 1 : 3;
  require(picture.width > 0 && picture.height > 0, "a picture of ", picture.width, "x",
          picture.height, " pixels: expected positive numbers");
  const size_t count = static_cast<size_t>(picture.width) * picture.height;
  require(picture.pixels.size() == count * channels, "a picture of ", picture.width, "x",
          picture.height, " pixels with ", channels, channels == 1 ? " channel" : " channels",
          " has ", count * channels, " bytes, not ", picture.pixels.size());
  const bool gives_grey = channels == 1, takes_grey = wanted == Color::gray;
  image->channels = takes_grey ? 1 : 3;
  image->height = picture.height;
  image->width = picture.width;
  image->pixels.resize(count * static_cast<size_t>(image->channels));
  const int red = picture.format == PictureFormat::rgb ? 0 : 2;
  for (size_t i = 0; i < count; ++i) {
    const uint8_t* const from = picture.pixels.data() + i * channels;
    const uint8_t bgr[3] = {gives_grey ? from[0] : from[2 - red], gives_grey ? from[0] : from[1],
                            gives_grey ? from[0] : from[red]};
    if (!takes_grey) {
      std::copy(bgr, bgr + 3, image->pixels.begin() + static_cast<std::ptrdiff_t>(3 * i));
    } else {
      // 0.299, 0.587 and 0.114, in 16384ths, as image files are read.
      image->pixels[i] =
          static_cast<uint8_t>((bgr[2] * 4899 + bgr[1] * 9617 + bgr[0] * 1868 + 8192) >> 14);
    }
  }
}

Record decode(const ImageReading& reading, std::string_view file) {
  Record record;
  const ImageExtents whole =
      reading.decode(file, reading.color, Interpolation::linear, record.image);
  reading.resize(whole, Interpolation::linear, record.image);
  show_image(record);
  return record;
}

}  // namespace

PictureSettings picture_settings(const PictureOptions& options) {
  return {options.resize, options.mean, options.scale, options.rgb, setting_names().pictures};
}

ModelPictures::ModelPictures(const NetPreparation& preparation, std::string folder,
                             const PictureOptions& options)
    : preparation_(preparation), folder_(std::move(folder)), options_(options) {}

ModelPictures::Input ModelPictures::make(Net& net, const std::string& name) {
  const Shape shape = net.input(name).shape();
  require(shape.axes() == 4, "the input \"", name, "\" is ", shape.brief(),
          ", not pictures (samples x channels x height x width)");
  const InputPreparation* const stated = find_preparation(preparation_, name);
  InputPreparation how = stated ? *stated : assumed_preparation(name, shape);
  change_preparation(picture_settings(options_), &how);
  return {prepare_pictures(how, folder_, {shape[1], shape[2], shape[3]}, !options_.resize.empty(),
                           {setting_names().resize, setting_names().reshape}, net.context().log()),
          shape,
          {}};
}

ModelPictures::Input& ModelPictures::input_for(Net& net, const std::string& name, int sample) {
  const Shape shape = net.input(name).shape();
  require(shape.axes() != 4 || (sample >= 0 && sample < shape[0]), "the input \"", name,
          "\" has no sample ", sample, "; it has ", shape[0]);
  const auto known = inputs_.find(name);
  if (known != inputs_.end() && known->second.shape == shape) return known->second;
  Input input = make(net, name);
  input.values.resize(static_cast<size_t>(shape.count()));
  inputs_.erase(name);
  return inputs_.emplace(name, std::move(input)).first->second;
}

void ModelPictures::write(Record& record, const Input& input, float* sample) {
  const Transform& transform = input.preparation.images;
  transform.augment(record, Rng({0, 0}));
  const Shape expected{input.shape[1], input.shape[2], input.shape[3]};
  const Shape given = transform.output(record.shape());
  require(given == expected, "the picture gives ", given.brief(), ", but the net's input takes ",
          expected.brief(), "; ", setting_names().resize, " gives pictures another size");
  transform.apply(record, {}, sample);
}

const std::vector<float>& ModelPictures::write(Record& record, int sample, Input* input) {
  const int64_t count = input->shape.count() / input->shape[0];
  write(record, *input, input->values.data() + sample * count);
  return input->values;
}

Model::PictureReader ModelPictures::reader(Net& net, const std::string& name) {
  const auto input = std::make_shared<const Input>(make(net, name));
  return [input](std::string_view file) {
    Record record = decode(input->preparation.reading, file);
    std::vector<float> values(
        static_cast<size_t>(input->shape.count() / std::max<int64_t>(1, input->shape[0])));
    write(record, *input, values.data());
    return values;
  };
}

const std::vector<float>& ModelPictures::set(Net& net, const std::string& name, int sample,
                                             const std::string& file) {
  Input& input = input_for(net, name, sample);
  const ImageReading& reading = input.preparation.reading;
  Record record;
  reading.read(file, reading.color, Interpolation::linear, record.image);
  show_image(record);
  try {
    return write(record, sample, &input);
  } catch (const Error& problem) {
    fail(file, ": ", problem.what());
  }
}

const std::vector<float>& ModelPictures::set(Net& net, const std::string& name, int sample,
                                             const PictureView& picture) {
  Input& input = input_for(net, name, sample);
  const ImageReading& reading = input.preparation.reading;
  Record record;
  copy_pixels(picture, reading.color, &record.image);
  reading.resize(Interpolation::linear, record.image);
  show_image(record);
  return write(record, sample, &input);
}

const std::vector<float>& ModelPictures::set_content(Net& net, const std::string& name, int sample,
                                                     std::string_view file) {
  Input& input = input_for(net, name, sample);
  Record record = decode(input.preparation.reading, file);
  return write(record, sample, &input);
}

std::vector<std::string> ModelPictures::class_names(int64_t count, Log& log) const {
  const bool is_asked = !options_.labels.empty();
  return crema::class_names(is_asked ? options_.labels : preparation_.labels(), is_asked, count,
                            setting_names().labels, log);
}

std::vector<ClassScore> ModelPictures::best(Net& net, int count, int sample,
                                            const std::string& blob) {
  const std::vector<Net::Output> outputs = net.outputs();
  require(!outputs.empty() && outputs[0].value.shape().axes() > 0, "the net has no scores");
  const int64_t batch = outputs[0].value.shape()[0];
  require(sample >= 0 && sample < batch, "there is no sample ", sample, "; the batch has ", batch);
  require(count > 0, "best(", count, "): expected a positive number of classes");
  const ScoreBlob scores = find_scores(net, blob, batch, "blob");
  const std::vector<std::string> names = class_names(scores.classes, net.context().log());
  const std::vector<float> all = to_floats(net.context(), net.blob(scores.name));
  const float* const row = all.data() + sample * scores.classes;
  std::vector<int> order(static_cast<size_t>(scores.classes));
  std::iota(order.begin(), order.end(), 0);
  const auto end = order.begin() + std::min<int64_t>(count, scores.classes);
  std::partial_sort(order.begin(), end, order.end(),
                    [&](int a, int b) { return row[a] != row[b] ? row[a] > row[b] : a < b; });
  std::vector<ClassScore> found;
  for (auto at = order.begin(); at != end; ++at)
    found.push_back({*at, names.empty() ? "" : names[*at], row[*at]});
  return found;
}

}  // namespace crema
