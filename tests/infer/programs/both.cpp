// Runs nets with libcrema_infer and libcrema in one process:
//
//   both (NET WEIGHTS)...
//
// Their outputs are the same bits, and a layer type that is registered with one of them does not exist in
// the other.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "../run_net.h"
#include "crema.h"
#include "crema_infer.h"

namespace {

void check(bool holds, const std::string& what) {
  if (holds) return;
  std::fprintf(stderr, "%s (%s)\n", what.c_str(), crema_message());
  std::exit(1);
}

std::vector<float> values_for(size_t count) {
  std::vector<float> values(count);
  for (size_t i = 0; i < count; ++i) values[i] = input_value(i, 3);
  return values;
}

std::vector<std::vector<float>> run_runtime(const std::string& net, const std::string& weights) {
  crema_model* model = nullptr;
  check(crema_open(net.c_str(), weights.c_str(), nullptr, &model) == CREMA_OK, "crema_open");
  for (int i = 0; i < crema_input_count(model); ++i) {
    crema_blob input;
    check(crema_input_info(model, i, &input) == CREMA_OK, "crema_input_info");
    const std::vector<float> values = values_for(input.count);
    check(crema_set_input(model, input.name, values.data(), values.size()) == CREMA_OK, "input");
  }
  check(crema_forward(model) == CREMA_OK, "crema_forward");
  std::vector<std::vector<float>> outputs;
  for (int i = 0; i < crema_output_count(model); ++i) {
    crema_blob output;
    check(crema_output_info(model, i, &output) == CREMA_OK, "crema_output_info");
    outputs.emplace_back(output.count);
    check(crema_read(model, output.name, outputs[i].data(), output.count) == CREMA_OK, "read");
  }
  crema_close(model);
  return outputs;
}

std::vector<std::vector<float>> run_library(const std::string& net, const std::string& weights) {
  crema::Model model(net, {.weights = {weights}});
  for (const crema::BlobInfo& input : model.inputs())
    model.set_input(input.name, values_for(model.input(input.name).size()));
  model.forward();
  std::vector<std::vector<float>> outputs;
  for (const crema::BlobInfo& output : model.outputs())
    outputs.push_back(model.values(output.name));
  return outputs;
}

bool same(const std::vector<std::vector<float>>& one, const std::vector<std::vector<float>>& two) {
  if (one.size() != two.size()) return false;
  for (size_t i = 0; i < one.size(); ++i) {
    if (one[i].size() != two[i].size() ||
        std::memcmp(one[i].data(), two[i].data(), one[i].size() * sizeof(float)) != 0)
      return false;
  }
  return true;
}

const char* refuse(void*, const char*, const char*, void**) { return "made in C"; }

class Refused final : public crema::CustomLayer {
 public:
  std::vector<Shape> tops(const std::vector<Shape>& bottoms) override { return bottoms; }
  void forward(const Forward&) override {}
};

std::string net_with(const std::string& type) {
  return "layer { name: \"x\" type: \"Input\" top: \"x\" input_param { shape { dim: 1 } } }\n"
         "layer { name: \"y\" type: \"" +
         type + "\" bottom: \"x\" top: \"y\" }";
}

std::string runtime_error(const std::string& net) {
  crema_model* model = nullptr;
  return crema_open_memory(net.data(), net.size(), nullptr, 0, nullptr, &model) == CREMA_OK
             ? "none"
             : crema_message();
}

std::string library_error(const std::string& net) {
  try {
    crema::Model::from_text(net);
    return "none";
  } catch (const crema::Error& error) {
    return error.what();
  }
}

void check_part(const std::string& text, const std::string& part) {
  check(text.find(part) != std::string::npos, "\"" + text + "\" lacks \"" + part + "\"");
}

// Each has its own types, messages and exceptions.
void check_registries() {
  crema_layer_type type;
  crema_layer_type_init(&type, sizeof type);
  type.type = "InC";
  type.create = refuse;
  type.destroy = std::free;
  type.top_shape = [](void*, const crema_shape*, int, int, crema_shape*) -> const char* {
    return "no shape";
  };
  type.forward = [](void*, const crema_array*, const crema_array*,
                    const crema_array*) -> const char* { return "no pass"; };
  check(crema_register_layer(&type) == CREMA_OK, "crema_register_layer");
  crema::register_layer("InCxx", [](const auto&) { return std::make_unique<Refused>(); });
  check_part(runtime_error(net_with("InC")), "made in C");
  check_part(library_error(net_with("InC")), "unknown layer type");
  check_part(runtime_error(net_with("InCxx")), "unknown layer type");
  check(library_error(net_with("InCxx")) == "none", "register_layer");
  // Mistakes are found by the schema, of which each has its own.
  const std::string old = "layers { name: \"x\" type: \"Convolution\" bottom: \"x\" top: \"y\" }";
  check_part(runtime_error(old), "are called \"layer\"");
  check_part(library_error(old), "are called \"layer\"");
}

}  // namespace

int main(int count, char** arguments) {
  for (int i = 1; i + 1 < count; i += 2) {
    const std::string net = arguments[i], weights = arguments[i + 1];
    check(same(run_runtime(net, weights), run_library(net, weights)), net + ": other values");
  }
  check_registries();
  std::puts("both work");
}
