// `crema convert_mnist_siamese_data IMAGES LABELS DB`: converts pairs of MNIST images into a database,
// a LevelDB unless -backend says otherwise: Caffe's siamese example reads that.
#include "tools/flags/convert_flags.h"

namespace crema {
namespace {

using ConvertMnistSiameseDataFlags =
    FlagsOf<"backend", "overwrite", "hdf5_rows", "hdf5_compress", "scale">;

int run_convert_mnist_siamese_data(const VerbCall& call,
                                   const ConvertMnistSiameseDataFlags& flags) {
  convert_mnist_pairs(call.arguments[0], call.arguments[1], call.arguments[2],
                      convert_options(call, ConvertFlags::without<"split", "seed">(flags),
                                      flags.backend_given ? flags.backend : "leveldb"),
                      call.log);
  return 0;
}

REGISTER_VERB(convert_mnist_siamese_data,
              {.summary = "makes a database of pairs from MNIST's IDX files",
               .usage = "[flags] IMAGES LABELS DB",
               .example = "crema convert_mnist_siamese_data train-images-idx3-ubyte "
                          "train-labels-idx1-ubyte pairs_leveldb",
               .min_arguments = 3,
               .max_arguments = 3,
               .run = run_convert_mnist_siamese_data});

}  // namespace
}  // namespace crema
