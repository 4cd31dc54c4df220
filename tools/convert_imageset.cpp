// `crema convert_imageset ROOT/ LIST DB`: converts the images of a list of `path label` lines into
// a database. As in Caffe, the exit code is 0 even when some images had to be left out; -strict
// makes it 1.
#include "tools/convert_flags.h"

namespace crema {
namespace {

int run_convert_imageset(const VerbCall& call) {
  convert_imageset(call.arguments[0], call.arguments[1], call.arguments[2], imageset_options(call),
                   call.log);
  return 0;
}

REGISTER_VERB(convert_imageset,
              {.summary = "makes a database from image files",
               .usage = "[flags] ROOT_FOLDER/ LIST DB",
               .flags = {"backend", "gray", "shuffle", "resize_width", "resize_height",
                         "check_size", "encoded", "encode_type", "max_pixels", "strict", "split",
                         "seed", "overwrite", "hdf5_rows", "hdf5_compress", "scale"},
               .min_arguments = 3,
               .max_arguments = 3,
               .run = run_convert_imageset});

}  // namespace
}  // namespace crema
