#include <charconv>
#include <set>

#include "base/error.h"
#include "data/convert/annotations/annotations.h"
#include "data/images/pixel_limits.h"
#include "data/lists/xml.h"

namespace crema {
namespace {

float number_of(const std::string& path, pugi::xml_node element, const char* name) {
  const std::string text = element.child_value(name);
  float value = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (problem != std::errc() || end != text.data() + text.size())
    fail(path, ": <", element.name(), "> needs a number as <", name, ">, not `", text, "`");
  if (!is_pixel(value))
    fail(path, ": <", name, "> of a <", element.name(), "> is ", text,
         ", farther out than any image reaches");
  return value;
}

class VocAnnotations : public Annotations {
 public:
  VocAnnotations(const std::string& root, std::vector<ListedImage> images,
                 const ClassNumbers& labels)
      : root_(root), labels_(labels) {
    images_ = std::move(images);
  }

  void annotate(const ListedImage& image, const ConvertedImage&, AnnotatedDatum& record,
                Log& log) const override {
    if (image.label_path.empty()) return;
    const std::string path = root_ + image.label_path;
    const pugi::xml_document document = read_xml(path);
    const pugi::xml_node file = document.document_element(), size = file.child("size");
    require(size, path, ": has no <size>; is it a Pascal VOC annotation?");
    const float width = number_of(path, size, "width"), height = number_of(path, size, "height");
    require(width > 0 && height > 0, path, ": the <size> is ", width, "x", height,
            "; width and height must be above 0");
    for (const pugi::xml_node object : file.children("object")) {
      const std::string name = object.child_value("name");
      const int label = labels_.of(path, name);
      const pugi::xml_node bounds = object.child("bndbox");
      require(bounds, path, ": an <object> has no <bndbox>");
      const Corners corners{
          number_of(path, bounds, "xmin") / width, number_of(path, bounds, "ymin") / height,
          number_of(path, bounds, "xmax") / width, number_of(path, bounds, "ymax") / height};
      const bool difficult = std::string_view(object.child_value("difficult")) == "1";
      add_object(record, label, name, corners, difficult, path, log);
    }
  }

 private:
  std::string root_;
  const ClassNumbers& labels_;
};

}  // namespace

std::unique_ptr<Annotations> voc_annotations(const std::string& root,
                                             std::vector<ListedImage> images,
                                             const ClassNumbers& labels) {
  return std::make_unique<VocAnnotations>(root, std::move(images), labels);
}

std::vector<std::string> voc_classes(const std::string& root,
                                     const std::vector<ListedImage>& images) {
  std::set<std::string> names;
  for (const ListedImage& image : images) {
    if (image.label_path.empty()) continue;
    const pugi::xml_document document = read_xml(root + image.label_path);
    for (const pugi::xml_node object : document.document_element().children("object"))
      names.insert(object.child_value("name"));
  }
  return {names.begin(), names.end()};
}

}  // namespace crema
