#include "exchange/c/export.h"

#include <cctype>

#include "base/strings.h"
#include "exchange/c/functions.h"
#include "exchange/c/lower.h"
#include "exchange/onnx/export.h"

namespace crema {

namespace {

constexpr const char* kInclude =
    "#include <math.h>\n#include <stddef.h>\n#include <stdint.h>\n#include <string.h>\n";

std::string upper_case(std::string text) {
  for (char& c : text) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return text;
}

std::string one_line_comment(std::string text) {
  for (char& c : text)
    if (c == '\n' || c == '*') c = ' ';
  return text;
}

std::string string_literal(const std::string& text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    result += static_cast<unsigned char>(c) < 32 ? ' ' : c;
    if (c == '?') result += "\"\"";  // no trigraphs
  }
  return result + "\"";
}

// How the caller makes an input of a picture, as far as the net knows.
std::string preparation_text(const InputPreparation& input) {
  const TransformationParameter& p = input.transform_param();
  std::string text;
  if (input.has_channels())
    text += cat(" Planes ", InputPreparation::Channels_Name(input.channels()),
                ", values from 0 to 255");
  std::vector<std::string> means;
  for (const float value : p.mean_value()) means.push_back(cat(value));
  if (!means.empty()) text += cat(", minus ", join(means, ", "));
  if (p.has_mean_file()) text += cat(", minus the mean image ", p.mean_file());
  if (p.scale() != 1) text += cat(", times ", p.scale());
  return text.empty() ? text : text + ".";
}

class FileWriter {
 public:
  FileWriter(const CProgram& program, const COptions& options, const CAbout& about)
      : program_(program), options_(options), about_(about) {}

  std::string header() const {
    const std::string& prefix = program_.prefix;
    const std::string upper = upper_case(prefix), guard = upper + "_H";
    std::string text = about();
    text += cat("#ifndef ", guard, "\n#define ", guard,
                "\n\n#include <stddef.h>\n#include <stdint.h>\n\n",
                "#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n");
    text += sizes(upper);
    const std::string parameters = c_parameters(program_, options_.weights_file);
    text +=
        cat("\n/* Runs the net. Its memory is static, so only one thread may call it at a time. "
            "*/\nvoid ",
            prefix, "_run(", parameters, ");\n");
    text +=
        cat("\n/* The same with memory of the caller: ", upper,
            "_ARENA_SIZE bytes, aligned as for a float. Any number of threads\n   may run the net, "
            "each with its own memory. ",
            program_.training ? "" : "Nothing in it needs to be set or kept. ", "*/\nvoid ", prefix,
            "_run_in(void *memory, ", parameters, ");\n");
    if (program_.training) text += training(upper);
    if (!about_.labels.empty())
      text += cat("\n/* The names of the classes. */\nextern const char *const ", prefix,
                  "_labels[", about_.labels.size(), "];\n");
    return text + "\n#ifdef __cplusplus\n}\n#endif\n\n#endif\n";
  }

  std::string source() const {
    const std::string& prefix = program_.prefix;
    std::string text = about() + cat("#include \"", about_.header, "\"\n\n", kInclude);
    text += c_functions({&program_});
    text += c_net_text(program_, options_.weights_file);
    text += cat("\nstatic struct ", prefix, "_arena ", prefix, "_memory;\n\nvoid ", prefix, "_run(",
                c_parameters(program_, options_.weights_file), ") {\n  ", prefix, "_run_in(&",
                prefix, "_memory");
    if (options_.weights_file) text += ", weights";
    for (const int id : program_.inference.inputs) text += ", " + program_.values[id].name;
    for (const int id : program_.inference.outputs)
      text += ", " + program_.values[program_.root_of(id)].name;
    text += ");\n}\n";
    if (program_.training) {
      text +=
          cat("\nfloat ", prefix, "_train(", c_training_parameters(program_, options_.weights_file),
              ") {\n  return ", prefix, "_train_in(&", prefix, "_memory");
      if (options_.weights_file) text += ", weights";
      for (const int id : program_.training->routine.inputs)
        text += ", " + program_.values[id].name;
      text += ", iteration, learning_rate);\n}\n";
    }
    if (!about_.labels.empty()) {
      text += cat("\nconst char *const ", prefix, "_labels[", about_.labels.size(), "] = {\n");
      for (const std::string& label : about_.labels)
        text += cat("    ", string_literal(label), ",\n");
      text += "};\n";
    }
    return text;
  }

 private:
  // The functions that train, and where the weights are that they change.
  std::string training(const std::string& upper) const {
    const std::string& prefix = program_.prefix;
    const CTraining& training = *program_.training;
    const std::string parameters = c_training_parameters(program_, options_.weights_file);
    std::string text = cat(
        "\n/* Trains with a batch, and returns its loss before that. Iterations count from 0. The "
        "optimizer's\n   history stays in the static memory. */\nfloat ",
        prefix, "_train(", parameters, ");\n",
        "\n/* The same with memory of the caller, which must be zero before the first iteration "
        "and be "
        "kept between\n   iterations. Runs may use it, too. */\nfloat ",
        prefix, "_train_in(void *memory, ", parameters, ");\n",
        "\n/* The learning rate of an iteration, as the solver has it. */\nfloat ", prefix,
        "_learning_rate(int32_t iteration);\n");
    text += cat(
        "\n/* The weights that training changes",
        options_.weights_file ? ", the first ones of the file" : "",
        ": store them to keep what was learned, and bring them back\n   before the net runs "
        "again. From the last value, crema\n   convert_weights knows whose they are. Layers and "
        "their shapes, in Crema's order, and where they begin:\n");
    for (const int id : training.trained) {
      const CValue& value = program_.values[id];
      text += cat("     ", one_line_comment(value.blob), ", ", value.shape.brief(), ": ",
                  value.offset, "\n");
    }
    text += cat("*/\n#define ", upper, "_TRAINED_SIZE ", training.first_weights.size(), "\n");
    if (!options_.weights_file)
      text += cat("extern float ", prefix, "_trained[", upper, "_TRAINED_SIZE];\n");
    return text;
  }

  std::string about() const {
    return cat("/* ", one_line_comment(about_.model), " as C99, written by crema export.\n",
               "   RAM: ", program_.arena_bytes(), " bytes, ",
               program_.training ? cat(program_.trained_bytes(), " of weights in training, ") : "",
               "and ", program_.caller_bytes(),
               " of the caller. Flash: ", program_.constant_bytes(), " bytes of constants",
               options_.weights_file ? ", in the weights file" : "", ", and the code.\n   ",
               int8_text(), program_.inference.products, " multiplications with addition",
               program_.training ? cat(", and ", program_.training->routine.products,
                                       " in an iteration of training")
                                 : "",
               ".  Compile with -O3. */\n");
  }

  std::string int8_text() const {
    size_t bytes = 0;
    for (const CConstant& constant : program_.constants)
      if (constant.type == CType::int8) bytes += constant.bytes();
    return bytes == 0 ? "" : cat("int8: ", bytes, " of these bytes are weights of 8 bits.\n   ");
  }

  std::string sizes(const std::string& upper) const {
    std::string text;
    const auto add = [&](int id, const char* what, const std::string& rest) {
      const CValue& value = program_.values[id];
      const std::string name = cat(starts_with(what, "Input of") ? "train_" : "",
                                   program_.values[program_.root_of(id)].name);
      text += cat("/* ", what, " \"", one_line_comment(value.blob), "\", ", value.shape.brief(),
                  ".", rest, " */\n#define ", upper, "_", upper_case(name), "_SIZE ",
                  value.shape.count(), "\n");
    };
    for (const int id : program_.inference.inputs) {
      std::string rest;
      for (const InputPreparation& input : about_.preparation.input())
        if (input.name() == program_.values[id].blob) rest = preparation_text(input);
      add(id, "Input", rest);
    }
    for (const int id : program_.inference.outputs) add(id, "Result", "");
    if (program_.training)
      for (const int id : program_.training->routine.inputs) add(id, "Input of training", "");
    if (options_.weights_file) {
      text += cat(
          "/* The weights are the content of the binary file, in units of a float. */\n#define ",
          upper, "_WEIGHTS_SIZE ", program_.weights_bytes() / 4, "\n");
    }
    return text + cat("#define ", upper, "_ARENA_SIZE ",
                      std::max<size_t>(program_.arena_bytes(), 4), "\n");
  }

  const CProgram& program_;
  const COptions& options_;
  const CAbout& about_;
};

}  // namespace

std::string c_prefix(const std::string& path) {
  std::string name = path.substr(path.find_last_of('/') + 1);
  name = name.substr(0, name.find_last_of('.'));
  std::string result;
  for (const char c : name) {
    const bool fits = (c & 0x80) == 0 && std::isalnum(static_cast<unsigned char>(c)) != 0;
    result += fits ? static_cast<char>(std::tolower(static_cast<unsigned char>(c))) : '_';
  }
  if (result.empty() || std::isdigit(static_cast<unsigned char>(result[0])) != 0 ||
      result[0] == '_')
    result = "net" + std::string(result.empty() || result[0] == '_' ? "" : "_") + result;
  return result;
}

CProgram compile_to_c(Net& net, const std::string& prefix, const COptions& options) {
  OnnxOptions onnx;
  onnx.opset = 21;
  onnx.any_batch = false;
  onnx.for_c = true;
  onnx.fold = options.fold;
  return lower_to_c(net.context(), export_onnx(net, onnx).model, prefix);
}

CProgram compile_to_c(Net& net, Net& training, const SolverParameter& solver,
                      const std::string& prefix, const COptions& options) {
  const CUpdate update = read_c_update(solver);
  const std::vector<CTrainedParameter> trained = trained_parameters(training);
  OnnxOptions onnx;
  onnx.opset = 21;
  onnx.any_batch = false;
  onnx.for_c = true;
  onnx.fold = options.fold;
  for (const CTrainedParameter& parameter : trained) onnx.trained.insert(parameter.key);
  const OnnxModel inference = export_onnx(net, onnx);
  onnx.training = true;
  return lower_to_c(net.context(), inference, export_onnx(training, onnx), trained, update, prefix);
}

CFiles write_c(const CProgram& program, const COptions& options, const CAbout& about) {
  const FileWriter writer(program, options, about);
  CFiles files{writer.source(), writer.header(), ""};
  if (options.weights_file) {
    if (program.training) {
      const std::vector<float>& first = program.training->first_weights;
      files.weights.assign(reinterpret_cast<const char*>(first.data()), 4 * first.size());
    }
    for (const CConstant& constant : program.constants) files.weights += constant.data();
  }
  return files;
}

}  // namespace crema
