// `crema convert_mnist_siamese_data IMAGES LABELS DB`: pairs of MNIST's images into a LevelDB, as
// Caffe's siamese example reads it.
#include "data/convert/convert.h"
#include "tools/verb.h"

namespace crema {
namespace {

int run(const VerbCall& call) {
  convert_mnist_pairs(call.arguments[0], call.arguments[1], call.arguments[2],
                      DataParameter::LEVELDB, call.log);
  return 0;
}

REGISTER_VERB(convert_mnist_siamese_data,
              {.summary = "makes a LevelDB of pairs from MNIST's IDX files",
               .usage = "IMAGES LABELS DB",
               .least_arguments = 3,
               .most_arguments = 3,
               .run = run});

}  // namespace
}  // namespace crema
