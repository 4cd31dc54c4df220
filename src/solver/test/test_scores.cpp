#include "solver/test/test_scores.h"

#include <algorithm>

#include "base/error.h"
#include "proto/solver.pb.h"
#include "solver/ranks/ranks.h"
#include "solver/test/packed.h"

namespace crema {
namespace {

constexpr int64_t kColumns = 5;  // image, class, score, right, wrong

}  // namespace

void check_evaluation(const SolverParameter& solver) {
  const std::string& type = solver.eval_type();
  require(type == "classification" || type == "detection" || type == "segmentation",
          "eval_type is \"", type,
          "\", but must be \"classification\", \"detection\" or \"segmentation\"");
  check_precision_version(solver.ap_version());
}

std::vector<OutputValue> values_of(Net& net) {
  std::vector<OutputValue> values;
  for (const Net::Output& output : net.outputs()) {
    for (float value : to_floats(net.context(), output.value))
      values.push_back({output.blob, value, output.loss_weight});
  }
  return values;
}

std::vector<OutputValue> values_of_ranks(Net& net) {
  std::vector<OutputValue> outputs = values_of(net);
  if (!net.context().world()) return outputs;
  std::vector<size_t> begins;
  std::vector<RankValue> values;
  size_t at = 0;
  for (const Net::Output& output : net.outputs()) {
    begins.push_back(at);
    values.push_back({{}, output.parts});
    if (output.value.count() == 1) values.back().value = outputs[at].value;
    if (output.count) {
      const std::vector<double> count = to_doubles(net.context(), output.count);
      values.back().divisor = count[0];
      values.back().count = count[1];
    }
    at += static_cast<size_t>(output.value.count());
  }
  combine_over_ranks(net, values);
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i].value) outputs[begins[i]].value = static_cast<float>(*values[i].value);
  }
  return outputs;
}

TestScores::TestScores(const SolverParameter& solver, Net& net)
    : net_(net), detection_(solver.eval_type() == "detection"), version_(solver.ap_version()) {
  for (const Net::Output& output : net.outputs())
    outputs_.push_back({output.blob, output.loss_weight, {}, {}});
}

void TestScores::Means::add_batch(const Batch& batch) {
  if (std::find(batches.begin(), batches.end(), batch) == batches.end()) batches.push_back(batch);
}

void TestScores::Means::add(const std::vector<float>& batch, int64_t in_batch) {
  const auto elements = static_cast<int64_t>(batch.size());
  add_batch({in_batch, elements});
  sums.resize(std::max(sums.size(), batch.size()), 0);
  records.resize(sums.size(), 0);
  for (size_t i = 0; i < batch.size(); ++i) {
    sums[i] += static_cast<double>(in_batch) * batch[i];
    records[i] += in_batch;
    total += batch[i];
  }
  count += elements;
}

void TestScores::Means::append(const Means& later) {
  for (const Batch& batch : later.batches) add_batch(batch);
  sums.resize(std::max(sums.size(), later.sums.size()), 0);
  records.resize(sums.size(), 0);
  for (size_t i = 0; i < later.sums.size(); ++i) {
    sums[i] += later.sums[i];
    records[i] += later.records.at(i);
  }
  total += later.total;
  count += later.count;
}

bool TestScores::Means::varies() const {
  return std::any_of(batches.begin(), batches.end(), [&](const Batch& batch) {
    const Batch& first = batches[0];
    return batch.elements > first.elements ||
           (batch.elements != first.elements &&
            batch.elements * first.records != first.elements * batch.records);
  });
}

std::vector<double> TestScores::Means::means() const {
  if (varies()) return {total / static_cast<double>(count)};
  std::vector<double> means = sums;
  for (size_t i = 0; i < means.size(); ++i) means[i] /= static_cast<double>(records[i]);
  return means;
}

bool TestScores::holds_detections(const Shape& shape) const {
  return detection_ && shape.axes() == 4 && shape.count(0, 2) == 1 && shape[3] == kColumns;
}

void TestScores::add(int64_t records) {
  bool found = false;
  const std::vector<Net::Output> values = net_.outputs();
  for (size_t i = 0; i < values.size(); ++i) {
    const std::vector<float> numbers = to_floats(net_.context(), values[i].value);
    Output& output = outputs_[i];
    if (!holds_detections(values[i].value.shape())) {
      output.numbers.add(numbers, records);
      continue;
    }
    found = true;
    for (const float* row = numbers.data(); row < numbers.data() + numbers.size();
         row += kColumns) {
      const int label = static_cast<int>(row[1]);
      const bool right = row[3] != 0, wrong = row[4] != 0;
      if (row[0] == -1) {
        output.classes[label].objects += static_cast<int64_t>(row[2]);
      } else if (right || wrong) {  // else it found a difficult object, or the row is unused
        output.classes[label].detections.push_back({row[2], right});
      }
    }
  }
  require(found || !detection_,
          "eval_type: \"detection\" needs a test net with an output of DetectionEvaluate, (1, 1, "
          "rows, 5)");
}

std::string TestScores::pack() const {
  Packer packer;
  for (const Output& output : outputs_) {
    const Means& n = output.numbers;
    packer.add(n.sums, n.records, n.batches, n.total, n.count, output.classes.size());
    for (const auto& [label, of_class] : output.classes)
      packer.add(label, of_class.objects, of_class.detections);
  }
  return packer.bytes();
}

void TestScores::merge(const std::vector<std::string>& of_ranks) {
  for (Output& output : outputs_) output = {output.blob, output.loss_weight, {}, {}};
  for (const std::string& counts : of_ranks) {
    Unpacker unpacker(counts);
    for (Output& output : outputs_) {
      Means n;
      size_t classes = 0;
      unpacker.get(n.sums, n.records, n.batches, n.total, n.count, classes);
      output.numbers.append(n);
      for (size_t i = 0; i < classes; ++i) {
        int label = 0;
        ClassDetections part;
        unpacker.get(label, part.objects, part.detections);
        ClassDetections& all = output.classes[label];
        all.objects += part.objects;
        all.detections.insert(all.detections.end(), part.detections.begin(), part.detections.end());
      }
    }
    unpacker.end();
  }
}

std::vector<OutputValue> TestScores::outputs() const {
  std::vector<OutputValue> values;
  for (const Output& output : outputs_) {
    for (double mean : output.numbers.means())
      values.push_back({output.blob, static_cast<float>(mean), output.loss_weight});
    if (output.classes.empty()) continue;
    float sum = 0;
    for (const auto& [label, of_class] : output.classes)
      sum += average_precision(of_class.detections, of_class.objects, version_);
    values.push_back(
        {output.blob, sum / static_cast<float>(output.classes.size()), output.loss_weight});
  }
  return values;
}

std::vector<event::ClassPrecision> TestScores::classes() const {
  std::vector<event::ClassPrecision> all;
  for (const Output& output : outputs_) {
    for (const auto& [label, of_class] : output.classes) {
      all.push_back({label, average_precision(of_class.detections, of_class.objects, version_),
                     !of_class.detections.empty()});
    }
  }
  return all;
}

}  // namespace crema
