#include "data/lists/named_images.h"

#include <algorithm>
#include <cmath>
#include <sstream>

#include "base/error.h"
#include "base/files.h"
#include "data/images/png_numbers.h"
#include "data/lists/mat_file.h"
#include "data/transforms/mean_table.h"

namespace crema {
namespace {

using Kind = NamedFile::Kind;

struct Values {
  int64_t height = 0, width = 0;
  std::vector<float> values;  // channel after channel, row after row
};

Values image_values(const NamedFile& part, const std::string& file) {
  Image image;
  decode_image(file, Color::color, image);
  const MeanTable mean(part.mean);
  Values to{image.height, image.width, {}};
  const int64_t pixels = image.height * image.width;
  to.values.resize(static_cast<size_t>(3 * pixels));
  for (int64_t c = 0; c < 3; ++c) {
    const int64_t from = part.kind == Kind::bgr ? c : 2 - c;
    for (int64_t i = 0; i < pixels; ++i)
      to.values[static_cast<size_t>(c * pixels + i)] =
          mean(c, image.pixels[static_cast<size_t>(3 * i + from)]);
  }
  return to;
}

Values depth_values(const NamedFile& part, const std::string& file) {
  Image image;
  DeepImage deep;
  std::string remark;
  const bool is_deep = decode_image(file, Decoding(), image, deep, remark);
  const int64_t channels = is_deep ? deep.channels : image.channels;
  require(channels == 1, "a depth map has ", channels, " channels, but 1 is expected");
  Values to{is_deep ? deep.height : image.height, is_deep ? deep.width : image.width, {}};
  const auto mean = static_cast<float>(part.mean[0]);
  const auto add = [&](float depth) { to.values.push_back(std::log(depth) - mean); };
  for (const float depth : deep.pixels) add(depth);
  for (const uint8_t depth : image.pixels) add(depth);
  return to;
}

Values label_values(const NamedFile& part, const std::string& file) {
  Values to;
  const auto label = [&](double number) {
    return part.label_of ? part.label_of(number) : static_cast<float>(number);
  };
  if (part.kind == Kind::png_labels) {
    const Image image = decode_png_numbers(file);
    to = {image.height, image.width, {}};
    for (const uint8_t number : image.pixels) to.values.push_back(label(number));
    return to;
  }
  const MatArray array = read_mat(file, part.variable);
  require(array.extents.size() == 2, "variable ", part.variable, ": it has ", array.extents.size(),
          " axes, but a label map has height and width");
  to = {array.extents[0], array.extents[1], {}};
  for (int64_t y = 0; y < to.height; ++y) {
    for (int64_t x = 0; x < to.width; ++x)
      to.values.push_back(label(array.values[static_cast<size_t>(x * to.height + y)]));
  }
  return to;
}

Values values_of(const NamedFile& part, const std::string& path) {
  const std::string file = read_file(path);
  try {
    switch (part.kind) {
      case Kind::bgr:
      case Kind::rgb:
        return image_values(part, file);
      case Kind::log_depth:
        return depth_values(part, file);
      case Kind::png_labels:
      case Kind::mat_labels:
        return label_values(part, file);
    }
  } catch (const Error& problem) {
    fail(path, ": ", problem.what());
  }
  return {};
}

}  // namespace

NamedImages::NamedImages(const std::string& list, std::vector<NamedFile> files)
    : list_(list), files_(std::move(files)) {
  std::istringstream text(read_text(list));
  std::string line;
  for (int64_t number = 1; std::getline(text, line); ++number) {
    const size_t end = line.find_last_not_of(" \t\r");
    if (end == line.npos) continue;
    names_.push_back(line.substr(0, end + 1));
    lines_.push_back(number);
  }
  require(!names_.empty(), list,
          ": there is no name in it; it needs that of an image on each line");
}

const std::string& NamedImages::name(const SampleIndex& sample_index) const {
  return names_[static_cast<size_t>(sample_index.record_index.index)];
}

std::string NamedImages::describe(const SampleIndex& sample_index) const {
  return cat(list_, ":", lines_[static_cast<size_t>(sample_index.record_index.index)], ": ",
             name(sample_index));
}

void NamedImages::add_facts(WaitingFacts& facts) const { facts.files = facts.decodes = true; }

void NamedImages::load(const SampleIndex& sample_index, Sample& sample) const {
  int64_t channels = 0;
  std::string first;
  sample.labels.clear();
  for (const NamedFile& part : files_) {
    const std::string path = part.before + name(sample_index) + part.after;
    Values found = values_of(part, path);
    if (first.empty()) {
      first = path;
      sample.shape = {part.channels(), found.height, found.width};
      *sample.record.datum.mutable_float_data() = {found.values.begin(), found.values.end()};
      continue;
    }
    if (found.height != sample.shape[1] || found.width != sample.shape[2])
      fail(first, " is ", sample.shape[1], "x", sample.shape[2], ", but ", path, " is ",
           found.height, "x", found.width, "; they must have one size");
    channels += part.channels();
    sample.labels.insert(sample.labels.end(), found.values.begin(), found.values.end());
  }
  sample.stored_height = sample.shape[1];
  sample.stored_width = sample.shape[2];
  sample.label_shape = {channels, sample.shape[1], sample.shape[2]};
}

void NamedImages::write(const SampleIndex&, Sample& sample, float* data) const {
  const auto& values = sample.record.datum.float_data();
  std::copy(values.begin(), values.end(), data);
}

}  // namespace crema
