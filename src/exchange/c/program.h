// CProgram: a net on its way to C. Operators of an ONNX graph became calls of C functions on values
// of fixed shapes, which plan_memory() gives a place.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tensor/shape.h"

namespace crema {

// The element type of values and constants: float, int32_t for indices, booleans and biases, or integers
// of 8 bits.
enum class CType { real, whole, int8, uint8 };
const char* c_name(CType type);
size_t c_size(CType type);
bool is_byte(CType type);
// The name of a function for elements of a type: copy, copy_whole, copy_int8 or copy_uint8.
std::string name_for(const std::string& function, CType type);

// The arena has an array of floats and one of int32_t. Bytes lie in the one of floats, since C lets
// characters share memory with any type.
enum class CArenaPart { floats, ints };
constexpr int kArenaParts = 2;
CArenaPart arena_part(CType type);

struct CValue {
  std::string blob;  // its name in the net
  std::string name;  // its identifier in C
  Shape shape;
  CType type = CType::real;
  // trained: in the array of weights that training changes.
  enum class Memory { arena, input, output, trained } memory = Memory::arena;
  bool kept =
      false;  // its content stays from one call to the next, as the optimizer's history does
  // The value whose memory holds it, -1: its own, and how many elements it begins behind that one.
  int root = -1;
  int64_t shift = 0;
  int64_t offset = 0;  // a root's place in its part of the arena or among the trained, in elements
};

struct CConstant {
  std::string name;
  CType type = CType::real;
  std::vector<float> floats;
  std::vector<int32_t> ints;

  size_t count() const { return type == CType::real ? floats.size() : ints.size(); }
  size_t bytes() const { return count() * c_size(type); }
  // As the file of weights has it, little-endian, with zeros up to a multiple of four bytes.
  std::string data() const;
  size_t words() const { return (bytes() + 3) / 4; }  // a word has four bytes
};

// An argument of a call: a value, a constant, or text such as a number or NULL.
struct CArgument {
  enum class Kind { value, constant, text } kind = Kind::text;
  int index = 0;  // selects the value or constant
  std::string text;
  bool written = false;  // the function writes it
  int64_t shift = 0;     // elements behind the beginning
};

struct CCall {
  std::string function;
  std::string file;   // in exchange/c/functions; "": the standard library has it
  std::string macro;  // the use of a macro of that file which makes it; "": it is there
  std::vector<CArgument> arguments;
  // The fields of a structure, one per line, and its type; its address is the last argument. "": none.
  std::string structure, fields;
  // The result may have the memory of this value if nothing reads the value later. -1: it may not.
  int over = -1;
  // The call only copies `part` to this place of its result, so the value may be there from the
  // beginning. -1: it does more.
  int part = -1;
  int64_t part_shift = 0;
  bool adds_loss = false;  // its result is a part of the loss
  std::string comment;     // before the first call of a layer's operator; ""
};

// A function that is written: inference, or an iteration of training.
struct CRoutine {
  std::vector<CCall> calls;
  std::vector<int> inputs, outputs;  // values, which the caller has
  int64_t products = 0;              // multiplications with addition
};

// What an iteration of training does besides the calls of functions.
struct CTraining {
  CRoutine routine;
  std::vector<int> trained;          // values: the weights that it changes, in the net's order
  std::vector<float> first_weights;  // theirs, before the first iteration, and mark_of() them
  std::string rate;                  // an expression of `iteration`: the learning rate
  std::string setup;                 // statements before the calls
  uint64_t seed = 0;                 // of random numbers
};

struct CProgram {
  std::string prefix;  // begins every name that other files see
  std::vector<CValue> values;
  std::vector<CConstant> constants;
  CRoutine inference;
  std::optional<CTraining> training;
  int64_t arena[kArenaParts] = {};  // elements, set by plan_memory()

  int root_of(int value) const;
  size_t arena_bytes() const;
  size_t constant_bytes() const;  // with the first weights of training
  // The size of the file of weights, which has the trained ones and then all constants, each from a multiple of four bytes on.
  size_t weights_bytes() const;
  // Inputs and outputs, of whichever function has more.
  size_t caller_bytes() const;
  size_t trained_bytes() const;
};

// Lets values share memory and lays out the arena by lifetime; outputs that have no memory of their own
// get a copy.
void plan_memory(CProgram* program);

}  // namespace crema
