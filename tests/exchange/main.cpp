#include <cstring>
#include <iostream>

#include "exchange/programs.h"

int main(int argc, char** argv) {
  struct Program {
    const char* name;
    int (*run)(int argc, char** argv);
  };
  constexpr Program programs[] = {
      {"c_rows", crema::run_c_rows},           {"c_training", crema::run_c_training},
      {"caffe_rows", crema::run_caffe_rows},   {"import_cases", crema::run_import_cases},
      {"import_rows", crema::run_import_rows}, {"onnx_goldens", crema::run_onnx_goldens},
      {"onnx_rows", crema::run_onnx_rows}};
  for (const Program& program : programs)
    if (argc > 1 && std::strcmp(argv[1], program.name) == 0) return program.run(argc - 1, argv + 1);
  std::cerr << "exchange_cases "
               "c_rows|c_training|caffe_rows|import_cases|import_rows|onnx_goldens|onnx_rows "
               "ARGUMENTS\n";
  return 2;
}
