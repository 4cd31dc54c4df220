#include "solver/snapshot/state_file.h"

#include <climits>
#include <limits>

#include "base/error.h"
#include "base/files.h"
#include "data/databases/given_file.h"
#include "data/databases/hdf5/hdf5_file.h"
#include "net/weights/wire_reader.h"
#include "net/weights/wire_reader_cursor.h"
#include "solver/events/checksum.h"
#include "solver/snapshot/state_hdf5.h"

namespace crema {
namespace {

// Our own fields, which files of Caffe do not have.
bool is_ours(uint32_t field) { return field >= 5000 && field < 6000; }

// A serialized SolverState that has only the checksum.
std::string checksum_field(uint64_t hash) {
  SolverState only;
  only.set_checksum(hash);
  return only.SerializeAsString();
}

// The result of walking a binary file.
struct Walk {
  bool ours = false;
  bool of_clips = false;          // C3D's first files number the fields of blobs differently
  std::vector<size_t> checksums;  // offset of each
};

// Walks the fields of the file and of its blobs, to find the byte at which it breaks off.
Walk walk(const std::string& bytes, const std::string& path) {
  Walk found;
  for (WireCursor in(path, ".solverstate", bytes.data(), bytes.size()); !in.done();) {
    const size_t at = bytes.size() - in.left();
    const WireCursor::Tag tag = in.tag();
    found.ours = found.ours || is_ours(tag.field);
    if (tag.field == SolverState::kChecksumFieldNumber && tag.kind == WireCursor::kFixed64)
      found.checksums.push_back(at);
    if (tag.field != SolverState::kHistoryFieldNumber || tag.kind != WireCursor::kBytes) {
      in.skip(tag);
      continue;
    }
    const WireCursor blob = in.part();
    found.of_clips = found.of_clips || has_clip_numbers(blob);
    for (WireCursor rest = blob; !rest.done();) rest.skip(rest.tag());
  }
  return found;
}

// The file with its blobs in today's form. Their shapes have leading ones, so only the number of
// values is kept, as in Caffe's own old files.
SolverState read_clip_state(const std::string& bytes, const std::string& path) {
  std::string others;
  std::vector<StoredBlob> history;
  for (WireCursor in(path, ".solverstate", bytes.data(), bytes.size()); !in.done();) {
    const size_t begin = bytes.size() - in.left();
    const WireCursor::Tag tag = in.tag();
    if (tag.field == SolverState::kHistoryFieldNumber && tag.kind == WireCursor::kBytes) {
      history.push_back(read_stored_blob(in.part()));
    } else {
      in.skip(tag);
      others += bytes.substr(begin, bytes.size() - in.left() - begin);
    }
  }
  SolverState state;
  if (!state.ParseFromString(others)) return {};
  for (const StoredBlob& blob : history) {
    BlobProto* made = state.add_history();
    made->set_num(1);
    made->set_channels(1);
    made->set_height(1);
    made->set_width(static_cast<int32_t>(blob.data.size()));
    made->mutable_data()->Add(blob.data.begin(), blob.data.end());
  }
  return state;
}

// The checksum covers all other bytes, wherever it is: we write it first, but a program that reads
// and rewrites the message may move it.
void check_hash(const std::string& bytes, const Walk& found, const std::string& path) {
  require(found.checksums.size() == 1, path,
          found.checksums.empty() ? kNoChecksum : kWrongChecksum);
  const size_t at = found.checksums[0], length = checksum_field(0).size();
  uint64_t stored = 0;
  for (int i = 7; i >= 0; --i)
    stored = stored << 8 | static_cast<unsigned char>(bytes[at + length - 8 + i]);
  const std::string_view all(bytes);
  Checksum hash;
  if (at == 0) {
    hash.add(bytes.data() + length, bytes.size() - length);
  } else {
    const std::string rest = cat(all.substr(0, at), all.substr(at + length));
    hash.add(rest.data(), rest.size());
  }
  require(hash.value() == stored, path, kWrongChecksum);
}

SolverState read_binary(const std::string& path) {
  const std::string bytes = read_file(path);
  require(!bytes.empty(), path, ": is empty");
  const Walk found = walk(bytes, path);
  if (found.ours) check_hash(bytes, found, path);
  SolverState state;
  const bool small = bytes.size() <= INT_MAX;
  if (small && found.of_clips) state = read_clip_state(bytes, path);
  require(small && (found.of_clips || state.ParseFromString(bytes)) && state.has_iter(), path,
          ": is not a solver state, or it is damaged");
  return state;
}

void check_size(uint64_t bytes, const std::string& path) {
  require(bytes <= INT_MAX, path, ": the optimizer state takes ", bytes,
          " bytes, but a binary .solverstate cannot be larger than 2 GiB: write HDF5 "
          "(snapshot_format: HDF5 in the solver)");
}

// The checksum of bytes that come in parts: that of all of them in a row.
class StreamChecksum {
 public:
  void add(const void* bytes, size_t count) {
    const char* at = static_cast<const char*>(bytes);
    for (; count > 0 && !begun_.empty() && begun_.size() < 8; --count) begun_.push_back(*at++);
    if (begun_.size() == 8) {
      hash_.add(begun_.data(), 8);
      begun_.clear();
    }
    if (count == 0) return;
    const size_t words = count / 8 * 8;
    hash_.add(at, words);
    begun_.assign(at + words, count - words);
  }
  uint64_t value() const { return Checksum(hash_).add(begun_.data(), begun_.size()).value(); }

 private:
  Checksum hash_;
  std::string begun_;  // fewer than 8 bytes, of the next word
};

// Rejects values that no training writes, and those that would overrun an array or a counter.
void check_numbers(const SolverState& state, const std::string& path) {
  const auto within = [&](const char* field, auto value, auto minimum, auto maximum) {
    require(value >= minimum && value <= maximum, path, ": ", field, " is ", value,
            ", it must be from ", minimum, " to ", maximum, ": the file is damaged");
  };
  // The next iteration's number must fit, too.
  within("iter", state.iter(), 0, INT_MAX - 1);
  within("current_step", state.current_step(), 0, INT_MAX - 1);
  within("tests_without_better", state.tests_without_better(), 0, INT_MAX - 1);
  within("loss_scale_age", state.loss_scale_age(), 0, INT_MAX - 1);
  if (state.has_loss_scale())
    within("loss_scale", state.loss_scale(), std::numeric_limits<float>::min(),
           std::numeric_limits<float>::max());
  within("last_event", state.last_event(), int64_t{0}, int64_t{INT_MAX});
  // Multiplied by the batch size this is a data position.
  constexpr uint64_t kMaxPasses = uint64_t{1} << 40;
  within("train_passes", state.train_passes(), uint64_t{0}, kMaxPasses);
  for (const uint64_t passes : state.test_passes())
    within("test_passes", passes, uint64_t{0}, kMaxPasses);
  // Passes times samples must not overflow, nor with the samples before added.
  constexpr int64_t kMaxSamples = int64_t{1} << 62;
  const auto passes = static_cast<int64_t>(std::max<uint64_t>(state.train_passes(), 1));
  within("samples_per_pass", state.samples_per_pass(), int64_t{0}, kMaxSamples / passes);
  within("samples_before", state.samples_before(), int64_t{0}, kMaxSamples / 2);
  within("loss_window", state.loss_window_size(), 0, state.iter());
}

}  // namespace

void write_solver_state(const SolverState& state, const std::string& path, bool hdf5) {
  if (hdf5) return write_hdf5_state(state, path);
  SolverState without = state;
  without.clear_checksum();  // that of the file it was read from
  std::string bytes;
  check_size(without.ByteSizeLong(), path);
  require(without.SerializeToString(&bytes), path, ": the optimizer state cannot be serialized");
  Context host(Device::cpu);
  write_solver_state(host, WireMessage(std::move(bytes)), path);
}

void write_solver_state(Context& context, const WireMessage& state, const std::string& path) {
  check_size(state.size(), path);
  StreamChecksum hash;
  state.write(context, [&](const void* bytes, size_t count) { hash.add(bytes, count); });
  const std::string checksum = checksum_field(hash.value());
  AtomicFile file(path);
  file.write(checksum.data(), checksum.size());
  state.write(context, [&](const void* bytes, size_t count) { file.write(bytes, count); });
  file.commit();
}

SolverState read_solver_state(const std::string& path) {
  const FileKind kind = kind_of(path);
  const bool other = !kind.what.empty() && kind.what != kUnknownKind &&
                     !starts_with(kind.what, "a solver state") && kind.what != kHdf5Kind;
  require(!other, path, ": is no solver state", what_it_is(kind));
  const SolverState state = is_hdf5(path) ? read_hdf5_state(path) : read_binary(path);
  check_numbers(state, path);
  return state;
}

}  // namespace crema
