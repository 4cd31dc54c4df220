#include "tools/runs/same_training.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <sstream>

#include "base/strings.h"

namespace crema {
namespace {

using Blobs = google::protobuf::RepeatedPtrField<BlobProto>;

std::string difference(const std::string& what, const std::vector<float>& expected,
                       const std::vector<float>& found) {
  const size_t count = expected.size();
  if (count != found.size())
    return cat(what, ": ", found.size(), " values where ", count, " were expected");
  if (std::memcmp(expected.data(), found.data(), count * sizeof(float)) == 0) return "";
  size_t differ = 0, first = count;
  double most = 0;
  for (size_t i = 0; i < count; ++i) {
    if (std::memcmp(&expected[i], &found[i], sizeof(float)) == 0) continue;
    ++differ;
    first = std::min(first, i);
    most = std::max(most, std::abs(static_cast<double>(expected[i]) - found[i]));
  }
  std::ostringstream values;
  values.precision(std::numeric_limits<float>::max_digits10);
  values << found[first] << " where " << expected[first];
  return cat(what, ": ", differ, " of ", count, " values differ, the first is number ", first, ", ",
             values.str(), " was expected; the largest difference is ", most);
}

std::string difference(const char* what, const std::vector<Training::Blob>& weights,
                       const Blobs& expected, const Blobs& found) {
  if (expected.size() != found.size())
    return cat(found.size(), " blobs of ", what, " where ", expected.size(), " were expected");
  for (int i = 0; i < expected.size(); ++i) {
    const std::string name =
        weights.empty() ? cat(what, ", blob ", i)
                        : cat(what, " of ", weights[static_cast<size_t>(i) % weights.size()].name);
    const auto& a = expected[i].data();
    const auto& b = found[i].data();
    std::string differs = difference(name, {a.begin(), a.end()}, {b.begin(), b.end()});
    if (!differs.empty()) return differs;
  }
  return "";
}

// For the fields that are not blobs.
std::string difference_of_rest(const SolverState& expected, const SolverState& found) {
  const auto* reflection = expected.GetReflection();
  const auto* type = expected.GetDescriptor();
  for (int i = 0; i < type->field_count(); ++i) {
    const auto only = [&](const SolverState& from) {
      SolverState one = from;
      for (int k = 0; k < type->field_count(); ++k) {
        if (k != i) reflection->ClearField(&one, type->field(k));
      }
      return one;
    };
    const SolverState a = only(expected), b = only(found);
    if (a.SerializeAsString() != b.SerializeAsString())
      return cat(type->field(i)->name(), " of the state is { ", b.ShortDebugString(), " } where { ",
                 a.ShortDebugString(), " } was expected");
  }
  return "";
}

}  // namespace

std::string difference(const Training& expected, const Training& found) {
  for (size_t i = 0; i < expected.weights.size(); ++i) {
    const Training::Blob& blob = expected.weights[i];
    std::string differs =
        difference("weights of " + blob.name, blob.values, found.weights[i].values);
    if (!differs.empty()) return differs;
  }
  SolverState a = expected.state, b = found.state;
  const std::vector<Training::Blob> none;
  for (std::string differs :
       {difference("history", expected.weights, a.history(), b.history()),
        difference("the average", expected.weights, a.average(), b.average()),
        difference("the slow weights", expected.weights, a.slow(), b.slow()),
        difference("the state of recurrent layers", none, a.carried(), b.carried())}) {
    if (!differs.empty()) return differs;
  }
  for (SolverState* state : {&a, &b}) {
    for (const char* field :
         {"history", "average", "slow", "carried", "learned_net", "checksum", "weights_checksum"})
      state->GetReflection()->ClearField(state, state->GetDescriptor()->FindFieldByName(field));
  }
  return difference_of_rest(a, b);
}

}  // namespace crema
