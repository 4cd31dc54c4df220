// `crema convert_cifar_data IN OUT lmdb`: converts CIFAR-10's binary files in the folder IN into
// OUT/cifar10_train_lmdb and OUT/cifar10_test_lmdb.
#include "data/convert/convert.h"
#include "tools/verb.h"

namespace crema {
namespace {

int run_convert_cifar_data(const VerbCall& call) {
  convert_cifar(call.arguments[0], call.arguments[1], backend_named(call.arguments[2]), call.log);
  return 0;
}

REGISTER_VERB(convert_cifar_data, {.summary = "makes databases from CIFAR-10's binary files",
                                   .usage = "IN_FOLDER OUT_FOLDER lmdb|leveldb",
                                   .min_arguments = 3,
                                   .max_arguments = 3,
                                   .run = run_convert_cifar_data});

}  // namespace
}  // namespace crema
