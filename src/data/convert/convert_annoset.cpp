#include <google/protobuf/text_format.h>

#include <charconv>
#include <map>

#include "base/error.h"
#include "base/files.h"
#include "data/convert/convert.h"
#include "data/convert/convert_image.h"
#include "data/images/pixel_limits.h"
#include "data/lists/xml.h"

namespace crema {
namespace {

using Labels = std::map<std::string, int>;  // by name

// check: names and numbers must be unique. Otherwise only a name with two numbers is an error.
Labels read_label_map(const std::string& path, bool check) {
  LabelMap map;
  require(
      google::protobuf::TextFormat::ParseFromString(read_text(path), &map) && map.item_size() > 0,
      path, ": is not a label map: item { name: \"cat\" label: 1 display_name: \"cat\" } ...");
  Labels labels;
  std::map<int, std::string> names;
  for (const LabelMapItem& item : map.item()) {
    const auto [label, is_new] = labels.emplace(item.name(), item.label());
    require(is_new || (!check && label->second == item.label()), path, ": names \"", item.name(),
            "\" twice, for ", label->second, " and ", item.label());
    const auto [name, is_unused] = names.emplace(item.label(), item.name());
    require(is_unused || !check, path, ": gives ", item.label(), " to \"", name->second,
            "\" and to \"", item.name(), "\"");
  }
  return labels;
}

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

// Adds the objects of a Pascal VOC file to the record.
void annotate(const std::string& path, const Labels& labels, AnnotatedDatum& record, Log& log) {
  const pugi::xml_document document = read_xml(path);
  const pugi::xml_node file = document.document_element(), size = file.child("size");
  require(size, path, ": has no <size>; is it a Pascal VOC annotation?");
  const float width = number_of(path, size, "width"), height = number_of(path, size, "height");
  require(width > 0 && height > 0, path, ": the <size> is ", width, "x", height,
          "; width and height must be above 0");
  record.set_type(AnnotatedDatum::BBOX);
  std::map<int, AnnotationGroup*> groups;
  for (const pugi::xml_node object : file.children("object")) {
    const std::string name = object.child_value("name");
    const auto label = labels.find(name);
    if (label == labels.end()) {
      std::vector<std::string> names;
      for (const auto& [known, number] : labels) names.push_back(known);
      fail(path, ": the label map has no \"", name, "\"", did_you_mean(name, names));
    }
    const pugi::xml_node bounds = object.child("bndbox");
    require(bounds, path, ": an <object> has no <bndbox>");
    NormalizedBBox box;
    box.set_xmin(number_of(path, bounds, "xmin") / width);
    box.set_ymin(number_of(path, bounds, "ymin") / height);
    box.set_xmax(number_of(path, bounds, "xmax") / width);
    box.set_ymax(number_of(path, bounds, "ymax") / height);
    box.set_difficult(std::string_view(object.child_value("difficult")) == "1");
    if (box.xmin() < 0 || box.ymin() < 0 || box.xmax() > 1 || box.ymax() > 1 ||
        box.xmin() >= box.xmax() || box.ymin() >= box.ymax()) {
      log.warning(cat(path, ": the box of a \"", name, "\" is empty or reaches beyond the image"));
    }
    AnnotationGroup*& group = groups[label->second];
    if (!group) {
      group = record.add_annotation_group();
      group->set_group_label(label->second);
    }
    Annotation& annotation = *group->add_annotation();
    annotation.set_instance_id(group->annotation_size() - 1);
    *annotation.mutable_bbox() = box;
  }
}

}  // namespace

ImagesetResult convert_annoset(const std::string& root, const std::string& list,
                               const std::string& label_map, bool check_label,
                               const std::string& database, const ImagesetOptions& options,
                               Log& log) {
  require(options.to.format.backend != DataParameter::HDF5, database,
          ": HDF5 files for HDF5Data hold no boxes; write an LMDB or LevelDB");
  const Labels labels = read_label_map(label_map, check_label);
  const std::vector<ListedImage> lines = read_pair_list(list);
  AnnotatedDatum record;
  return convert_list(list, root, lines, database, options, log, record,
                      [&](const ListedImage& line, const std::string& path) {
                        record.Clear();
                        ConvertedImage image =
                            convert_image(path, -1, options, *record.mutable_datum());
                        annotate(root + line.label_path, labels, record, log);
                        return image;
                      });
}

}  // namespace crema
