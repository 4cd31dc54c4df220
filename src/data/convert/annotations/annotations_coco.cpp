#include "base/error.h"
#include "data/convert/annotations/annotations.h"
#include "data/convert/annotations/coco_file.h"

namespace crema {
namespace {

struct CocoObject {
  int label = 0;
  const std::string* name = nullptr;
  Corners corners;
  bool crowd = false;
  std::string where;
};

class CocoAnnotations : public Annotations {
 public:
  CocoAnnotations(const std::string& path, const ClassNumbers& labels, Log& log)
      : file_(path), objects_(file_.pictures.size()) {
    for (size_t i = 0; i < file_.pictures.size(); ++i) {
      ListedImage image;
      image.line = static_cast<int64_t>(i) + 1;
      image.path = file_.pictures[i].name;
      images_.push_back(std::move(image));
    }
    size_t strange = 0;
    for (CocoFile::Box& box : file_.boxes) {
      const auto picture = file_.ids.find(box.picture);
      if (picture == file_.ids.end()) {
        ++strange;
        continue;
      }
      const auto category = file_.categories.find(box.category);
      if (category == file_.categories.end())
        fail(box.where, ": the category ", box.category, " is not one of \"categories\"");
      const int* label = labels.find(cat(box.category));
      const CocoFile::Picture& size = file_.pictures[picture->second];
      const Corners corners{box.left / size.width, box.top / size.height,
                            (box.left + box.width) / size.width,
                            (box.top + box.height) / size.height};
      const int number =
          labels.find(category->second) || !label ? labels.of(box.where, category->second) : *label;
      objects_[picture->second].push_back(
          {number, &category->second, corners, box.crowd, std::move(box.where)});
    }
    if (strange > 0)
      log.warning(cat(path, ": ", strange, " of ", file_.boxes.size(),
                      " boxes belong to images that it does not list; they are left out."));
    file_.boxes.clear();
  }

  void annotate(const ListedImage& image, const ConvertedImage&, AnnotatedDatum& record,
                Log& log) const override {
    for (const CocoObject& object : objects_[static_cast<size_t>(image.line - 1)])
      add_object(record, object.label, *object.name, object.corners, object.crowd, object.where,
                 log);
  }

 private:
  CocoFile file_;
  std::vector<std::vector<CocoObject>> objects_;  // of each image
};

}  // namespace

std::unique_ptr<Annotations> coco_annotations(const std::string& file, const ClassNumbers& labels,
                                              Log& log) {
  return std::make_unique<CocoAnnotations>(file, labels, log);
}

std::vector<std::string> coco_classes(const std::string& file) {
  std::vector<std::string> names;
  for (const auto& [id, name] : CocoFile(file).categories) names.push_back(name);
  return names;
}

}  // namespace crema
