#include <cstring>

#include "base/strings.h"
#include "exchange/c/export.h"
#include "exchange/c/operator_emit.h"

namespace crema {

namespace {

constexpr size_t kColumns = 100;

// Text of an initializer, in lines of a readable length.
template <typename Value, typename Text>
std::string list_of(const std::vector<Value>& values, const Text& text_of) {
  std::string text, line = "   ";
  for (const Value& value : values) {
    const std::string one = text_of(value) + ",";
    if (line.size() + one.size() + 1 > kColumns) {
      text += line + "\n";
      line = "   ";
    }
    line += " " + one;
  }
  return text + line + "\n";
}

std::string constant_text(const CConstant& constant) {
  if (constant.type == CType::real)
    return c_array("static const float " + constant.name, constant.floats);
  return cat(
      "static const ", c_name(constant.type), " ", constant.name, "[", constant.count(), "] = {\n",
      list_of(constant.ints,
              [](int32_t value) {
                // The smallest number is no literal.
                return value == INT32_MIN ? std::string("-2147483647 - 1") : std::to_string(value);
              }),
      "};\n");
}

class NetText {
 public:
  NetText(const CProgram& program, bool weights_file)
      : program_(program), weights_file_(weights_file) {}

  std::string run() {
    std::string text = constants();
    text += "\nstruct " + program_.prefix + "_arena {\n";
    const char* const members[] = {"floats", "ints"};
    const char* const types[] = {"float", "int32_t"};
    for (int part = 0; part < kArenaParts; ++part)
      if (program_.arena[part] > 0)
        text += cat("  ", types[part], " ", members[part], "[", program_.arena[part], "];\n");
    if (program_.arena_bytes() == 0) text += "  float nothing;\n";
    text += "};\n";
    text += cat("\nvoid ", program_.prefix, "_run_in(void *memory, ",
                c_parameters(program_, weights_file_), ") {\n");
    text += pointers(program_.inference, false);
    for (const CCall& call : program_.inference.calls) text += call_text(call);
    text += "}\n";
    return program_.training ? text + training() : text;
  }

 private:
  std::string training() {
    const CTraining& training = *program_.training;
    std::string text = cat("\nfloat ", program_.prefix,
                           "_learning_rate(int32_t iteration) {\n  (void)iteration;\n  return ",
                           training.rate, ";\n}\n");
    text += cat("\nfloat ", program_.prefix, "_train_in(void *memory, ",
                c_training_parameters(program_, weights_file_), ") {\n");
    text += pointers(training.routine, true) + "  float loss = 0;\n  (void)iteration;\n";
    text += training.setup;
    for (const CCall& call : training.routine.calls) text += call_text(call);
    return text + "\n  return loss;\n}\n";
  }

  std::string constants() const {
    std::string text;
    size_t at = program_.trained_bytes() / 4;
    if (program_.training && !weights_file_)
      text += c_array("float " + trained_array(), program_.training->first_weights);
    for (const CConstant& constant : program_.constants) {
      if (weights_file_) {
        const std::string from = cat("(weights + ", at, ")");
        text += cat("#define ", constant.name, " ",
                    constant.type == CType::real
                        ? from
                        : cat("((const ", c_name(constant.type), " *)(const void *)", from, ")"),
                    "\n");
        at += constant.words();
      } else {
        text += constant_text(constant);
      }
    }
    return text.empty() ? text : "\n" + text;
  }

  // The trained weights come first in the file.
  std::string trained_array() const { return program_.prefix + "_trained"; }

  // The values of the arena, and the weights that training changes, that calls name.
  std::string pointers(const CRoutine& routine, bool trains) {
    std::set<int> used;
    for (const CCall& call : routine.calls) {
      for (const CArgument& argument : call.arguments) {
        if (argument.kind != CArgument::Kind::value) continue;
        used.insert(argument.index);
        read_.insert(program_.root_of(argument.index));
      }
    }
    std::string text;
    bool in_arena = false;
    for (const int id : used) {
      const CValue& value = program_.values[id];
      if (value.root < 0 &&
          (value.memory == CValue::Memory::input || value.memory == CValue::Memory::output))
        continue;  // a parameter of the function
      int64_t shift = 0;
      int root = id;
      for (; program_.values[root].root >= 0; root = program_.values[root].root)
        shift += program_.values[root].shift;
      const CValue& whole = program_.values[root];
      std::string from = whole.name;
      if (whole.memory == CValue::Memory::arena) {
        from = arena_part(value.type) == CArenaPart::ints ? "arena->ints" : "arena->floats";
        if (!is_byte(value.type))
          shift += whole.offset;
        else
          from = cat("(", c_name(value.type), " *)", whole.offset > 0 ? "(" : "", from,
                     whole.offset > 0 ? cat(" + ", whole.offset, ")") : "");
        in_arena = true;
      } else if (whole.memory == CValue::Memory::trained) {
        from = weights_file_ ? "weights" : trained_array();
        shift += whole.offset;
      }
      const bool constant = whole.memory == CValue::Memory::input ||
                            (whole.memory == CValue::Memory::trained && !trains);
      text += cat("  ", constant ? "const " : "", c_name(value.type), " *const ", value.name, " = ",
                  from, shift > 0 ? cat(" + ", shift) : "", ";\n");
    }
    std::string first = in_arena
                            ? cat("  struct ", program_.prefix, "_arena *const arena = memory;\n")
                            : std::string("  (void)memory;\n");
    for (const int id : routine.inputs)
      if (read_.count(program_.root_of(id)) == 0)
        first += cat("  (void)", program_.values[id].name, ";\n");
    return first + text;
  }

  std::string argument_text(const CArgument& argument) const {
    std::string text =
        argument.kind == CArgument::Kind::value      ? program_.values[argument.index].name
        : argument.kind == CArgument::Kind::constant ? program_.constants[argument.index].name
                                                     : argument.text;
    return argument.shift != 0 ? cat(text, " + ", argument.shift) : text;
  }

  // A call that names a part of the arena through its structure, in a block of its own.
  std::string call_text(const CCall& call) const {
    std::string text;
    if (!call.comment.empty()) text += cat("\n  /* ", comment_text(call.comment), " */\n");
    std::string line = call.function + "(";
    const std::string indent = call.structure.empty() ? "  " : "    ";
    std::vector<std::string> arguments;
    for (const CArgument& argument : call.arguments) arguments.push_back(argument_text(argument));
    if (!call.structure.empty()) arguments.push_back("&shape");
    line = cat(indent, call.adds_loss ? "loss += " : "", line);
    const std::string further(line.size(), ' ');
    std::string written;
    for (size_t i = 0; i < arguments.size(); ++i) {
      const std::string one = arguments[i] + (i + 1 < arguments.size() ? "," : ");");
      if (line.size() + one.size() + 1 > kColumns && !trim(line).empty()) {
        written += line + "\n";
        line = further + one;
      } else {
        line += (i > 0 ? " " : "") + one;
      }
    }
    written += line + "\n";
    if (call.structure.empty()) return text + written;
    text += cat("  {\n    static const struct ", call.structure, " shape = {\n");
    for (const std::string& field : split(call.fields, '\n')) text += cat("        ", field, "\n");
    return text + "    };\n" + written + "  }\n";
  }

  static std::string comment_text(std::string text) {
    for (size_t at = text.find("*/"); at != std::string::npos; at = text.find("*/")) text[at] = '+';
    for (size_t at = text.find("/*"); at != std::string::npos; at = text.find("/*"))
      text[at + 1] = '+';
    return text;
  }

  const CProgram& program_;
  const bool weights_file_;
  std::set<int> read_;  // roots
};

}  // namespace

std::string c_array(const std::string& name, const std::vector<float>& values) {
  return cat(name, "[", values.size(), "] = {\n", list_of(values, c_float), "};\n");
}

std::string c_parameters(const CProgram& program, bool weights_file) {
  std::vector<std::string> parts;
  if (weights_file) parts.emplace_back("const float *weights");
  for (const int id : program.inference.inputs)
    parts.push_back(cat("const ", c_name(program.values[id].type), " *", program.values[id].name));
  for (const int id : program.inference.outputs)
    parts.push_back(
        cat(c_name(program.values[id].type), " *", program.values[program.root_of(id)].name));
  return join(parts, ", ");
}

std::string c_training_parameters(const CProgram& program, bool weights_file) {
  std::vector<std::string> parts;
  if (weights_file) parts.emplace_back("float *weights");
  for (const int id : program.training->routine.inputs)
    parts.push_back("const float *" + program.values[id].name);
  parts.emplace_back("int32_t iteration");
  parts.emplace_back("float learning_rate");
  return join(parts, ", ");
}

std::string c_net_text(const CProgram& program, bool weights_file) {
  return NetText(program, weights_file).run();
}

}  // namespace crema
