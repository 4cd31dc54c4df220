// The KServe v2 inference protocol's tensors: JSON, and its extension for binary data.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tools/serve/served_model.h"

namespace crema {

struct InferRequest {
  std::string id;
  int64_t samples = 1;
  std::vector<std::vector<float>> inputs;  // in the order of the model's
  struct Output {
    std::string name;
    bool binary = false;
  };
  std::vector<Output> outputs;  // in the order of the answer
};

// `json_size`: the bytes of the body that are JSON; binary data follow. HttpRefusal for what is no request,
// or none that the model can take.
InferRequest parse_infer(std::string_view body, size_t json_size, const ServedModel& model);

struct InferAnswer {
  std::string json, binary;
};
InferAnswer infer_answer(const InferRequest& request, const ServedModel& model,
                         const std::vector<ServedTensor>& outputs);

// A text and a number as JSON. Numbers have the fewest digits that give the same float; null: none is.
std::string json_text(std::string_view text);
void add_json_number(float number, std::string* json);
// {"error": ...}
std::string json_error(std::string_view message);

// GET /v2/models/NAME.
std::string model_metadata(const ServedModel& model);

}  // namespace crema
