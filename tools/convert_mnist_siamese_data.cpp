// `crema convert_mnist_siamese_data IMAGES LABELS DB`: converts pairs of MNIST images into a
// LevelDB, as Caffe's siamese example reads it.
#include "data/convert/convert.h"
#include "tools/verb.h"

namespace crema {
namespace {

int run_convert_mnist_siamese_data(const VerbCall& call) {
  convert_mnist_pairs(call.arguments[0], call.arguments[1], call.arguments[2],
                      DataParameter::LEVELDB, call.log);
  return 0;
}

REGISTER_VERB(convert_mnist_siamese_data,
              {.summary = "makes a LevelDB of pairs from MNIST's IDX files",
               .usage = "IMAGES LABELS DB",
               .min_arguments = 3,
               .max_arguments = 3,
               .run = run_convert_mnist_siamese_data});

}  // namespace
}  // namespace crema
