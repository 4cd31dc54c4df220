#include "exchange/c/program.h"

#include <algorithm>

namespace crema {

const char* c_name(CType type) {
  constexpr const char* kNames[] = {"float", "int32_t", "int8_t", "uint8_t"};
  return kNames[static_cast<int>(type)];
}

size_t c_size(CType type) { return is_byte(type) ? 1 : 4; }

bool is_byte(CType type) { return type == CType::int8 || type == CType::uint8; }

std::string name_for(const std::string& function, CType type) {
  constexpr const char* kEndings[] = {"", "_whole", "_int8", "_uint8"};
  return function + kEndings[static_cast<int>(type)];
}

CArenaPart arena_part(CType type) {
  return type == CType::whole ? CArenaPart::ints : CArenaPart::floats;
}

std::string CConstant::data() const {
  std::string data;
  if (type == CType::real)
    data.assign(reinterpret_cast<const char*>(floats.data()), bytes());
  else if (type == CType::whole)
    data.assign(reinterpret_cast<const char*>(ints.data()), bytes());
  else
    for (const int32_t value : ints) data += static_cast<char>(value);
  data.resize(words() * 4);
  return data;
}

int CProgram::root_of(int value) const {
  while (values[value].root >= 0) value = values[value].root;
  return value;
}

size_t CProgram::arena_bytes() const {
  size_t bytes = 0;
  for (const int64_t elements : arena) bytes += elements * sizeof(float);
  return bytes;
}

size_t CProgram::trained_bytes() const {
  return training ? training->first_weights.size() * sizeof(float) : 0;
}

size_t CProgram::constant_bytes() const {
  size_t bytes = trained_bytes();
  for (const CConstant& constant : constants) bytes += constant.bytes();
  return bytes;
}

size_t CProgram::weights_bytes() const {
  size_t words = trained_bytes() / 4;
  for (const CConstant& constant : constants) words += constant.words();
  return words * 4;
}

size_t CProgram::caller_bytes() const {
  const auto bytes_of = [&](const CRoutine& routine) {
    size_t bytes = 0;
    for (const std::vector<int>* list : {&routine.inputs, &routine.outputs})
      for (const int value : *list)
        bytes += values[value].shape.count() * c_size(values[value].type);
    return bytes;
  };
  return std::max(bytes_of(inference), training ? bytes_of(training->routine) : 0);
}

}  // namespace crema
