// Compiles the layer rows of tests/layers/rows to C, many in one program, and compares what it computes
// with Crema:  c_rows FOLDER [NAME...]
// Prints a line for each row that differs, and how many there are; exit code 1 if one differs, if the
// compiler warns, or if other rows are refused than c_refused.rows says. $CC is the compiler; $CFLAGS
// are more flags; $RUN runs a program, such as an emulator.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <set>

#include "base/files.h"
#include "exchange/c/export.h"
#include "exchange/c/functions.h"
#include "exchange/c/lower.h"
#include "exchange/onnx/export.h"
#include "exchange/programs.h"
#include "exchange/row_nets.h"
#include "net/plan/plan.h"

namespace crema {
namespace {

constexpr size_t kNetsOfProgram = 120;

// Rows whose results ONNX leaves open: of two values for one place either may stay.
const std::set<std::string> kOpen = {"upsample_mask_twice"};

struct CRow {
  Row row;
  CProgram program;
  std::vector<float> inputs;
  std::vector<std::vector<float>> results;  // Crema's
};

// Rows that are refused, with a part of the message.
std::map<std::string, std::string> refused_rows() {
  std::map<std::string, std::string> refused;
  for (const std::string& line :
       split(read_text(CREMA_TEST_DATA "/exchange/c_refused.rows"), '\n')) {
    const std::vector<std::string> parts = split(line, '|');
    if (line.empty() || line[0] == '#') continue;
    refused[std::string(trim(parts[0]))] = trim(parts[1]);
  }
  return refused;
}

class CRows {
 public:
  explicit CRows(std::string folder) : folder_(std::move(folder)), refused_(refused_rows()) {}

  void add(const Row& row) {
    Context context(Device::cpu);
    context.set_log(silent_log());
    if (const std::unique_ptr<Net> net = net_of_row(context, row)) add(context, *net, row);
  }

  // A net whose layers have 8-bit integers between them, and no floats but those of a single call.
  void add_integer_net() {
    Context context(Device::cpu);
    context.set_log(silent_log());
    Row row;
    row.file = "integer";
    row.name = "net";
    row.bottoms = {{Shape{2, 3, 26, 25}}};
    const size_t before = rows_.size();
    add(context, *net_of_text(context, read_text(CREMA_TEST_DATA "/exchange/c_integers.prototxt")),
        row);
    if (rows_.size() == before) return complain(row, "is not compiled");
    const CProgram& program = rows_.back().program;
    for (const CCall& call : program.inference.calls)
      for (const CArgument& argument : call.arguments)
        if (argument.kind == CArgument::Kind::value)
          if (const CValue& value = program.values[program.root_of(argument.index)];
              value.memory == CValue::Memory::arena && !is_byte(value.type) &&
              !ends_with(value.name, "_scratch"))
            complain(row, cat("has floats in ", value.name));
  }

  void add(Context& context, Net& owned, const Row& row) {
    Net* const net = &owned;
    CRow one{row, {}, {}, {}};
    onnx::ModelProto model;
    try {
      OnnxOptions options;
      options.opset = 21;
      options.any_batch = false;
      options.for_c = true;
      model = export_onnx(*net, options).model;
    } catch (const Error&) {
      return;  // onnx_rows.py knows which layers ONNX cannot express
    }
    const auto known = refused_.find(row.id());
    try {
      one.program = lower_to_c(context, model, cat("n", rows_.size()));
      if (known != refused_.end()) complain(row, "is no longer refused");
    } catch (const Error& error) {
      ++refusals_;
      if (known == refused_.end() ||
          std::string(error.what()).find(known->second) == std::string::npos)
        complain(row, cat("is refused: ", error.what()));
      return;
    }
    set_row_inputs(*net, row);
    net->forward(0);
    const auto values_of = [&](const std::string& blob) {
      for (const auto& [id, name] : ids_of(*net))
        if (name == blob) return to_floats(context, net->plan().value(id));
      fail("no blob ", blob);
    };
    for (const int id : one.program.inference.inputs) {
      const std::vector<float> values = values_of(one.program.values[id].blob);
      one.inputs.insert(one.inputs.end(), values.begin(), values.end());
    }
    for (const int id : one.program.inference.outputs)
      one.results.push_back(values_of(one.program.values[id].blob));
    rows_.push_back(std::move(one));
  }

  // Each file of C functions uses all that it needs: of others the compiler would warn.
  void check_functions() {
    for (const auto& [name, text] : c_function_texts()) {
      CProgram program;
      program.inference.calls.emplace_back().file = name;
      const std::string all = c_functions({&program});
      for (size_t at = all.find("static "); at != std::string::npos;
           at = all.find("static ", at + 1)) {
        const size_t end = all.find('(', at), begin = all.find_last_of(" *", end) + 1;
        const std::string function = all.substr(begin, end - begin);
        if (function == "name" || function == name || name == "classify_picture") continue;
        if (all.find(function + "(", end) != std::string::npos) continue;
        if (text.find("static") == std::string::npos ||
            text.find(" " + function + "(") != std::string::npos)
          continue;  // a file that only others use
        ++complaints_;
        std::cout << name << ".c does not use " << function << "\n";
      }
    }
  }

  int run() {
    for (size_t first = 0; first < rows_.size(); first += kNetsOfProgram)
      run_program(first, std::min(first + kNetsOfProgram, rows_.size()));
    std::cout << rows_.size() << " rows, " << refusals_ << " refused, " << complaints_
              << " complaints\n";
    return complaints_ == 0 && !rows_.empty() ? 0 : 1;
  }

 private:
  static std::vector<std::pair<int, std::string>> ids_of(const Net& net) {
    std::vector<std::pair<int, std::string>> ids;
    const std::vector<std::string> names = onnx_names(net.graph());
    for (size_t id = 0; id < names.size(); ++id) ids.emplace_back(static_cast<int>(id), names[id]);
    return ids;
  }

  void complain(const Row& row, const std::string& what) {
    ++complaints_;
    std::cout << row.id() << " " << what << "\n";
  }

  void run_program(size_t first, size_t end) {
    const std::string name = cat(folder_, "/rows_", first);
    write_program(name + ".c", first, end);
    std::ofstream inputs(name + ".in", std::ios::binary);
    for (size_t i = first; i < end; ++i)
      inputs.write(reinterpret_cast<const char*>(rows_[i].inputs.data()),
                   static_cast<std::streamsize>(rows_[i].inputs.size() * sizeof(float)));
    inputs.close();
    const std::string compile =
        cat(setting("CC", "gcc"), " -std=c99 -Wall -Wextra -pedantic -Werror ",
            setting("CFLAGS", "-O1"), " ", name, ".c -o ", name, " -lm");
    const std::string run = cat(setting("RUN", ""), " ", name, " < ", name, ".in > ", name, ".out");
    if (std::system(compile.c_str()) != 0 || std::system(run.c_str()) != 0) {
      ++complaints_;
      std::cout << name << ".c cannot be compiled and run\n";
      return;
    }
    compare(name + ".out", first, end);
  }

  void write_program(const std::string& path, size_t first, size_t end) {
    std::string text =
        "#include <math.h>\n#include <stddef.h>\n#include <stdint.h>\n#include <stdio.h>\n"
        "#include <stdlib.h>\n#include <string.h>\n";
    std::vector<const CProgram*> programs;
    for (size_t i = first; i < end; ++i) programs.push_back(&rows_[i].program);
    text += c_functions(programs);
    std::string calls;
    for (size_t i = first; i < end; ++i) {
      const CProgram& program = rows_[i].program;
      std::string net = c_net_text(program, false);
      // Only this file calls it.
      net.replace(net.find(cat("void ", program.prefix, "_run_in")), 0, "static ");
      text += net;
      calls += cat("  {\n    void *memory = malloc(", program.arena_bytes() + 4, ");\n");
      std::string arguments = "memory";
      size_t at = 0;
      calls += cat("    float *x = malloc(", 4 * rows_[i].inputs.size() + 4, ");\n");
      for (const int id : program.inference.inputs) {
        arguments += cat(", x + ", at);
        at += program.values[id].shape.count();
      }
      calls += cat("    if (fread(x, 4, ", at, ", stdin) != ", at, ") return 1;\n");
      std::string outputs;
      for (size_t k = 0; k < program.inference.outputs.size(); ++k) {
        const int64_t count = program.values[program.inference.outputs[k]].shape.count();
        calls += cat("    float *y", k, " = malloc(", 4 * count + 4, ");\n");
        arguments += cat(", y", k);
        outputs += cat("    fwrite(y", k, ", 4, ", count, ", stdout);\n    free(y", k, ");\n");
      }
      calls += cat("    ", program.prefix, "_run_in(", arguments, ");\n", outputs,
                   "    free(x);\n    free(memory);\n  }\n");
    }
    write_file_atomically(path, cat(text, "\nint main(void) {\n", calls, "  return 0;\n}\n"));
  }

  void compare(const std::string& path, size_t first, size_t end) {
    const std::string bytes = read_file(path);
    size_t at = 0;
    for (size_t i = first; i < end; ++i) {
      std::string found;
      for (const std::vector<float>& expected : rows_[i].results) {
        std::vector<float> values(expected.size());
        if (at + values.size() * sizeof(float) > bytes.size()) {
          found = "the program ended early";
          break;
        }
        std::copy_n(bytes.data() + at, values.size() * sizeof(float),
                    reinterpret_cast<char*>(values.data()));
        at += values.size() * sizeof(float);
        const std::string one =
            difference_of(expected, values, std::max(1e-5, rows_[i].row.tolerance));
        if (!one.empty()) found = one;
      }
      if (!found.empty()) complain(rows_[i].row, cat("(", rows_[i].program.prefix, ") ", found));
    }
    if (at != bytes.size()) {
      ++complaints_;
      std::cout << path << " has " << bytes.size() << " bytes, not " << at << "\n";
    }
  }

  const std::string folder_;
  const std::map<std::string, std::string> refused_;
  std::vector<CRow> rows_;
  int refusals_ = 0, complaints_ = 0;
};

}  // namespace

int run_c_rows(int argc, char** argv) {
  if (argc < 2) {
    std::cerr << "c_rows FOLDER [NAME...]\n";
    return 2;
  }
  std::filesystem::create_directories(argv[1]);
  const std::set<std::string> wanted(argv + 2, argv + argc);
  CRows rows(argv[1]);
  for (const Row& row : read_rows(CREMA_TEST_DATA "/layers/rows"))
    if (row.error.empty() && kOpen.count(row.id()) == 0 &&
        (wanted.empty() || wanted.count(row.id()) > 0))
      rows.add(row);
  if (wanted.empty()) rows.add_integer_net();
  rows.check_functions();
  return rows.run();
}

}  // namespace crema
