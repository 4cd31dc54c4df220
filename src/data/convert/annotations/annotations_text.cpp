#include "base/error.h"
#include "data/convert/annotations/annotations.h"
#include "data/lists/word_reader.h"

namespace crema {
namespace {

class TextAnnotations : public Annotations {
 public:
  TextAnnotations(const std::string& root, const std::string& list, const ClassNumbers& labels,
                  Log& log)
      : root_(root), labels_(labels) {
    images_ = read_annotation_list(root, list, log);
  }

  void annotate(const ListedImage& image, const ConvertedImage& read, AnnotatedDatum& record,
                Log& log) const override {
    if (image.label_path.empty()) return;
    const std::string path = root_ + image.label_path;
    const auto width = static_cast<double>(read.whole_width),
               height = static_cast<double>(read.whole_height);
    WordReader reader(path);
    while (!reader.at_end()) {
      const int label = reader.label("the number of a class (`class xmin ymin xmax ymax`)");
      const int64_t line = reader.line();
      const std::string* name = labels_.name_of(label);
      if (!name) reader.wrong(cat("the label map has no label ", label));
      const auto corner = [&](const char* what) {
        const double at = reader.corner<float>(what);
        if (reader.line() != line)
          reader.wrong("a line is `class xmin ymin xmax ymax`, but the one before has fewer words");
        return at;
      };
      Corners corners;
      corners.xmin = corner("xmin of a box") / width;
      corners.ymin = corner("ymin of a box") / height;
      corners.xmax = corner("xmax of a box") / width;
      corners.ymax = corner("ymax of a box") / height;
      add_object(record, label, *name, corners, false, cat(path, ":", line), log);
      if (!reader.at_end() && reader.line() == line)
        reader.wrong("a line is `class xmin ymin xmax ymax`, but this one goes on");
    }
  }

 private:
  std::string root_;
  const ClassNumbers& labels_;
};

}  // namespace

std::unique_ptr<Annotations> text_annotations(const std::string& root, const std::string& list,
                                              const ClassNumbers& labels, Log& log) {
  return std::make_unique<TextAnnotations>(root, list, labels, log);
}

}  // namespace crema
