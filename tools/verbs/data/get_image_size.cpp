// `crema get_image_size ROOT/ LIST OUT`: the sizes of images, which DetectionOutput and
// DetectionEvaluate need to write or judge boxes in pixels (name_size_file).
#include <map>

#include "base/error.h"
#include "base/files.h"
#include "data/images/image.h"
#include "data/images/image_header.h"
#include "data/lists/image_list.h"
#include "data/lists/word_reader.h"
#include "tools/verb.h"

namespace crema {
namespace {

using GetImageSizeFlags = FlagsOf<"name_id_file">;

// Upright, as images are read.
ImageExtents size_of_file(const std::string& path) {
  const std::string file = read_file(path);
  if (const std::optional<ImageHeader> header = read_image_header(file)) {
    constexpr int kFirstSideways = 5;  // of EXIF's orientations
    const bool sideways = header->orientation >= kFirstSideways;
    return {0, sideways ? header->width : header->height,
            sideways ? header->height : header->width};
  }
  Image image;
  try {
    decode_image(file, Color::gray, image);
  } catch (const Error& problem) {
    fail(path, ": ", problem.what());
  }
  return {0, image.height, image.width};
}

// "a/b.jpg" -> "b".
std::string stem_of(const std::string& path) {
  const std::string name = path.substr(path.rfind('/') + 1);
  const size_t dot = name.rfind('.');
  return dot == std::string::npos || dot == 0 ? name : name.substr(0, dot);
}

std::map<std::string, int> ids_of_names(const std::string& path) {
  std::map<std::string, int> ids;
  if (path.empty()) return ids;
  WordReader reader(path);
  while (!reader.at_end()) {
    const std::string name(reader.word("the name of an image"));
    const int id = reader.number<int>("the id of an image");
    if (!ids.emplace(name, id).second) reader.wrong(cat("names ", name, " twice"));
  }
  return ids;
}

int run_get_image_size(const VerbCall& call, const GetImageSizeFlags& flags) {
  const std::string &root = call.arguments[0], &list = call.arguments[1], &out = call.arguments[2];
  const std::string between = root.empty() || ends_with(root, "/") ? "" : "/";
  const std::vector<ListedImage> images = read_path_list(list);
  const std::map<std::string, int> ids = ids_of_names(flags.name_id_file);
  call.log.info(cat("A total of ", images.size(), " images."));
  std::string text;
  for (const ListedImage& image : images) {
    const ImageExtents size = size_of_file(cat(root, between, image.path));
    std::string name = stem_of(image.path);
    if (!ids.empty()) {
      const auto id = ids.find(name);
      if (id == ids.end())
        fail(list, ":", image.line, ": ", flags.name_id_file, " has no id for ", name);
      name = cat(id->second);
    }
    text += cat(name, " ", size.height, " ", size.width, "\n");
  }
  write_file_atomically(out, text);
  call.log.info(cat("Processed ", images.size(), " files."));
  return 0;
}

REGISTER_VERB(get_image_size,
              {.summary = "writes the names, heights and widths of images",
               .usage = "[flags] ROOT_FOLDER/ LIST OUT.txt",
               .example = "crema get_image_size VOCdevkit/ test.txt test_name_size.txt",
               .min_arguments = 3,
               .max_arguments = 3,
               .run = run_get_image_size});

}  // namespace
}  // namespace crema
