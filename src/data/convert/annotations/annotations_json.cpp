#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files.h"
#include "data/convert/annotations/annotations.h"
#include "data/images/pixel_limits.h"

namespace crema {
namespace {

using ObjectJson = nlohmann::json;

ObjectJson parsed(const std::string& path) {
  const std::string text = read_text(path);
  try {
    return ObjectJson::parse(text);
  } catch (const ObjectJson::parse_error& problem) {
    const size_t at = std::min(problem.byte > 0 ? problem.byte - 1 : 0, text.size());
    const std::string before = text.substr(0, at);
    fail(path, ":", std::count(before.begin(), before.end(), '\n') + 1, ":",
         at - (before.rfind('\n') + 1) + 1, ": the file is not JSON here");
  }
}

class JsonAnnotations : public Annotations {
 public:
  JsonAnnotations(const std::string& root, const std::string& list, const ClassNumbers& labels,
                  Log& log)
      : root_(root), labels_(labels) {
    images_ = read_annotation_list(root, list, log);
  }

  void annotate(const ListedImage& image, const ConvertedImage& read, AnnotatedDatum& record,
                Log& log) const override {
    if (image.label_path.empty()) return;
    const std::string path = root_ + image.label_path;
    const ObjectJson file = parsed(path);
    const auto objects = file.find("annotation");
    if (!file.is_object() || objects == file.end() || !objects->is_array())
      fail(path,
           ": has no list \"annotation\", the objects of one image, as SSD's scripts write it",
           file.is_object() && file.contains("annotations")
               ? "; -anno_format coco reads COCO's files whole"
               : "");
    const double width = side(path, file, "width", read.whole_width, log),
                 height = side(path, file, "height", read.whole_height, log);
    for (size_t i = 0; i < objects->size(); ++i)
      add(cat(path, ": annotation[", i, "]"), (*objects)[i], width, height, record, log);
  }

 private:
  // The size in the file, otherwise the image's own.
  static double side(const std::string& path, const ObjectJson& file, const char* key, int64_t read,
                     Log& log) {
    const auto image = file.find("image");
    if (image == file.end() || !image->is_object() || !image->contains(key))
      return static_cast<double>(read);
    const ObjectJson& stated = (*image)[key];
    if (!stated.is_number() || !(stated.get<double>() > 0) || !is_pixel(stated.get<double>()))
      fail(path, ": \"image\" has no number above 0 as \"", key, "\"");
    if (stated.get<double>() != static_cast<double>(read))
      log.warning(
          cat(path, ": the ", key, " of the image is ", read, ", not ", stated.get<double>()));
    return stated.get<double>();
  }

  void add(const std::string& where, const ObjectJson& object, double width, double height,
           AnnotatedDatum& record, Log& log) const {
    require(object.is_object(), where, ": is no object");
    const auto category = object.find("category_id"), bounds = object.find("bbox");
    if (category == object.end() || !(category->is_number_integer() || category->is_string()))
      fail(where, ": has no number or name as \"category_id\"");
    const bool four = bounds != object.end() && bounds->is_array() && bounds->size() == 4 &&
                      std::all_of(bounds->begin(), bounds->end(), [](const ObjectJson& number) {
                        return number.is_number() && is_pixel(number.get<double>());
                      });
    require(four, where, ": needs \"bbox\": [left, top, width, height], in pixels");
    const std::string id =
        category->is_string() ? category->get<std::string>() : cat(category->get<int64_t>());
    const int label = labels_.of_category(where, id);
    const auto at = [&](size_t i) { return (*bounds)[i].get<double>(); };
    const Corners corners{at(0) / width, at(1) / height, (at(0) + at(2)) / width,
                          (at(1) + at(3)) / height};
    const auto crowd = object.find("iscrowd");
    const bool difficult = crowd != object.end() && (*crowd == 1 || *crowd == true);
    add_object(record, label, *labels_.name_of(label), corners, difficult, where, log);
  }

  std::string root_;
  const ClassNumbers& labels_;
};

}  // namespace

std::unique_ptr<Annotations> json_annotations(const std::string& root, const std::string& list,
                                              const ClassNumbers& labels, Log& log) {
  return std::make_unique<JsonAnnotations>(root, list, labels, log);
}

}  // namespace crema
