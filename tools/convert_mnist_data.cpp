// `crema convert_mnist_data IMAGES LABELS DB`: converts MNIST's IDX files into a database.
#include "data/convert/convert.h"
#include "tools/flags.h"
#include "tools/verb.h"

namespace crema {
namespace {

int run_convert_mnist_data(const VerbCall& call) {
  convert_mnist(call.arguments[0], call.arguments[1], call.arguments[2],
                backend_named(FLAGS_backend), call.log);
  return 0;
}

REGISTER_VERB(convert_mnist_data, {.summary = "makes a database from MNIST's IDX files",
                                   .usage = "[-backend lmdb|leveldb] IMAGES LABELS DB",
                                   .flags = {"backend"},
                                   .min_arguments = 3,
                                   .max_arguments = 3,
                                   .run = run_convert_mnist_data});

}  // namespace
}  // namespace crema
