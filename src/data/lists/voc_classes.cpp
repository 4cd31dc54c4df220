#include "data/lists/voc_classes.h"

#include <algorithm>
#include <cctype>
#include <sstream>

#include "base/error.h"
#include "base/files.h"
#include "data/lists/xml.h"
#include "data/loader/permutation.h"
#include "data/transforms/smooth_resize.h"

namespace crema {
namespace {

constexpr float kMean = 128;

int64_t number_of(const std::string& path, std::string name) {
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return std::tolower(c); });
  const auto found = std::find(kVocClasses.begin(), kVocClasses.end(), name);
  if (found == kVocClasses.end())
    fail(path, ": \"", name, "\"",
         did_you_mean(name, std::vector<std::string>(kVocClasses.begin(), kVocClasses.end())),
         " is none of the 20 classes of Pascal VOC");
  return found - kVocClasses.begin();
}

}  // namespace

VocClasses::VocClasses(std::string root, const std::string& split, int64_t height, int64_t width,
                       const Random& order)
    : root_(std::move(root)),
      list_(cat(root_, "/ImageSets/Main/", split, ".txt")),
      height_(height),
      width_(width),
      order_(order) {
  require(height > 0 && width > 0 && height <= kMaxPixels / width, "images cannot be resized to ",
          height, "x", width);
  std::istringstream text(read_text(list_));
  // VOC's lists of a class have a number after the name.
  for (std::string line; std::getline(text, line);) {
    std::istringstream words(line);
    if (std::string name; words >> name) names_.push_back(name);
  }
  require(!names_.empty(), list_,
          ": there is no name in it; it needs that of an image on each line");
}

RecordIndex VocClasses::record_index(int64_t position) const {
  const int64_t epoch = position / size(), index = position % size();
  if (epoch == 0) return {epoch, index};
  const Random of_epoch{order_.seed, mix(order_.stream, static_cast<uint64_t>(epoch))};
  return {epoch, Permutation(size(), of_epoch)(index)};
}

std::string VocClasses::describe(const SampleIndex& sample_index) const {
  return cat(list_, ": ", name(sample_index));
}

void VocClasses::add_facts(WaitingFacts& facts) const {
  facts.files = facts.decodes = facts.resizes = true;
}

void VocClasses::load(const SampleIndex& sample_index, Sample& sample) const {
  const std::string image_path = cat(root_, "/JPEGImages/", name(sample_index), ".jpg"),
                    path = cat(root_, "/Annotations/", name(sample_index), ".xml");
  const std::string file = read_file(image_path);
  Image image;
  try {
    decode_image(file, Color::color, image);
  } catch (const Error& problem) {
    fail(image_path, ": ", problem.what());
  }
  sample.record.image = smooth_resize(image, height_, width_);
  sample.shape = {3, height_, width_};
  sample.labels.assign(kVocClasses.size(), 0);
  sample.label_shape = {static_cast<int64_t>(kVocClasses.size())};
  const pugi::xml_document document = read_xml(path);
  for (const pugi::xml_node object : document.document_element().children("object"))
    sample.labels[static_cast<size_t>(number_of(path, object.child_value("name")))] = 1;
}

void VocClasses::write(const SampleIndex& sample_index, Sample& sample, float* data) const {
  const Image& image = sample.record.image;
  const bool mirror = rng_of(sample_index).chance(0.5f);
  for (int64_t c = 0; c < 3; ++c) {
    for (int64_t y = 0; y < height_; ++y) {
      for (int64_t x = 0; x < width_; ++x) {
        const int64_t from = y * width_ + (mirror ? width_ - 1 - x : x);
        *data++ = static_cast<float>(image.pixels[static_cast<size_t>(3 * from + c)]) - kMean;
      }
    }
  }
}

}  // namespace crema
