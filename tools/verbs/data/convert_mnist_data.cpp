// `crema convert_mnist_data IMAGES LABELS DB`: converts MNIST's IDX files into a database.
#include "data/databases/class_names.h"
#include "tools/flags/convert_flags.h"

namespace crema {
namespace {

using ConvertMnistDataFlags = FlagsOf<"labels", "backend", "split", "seed", "overwrite",
                                      "hdf5_rows", "hdf5_compress", "scale">;

int run_convert_mnist_data(const VerbCall& call, const ConvertMnistDataFlags& flags) {
  ConvertOptions options = convert_options(call, flags, flags.backend);
  if (!flags.labels.empty()) options.format.classes = read_class_names(flags.labels).names;
  convert_mnist(call.arguments[0], call.arguments[1], call.arguments[2], options, call.log);
  return 0;
}

REGISTER_VERB(convert_mnist_data,
              {.summary = "makes a database from MNIST's IDX files",
               .usage = "[flags] IMAGES LABELS DB",
               .example = "crema convert_mnist_data train-images-idx3-ubyte "
                          "train-labels-idx1-ubyte mnist_train_lmdb",
               .meanings = {{"labels",
                             "A file with the class names, from class 0, one per line. IDX files "
                             "have none; without it reports and classify show numbers."},
                            {"seed", "The seed of -split: the same one gives the same parts."}},
               .min_arguments = 3,
               .max_arguments = 3,
               .run = run_convert_mnist_data});

}  // namespace
}  // namespace crema
