#include "layers/detection/detection_files.h"

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>

#include "base/error.h"
#include "base/files.h"
#include "data/convert/annotations/class_numbers.h"

namespace crema {
namespace {

float hundredths(float value) { return std::round(value * 100) / 100; }

// As a number if it is one, such as COCO's names of images and classes.
std::string json(const std::string& text) {
  static const std::regex number("-?(0|[1-9][0-9]*)(\\.[0-9]+)?");
  if (std::regex_match(text, number)) return text;
  using Json = nlohmann::json;
  return Json(text).dump(-1, ' ', false, Json::error_handler_t::replace);
}

// Names of labels. Error for a repeated label.
std::map<int, std::string> read_names(const std::string& path) {
  const LabelMap map = read_label_map(path);
  std::map<int, std::string> names;
  for (const LabelMapItem& item : map.item()) {
    const auto [at, is_new] = names.emplace(item.label(), item.name());
    require(is_new, path, ": label ", item.label(), " is there twice, as \"", at->second,
            "\" and \"", item.name(), "\"");
  }
  return names;
}

}  // namespace

std::vector<ImageSize> read_name_size_file(const std::string& path) {
  std::istringstream in(read_text(path));
  std::vector<ImageSize> images;
  ImageSize image;
  while (in >> image.name >> image.height >> image.width) images.push_back(image);
  require(in.eof() && !images.empty(), path, ": line ", images.size() + 1,
          " is not \"name height width\"");
  return images;
}

Box in_pixels(const Box& box, int height, int width, const ResizeParameter* resize) {
  const auto scaled = [](const Box& b, int rows, int columns) {
    const auto x = static_cast<float>(columns), y = static_cast<float>(rows);
    return Box{b.x1 * x, b.y1 * y, b.x2 * x, b.y2 * y};
  };
  if (resize && resize->resize_mode() == ResizeParameter::FIT_SMALL_SIZE &&
      resize->height_scale() > 0 && resize->width_scale() > 0) {
    return clipped(scaled(box, static_cast<int>(resize->height_scale()),
                          static_cast<int>(resize->width_scale())),
                   static_cast<float>(width), static_cast<float>(height));
  }
  Box whole = box;
  if (resize && resize->resize_mode() == ResizeParameter::FIT_LARGE_SIZE_AND_PAD) {
    // The image fills the net's input along one side; along the other it has equal padding on both
    // ends.
    const float seen = static_cast<float>(resize->width()) / static_cast<float>(resize->height());
    const float own = static_cast<float>(width) / static_cast<float>(height);
    const float pad_x = own > seen ? 0 : (1 - own / seen) / 2;
    const float pad_y = own > seen ? (1 - seen / own) / 2 : 0;
    const auto without = [](float at, float pad) { return (at - pad) / (1 - 2 * pad); };
    whole = {without(box.x1, pad_x), without(box.y1, pad_y), without(box.x2, pad_x),
             without(box.y2, pad_y)};
  }
  return scaled(clipped(whole), height, width);
}

DetectionFiles::DetectionFiles(const SaveOutputParameter& p, const std::string& folder, int classes,
                               int background)
    : p_(p), classes_(classes), background_(background) {
  const std::string& format = p.output_format();
  require(format == "VOC" || format == "COCO" || format == "ILSVRC", "output_format \"", format,
          "\" is not supported: VOC, COCO and ILSVRC are");
  names_ = read_names(find_file(p.label_map_file(), folder));
  images_ = read_name_size_file(find_file(p.name_size_file(), folder));
  each_ = p.has_num_test_image() ? p.num_test_image() : images_.size();
  require(each_ > 0 && each_ <= images_.size(), "num_test_image is ", each_,
          ", but name_size_file has ", images_.size(), " images");
  if (p.has_resize_param() && p.resize_param().resize_mode() != ResizeParameter::WARP) {
    require(p.resize_param().height() > 0 && p.resize_param().width() > 0,
            "save_output_param's resize_param needs height and width above 0");
  }
  std::error_code error;
  std::filesystem::create_directories(p.output_directory(), error);
  require(!error, "cannot make the folder ", p.output_directory(), ": ", error.message());
}

const std::string& DetectionFiles::name_of(int label) const {
  const auto found = names_.find(label);
  require(found != names_.end(), "class ", label, " has no name in ", p_.label_map_file());
  return found->second;
}

void DetectionFiles::add(const std::vector<Detection>& found) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const ImageSize& image = images_[next_];
  const ResizeParameter* resize = p_.has_resize_param() ? &p_.resize_param() : nullptr;
  for (const Detection& d : found) {
    const Box b = in_pixels(d.box, image.height, image.width, resize);
    lines_.push_back({image.name, d.label, d.score, hundredths(b.x1), hundredths(b.y1),
                      hundredths(b.x2 - b.x1), hundredths(b.y2 - b.y1)});
  }
  if (++next_ < each_) return;
  write();
  next_ = 0;
  lines_.clear();
}

void DetectionFiles::write() const {
  const std::string start = p_.output_directory() + "/" + p_.output_name_prefix();
  if (p_.output_format() == "COCO") return write_file_atomically(start + ".json", coco());
  if (p_.output_format() == "ILSVRC") return write_file_atomically(start + ".txt", ilsvrc());
  for (int label = 0; label < classes_; ++label) {
    if (label != background_) write_file_atomically(start + name_of(label) + ".txt", voc(label));
  }
}

namespace {

// The upper left corner and the side lengths in whole pixels, as in Caffe.
std::string corners(float left, float top, float width, float height) {
  const int x = static_cast<int>(left), y = static_cast<int>(top);
  return cat(" ", x, " ", y, " ", x + static_cast<int>(width), " ", y + static_cast<int>(height),
             "\n");
}

}  // namespace

// image score left top right bottom
std::string DetectionFiles::voc(int label) const {
  std::string text;
  for (const Line& l : lines_) {
    if (l.label == label)
      text += cat(l.image, " ", l.score, corners(l.left, l.top, l.width, l.height));
  }
  return text;
}

// image label score left top right bottom
std::string DetectionFiles::ilsvrc() const {
  std::string text;
  for (const Line& l : lines_)
    text += cat(l.image, " ", l.label, " ", l.score, corners(l.left, l.top, l.width, l.height));
  return text;
}

std::string DetectionFiles::coco() const {
  std::vector<std::string> items;
  for (const Line& l : lines_) {
    items.push_back(cat("  {\"image_id\": ", json(l.image), ", \"category_id\": ",
                        json(name_of(l.label)), ", \"bbox\": [", l.left, ", ", l.top, ", ", l.width,
                        ", ", l.height, "], \"score\": ", l.score, "}"));
  }
  return "[\n" + join(items, ",\n") + "\n]\n";
}

}  // namespace crema
