#include "solver/state_file.h"

#include <climits>

#include "base/error.h"
#include "base/files.h"
#include "data/hdf5_file.h"
#include "data/hdf5_writer.h"
#include "net/wire_reader_cursor.h"
#include "solver/checksum.h"

namespace crema {
namespace {

uint64_t hash_of(const char* bytes, size_t count) { return Checksum().add(bytes, count).value(); }

// A serialized SolverState with nothing but the checksum.
std::string checksum_field(uint64_t hash) {
  SolverState only;
  only.set_checksum(hash);
  return only.SerializeAsString();
}

void check_hash(const std::string& bytes, const std::string& path) {
  const size_t length = checksum_field(0).size();
  const std::string tag = checksum_field(0).substr(0, length - sizeof(uint64_t));
  if (!starts_with(bytes, tag)) return;  // a file of Caffe
  SolverState first;
  const bool whole =
      bytes.size() >= length && first.ParseFromArray(bytes.data(), static_cast<int>(length));
  require(
      whole && first.checksum() == hash_of(bytes.data() + length, bytes.size() - length), path,
      ": this solver state is damaged: its content does not agree with its checksum; go on from an "
      "older snapshot");
}

// Walks the fields of the file and of its blobs, for the byte at which it breaks off.
void check_wire(const std::string& bytes, const std::string& path) {
  for (WireCursor in(path, ".solverstate", bytes.data(), bytes.size()); !in.done();) {
    const WireCursor::Tag tag = in.tag();
    if (tag.field != SolverState::kHistoryFieldNumber || tag.kind != WireCursor::kBytes) {
      in.skip(tag);
      continue;
    }
    for (WireCursor blob = in.part(); !blob.done();) blob.skip(blob.tag());
  }
}

SolverState read_binary(const std::string& path) {
  const std::string bytes = read_file(path);
  require(!bytes.empty(), path, ": is empty");
  check_wire(bytes, path);
  check_hash(bytes, path);
  SolverState state;
  require(bytes.size() <= INT_MAX && state.ParseFromString(bytes) && state.has_iter(), path,
          ": is not a solver state, or it is damaged");
  require(state.has_checksum() || !state.has_seed(), path,
          ": this solver state is damaged: its checksum is missing; go on from an older snapshot");
  return state;
}

Shape shape_of(const BlobProto& blob) {
  return Shape(std::vector<int64_t>(blob.shape().dim().begin(), blob.shape().dim().end()));
}

void read_blobs(const Hdf5File& file, const std::string& group,
                google::protobuf::RepeatedPtrField<BlobProto>* blobs) {
  const size_t count = file.children(group).size();
  for (size_t i = 0; i < count; ++i) {
    const std::string name = cat(group, "/", i);
    BlobProto* blob = blobs->Add();
    const Shape shape = file.shape(name);
    blob->mutable_shape()->mutable_dim()->Add(shape.dims().begin(), shape.dims().end());
    const std::vector<float> values = file.floats(name);
    blob->mutable_data()->Add(values.begin(), values.end());
  }
}

void write_blobs(Hdf5Writer& file, const std::string& group,
                 const google::protobuf::RepeatedPtrField<BlobProto>& blobs) {
  file.group(group);
  for (int i = 0; i < blobs.size(); ++i) {
    const std::string name = cat(group, "/", i);
    if (blobs[i].double_data_size() > 0) {
      file.doubles(name, shape_of(blobs[i]), blobs[i].double_data().data());
    } else {
      file.floats(name, shape_of(blobs[i]), blobs[i].data().data());
    }
  }
}

SolverState read_hdf5(const std::string& path) {
  const Hdf5File file(path);
  require(file.has("iter") && file.has("history"), path,
          ": is an HDF5 file, but not a solver state: it has no \"iter\" and "
          "\"history\"");
  const auto number = [&](const char* name) { return file.integer(name); };
  SolverState state;
  state.set_iter(static_cast<int32_t>(number("iter")));
  if (file.has("learned_net")) state.set_learned_net(file.text("learned_net"));
  if (file.has("current_step"))
    state.set_current_step(static_cast<int32_t>(number("current_step")));
  read_blobs(file, "history", state.mutable_history());
  if (file.has("average")) read_blobs(file, "average", state.mutable_average());
  if (file.has("slow")) read_blobs(file, "slow", state.mutable_slow());
  if (file.has("seed")) state.set_seed(number("seed"));
  if (file.has("train_passes")) state.set_train_passes(number("train_passes"));
  if (file.has("test_passes")) {
    for (uint64_t passes : file.integers("test_passes")) state.add_test_passes(passes);
  }
  if (file.has("loss_window")) {
    for (float loss : file.floats("loss_window")) state.add_loss_window(loss);
  }
  if (file.has("loss_scale")) state.set_loss_scale(file.real("loss_scale"));
  if (file.has("loss_scale_age"))
    state.set_loss_scale_age(static_cast<int32_t>(number("loss_scale_age")));
  if (file.has("larc_correlation")) {
    for (float value : file.floats("larc_correlation")) state.add_larc_correlation(value);
  }
  if (file.has("smallest_loss")) state.set_smallest_loss(file.real("smallest_loss"));
  if (file.has("last_event")) state.set_last_event(static_cast<int64_t>(number("last_event")));
  if (file.has("best_score")) state.set_best_score(file.real("best_score"));
  if (file.has("tests_without_better"))
    state.set_tests_without_better(static_cast<int32_t>(number("tests_without_better")));
  if (file.has("net_fingerprint")) state.set_net_fingerprint(file.text("net_fingerprint"));
  if (file.has("weights_checksum")) state.set_weights_checksum(number("weights_checksum"));
  return state;
}

void write_hdf5(const SolverState& state, const std::string& path) {
  Hdf5Writer file(path);
  file.integer("iter", state.iter());
  file.text("learned_net", state.learned_net());
  file.integer("current_step", state.current_step());
  write_blobs(file, "history", state.history());
  if (state.average_size() > 0) write_blobs(file, "average", state.average());
  if (state.slow_size() > 0) write_blobs(file, "slow", state.slow());
  if (state.has_seed()) file.integers("seed", {state.seed()});
  if (state.has_train_passes()) file.integers("train_passes", {state.train_passes()});
  file.integers("test_passes", {state.test_passes().begin(), state.test_passes().end()});
  file.floats("loss_window", Shape{state.loss_window_size()}, state.loss_window().data());
  const auto list = [&](const char* name, const google::protobuf::RepeatedField<float>& values) {
    if (values.size() > 0) file.floats(name, Shape{values.size()}, values.data());
  };
  const auto one = [&](const char* name, float value) { file.floats(name, Shape{1}, &value); };
  list("larc_correlation", state.larc_correlation());
  if (state.has_loss_scale()) one("loss_scale", state.loss_scale());
  if (state.has_loss_scale_age())
    file.integers("loss_scale_age", {static_cast<uint64_t>(state.loss_scale_age())});
  if (state.has_smallest_loss()) one("smallest_loss", state.smallest_loss());
  if (state.has_last_event())
    file.integers("last_event", {static_cast<uint64_t>(state.last_event())});
  if (state.has_best_score()) one("best_score", state.best_score());
  if (state.has_tests_without_better())
    file.integers("tests_without_better", {static_cast<uint64_t>(state.tests_without_better())});
  if (state.has_net_fingerprint()) file.text("net_fingerprint", state.net_fingerprint());
  if (state.has_weights_checksum()) file.integers("weights_checksum", {state.weights_checksum()});
  file.commit();
}

}  // namespace

void write_solver_state(const SolverState& state, const std::string& path, bool hdf5) {
  if (hdf5) return write_hdf5(state, path);
  std::string bytes;
  require(
      state.ByteSizeLong() <= INT_MAX && state.SerializeToString(&bytes), path,
      ": the optimizer state takes ", state.ByteSizeLong(),
      " bytes, but a binary .solverstate cannot be larger than 2 GiB: write HDF5 (snapshot_format: "
      "HDF5 in the solver)");
  const std::string checksum = checksum_field(hash_of(bytes.data(), bytes.size()));
  AtomicFile file(path);
  file.write(checksum.data(), checksum.size());
  file.write(bytes.data(), bytes.size());
  file.commit();
}

SolverState read_solver_state(const std::string& path) {
  return is_hdf5(path) ? read_hdf5(path) : read_binary(path);
}

}  // namespace crema
