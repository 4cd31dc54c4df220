#include "tools/serve/sample_trial.h"

#include <algorithm>
#include <cmath>

#include "base/log.h"
#include "net/prototxt/net_input.h"
#include "tools/serve/served_pictures.h"

namespace crema {

namespace {

using Results = std::vector<ServedTensor>;

Results run(Model& model, const std::vector<BlobInfo>& inputs, int64_t samples,
            const std::vector<std::vector<float>>& values, const std::vector<std::string>& blobs) {
  std::vector<Model::InputShape> shapes;
  for (const BlobInfo& input : inputs) {
    shapes.emplace_back(input.name, input.shape);
    shapes.back().second[0] = samples;
  }
  model.reshape(shapes);
  for (size_t i = 0; i < inputs.size(); ++i) model.set_input(inputs[i].name, values[i]);
  model.forward();
  Results results;
  for (const std::string& blob : blobs)
    results.push_back({blob, model.blob(blob).shape, model.values(blob)});
  return results;
}

bool is_fixed(const ServedTensor& batch, const ServedTensor& first, const ServedTensor& second) {
  return batch.shape == first.shape && batch.values == first.values &&
         batch.shape == second.shape && batch.values == second.values;
}

// Whether two samples have the same results in a batch as alone, up to a small part of the difference
// between the samples, or to rounding.
bool is_by_sample(const ServedTensor& batch, const ServedTensor& first,
                  const ServedTensor& second) {
  const std::vector<int64_t>& shape = batch.shape;
  const auto fits = [&](const ServedTensor& alone) {
    return alone.shape.size() == shape.size() && alone.shape[0] == 1 &&
           std::equal(shape.begin() + 1, shape.end(), alone.shape.begin() + 1);
  };
  if (shape.empty() || shape[0] != 2 || !fits(first) || !fits(second)) return false;
  const std::vector<float>&one = first.values, &two = second.values;
  float error = 0, difference = 0, largest = 0;
  for (size_t k = 0; k < one.size(); ++k) {
    const float errors[] = {std::abs(batch.values[k] - one[k]),
                            std::abs(batch.values[one.size() + k] - two[k])};
    error = std::max({error, errors[0], errors[1]});
    difference = std::max(difference, std::abs(one[k] - two[k]));
    largest = std::max({largest, std::abs(one[k]), std::abs(two[k])});
  }
  constexpr float kPart = 0.05F, kRounding = 1e-5F;
  return error <= std::max(kPart * difference, kRounding * largest);  // false for NaN
}

}  // namespace

bool samples_are_independent(Model& model, const SampleTrial& trial) {
  std::vector<std::string> blobs = trial.by_sample;
  blobs.insert(blobs.end(), trial.by_sample_or_fixed.begin(), trial.by_sample_or_fixed.end());
  std::vector<std::vector<float>> both = trial.first;
  for (size_t i = 0; i < both.size(); ++i)
    both[i].insert(both[i].end(), trial.second[i].begin(), trial.second[i].end());
  try {
    const Results first = run(model, trial.inputs, 1, trial.first, blobs),
                  second = run(model, trial.inputs, 1, trial.second, blobs),
                  batch = run(model, trial.inputs, 2, both, blobs);
    for (size_t i = 0; i < blobs.size(); ++i) {
      const bool may_be_fixed = i >= trial.by_sample.size();
      if (!is_by_sample(batch[i], first[i], second[i]) &&
          !(may_be_fixed && is_fixed(batch[i], first[i], second[i])))
        return false;
    }
    return true;
  } catch (const DeviceLost&) {
    throw;
  } catch (const Error&) {  // layers cannot take these shapes
    return false;
  }
}

std::vector<std::string> blobs_read_for(const std::vector<std::string>& outputs,
                                        const std::string& net_file) {
  const NetInput net = read_net_input(net_file, TEST, {}, silent_log());
  std::vector<std::string> blobs;
  for (const LayerParameter& layer : net.net.layer()) {
    const auto gives = [&](const std::string& output) {
      return std::find(layer.top().begin(), layer.top().end(), output) != layer.top().end();
    };
    if (std::any_of(outputs.begin(), outputs.end(), gives))
      blobs.insert(blobs.end(), layer.bottom().begin(), layer.bottom().end());
  }
  return blobs;
}

}  // namespace crema
