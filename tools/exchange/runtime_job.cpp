#include "tools/exchange/runtime_job.h"

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <set>

#include "base/error.h"
#include "base/files.h"
#include "base/strings.h"
#include "base/temporary.h"
#include "proto/onnx.pb.h"
#include "tools/exchange/run_onnx.h"
#include "tools/flags/shell_words.h"

namespace crema {

namespace {

std::string extents_of(const Shape& shape) {
  std::string text;
  for (const int64_t extent : shape.dims()) text += cat(text.empty() ? "" : ",", extent);
  return text;
}

}  // namespace

std::string field_text(const std::string& name) {
  std::string text;
  for (const char c : name) {
    const size_t at = std::string_view("\\\t\n\r").find(c);
    if (at == std::string_view::npos)
      text += c;
    else
      text += {'\\', "\\tnr"[at]};
  }
  return text;
}

RuntimeJob::RuntimeJob(int draws)
    : folder_(make_temporary((std::filesystem::temp_directory_path() / "crema_export").string(),
                             TemporaryEntry::Kind::folder)
                  .path),
      draws_(draws) {
  add_line({"draws", std::to_string(draws)});
}

RuntimeJob::~RuntimeJob() {
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

void RuntimeJob::add_line(const std::vector<std::string>& fields) {
  std::vector<std::string> escaped;
  for (const std::string& field : fields) escaped.push_back(field_text(field));
  lines_ += join(escaped, "\t") + "\n";
}

void RuntimeJob::set_onnx(const std::string& path) {
  add_line({"model", path});
  add_order(path);
}

void RuntimeJob::set_onnx_bytes(const std::string& bytes) {
  write_file_atomically(file("model.onnx"), bytes);
  set_onnx(file("model.onnx"));
}

void RuntimeJob::set_caffe(const std::string& net, const std::string& weights) {
  add_line({"model", net});
  add_line({"weights", weights});
}

void RuntimeJob::add_order(const std::string& path) {
  onnx::ModelProto model;
  require(model.ParseFromString(read_file(path)), path, ": not an ONNX model");
  std::set<std::string> constants;
  for (const onnx::TensorProto& tensor : model.graph().initializer())
    constants.insert(tensor.name());
  for (const onnx::ValueInfoProto& input : model.graph().input())
    if (constants.count(input.name()) == 0)
      add_line(
          {"model_input", input.name(), std::to_string(input.type().tensor_type().elem_type())});
  for (const onnx::ValueInfoProto& output : model.graph().output())
    add_line({"model_output", output.name()});
}

void RuntimeJob::add_input(const std::string& name, const Shape& shape) {
  add_line({"input", name, extents_of(shape)});
}

void RuntimeJob::add_output(const std::string& name, const std::string& layer) {
  add_line(layer.empty() ? std::vector<std::string>{"output", name}
                         : std::vector<std::string>{"output", name, layer});
  ++outputs_;
}

void RuntimeJob::add_values(const std::vector<float>& values) {
  values_.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
}

void RuntimeJob::read(
    const RuntimeAnswer& answer,
    const std::function<void(int draw, int output, const std::vector<float>&)>& take) const {
  std::ifstream in(answer.file, std::ios::binary | std::ios::ate);
  const int64_t size = in ? static_cast<int64_t>(in.tellg()) : 0;
  in.seekg(0);
  for (int draw = 0; draw < draws_; ++draw) {
    for (int output = 0; output < outputs_; ++output) {
      int64_t count = 0;
      in.read(reinterpret_cast<char*>(&count), sizeof count);
      const bool whole = in && count >= 0 && count <= size / static_cast<int64_t>(sizeof(float));
      std::vector<float> values(whole ? static_cast<size_t>(count) : 0);
      in.read(reinterpret_cast<char*>(values.data()),
              static_cast<std::streamsize>(values.size() * sizeof(float)));
      take(draw, output, values);
    }
  }
}

std::vector<RuntimeAnswer> RuntimeJob::run(const std::string& python, std::string* python_problem) {
  write_file_atomically(file("run.py"), std::string(run_onnx_bytes()));
  write_file_atomically(file("job.tsv"), lines_);
  write_file_atomically(file("inputs"), values_);
  const std::string command =
      cat(shell_quoted(python), " - ", shell_quoted(folder_), " <", shell_quoted(file("run.py")),
          " 2>", shell_quoted(file("errors")));
  FILE* const pipe = popen(command.c_str(), "r");
  require(pipe != nullptr, python, " cannot be started");
  std::string text;
  char buffer[4096];
  while (const size_t count = std::fread(buffer, 1, sizeof buffer, pipe))
    text.append(buffer, count);
  if (pclose(pipe) != 0) {
    const std::vector<std::string> lines = split(trim(read_text(file("errors"))), '\n');
    *python_problem = lines.empty() ? "it failed" : lines.back();
    return {};
  }
  std::vector<RuntimeAnswer> answers;
  for (const std::string& line : split(text, '\n')) {
    const std::vector<std::string> fields = split(line, '\t');
    if (fields.size() < 4) continue;
    answers.push_back({fields[0], fields[2], fields[3], file(fields[1])});
  }
  return answers;
}

}  // namespace crema
