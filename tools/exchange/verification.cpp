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
#include "base/temporary.h"
#include "net/plan/plan.h"
#include "tools/exchange/run_onnx.h"
#include "tools/flags/shell_words.h"
#include "tools/inputs/random_inputs.h"

namespace crema {

namespace {

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
    *magnitude = std::max(*magnitude, std::abs(static_cast<double>(ours[i])));
    if (ours[i] == theirs[i] || (std::isnan(ours[i]) && std::isnan(theirs[i]))) continue;
    const double difference = std::abs(static_cast<double>(ours[i]) - theirs[i]);
    if (!(difference <= blob->largest)) blob->largest = difference;
  }
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
  Verifier(Net& net, const ComparedModel& model, int draws)
      : net_(net), model_(model), draws_(draws) {}

  std::vector<Verification> run(const std::string& python, std::string* python_problem) {
    prepare();
    const std::string command =
        cat(shell_quoted(python), " - ", shell_quoted(place_.path()), " <",
            shell_quoted(place_.file("run.py")), " 2>", shell_quoted(place_.file("errors")));
    FILE* const pipe = popen(command.c_str(), "r");
    require(pipe != nullptr, python, " cannot be started");
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
    job << "draws\t" << draws_ << "\nmodel\t"
        << (model_.path.empty() ? place_.file("model.onnx") : model_.path) << '\n';
    if (!model_.weights.empty()) job << "weights\t" << model_.weights << '\n';
    std::vector<int> input_values;
    for (const Node& node : net_.graph().nodes) {
      if (node.message.type() != "Input") continue;
      for (const int id : node.tops) {
        input_values.push_back(id);
        job << "input\t" << net_.graph().values[id].blob << '\t'
            << extents_of(net_.graph().values[id].shape) << '\n';
      }
    }
    const uint64_t seed = net_.context().seed;
    for (int draw = 0; draw < draws_; ++draw) {
      net_.context().seed = seed + static_cast<uint64_t>(draw);
      fill_random_inputs(net_);
      net_.clear_carried();  // a model keeps nothing from run to run
      net_.forward(0);
      for (const int id : input_values) append(inputs, values_of(id));
      std::vector<std::vector<float>>& ours = computed_.emplace_back();
      for (const auto& [id, name] : model_.values) {
        ours.push_back(values_of(id));
        if (draw > 0) continue;
        const auto maker = model_.makers.find(id);
        job << "output\t" << name << (maker == model_.makers.end() ? "" : "\t" + maker->second)
            << '\n';
      }
    }
    net_.context().seed = seed;
    require(job.flush() && inputs.flush(), place_.path(),
            ": the inputs for verification cannot be written; is there room?");
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
          blobs[i].largest = std::numeric_limits<double>::quiet_NaN();  // another shape
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
  const int draws_;
  const Workplace place_;
  std::vector<std::vector<std::vector<float>>> computed_;  // draw, blob
};

}  // namespace

std::vector<Verification> verify_model(Net& net, const ComparedModel& compared,
                                       const std::string& python, int draws,
                                       std::string* python_problem) {
  return Verifier(net, compared, draws).run(python, python_problem);
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
