#include "tools/exchange/verification.h"

#include <filesystem>

#include "base/files.h"
#include "net/plan/plan.h"
#include "tools/exchange/runtime_job.h"
#include "tools/inputs/random_inputs.h"

namespace crema {

namespace {

constexpr uint64_t kPixels = 0x706978;  // a stream of random numbers

onnx::TensorProto test_tensor(const std::string& name, const Shape& shape,
                              const std::vector<float>& values, bool bytes) {
  onnx::TensorProto tensor;
  tensor.set_name(name);
  tensor.set_data_type(bytes ? onnx::TensorProto::UINT8 : onnx::TensorProto::FLOAT);
  for (const int64_t extent : shape.dims()) tensor.add_dims(extent);
  if (bytes) {
    for (const float value : values)
      tensor.mutable_raw_data()->push_back(static_cast<char>(static_cast<uint8_t>(value)));
  } else {
    tensor.set_raw_data(values.data(), values.size() * sizeof(float));
  }
  return tensor;
}

class Verifier {
 public:
  Verifier(Net& net, const ComparedModel& model, const VerificationOptions& options)
      : net_(net), model_(model), options_(options), job_(options.draws) {}

  std::vector<Verification> run(std::string* python_problem) {
    describe();
    compute();
    std::vector<Verification> all;
    for (const RuntimeAnswer& answer : job_.run(options_.python, python_problem)) {
      Verification one{answer.runtime, answer.version, answer.problem, {}};
      if (one.problem.empty()) one.blobs = compared(answer);
      all.push_back(std::move(one));
    }
    return all;
  }

 private:
  // The model, its inputs and the values to compare.
  void describe() {
    if (!model_.weights.empty())
      job_.set_caffe(model_.path, model_.weights);
    else if (model_.path.empty())
      job_.set_onnx_bytes(model_.bytes);
    else
      job_.set_onnx(model_.path);
    for (const Node& node : net_.graph().nodes) {
      if (node.message.type() != "Input") continue;
      for (const int id : node.tops) {
        inputs_.push_back(id);
        job_.add_input(name_of_input(id), shape_of_input(id));
      }
    }
    for (const auto& [id, name] : model_.values) {
      const auto maker = model_.makers.find(id);
      job_.add_output(name, maker == model_.makers.end() ? "" : maker->second);
    }
  }

  // Draws inputs, and keeps what the net computes from them.
  void compute() {
    const uint64_t seed = net_.context().seed;
    for (int draw = 0; draw < options_.draws; ++draw) {
      net_.context().seed = seed + static_cast<uint64_t>(draw);
      fill_random_inputs(net_);
      std::map<int, std::vector<float>> given;
      for (const int id : inputs_) given[id] = fill_input(id);
      net_.clear_carried();  // a model keeps nothing from run to run
      net_.forward(0);
      for (const int id : inputs_) job_.add_values(given[id]);
      std::vector<std::vector<float>>& ours = computed_.emplace_back();
      for (const auto& [id, name] : model_.values) ours.push_back(values_of(id));
      if (!options_.proof.empty()) keep(draw, given);
    }
    net_.context().seed = seed;
  }

  // Inputs and results of a draw, as ONNX's tools read them.
  void keep(int draw, const std::map<int, std::vector<float>>& given) const {
    const std::string folder = cat(options_.proof, "/test_data_set_", draw, "/");
    make_empty(folder);
    int input = 0, output = 0;
    for (const auto& [id, values] : given) {
      write_file_atomically(
          cat(folder, "input_", input++, ".pb"),
          test_tensor(name_of_input(id), shape_of_input(id), values, pictures_of(id) != nullptr)
              .SerializeAsString());
    }
    for (const int id : net_.graph().outputs) {
      const auto found = model_.values.find(id);
      if (found == model_.values.end()) continue;
      const auto at = std::distance(model_.values.begin(), found);
      write_file_atomically(cat(folder, "output_", output++, ".pb"),
                            test_tensor(found->second, net_.plan().value(id).shape(),
                                        computed_.back()[static_cast<size_t>(at)], false)
                                .SerializeAsString());
    }
  }

  // Without what an earlier model left there: its inputs may have been more.
  static void make_empty(const std::string& folder) {
    std::error_code problem;
    std::filesystem::create_directories(folder, problem);
    require(!problem, "-proof: ", folder, " cannot be made: ", problem.message());
    for (const std::string& name : list_folder(folder))
      if ((starts_with(name, "input_") || starts_with(name, "output_")) && ends_with(name, ".pb"))
        std::filesystem::remove(folder + name, problem);
  }

  std::string name_of_input(int id) const {
    const std::string& blob = net_.graph().values[id].blob;
    const auto found = model_.inputs.find(blob);
    return found == model_.inputs.end() ? blob : found->second;
  }

  // Null: the model takes the net's input.
  const PictureInput* pictures_of(int id) const {
    const auto found = model_.pictures.find(net_.graph().values[id].blob);
    return found == model_.pictures.end() ? nullptr : &found->second;
  }

  Shape shape_of_input(int id) const {
    const Shape& shape = net_.graph().values[id].shape;
    const PictureInput* const input = pictures_of(id);
    if (!input) return shape;
    const Shape picture = input->usual_size();
    return {shape[0], picture[0], picture[1], picture[2]};
  }

  // What the model gets; a random picture is prepared for the net.
  std::vector<float> fill_input(int id) {
    const PictureInput* const input = pictures_of(id);
    const std::string& blob = net_.graph().values[id].blob;
    if (!input && model_.bytes_of.count(blob) > 0) fill_with_bytes(id);
    if (!input) return values_of(id);
    const int64_t pixels = input->usual_size().count();
    const Random random = net_.context().random(kPixels);
    std::vector<float> prepared, given;
    for (int64_t picture = 0; picture < shape_of_input(id)[0]; ++picture) {
      std::vector<uint8_t> bytes(static_cast<size_t>(pixels));
      for (int64_t i = 0; i < pixels; ++i)
        bytes[i] = static_cast<uint8_t>(random.word(picture * pixels + i));
      const std::vector<float> one = input->prepared(bytes);
      prepared.insert(prepared.end(), one.begin(), one.end());
      given.insert(given.end(), bytes.begin(), bytes.end());
    }
    net_.set_input(blob, prepared.data());
    return given;
  }

  void fill_with_bytes(int id) {
    const Random random = net_.context().random(kPixels);
    std::vector<float> values(static_cast<size_t>(net_.graph().values[id].shape.count()));
    for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(random.word(i) & 255);
    net_.set_input(net_.graph().values[id].blob, values.data());
  }

  std::vector<float> values_of(int id) { return to_floats(net_.context(), net_.plan().value(id)); }

  std::vector<VerifiedBlob> compared(const RuntimeAnswer& answer) {
    BlobDifferences differences(net_, model_.values);
    job_.read(answer, [&](int draw, int output, const std::vector<float>& theirs) {
      differences.add(static_cast<size_t>(output), computed_[draw][output], theirs);
    });
    return differences.take();
  }

  Net& net_;
  const ComparedModel& model_;
  const VerificationOptions& options_;
  RuntimeJob job_;
  std::vector<int> inputs_;
  std::vector<std::vector<std::vector<float>>> computed_;  // draw, blob
};

}  // namespace

std::vector<Verification> verify_model(Net& net, const ComparedModel& compared,
                                       const VerificationOptions& options,
                                       std::string* python_problem) {
  return Verifier(net, compared, options).run(python_problem);
}

}  // namespace crema
