#include <memory>

#include "base/error.h"
#include "data/convert/class_folders.h"
#include "data/convert/convert.h"
#include "data/convert/convert_list.h"
#include "data/convert/shared_class_names.h"

namespace crema {
namespace {

ImagesetResult convert_images(const std::string& list, const std::string& root,
                              const std::vector<ListedImage>& lines, const std::string& database,
                              const ImagesetOptions& options, Log& log) {
  return convert_list(
      list, root, lines, database, options, log, Datum(),
      [&](const ListedImage& line, const std::string& path, google::protobuf::Message& record) {
        auto& datum = static_cast<Datum&>(record);
        ConvertedImage image = convert_image(path, options, datum);
        set_labels(line, datum);
        return image;
      });
}

}  // namespace

ImagesetResult convert_imageset(const std::string& root, const std::string& list,
                                const std::string& database, const ImagesetOptions& options,
                                Log& log) {
  const std::vector<ListedImage> lines = read_class_list(list);
  if (const size_t labels = lines[0].labels.size(); labels > 0) {
    log.info(cat("Each image has ", labels,
                 labels == 1 ? " label, a real number" : " labels, real numbers"));
  }
  return convert_images(list, root, lines, database, options, log);
}

ImagesetResult convert_class_folders(const std::string& root, const std::string& database,
                                     const ImagesetOptions& options, Log& log) {
  const ClassFolders folders = read_class_folders(root, log);
  const SharedClassNames names(database, folders.classes, root, options.to.format.overwrite);
  log.info(cat("The names of the ", folders.classes.size(), " classes go into ", names.path(),
               " and into the database"));
  if (!options.shuffle && options.to.split == 0 && folders.classes.size() > 1) {
    log.warning(
        "The records are in the order of their classes: -shuffle mixes them for training, "
        "so does `shuffle: true` in data_param");
  }
  const std::string top = root.empty() || ends_with(root, "/") ? root : root + "/";
  ImagesetOptions named = options;
  named.to.format.classes = folders.classes;
  const ImagesetResult result = convert_images(root, top, folders.images, database, named, log);
  names.write();
  return result;
}

}  // namespace crema
