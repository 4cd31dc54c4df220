// `crema convert_imageset ROOT/ LIST DB`: converts the images of a list of `path label` lines into
// a database, or without a list those in the folders of ROOT, one for each class. As in Caffe, the exit code is 0 even when some images had to be left out; -strict
// makes it 1.
#include <malloc.h>

#include "tools/convert_flags.h"

namespace crema {
namespace {

int run_convert_imageset(const VerbCall& call) {
  const std::vector<std::string>& given = call.arguments;
  const ImagesetOptions options = imageset_options(call);
  // Pictures and records come and go by the thousand: their memory stays with the program. Asking
  // the system for it each time took a quarter of the run.
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
     .usage = "[flags] ROOT_FOLDER/ [LIST] DB",
     .flags = {"backend",         "gray",       "shuffle",   "resize_width",  "resize_height",
               "scaled_decoding", "check_size", "encoded",   "encode_type",   "exif",
               "as_stored",       "max_pixels", "strict",    "split",         "seed",
               "threads",         "overwrite",  "hdf5_rows", "hdf5_compress", "scale"},
     .min_arguments = 2,
     .max_arguments = 3,
     .run = run_convert_imageset});

}  // namespace
}  // namespace crema
