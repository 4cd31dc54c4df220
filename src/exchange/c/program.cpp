#include "exchange/c/program.h"

namespace crema {

const char* c_name(CType type) { return type == CType::real ? "float" : "int32_t"; }

size_t c_size(CType type) { return type == CType::real ? sizeof(float) : sizeof(int32_t); }

int CProgram::root_of(int value) const {
  while (values[value].root >= 0) value = values[value].root;
  return value;
}

size_t CProgram::arena_bytes() const {
  size_t bytes = 0;
  for (int type = 0; type < kCTypes; ++type) bytes += arena[type] * c_size(CType(type));
  return bytes;
}

size_t CProgram::constant_bytes() const {
  size_t bytes = 0;
  for (const CConstant& constant : constants) bytes += constant.bytes();
  return bytes;
}

size_t CProgram::floats() const {
  size_t count = 0;
  for (const CConstant& constant : constants) count += constant.floats.size();
  return count;
}

size_t CProgram::caller_bytes() const {
  size_t bytes = 0;
  for (const std::vector<int>* list : {&inputs, &outputs})
    for (const int value : *list) bytes += values[value].shape.count() * c_size(values[value].type);
  return bytes;
}

}  // namespace crema
