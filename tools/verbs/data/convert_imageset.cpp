// `crema convert_imageset ROOT/ LIST DB`: converts the images of a list of `path label` lines into
// a database, or without a list those in the folders of ROOT, one for each class. As in Caffe, the exit code is 0 even when some images had to be left out; -strict
// makes it 1.
#include <malloc.h>

#include "tools/flags/convert_flags.h"

namespace crema {
namespace {

using ConvertImagesetFlags =
    FlagsOf<"backend", "gray", "shuffle", "resize_width", "resize_height", "scaled_decoding",
            "check_size", "encoded", "encode_type", "exif", "as_stored", "max_pixels", "strict",
            "split", "seed", "threads", "overwrite", "hdf5_rows", "hdf5_compress", "scale">;

int number_of_word(const std::string& word, const char* what) {
  int number = 0;
  const char* const end = word.data() + word.size();
  const auto [rest, problem] = std::from_chars(word.data(), end, number);
  require(problem == std::errc() && rest == end && number >= 0, "\"", word, "\": expected ", what);
  return number;
}

// Caffe of 2013 and 2014 took arguments instead of flags: 0 or 1 for shuffling, the kind of database,
// the height and the width.
ImagesetOptions options_of(const VerbCall& call, const ConvertImagesetFlags& flags) {
  const std::vector<std::string>& given = call.arguments;
  constexpr const char* settings[] = {"shuffle", "backend", "resize_height", "resize_width"};
  for (size_t i = 3; i < given.size(); ++i)
    require(call.given.count(settings[i - 3]) == 0, "-", settings[i - 3], " and the argument \"",
            given[i], "\" set the same value; keep one of them");
  ImagesetOptions options =
      imageset_options(call, ImagesetFlags::without<"min_dim", "max_dim">(flags),
                       given.size() > 4 ? given[4] : flags.backend);
  if (given.size() > 3)
    options.shuffle = number_of_word(given[3], "0 or 1: whether to shuffle") > 0;
  if (given.size() > 5) options.resize_height = number_of_word(given[5], "a height in pixels");
  if (given.size() > 6) options.resize_width = number_of_word(given[6], "a width in pixels");
  return options;
}

int run_convert_imageset(const VerbCall& call, const ConvertImagesetFlags& flags) {
  const std::vector<std::string>& given = call.arguments;
  const ImagesetOptions options = options_of(call, flags);
  // Thousands of pictures and records are allocated and freed: the program keeps their memory.
  // Requesting it from the system each time took a quarter of the run.
  mallopt(M_MMAP_THRESHOLD, 32 << 20);
  mallopt(M_TRIM_THRESHOLD, 256 << 20);
  if (given.size() == 2) {
    convert_class_folders(given[0], given[1], options, call.log);
  } else {
    convert_imageset(given[0], given[1], given[2], options, call.log);
  }
  return 0;
}

REGISTER_VERB(
    convert_imageset,
    {.summary = "makes a database from image files",
     .usage = "[flags] ROOT_FOLDER/ [LIST] DB [0|1 for shuffle [KIND [HEIGHT [WIDTH]]]]",
     .example = "crema convert_imageset -resize_width 256 -resize_height 256 -split 0.9 pictures/ "
                "pictures_lmdb",
     .meanings = {{"shuffle", "Shuffle the images."},
                  {"seed", "The seed of -split and -shuffle: the same one gives the same order."}},
     .min_arguments = 2,
     .max_arguments = 7,
     .run = run_convert_imageset});

}  // namespace
}  // namespace crema
