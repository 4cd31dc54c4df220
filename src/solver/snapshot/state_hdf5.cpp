#include "solver/snapshot/state_hdf5.h"

#include <climits>
#include <cmath>

#include "base/error.h"
#include "data/databases/hdf5/hdf5_file.h"
#include "data/databases/hdf5/hdf5_writer.h"
#include "solver/events/checksum.h"

namespace crema {
namespace {

using Blobs = google::protobuf::RepeatedPtrField<BlobProto>;

constexpr const char* kChecksum = "checksum";
// A file with this field must have a checksum: removing the checksum does not make it a file of
// Caffe, or an older one from before checksums.
constexpr const char* kVersion = "state_version";

// The sum of the hashes of all datasets, each over name, extents and values. So it depends neither
// on how the library lays a file out nor on the order of the datasets.
class Content {
 public:
  void add(const std::string& name, const Shape& shape, const float* values) {
    add(name, shape, values, sizeof(float));
  }
  void add(const std::string& name, const std::vector<uint64_t>& values) {
    add(name, Shape{static_cast<int64_t>(values.size())}, values.data(), sizeof(uint64_t));
  }
  void add(const std::string& name, const std::string& text) {
    add(name, Shape{static_cast<int64_t>(text.size())}, text.data(), 1);
  }
  uint64_t value() const { return sum_; }

 private:
  void add(const std::string& name, const Shape& shape, const void* values, size_t size) {
    Checksum hash;
    hash.add(name.c_str(), name.size() + 1);
    hash.add(shape.dims().data(), shape.dims().size() * sizeof(int64_t));
    sum_ += hash.add(values, static_cast<size_t>(shape.count()) * size).value();
  }
  uint64_t sum_ = 0;
};

Shape shape_of(const BlobProto& blob) {
  return Shape(std::vector<int64_t>(blob.shape().dim().begin(), blob.shape().dim().end()));
}

class Writer {
 public:
  explicit Writer(const std::string& path) : file_(path) {}

  // In the type that Caffe uses for its own.
  void caffe_number(const char* name, int32_t value) {
    file_.integer(name, value);
    content_.add(name, std::vector<uint64_t>{static_cast<uint64_t>(value)});
  }
  void number(const char* name, uint64_t value) { numbers(name, {value}); }
  void numbers(const char* name, const std::vector<uint64_t>& values) {
    file_.integers(name, values);
    content_.add(name, values);
  }
  void floats(const std::string& name, const Shape& shape, const float* values) {
    file_.floats(name, shape, values);
    content_.add(name, shape, values);
  }
  void real(const char* name, float value) { floats(name, Shape{1}, &value); }
  void list(const char* name, const google::protobuf::RepeatedField<float>& values) {
    floats(name, Shape{values.size()}, values.data());
  }
  void text(const char* name, const std::string& value) {
    file_.text(name, value);
    content_.add(name, value);
  }
  void blobs(const char* group, const Blobs& blobs) {
    file_.group(group);
    for (int i = 0; i < blobs.size(); ++i) {
      const std::string name = cat(group, "/", i);
      const Shape shape = shape_of(blobs[i]);
      const int held =
          blobs[i].double_data_size() > 0 ? blobs[i].double_data_size() : blobs[i].data_size();
      require(shape.count() == held, name, " of shape ", shape.brief(), " holds ", held,
              " values: it cannot be written");
      if (blobs[i].double_data_size() == 0) {
        floats(name, shape, blobs[i].data().data());
        continue;
      }
      const auto& doubles = blobs[i].double_data();
      file_.doubles(name, shape, doubles.data());
      // They are read back as floats.
      content_.add(name, shape, std::vector<float>(doubles.begin(), doubles.end()).data());
    }
  }
  void commit() {
    number(kVersion, 1);
    file_.integers(kChecksum, {content_.value()});
    file_.commit();
  }

 private:
  Hdf5Writer file_;
  Content content_;
};

class Reader {
 public:
  explicit Reader(const std::string& path) : path_(path), file_(path) {
    require(file_.has("iter") && file_.has("history"), path,
            ": is an HDF5 file, but not a solver state: it has no \"iter\" and \"history\"");
  }

  bool has(const char* name) const { return file_.has(name); }
  // A 32-bit integer, stored in any type. Read as a double, because the library silently clips
  // values that an integer cannot hold.
  int32_t small_number(const char* name) {
    const std::vector<double> values = file_.doubles(name);
    require(values.size() == 1, path_, ": dataset \"", name, "\" has ", values.size(),
            " numbers; it should be one");
    const double value = values[0];
    require(value >= INT_MIN && value <= INT_MAX && value == std::floor(value), path_, ": ", name,
            " is ", value, ", it must be a whole number of 32 bits: the file is damaged");
    const auto number = static_cast<int32_t>(value);
    content_.add(name, std::vector<uint64_t>{static_cast<uint64_t>(number)});
    return number;
  }
  uint64_t number(const char* name) {
    const uint64_t value = file_.integer(name);
    content_.add(name, std::vector<uint64_t>{value});
    return value;
  }
  std::vector<uint64_t> numbers(const char* name) {
    std::vector<uint64_t> values = file_.integers(name);
    content_.add(name, values);
    return values;
  }
  float real(const char* name) {
    const float value = file_.real(name);
    content_.add(name, Shape{1}, &value);
    return value;
  }
  std::vector<float> floats(const std::string& name) {
    std::vector<float> values = file_.floats(name);
    content_.add(name, file_.shape(name), values.data());
    return values;
  }
  std::string text(const char* name) {
    std::string value = file_.text(name);
    content_.add(name, value);
    return value;
  }
  void blobs(const char* group, Blobs* blobs) {
    const size_t count = file_.children(group).size();
    for (size_t i = 0; i < count; ++i) {
      const std::string name = cat(group, "/", i);
      const Shape shape = file_.shape(name);
      const std::vector<float> values = floats(name);
      BlobProto* blob = blobs->Add();
      blob->mutable_shape()->mutable_dim()->Add(shape.dims().begin(), shape.dims().end());
      blob->mutable_data()->Add(values.begin(), values.end());
    }
  }
  // Call after everything has been read. Files of Caffe, and older ones from before checksums, have
  // none.
  void check(SolverState* state) {
    if (has(kVersion)) require(has(kChecksum), path_, kNoChecksum);
    if (!has(kChecksum)) return;
    if (has(kVersion)) numbers(kVersion);
    state->set_checksum(file_.integer(kChecksum));
    require(state->checksum() == content_.value(), path_, kWrongChecksum);
  }

 private:
  const std::string& path_;
  Hdf5File file_;
  Content content_;
};

}  // namespace

SolverState read_hdf5_state(const std::string& path) {
  Reader file(path);
  SolverState state;
  state.set_iter(file.small_number("iter"));
  if (file.has("learned_net")) state.set_learned_net(file.text("learned_net"));
  if (file.has("current_step")) state.set_current_step(file.small_number("current_step"));
  file.blobs("history", state.mutable_history());
  if (file.has("average")) file.blobs("average", state.mutable_average());
  if (file.has("slow")) file.blobs("slow", state.mutable_slow());
  if (file.has("carried")) file.blobs("carried", state.mutable_carried());
  if (file.has("seed")) state.set_seed(file.number("seed"));
  if (file.has("train_passes")) state.set_train_passes(file.number("train_passes"));
  if (file.has("test_passes")) {
    for (uint64_t passes : file.numbers("test_passes")) state.add_test_passes(passes);
  }
  if (file.has("loss_window")) {
    for (float loss : file.floats("loss_window")) state.add_loss_window(loss);
  }
  if (file.has("larc_correlation")) {
    for (float value : file.floats("larc_correlation")) state.add_larc_correlation(value);
  }
  if (file.has("loss_scale")) state.set_loss_scale(file.real("loss_scale"));
  if (file.has("loss_scale_age")) state.set_loss_scale_age(file.small_number("loss_scale_age"));
  if (file.has("smallest_loss")) state.set_smallest_loss(file.real("smallest_loss"));
  if (file.has("last_event")) state.set_last_event(static_cast<int64_t>(file.number("last_event")));
  if (file.has("best_score")) state.set_best_score(file.real("best_score"));
  if (file.has("tests_without_better"))
    state.set_tests_without_better(file.small_number("tests_without_better"));
  if (file.has("rollback_scale")) state.set_rollback_scale(file.real("rollback_scale"));
  if (file.has("best_values")) {
    for (float value : file.floats("best_values")) state.add_best_values(value);
  }
  if (file.has("tests_since_best")) {
    for (uint64_t tests : file.numbers("tests_since_best"))
      state.add_tests_since_best(static_cast<int32_t>(tests));
  }
  if (file.has("net_fingerprint")) state.set_net_fingerprint(file.text("net_fingerprint"));
  if (file.has("recipe")) state.set_recipe(file.text("recipe"));
  if (file.has("kept_snapshots")) {
    for (uint64_t kept : file.numbers("kept_snapshots"))
      state.add_kept_snapshots(static_cast<int64_t>(kept));
  }
  if (file.has("samples_per_pass"))
    state.set_samples_per_pass(static_cast<int64_t>(file.number("samples_per_pass")));
  if (file.has("samples_before"))
    state.set_samples_before(static_cast<int64_t>(file.number("samples_before")));
  if (file.has("batch")) state.set_batch(static_cast<int64_t>(file.number("batch")));
  if (file.has("weights_checksum")) state.set_weights_checksum(file.number("weights_checksum"));
  file.check(&state);
  return state;
}

void write_hdf5_state(const SolverState& state, const std::string& path) {
  Writer file(path);
  file.caffe_number("iter", state.iter());
  file.text("learned_net", state.learned_net());
  file.caffe_number("current_step", state.current_step());
  file.blobs("history", state.history());
  if (state.average_size() > 0) file.blobs("average", state.average());
  if (state.slow_size() > 0) file.blobs("slow", state.slow());
  if (state.carried_size() > 0) file.blobs("carried", state.carried());
  if (state.has_seed()) file.number("seed", state.seed());
  if (state.has_train_passes()) file.number("train_passes", state.train_passes());
  file.numbers("test_passes", {state.test_passes().begin(), state.test_passes().end()});
  file.list("loss_window", state.loss_window());
  if (state.larc_correlation_size() > 0) file.list("larc_correlation", state.larc_correlation());
  if (state.has_loss_scale()) file.real("loss_scale", state.loss_scale());
  if (state.has_loss_scale_age())
    file.number("loss_scale_age", static_cast<uint64_t>(state.loss_scale_age()));
  if (state.has_smallest_loss()) file.real("smallest_loss", state.smallest_loss());
  if (state.has_last_event()) file.number("last_event", static_cast<uint64_t>(state.last_event()));
  if (state.has_best_score()) file.real("best_score", state.best_score());
  if (state.has_tests_without_better())
    file.number("tests_without_better", static_cast<uint64_t>(state.tests_without_better()));
  if (state.has_rollback_scale()) file.real("rollback_scale", state.rollback_scale());
  if (state.best_values_size() > 0) file.list("best_values", state.best_values());
  if (state.tests_since_best_size() > 0)
    file.numbers("tests_since_best",
                 {state.tests_since_best().begin(), state.tests_since_best().end()});
  if (state.has_net_fingerprint()) file.text("net_fingerprint", state.net_fingerprint());
  if (state.has_recipe()) file.text("recipe", state.recipe());
  if (state.kept_snapshots_size() > 0)
    file.numbers("kept_snapshots", {state.kept_snapshots().begin(), state.kept_snapshots().end()});
  if (state.has_samples_per_pass())
    file.number("samples_per_pass", static_cast<uint64_t>(state.samples_per_pass()));
  if (state.has_samples_before())
    file.number("samples_before", static_cast<uint64_t>(state.samples_before()));
  if (state.has_batch()) file.number("batch", static_cast<uint64_t>(state.batch()));
  if (state.has_weights_checksum()) file.number("weights_checksum", state.weights_checksum());
  file.commit();
}

}  // namespace crema
