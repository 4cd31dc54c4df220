#include "base/error.h"
#include "base/files.h"
#include "data/convert/annotations/annotations.h"
#include "data/convert/convert.h"
#include "data/convert/convert_list.h"

namespace crema {

void add_object(AnnotatedDatum& record, int label, const std::string& name, const Corners& corners,
                bool difficult, const std::string& where, Log& log) {
  AnnotationGroup* group = nullptr;
  for (AnnotationGroup& known : *record.mutable_annotation_group()) {
    if (known.group_label() == label) group = &known;
  }
  if (!group) {
    group = record.add_annotation_group();
    group->set_group_label(label);
  }
  Annotation& annotation = *group->add_annotation();
  annotation.set_instance_id(group->annotation_size() - 1);
  NormalizedBBox& box = *annotation.mutable_bbox();
  box.set_xmin(static_cast<float>(corners.xmin));
  box.set_ymin(static_cast<float>(corners.ymin));
  box.set_xmax(static_cast<float>(corners.xmax));
  box.set_ymax(static_cast<float>(corners.ymax));
  box.set_difficult(difficult);
  if (box.xmin() < 0 || box.ymin() < 0 || box.xmax() > 1 || box.ymax() > 1 ||
      box.xmin() >= box.xmax() || box.ymin() >= box.ymax()) {
    log.warning(cat(where, ": the box of a \"", name, "\" is empty or reaches beyond the image"));
  }
}

std::vector<ListedImage> read_annotation_list(const std::string& root, const std::string& list,
                                              Log& log) {
  std::vector<ListedImage> images = read_pair_list(list);
  size_t without = 0;
  std::string missing;
  for (ListedImage& image : images) {
    if (file_exists(root + image.label_path)) continue;
    if (without++ == 0) missing = root + image.label_path;
    image.label_path.clear();
  }
  require(without < images.size(), list, ": not one of its ", images.size(),
          " annotations is there, such as ", missing, "; the paths follow ",
          root.empty() ? "the working directory" : root);
  if (without > 0)
    log.warning(cat(without, " of ", images.size(), " annotations are not there, such as ", missing,
                    "; these images have no object."));
  return images;
}

ImagesetResult convert_annotated(const std::string& list, const std::string& root,
                                 const std::vector<ListedImage>& images,
                                 const Annotations& annotations, const std::string& database,
                                 const ImagesetOptions& options, Log& log) {
  return convert_list(
      list, root, images, database, options, log, AnnotatedDatum(),
      [&](const ListedImage& line, const std::string& path, google::protobuf::Message& message) {
        auto& record = static_cast<AnnotatedDatum&>(message);
        record.Clear();
        const ConvertedImage image = convert_image(path, options, *record.mutable_datum());
        record.mutable_datum()->set_label(-1);
        record.set_type(AnnotatedDatum::BBOX);
        annotations.annotate(line, image, record, log);
        return image;
      });
}

ImagesetResult convert_annoset(const std::string& root, const std::string& list,
                               const std::string& label_map, bool check_label,
                               const std::string& database, const ImagesetOptions& options,
                               Log& log, AnnotationFormat format) {
  require(options.to.format.backend != DataParameter::HDF5, database,
          ": HDF5 files for HDF5Data hold no boxes; write an LMDB or LevelDB");
  const ClassNumbers labels(label_map, check_label);
  std::unique_ptr<Annotations> annotations;
  switch (format) {
    case AnnotationFormat::voc:
      annotations = voc_annotations(root, read_annotation_list(root, list, log), labels);
      break;
    case AnnotationFormat::text:
      annotations = text_annotations(root, list, labels, log);
      break;
    case AnnotationFormat::json:
      annotations = json_annotations(root, list, labels, log);
      break;
    case AnnotationFormat::coco:
      annotations = coco_annotations(list, labels, log);
      break;
    case AnnotationFormat::yolo:
      annotations = yolo_annotations(root, read_yolo_list(root, list, log), labels);
      break;
  }
  ImagesetOptions named = options;
  named.to.format.classes = labels.names();
  return convert_annotated(list, root, annotations->images(), *annotations, database, named, log);
}

ImagesetResult convert_annoset_of_classes(const std::string& root, const std::string& list,
                                          const std::string& database,
                                          const ImagesetOptions& options, Log& log) {
  require(options.to.format.backend != DataParameter::HDF5, database,
          ": HDF5 files hold no AnnotatedDatum messages; write an LMDB or LevelDB");
  return convert_list(
      list, root, read_class_list(list), database, options, log, AnnotatedDatum(),
      [&](const ListedImage& line, const std::string& path, google::protobuf::Message& message) {
        auto& record = static_cast<AnnotatedDatum&>(message);
        const ConvertedImage image = convert_image(path, options, *record.mutable_datum());
        set_labels(line, *record.mutable_datum());
        return image;
      });
}

}  // namespace crema
