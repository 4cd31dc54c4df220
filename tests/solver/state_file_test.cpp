// Contents of a .solverstate: checksums in both formats, states of Caffe and from before there were
// checksums, and contents that no run has written.
#include "solver/snapshot/state_file.h"

#include <climits>
#include <set>

#include "data/databases/hdf5/hdf5_writer.h"
#include "fixtures.h"
#include "net/weights/wire_writer.h"

namespace crema::tests {
namespace state_file_test {

constexpr const char* kSettings =
    "type: \"Adam\" momentum: 0.9 max_iter: 10 snapshot: 4 average_loss: 3 random_seed: 5 "
    "ema_decay: 0.5 ";

SolverFile settings(const Folder& folder, const char* format = "BINARYPROTO") {
  return solver_file(cat(kSettings, "snapshot_format: ", format, " snapshot_prefix: \"",
                         folder.file("net"), "\" "));
}

// The folder of a run with one snapshot.
class StateFile : public testing::Test {
 protected:
  std::string trained(const char* format) {
    Context context(Device::cpu);
    Solver solver(context, settings(folder_, format));
    solver.step(4);
    return folder_.file(std::string("net_iter_4.solverstate") +
                        (format == std::string("HDF5") ? ".h5" : ""));
  }
  std::string damaged(const std::string& bytes) const {
    folder_.write("damaged", bytes);
    return error_of([&] { read_solver_state(folder_.file("damaged")); });
  }
  SolverState read(const std::string& bytes) const {
    folder_.write("changed", bytes);
    return read_solver_state(folder_.file("changed"));
  }
  std::string resume_error(const std::string& state) const {
    Context context(Device::cpu);
    SolverOptions options;
    options.snapshot = state;
    return error_of([&] { Solver solver(context, settings(folder_), options); });
  }

  Folder folder_;
};

// As a program reads and writes it that knows none of our fields, or moves the checksum.
TEST_F(StateFile, TheChecksumIsHeldWhereverItStands) {
  const std::string whole = read_file(trained("BINARYPROTO"));
  SolverState only;
  only.set_checksum(0);
  const size_t length = only.ByteSizeLong();
  const std::string checksum = whole.substr(0, length), rest = whole.substr(length);
  const std::string again = read(whole).SerializeAsString();  // fields by their numbers
  ASSERT_NE(again.substr(0, length), checksum);
  EXPECT_EQ(read(again).iter(), 4);
  EXPECT_EQ(read(rest + checksum).iter(), 4);
  for (const std::string& moved : {again, rest + checksum}) {
    for (size_t i = 0; i < moved.size(); i += moved.size() / 50) {
      std::string bytes = moved;
      bytes[i] ^= 16;
      expect_part(damaged(bytes), "damaged");
    }
  }
  expect_part(damaged(whole + checksum), "does not agree with its checksum");
}

TEST_F(StateFile, WithoutItsChecksumAStateOfOursIsNotOneOfCaffe) {
  const SolverState whole = read_solver_state(trained("BINARYPROTO"));
  const auto* reflection = SolverState::GetReflection();
  SolverState caffe = whole;
  std::vector<const google::protobuf::FieldDescriptor*> fields;
  reflection->ListFields(whole, &fields);
  for (const auto* field : fields) {
    if (field->number() < 5000) continue;
    reflection->ClearField(&caffe, field);
    if (field->number() == SolverState::kChecksumFieldNumber) continue;
    // Whichever of our fields has stayed.
    SolverState stripped = whole;
    for (const auto* other : fields) {
      if (other->number() >= 5000 && other != field) reflection->ClearField(&stripped, other);
    }
    expect_part(damaged(stripped.SerializeAsString()), "its checksum is missing");
  }
  EXPECT_EQ(read(caffe.SerializeAsString()).iter(), 4);
}

// A link's name in an HDF5 file, in place.
std::string renamed(std::string bytes, const std::string& from, const std::string& to) {
  const std::string old = std::string(1, '\0') + from + std::string(1, '\0');
  const size_t at = bytes.find(old);
  EXPECT_NE(at, std::string::npos) << from;
  if (at != std::string::npos) bytes.replace(at + 1, from.size(), to);
  return bytes;
}

TEST_F(StateFile, HdfStatesHaveAChecksum) {
  const std::string path = trained("HDF5"), whole = read_file(path);
  const SolverState state = read_solver_state(path);
  EXPECT_TRUE(state.has_checksum());
  // Values are stored unchanged in the file.
  const auto flipped = [&](const void* value, size_t size) {
    const size_t at = whole.find(std::string(static_cast<const char*>(value), size));
    EXPECT_NE(at, std::string::npos);
    std::string bytes = whole;
    if (at != std::string::npos) bytes[at] ^= 1;
    return bytes;
  };
  for (const auto& blobs : {state.history(), state.average()}) {
    for (const BlobProto& blob : blobs)
      expect_part(damaged(flipped(blob.data().data(), 12)), "does not agree with its checksum");
  }
  for (const uint64_t number : {state.weights_checksum(), state.checksum()})
    expect_part(damaged(flipped(&number, 8)), "does not agree with its checksum");
  expect_part(damaged(renamed(whole, "checksum", "checksux")), "its checksum is missing");
  // Names keep their order, by which the library finds them.
  const std::string before =
      renamed(renamed(whole, "checksum", "checksux"), "state_version", "state_versiox");
  EXPECT_FALSE(read(before).has_checksum());  // of a version without
  EXPECT_EQ(read(before).seed(), 5u);
}

TEST_F(StateFile, ItIsOfTheContentNotOfTheLayout) {
  const std::string path = trained("BINARYPROTO");
  const SolverState state = read_solver_state(path);
  write_solver_state(state, folder_.file("a.h5"), true);
  write_solver_state(read_solver_state(folder_.file("a.h5")), folder_.file("b.h5"), true);
  const uint64_t first = read_solver_state(folder_.file("a.h5")).checksum();
  EXPECT_EQ(read_solver_state(folder_.file("b.h5")).checksum(), first);
  SolverState other = state;
  other.set_iter(5);
  write_solver_state(other, folder_.file("b.h5"), true);
  EXPECT_NE(read_solver_state(folder_.file("b.h5")).checksum(), first);
}

TEST_F(StateFile, OfCaffeNeedNone) {
  const std::string folder =
      CREMA_TEST_DATA "/goldens/train/resume_adam_mlp/mid_iter_15.solverstate";
  for (const char* end : {"", ".h5"}) EXPECT_EQ(read_solver_state(folder + end).iter(), 15);
}

TEST_F(StateFile, NumbersThatNoTrainingWrites) {
  const SolverState whole = read_solver_state(trained("BINARYPROTO"));
  const struct {
    const char* message;
    std::function<void(SolverState*)> change;
  } rows[] = {
      {"iter is 2147483647, it must be from 0 to 2147483646",
       [](SolverState* s) { s->set_iter(INT_MAX); }},
      {"iter is -1", [](SolverState* s) { s->set_iter(-1); }},
      {"current_step is -7", [](SolverState* s) { s->set_current_step(-7); }},
      {"last_event is -3", [](SolverState* s) { s->set_last_event(-3); }},
      {"loss_scale is 0", [](SolverState* s) { s->set_loss_scale(0); }},
      {"tests_without_better is -1", [](SolverState* s) { s->set_tests_without_better(-1); }},
      {"samples_before is -1", [](SolverState* s) { s->set_samples_before(-1); }},
      {"samples_before is 4611686018427387904, it must be from 0 to 2305843009213693952",
       [](SolverState* s) { s->set_samples_before(int64_t{1} << 62); }},
      {"samples_per_pass is -5", [](SolverState* s) { s->set_samples_per_pass(-5); }},
      {"samples_per_pass is 4611686018427387904",
       [](SolverState* s) {
         s->set_train_passes(8);
         s->set_samples_per_pass(int64_t{1} << 62);
       }},
      {"train_passes is 18446744073709551615", [](SolverState* s) { s->set_train_passes(~0ull); }},
      {"test_passes is 2199023255552", [](SolverState* s) { s->add_test_passes(1ull << 41); }},
      {"loss_window is 2, it must be from 0 to 1", [](SolverState* s) { s->set_iter(1); }},
  };
  for (const auto& [message, change] : rows) {
    SolverState state = whole;
    change(&state);
    for (const bool hdf5 : {false, true}) {
      const std::string path = folder_.file(hdf5 ? "bad.h5" : "bad.solverstate");
      write_solver_state(state, path, hdf5);
      const std::string said = error_of([&] { read_solver_state(path); });
      // A value that HDF5 stores without a sign comes back as a large number.
      const bool wraps = hdf5 && std::string(message).find("tests_without") == 0;
      expect_part(said, wraps ? "tests_without_better is 1.84" : message);
      expect_part(said, "the file is damaged");
    }
  }
}

TEST_F(StateFile, NumbersOfHdfThatAreNoInt) {
  for (const double iter : {4294967301.0, -2147483649.0, 4.5, 1e300}) {
    Hdf5Writer file(folder_.file("bad.h5"));
    file.doubles("iter", Shape{1}, &iter);
    file.group("history");
    file.commit();
    expect_part(error_of([&] { read_solver_state(folder_.file("bad.h5")); }),
                "it must be a whole number of 32 bits");
  }
}

// A field that only one of the formats stores would change how a run resumes.
TEST_F(StateFile, Hdf5StoresEachNumber) {
  const SolverState whole = read_solver_state(trained("BINARYPROTO"));
  const std::set<std::string> of_a_fork = {"minimum_loss", "iter_last_event", "checksum"};
  const auto* reflection = SolverState::GetReflection();
  const auto* descriptor = SolverState::descriptor();
  using Field = google::protobuf::FieldDescriptor;
  int tried = 0;
  for (int i = 0; i < descriptor->field_count(); ++i) {
    const Field* const field = descriptor->field(i);
    if (field->is_repeated() || of_a_fork.count(field->name()) > 0) continue;
    SolverState state = whole;
    switch (field->cpp_type()) {
      case Field::CPPTYPE_INT32:
        reflection->SetInt32(&state, field, 5);
        break;
      case Field::CPPTYPE_INT64:
        reflection->SetInt64(&state, field, 5);
        break;
      case Field::CPPTYPE_UINT32:
        reflection->SetUInt32(&state, field, 5);
        break;
      case Field::CPPTYPE_UINT64:
        reflection->SetUInt64(&state, field, 5);
        break;
      case Field::CPPTYPE_FLOAT:
        reflection->SetFloat(&state, field, 5);
        break;
      case Field::CPPTYPE_DOUBLE:
        reflection->SetDouble(&state, field, 5);
        break;
      default:
        continue;
    }
    const std::string path = folder_.file("numbers.h5");
    write_solver_state(state, path, true);
    const SolverState again = read_solver_state(path);
    SolverState only_before, only_after;
    reflection->SwapFields(&state, &only_before, {field});
    SolverState read_again = again;
    reflection->SwapFields(&read_again, &only_after, {field});
    EXPECT_EQ(only_before.ShortDebugString(), only_after.ShortDebugString()) << field->name();
    ++tried;
  }
  EXPECT_GT(tried, 12);
}

TEST_F(StateFile, BlobsThatAreNotThoseOfTheNet) {
  const SolverState whole = read_solver_state(trained("BINARYPROTO"));
  const struct {
    const char* message;
    std::function<void(SolverState*)> change;
  } rows[] = {
      {"history blob 1 holds 7 floats and 8 doubles, but a blob has only one kind",
       [](SolverState* s) { s->mutable_history(1)->mutable_double_data()->Resize(8, 1); }},
      {"history blob 1 holds 7 floats and 7 doubles",
       [](SolverState* s) { s->mutable_history(1)->mutable_double_data()->Resize(7, 1); }},
      {"history blob 1 of shape 7 holds 6 values",
       [](SolverState* s) { s->mutable_history(1)->mutable_data()->RemoveLast(); }},
      {"history blob 0 is 5x7, but parameter 0 of layer \"ip1\" is 7x5",
       [](SolverState* s) {
         s->mutable_history(0)->mutable_shape()->mutable_dim()->SwapElements(0, 1);
       }},
      {"history blob 0 is of 100000 axes",
       [](SolverState* s) {
         s->mutable_history(0)->mutable_shape()->mutable_dim()->Resize(100000, 1);
       }},
      // 2^32 * 2^32 * 35 * 1 is 35 times nothing in 64 bits.
      {"history blob 0 is 65536x65536x65536x65536",
       [](SolverState* s) {
         BlobProto* blob = s->mutable_history(0);
         blob->clear_shape();
         blob->set_num(65536), blob->set_channels(65536), blob->set_height(65536);
         blob->set_width(65536);
       }},
      {"history blob 0 is -7x-5x1x1",
       [](SolverState* s) {
         BlobProto* blob = s->mutable_history(0);
         blob->clear_shape();
         blob->set_num(-7), blob->set_channels(-5), blob->set_height(1), blob->set_width(1);
       }},
      {"holds 7 history blobs", [](SolverState* s) { s->mutable_history()->RemoveLast(); }},
      {"holds 3 average blobs, but net \"small\" has 4 parameters",
       [](SolverState* s) { s->mutable_average()->RemoveLast(); }},
      {"average blob 3 holds 3 floats and 1 doubles",
       [](SolverState* s) { s->mutable_average(3)->add_double_data(1); }},
  };
  for (const auto& [message, change] : rows) {
    SolverState state = whole;
    change(&state);
    write_solver_state(state, folder_.file("bad.solverstate"), false);
    expect_part(resume_error(folder_.file("bad.solverstate")), message);
  }
}

// Nothing to divide among.
TEST_F(StateFile, OfBlobsThatLackValuesIsNotWritten) {
  SolverState state;
  state.set_iter(1);
  BlobProto* blob = state.add_history();
  blob->mutable_shape()->add_dim(1 << 20);
  blob->add_data(1);
  const std::string path = folder_.file("lacking.h5");
  expect_part(error_of([&] { write_solver_state(state, path, true); }),
              "history/0 of shape 1048576 holds 1 values");
  EXPECT_FALSE(folder_.has("lacking.h5"));
}

TEST_F(StateFile, BlobsForANetWithoutParameters) {
  SolverState state = read_solver_state(trained("BINARYPROTO"));
  state.clear_history();
  write_solver_state(state, folder_.file("bad.solverstate"), false);
  Context context(Device::cpu);
  SolverOptions options;
  options.snapshot = folder_.file("bad.solverstate");
  const char* net =
      "layer { name: \"data\" type: \"DummyData\" top: \"x\" top: \"y\" dummy_data_param { shape { "
      "dim: 2 } shape { dim: 2 } } } layer { name: \"loss\" type: \"EuclideanLoss\" bottom: \"x\" "
      "bottom: \"y\" top: \"loss\" }";
  expect_part(error_of([&] {
                Solver solver(context, solver_file("type: \"Adam\" momentum: 0.9", net), options);
              }),
              "holds 4 average blobs, but net \"\" has 0 parameters");
}

// C3D's first version numbers the fields of a blob differently.
TEST_F(StateFile, OfC3D) {
  const auto part = [](int field, const std::string& bytes) {
    return wire_header(field, bytes.size()) + bytes;
  };
  // num, channels, length, height, width, data
  const std::string values = "\x08\x01\x10\x01\x18\x01\x20\x01\x28\x02" +
                             part(6, std::string("\x00\x00\x80\x3f\x00\x00\x00\x40", 8));
  const SolverState state =
      read("\x08\x07" + part(2, "c3d_iter_7") + part(3, values) + part(3, values));
  EXPECT_EQ(state.iter(), 7);
  EXPECT_EQ(state.learned_net(), "c3d_iter_7");
  ASSERT_EQ(state.history_size(), 2);
  EXPECT_EQ(state.history(1).width(), 2);
  ASSERT_EQ(state.history(1).data_size(), 2);
  EXPECT_EQ(state.history(1).data(0), 1);
  EXPECT_EQ(state.history(1).data(1), 2);
}

}  // namespace state_file_test
}  // namespace crema::tests
