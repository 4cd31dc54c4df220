// Boxes around objects, as the usual data sets write them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/log.h"
#include "data/convert/annotations/class_numbers.h"
#include "data/convert/convert.h"
#include "data/convert/convert_image.h"
#include "data/lists/image_list.h"
#include "proto/data.pb.h"

namespace crema {

class Annotations {
 public:
  virtual ~Annotations() = default;
  // The images; their paths are relative to the root.
  const std::vector<ListedImage>& images() const { return images_; }
  // Adds the objects of an image that was read as `read` describes. Thread-safe; the Error names
  // the file, and for formats with lines, line and column.
  virtual void annotate(const ListedImage& image, const ConvertedImage& read,
                        AnnotatedDatum& record, Log& log) const = 0;

 protected:
  std::vector<ListedImage> images_;
};

// Pascal VOC: the label path of an image is an XML file; "": it has no object.
std::unique_ptr<Annotations> voc_annotations(const std::string& root,
                                             std::vector<ListedImage> images,
                                             const ClassNumbers& labels);
// SSD's text files: `list` has lines `image annotation`; a file has lines `class xmin ymin xmax ymax`, with the label
// map's class number and corners in pixels.
std::unique_ptr<Annotations> text_annotations(const std::string& root, const std::string& list,
                                              const ClassNumbers& labels, Log& log);
// SSD's JSON: `list` as above; a file has the objects of one image, as SSD's scripts cut them out
// of COCO's files: {"image": {"width", "height"}, "annotation": [{"bbox": [left, top, width,
// height], "category_id", "iscrowd"}]}. The id is a name of the label map or, if no name there is a
// number, a label.
std::unique_ptr<Annotations> json_annotations(const std::string& root, const std::string& list,
                                              const ClassNumbers& labels, Log& log);
// COCO: `file` has the images, their boxes and the names of the classes. A class is the item of the
// map with its name, or with its number as name, as in SSD's map.
std::unique_ptr<Annotations> coco_annotations(const std::string& file, const ClassNumbers& labels,
                                              Log& log);
// YOLO: the label path of an image is a text with a line `class x y width height` for each object: the
// middle and the size as shares of the image; "": it has no object. Class c is label c + 1, because
// label 0 is the background.
std::unique_ptr<Annotations> yolo_annotations(const std::string& root,
                                              std::vector<ListedImage> images,
                                              const ClassNumbers& labels);

// The names of all classes of a data set: of VOC's objects in the order of the alphabet, of COCO's
// categories in the order of their numbers.
std::vector<std::string> voc_classes(const std::string& root,
                                     const std::vector<ListedImage>& images);
std::vector<std::string> coco_classes(const std::string& file);

// Reads a list of `image annotation`. A line with a missing annotation gets none; a warning counts
// these, and if all are missing it is an Error.
std::vector<ListedImage> read_annotation_list(const std::string& root, const std::string& list,
                                              Log& log);

// Reads a list with lines `image text` of YOLO's, or `image`: then the text of images/a.jpg is
// labels/a.txt. Those that have none are counted by a warning, as above.
std::vector<ListedImage> read_yolo_list(const std::string& root, const std::string& list, Log& log);

// Writes a database of some of the images of `annotations`, as AnnotatedDatum messages. `list` and `root`
// are for messages and paths.
ImagesetResult convert_annotated(const std::string& list, const std::string& root,
                                 const std::vector<ListedImage>& images,
                                 const Annotations& annotations, const std::string& database,
                                 const ImagesetOptions& options, Log& log);

// Corners as shares of the image.
struct Corners {
  double xmin = 0, ymin = 0, xmax = 0, ymax = 0;
};
// Adds an object to the group of its class. A box that is empty or leaves the image is logged as a
// warning that begins with WHERE.
void add_object(AnnotatedDatum& record, int label, const std::string& name, const Corners& corners,
                bool difficult, const std::string& where, Log& log);

}  // namespace crema
