#include "tools/exchange/verification.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>

#include "base/files.h"
#include "base/larger.h"
#include "base/temporary.h"
#include "net/plan/plan.h"
#include "tools/exchange/run_onnx.h"
#include "tools/flags/shell_words.h"
#include "tools/inputs/random_inputs.h"

namespace crema {

namespace {

constexpr uint64_t kPixels = 0x706978;  // a stream of random numbers

// A folder that is removed with it.
class Workplace {
 public:
  Workplace()
      : path_(make_temporary((std::filesystem::temp_directory_path() / "crema_export").string(),
                             TemporaryEntry::Kind::folder)
                  .path) {}
  ~Workplace() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  Workplace(const Workplace&) = delete;
  Workplace& operator=(const Workplace&) = delete;
  std::string file(const std::string& name) const { return path_ + "/" + name; }
  const std::string& path() const { return path_; }

 private:
  const std::string path_;
};

void append(std::ofstream& to, const std::vector<float>& values) {
  to.write(reinterpret_cast<const char*>(values.data()),
           static_cast<std::streamsize>(values.size() * sizeof(float)));
}

std::string extents_of(const Shape& shape) {
  std::string text;
  for (const int64_t extent : shape.dims()) text += cat(text.empty() ? "" : ",", extent);
  return text;
}

// Without the places of includes.
std::string place_of(const Node& node) {
  return node.place.where.substr(0, node.place.where.find(" ("));
}

void add_draw(const std::vector<float>& ours, const std::vector<float>& theirs, VerifiedBlob* blob,
              double* magnitude) {
  for (size_t i = 0; i < ours.size(); ++i) {
    if (std::isfinite(ours[i]))
      *magnitude = std::max(*magnitude, std::abs(static_cast<double>(ours[i])));
    if (ours[i] == theirs[i] || (std::isnan(ours[i]) && std::isnan(theirs[i]))) continue;
    blob->largest =
        larger_or_nan(blob->largest, std::abs(static_cast<double>(ours[i]) - theirs[i]));
  }
}

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

// The detections of a DetectionOutput by image, class and score: OpenCV orders by score.
std::vector<float> in_order(const Graph& graph, int id, std::vector<float> values) {
  constexpr size_t kNumbers = 7;
  const int producer = graph.values[id].producer;
  if (producer < 0 || graph.nodes[producer].message.type() != "DetectionOutput" ||
      values.size() % kNumbers != 0)
    return values;
  std::vector<std::array<float, kNumbers>> rows(values.size() / kNumbers);
  std::memcpy(rows.data(), values.data(), values.size() * sizeof(float));
  std::sort(rows.begin(), rows.end());
  std::memcpy(values.data(), rows.data(), values.size() * sizeof(float));
  return values;
}

std::vector<VerifiedBlob> blobs_of(Net& net, const ComparedModel& model) {
  std::vector<VerifiedBlob> blobs;
  const Graph& graph = net.graph();
  for (const auto& [id, name] : model.values) {
    const Value& value = graph.values[id];
    blobs.push_back({value.producer < 0 ? "" : place_of(graph.nodes[value.producer]), name,
                     net.plan().value(id).shape().brief(), value.output, 0, 0});
  }
  return blobs;
}

void set_relative(const std::vector<double>& magnitudes, std::vector<VerifiedBlob>* blobs) {
  for (size_t i = 0; i < blobs->size(); ++i) {
    VerifiedBlob& blob = (*blobs)[i];
    blob.relative = blob.largest == 0 ? 0 : blob.largest / std::max(magnitudes[i], 1e-30);
  }
}

class Verifier {
 public:
  Verifier(Net& net, const ComparedModel& model, const VerificationOptions& options)
      : net_(net), model_(model), options_(options) {}

  std::vector<Verification> run(std::string* python_problem) {
    prepare();
    const std::string command =
        cat(shell_quoted(options_.python), " - ", shell_quoted(place_.path()), " <",
            shell_quoted(place_.file("run.py")), " 2>", shell_quoted(place_.file("errors")));
    FILE* const pipe = popen(command.c_str(), "r");
    require(pipe != nullptr, options_.python, " cannot be started");
    std::string text;
    char buffer[4096];
    while (const size_t count = std::fread(buffer, 1, sizeof buffer, pipe))
      text.append(buffer, count);
    if (pclose(pipe) != 0) {
      const std::vector<std::string> lines = split(trim(read_text(place_.file("errors"))), '\n');
      *python_problem = lines.empty() ? "it failed" : lines.back();
      return {};
    }
    std::vector<Verification> all;
    for (const std::string& line : split(text, '\n')) {
      const std::vector<std::string> fields = split(line, '\t');
      if (fields.size() < 4) continue;
      Verification one{fields[0], fields[2], fields[3], {}};
      if (one.problem.empty()) one.blobs = compared(place_.file(fields[1]));
      all.push_back(std::move(one));
    }
    return all;
  }

 private:
  // Inputs, and what the net computes from them.
  void prepare() {
    if (model_.path.empty()) write_file_atomically(place_.file("model.onnx"), model_.bytes);
    write_file_atomically(place_.file("run.py"), std::string(run_onnx_bytes()));
    std::ofstream job(place_.file("job.tsv")), inputs(place_.file("inputs"), std::ios::binary);
    job << "draws\t" << options_.draws << "\nmodel\t"
        << field_text(model_.path.empty() ? place_.file("model.onnx") : model_.path) << '\n';
    if (!model_.weights.empty()) job << "weights\t" << field_text(model_.weights) << '\n';
    std::vector<int> input_values;
    for (const Node& node : net_.graph().nodes) {
      if (node.message.type() != "Input") continue;
      for (const int id : node.tops) {
        input_values.push_back(id);
        job << "input\t" << field_text(name_of_input(id)) << '\t' << extents_of(shape_of_input(id))
            << '\n';
      }
    }
    const uint64_t seed = net_.context().seed;
    for (int draw = 0; draw < options_.draws; ++draw) {
      net_.context().seed = seed + static_cast<uint64_t>(draw);
      fill_random_inputs(net_);
      std::map<int, std::vector<float>> given;
      for (const int id : input_values) given[id] = fill_input(id);
      net_.clear_carried();  // a model keeps nothing from run to run
      net_.forward(0);
      for (const int id : input_values) append(inputs, given[id]);
      std::vector<std::vector<float>>& ours = computed_.emplace_back();
      for (const auto& [id, name] : model_.values) {
        ours.push_back(values_of(id));
        if (draw > 0) continue;
        const auto maker = model_.makers.find(id);
        job << "output\t" << field_text(name)
            << (maker == model_.makers.end() ? "" : "\t" + field_text(maker->second)) << '\n';
      }
      if (!options_.proof.empty()) keep(draw, given);
    }
    net_.context().seed = seed;
    require(job.flush() && inputs.flush(), place_.path(),
            ": the inputs for verification cannot be written; is there room?");
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

  std::vector<VerifiedBlob> compared(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    std::vector<VerifiedBlob> blobs = blobs_of(net_, model_);
    std::vector<double> magnitudes(blobs.size());
    for (const auto& ours : computed_) {
      auto value = model_.values.begin();
      for (size_t i = 0; i < ours.size(); ++i, ++value) {
        int64_t count = 0;
        in.read(reinterpret_cast<char*>(&count), sizeof count);
        if (!in || count != static_cast<int64_t>(ours[i].size())) {
          blobs[i].largest = std::numeric_limits<double>::quiet_NaN();
          blobs[i].shape =
              cat(net_.plan().value(value->first).shape().brief(), " (there ", count, " values)");
          in.seekg(count * static_cast<int64_t>(sizeof(float)), std::ios::cur);
          continue;
        }
        std::vector<float> theirs(ours[i].size());
        in.read(reinterpret_cast<char*>(theirs.data()),
                static_cast<std::streamsize>(theirs.size() * sizeof(float)));
        if (model_.weights.empty()) {
          add_draw(ours[i], theirs, &blobs[i], &magnitudes[i]);
          continue;
        }
        const Graph& graph = net_.graph();
        add_draw(in_order(graph, value->first, ours[i]), in_order(graph, value->first, theirs),
                 &blobs[i], &magnitudes[i]);
      }
    }
    set_relative(magnitudes, &blobs);
    return blobs;
  }

  Net& net_;
  const ComparedModel& model_;
  const VerificationOptions& options_;
  const Workplace place_;
  std::vector<std::vector<std::vector<float>>> computed_;  // draw, blob
};

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

std::vector<Verification> verify_model(Net& net, const ComparedModel& compared,
                                       const VerificationOptions& options,
                                       std::string* python_problem) {
  return Verifier(net, compared, options).run(python_problem);
}

Verification verify_net(Net& net, Net& again, const ComparedModel& compared, int draws) {
  Verification result{"Crema", "from the files", "", blobs_of(net, compared)};
  std::vector<double> magnitudes(result.blobs.size());
  const auto made_by = [&](const std::string& layer) {
    for (const Node& node : again.graph().nodes)
      if (node.message.name() == layer) return node.tops[0];
    fail("the written net has no layer \"", layer, "\"");
  };
  const uint64_t seed = net.context().seed;
  for (int draw = 0; draw < draws; ++draw) {
    net.context().seed = seed + static_cast<uint64_t>(draw);
    fill_random_inputs(net);
    for (const Node& node : net.graph().nodes) {
      if (node.message.type() != "Input") continue;
      for (const int id : node.tops) {
        const std::string& blob = net.graph().values[id].blob;
        const std::vector<float> values = to_floats(net.context(), net.plan().value(id));
        if (again.has_blob(blob)) again.set_input(blob, values.data());
      }
    }
    for (Net* one : {&net, &again}) {
      one->clear_carried();
      one->forward(0);
    }
    size_t i = 0;
    for (const auto& [id, layer] : compared.makers) {
      const std::vector<float> ours = to_floats(net.context(), net.plan().value(id)),
                               theirs =
                                   to_floats(net.context(), again.plan().value(made_by(layer)));
      VerifiedBlob& blob = result.blobs[i];
      if (ours.size() == theirs.size())
        add_draw(ours, theirs, &blob, &magnitudes[i]);
      else
        blob.largest = std::numeric_limits<double>::quiet_NaN();
      ++i;
    }
  }
  net.context().seed = seed;
  set_relative(magnitudes, &result.blobs);
  return result;
}

}  // namespace crema
