// The programs of exchange_cases: `exchange_cases NAME ARGUMENTS` runs one of them.
#pragma once

namespace crema {

// Each in its own file, which says what its arguments are; argv[0] is its name.
int run_c_rows(int argc, char** argv);
int run_c_training(int argc, char** argv);
int run_caffe_rows(int argc, char** argv);
int run_import_cases(int argc, char** argv);
int run_import_rows(int argc, char** argv);
int run_onnx_goldens(int argc, char** argv);
int run_onnx_rows(int argc, char** argv);

}  // namespace crema
