#include "tools/serve/tensor_json.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "tools/http/request.h"
#include "tools/serve/box_rows.h"

namespace crema {

namespace {

using TensorJson = nlohmann::json;

template <typename... Parts>
[[noreturn]] void refuse_tensor(const Parts&... parts) {
  throw HttpRefusal(400, cat(parts...));
}

// Arrays of arrays take far more memory than their text, so their number and depth are checked before.
void check_json_size(std::string_view text) {
  constexpr int kDeepest = 16;
  constexpr size_t kMostArrays = size_t{1} << 20;
  int depth = 0;
  size_t arrays = 0;
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted) {
      if (c == '\\') ++i;
      quoted = c != '"';
    } else if (c == '"') {
      quoted = true;
    } else if (c == '[' || c == '{') {
      ++depth;
      ++arrays;
    } else if (c == ']' || c == '}') {
      --depth;
    }
    if (depth > kDeepest || arrays > kMostArrays)
      refuse_tensor("the JSON has too many arrays, or arrays in arrays");
  }
}

const TensorJson* member_of(const TensorJson& object, const char* name) {
  const auto found = object.find(name);
  return found == object.end() ? nullptr : &*found;
}

std::string string_member(const TensorJson& object, const char* name, const std::string& where) {
  const TensorJson* const found = member_of(object, name);
  if (!found || !found->is_string()) refuse_tensor(where, "\"", name, "\" is missing, or no text");
  return found->get<std::string>();
}

bool flag_parameter(const TensorJson& object, const char* name) {
  const TensorJson* const parameters = member_of(object, "parameters");
  const TensorJson* const found =
      parameters && parameters->is_object() ? member_of(*parameters, name) : nullptr;
  return found && found->is_boolean() && found->get<bool>();
}

std::string names_text(const std::vector<BlobInfo>& blobs) {
  std::vector<std::string> names;
  for (const BlobInfo& blob : blobs) names.push_back(blob.name);
  return join(names, ", ");
}

size_t blob_index(const std::vector<BlobInfo>& blobs, const std::string& name, const char* kind) {
  const auto found = std::find_if(blobs.begin(), blobs.end(),
                                  [&](const BlobInfo& blob) { return blob.name == name; });
  if (found == blobs.end())
    refuse_tensor("the model has no ", kind, " \"", name, "\"; it has: ", names_text(blobs));
  return static_cast<size_t>(found - blobs.begin());
}

void flatten(const TensorJson& data, const std::string& where, std::vector<float>* values) {
  for (const TensorJson& one : data) {
    if (one.is_array()) {
      flatten(one, where, values);
    } else if (one.is_number()) {
      values->push_back(one.get<float>());
    } else {
      refuse_tensor(where, "the data have \"",
                    one.dump(-1, ' ', true, TensorJson::error_handler_t::replace).substr(0, 40),
                    "\", which is no number");
    }
  }
}

// Checks the shape and returns its number of values.
size_t count_of_shape(const TensorJson& tensor, const BlobInfo& expected, const ServedModel& model,
                      const std::string& where, int64_t* samples) {
  const TensorJson* const shape = member_of(tensor, "shape");
  if (!shape || !shape->is_array()) refuse_tensor(where, "\"shape\" is missing, or no array");
  std::vector<int64_t> given;
  for (const TensorJson& size : *shape) {
    if (!size.is_number_unsigned()) refuse_tensor(where, "\"shape\" has other than sizes");
    given.push_back(static_cast<int64_t>(
        std::min<uint64_t>(size.get<uint64_t>(), std::numeric_limits<int32_t>::max())));
  }
  bool fits = given.size() == expected.shape.size();
  const size_t from = model.batches() ? 1 : 0;
  for (size_t i = from; fits && i < given.size(); ++i) fits = given[i] == expected.shape[i];
  if (fits && model.batches()) fits = given[0] >= 1 && given[0] <= model.most_samples();
  if (!fits)
    refuse_tensor(where, "the shape is ", shape_text(given, false), "; expected ",
                  shape_text(expected.shape, model.batches()),
                  model.batches() ? cat(" with N from 1 to ", model.most_samples()) : "");
  *samples = model.batches() ? given[0] : 1;
  size_t count = 1;
  for (const int64_t size : given) count *= static_cast<size_t>(size);
  return count;
}

std::vector<float> binary_values(const TensorJson& tensor, const std::string& where, size_t count,
                                 std::string_view* binary) {
  const TensorJson* const parameters = member_of(tensor, "parameters");
  const TensorJson* const size =
      parameters && parameters->is_object() ? member_of(*parameters, "binary_data_size") : nullptr;
  if (!size || !size->is_number_unsigned()) refuse_tensor(where, "\"data\" is missing");
  const auto bytes = size->get<uint64_t>();
  if (bytes != count * sizeof(float) || bytes > binary->size())
    refuse_tensor(where, "binary_data_size is ", bytes, "; the shape takes ", count * sizeof(float),
                  " bytes, and ", binary->size(), " follow");
  std::vector<float> values(count);
  std::memcpy(values.data(), binary->data(), bytes);
  binary->remove_prefix(bytes);
  return values;
}

void parse_input(const TensorJson& tensor, const ServedModel& model, std::string_view* binary,
                 InferRequest* request, int64_t* samples) {
  if (!tensor.is_object()) refuse_tensor("\"inputs\" has something else than objects");
  const std::string name = string_member(tensor, "name", "inputs: ");
  const size_t index = blob_index(model.inputs(), name, "input");
  const std::string where = cat("input \"", name, "\": ");
  if (!request->inputs[index].empty()) refuse_tensor(where, "it is there twice");
  const std::string type = string_member(tensor, "datatype", where);
  if (type != "FP32") refuse_tensor(where, "the datatype is ", type, "; expected FP32");
  int64_t own = 1;
  const size_t count = count_of_shape(tensor, model.inputs()[index], model, where, &own);
  if (*samples != 0 && *samples != own)
    refuse_tensor(where, "it has ", own, " samples, and another input has ", *samples);
  *samples = own;
  std::vector<float>& values = request->inputs[index];
  const TensorJson* const data = member_of(tensor, "data");
  if (!data) {
    values = binary_values(tensor, where, count, binary);
  } else {
    if (!data->is_array()) refuse_tensor(where, "\"data\" is no array");
    flatten(*data, where, &values);
  }
  if (values.size() != count)
    refuse_tensor(where, values.size(), " values were given; the shape takes ", count);
}

void parse_outputs(const TensorJson& json, const ServedModel& model, InferRequest* request) {
  const bool all_binary = flag_parameter(json, "binary_data_output");
  const TensorJson* const outputs = member_of(json, "outputs");
  if (!outputs) {
    for (const BlobInfo& output : model.outputs())
      request->outputs.push_back({output.name, all_binary});
    return;
  }
  if (!outputs->is_array()) refuse_tensor("\"outputs\" is no array");
  for (const TensorJson& output : *outputs) {
    if (!output.is_object()) refuse_tensor("\"outputs\" has something else than objects");
    const std::string name = string_member(output, "name", "outputs: ");
    blob_index(model.outputs(), name, "output");
    if (request->outputs.size() >= model.outputs().size())
      refuse_tensor("\"outputs\" has more entries than the model has outputs");
    request->outputs.push_back({name, all_binary || flag_parameter(output, "binary_data")});
  }
}

std::string blob_list(const std::vector<BlobInfo>& blobs, bool batches) {
  std::string json = "[";
  for (const BlobInfo& blob : blobs) {
    json += cat(json.size() > 1 ? "," : "", R"({"name":)", json_text(blob.name),
                R"(,"datatype":"FP32","shape":[)");
    const size_t varying = has_box_rows(blob) ? 2 : batches ? 0 : blob.shape.size();
    for (size_t i = 0; i < blob.shape.size(); ++i)
      json += cat(i > 0 ? "," : "", i == varying ? -1 : blob.shape[i]);
    json += "]}";
  }
  return json + "]";
}

}  // namespace

InferRequest parse_infer(std::string_view body, size_t json_size, const ServedModel& model) {
  if (json_size > body.size())
    refuse_tensor("Inference-Header-Content-Length is larger than the body");
  const std::string_view text = body.substr(0, json_size);
  std::string_view binary = body.substr(json_size);
  check_json_size(text);
  TensorJson json;
  try {
    json = TensorJson::parse(text);
  } catch (const TensorJson::exception& error) {
    refuse_tensor("the body is not JSON: ", error.what());
  }
  if (!json.is_object()) refuse_tensor("the body is no JSON object");
  InferRequest request;
  if (const TensorJson* const id = member_of(json, "id"); id && id->is_string())
    request.id = id->get<std::string>();
  const TensorJson* const inputs = member_of(json, "inputs");
  if (!inputs || !inputs->is_array()) refuse_tensor("\"inputs\" is missing, or no array");
  request.inputs.resize(model.inputs().size());
  int64_t samples = 0;
  for (const TensorJson& tensor : *inputs) parse_input(tensor, model, &binary, &request, &samples);
  for (size_t i = 0; i < request.inputs.size(); ++i) {
    if (request.inputs[i].empty())
      refuse_tensor("input \"", model.inputs()[i].name, "\" is missing");
  }
  if (!binary.empty()) refuse_tensor(binary.size(), " bytes after the JSON belong to no input");
  request.samples = samples;
  parse_outputs(json, model, &request);
  return request;
}

std::string json_text(std::string_view text) {
  return TensorJson(text).dump(-1, ' ', false, TensorJson::error_handler_t::replace);
}

std::string json_error(std::string_view message) {
  return cat(R"({"error":)", json_text(message), "}");
}

void add_json_number(float number, std::string* json) {
  if (!std::isfinite(number)) {
    *json += "null";
    return;
  }
  char text[32];
  const auto [end, code] = std::to_chars(text, text + sizeof text, number);
  json->append(text, end);
}

InferAnswer infer_answer(const InferRequest& request, const ServedModel& model,
                         const std::vector<ServedTensor>& outputs) {
  InferAnswer answer;
  std::string& json = answer.json;
  json = cat(R"({"model_name":)", json_text(model.name()), R"(,"model_version":"1")");
  if (!request.id.empty()) json += cat(R"(,"id":)", json_text(request.id));
  json += R"(,"outputs":[)";
  for (size_t i = 0; i < request.outputs.size(); ++i) {
    const auto& [name, is_binary] = request.outputs[i];
    const ServedTensor& output =
        *std::find_if(outputs.begin(), outputs.end(),
                      [&wanted = name](const ServedTensor& one) { return one.name == wanted; });
    json +=
        cat(i > 0 ? "," : "", R"({"name":)", json_text(name), R"(,"datatype":"FP32","shape":[)");
    for (size_t axis = 0; axis < output.shape.size(); ++axis)
      json += cat(axis > 0 ? "," : "", output.shape[axis]);
    json += "]";
    if (is_binary) {
      const size_t bytes = output.values.size() * sizeof(float);
      json += cat(R"(,"parameters":{"binary_data_size":)", bytes, "}}");
      answer.binary.append(reinterpret_cast<const char*>(output.values.data()), bytes);
      continue;
    }
    json += R"(,"data":[)";
    for (size_t k = 0; k < output.values.size(); ++k) {
      if (k > 0) json += ',';
      add_json_number(output.values[k], &json);
    }
    json += "]}";
  }
  json += "]}";
  return answer;
}

std::string model_metadata(const ServedModel& model) {
  return cat(R"({"name":)", json_text(model.name()),
             R"(,"versions":["1"],"platform":"crema","inputs":)",
             blob_list(model.inputs(), model.batches()), R"(,"outputs":)",
             blob_list(model.outputs(), model.batches()), "}");
}

}  // namespace crema
