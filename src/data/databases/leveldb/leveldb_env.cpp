#ifdef CREMA_LEVELDB
#include "data/databases/leveldb/leveldb_env.h"

#include <leveldb/helpers/memenv.h>

#include <algorithm>
#include <cstring>
#include <system_error>

#include "base/error.h"
#include "base/random_access_file.h"

namespace crema {
namespace {

using leveldb::Slice;
using leveldb::Status;

// A table that, unlike LevelDB's own, is not mapped into memory.
// A number of LevelDB, 7 bits a byte, at the beginning of the text, which it leaves. False if there is none.
bool take_number(std::string_view* text, uint64_t* number) {
  *number = 0;
  for (int shift = 0; shift < 64 && !text->empty(); shift += 7) {
    const auto byte = static_cast<uint8_t>(text->front());
    text->remove_prefix(1);
    *number |= static_cast<uint64_t>(byte & 127) << shift;
    if (byte < 128) return true;
  }
  return false;
}

// A table ends with the places of two blocks. LevelDB allocates memory for what they say before it
// reads, while it holds a lock that it never gives back if there is none.
class TableFile : public leveldb::RandomAccessFile {
 public:
  explicit TableFile(const std::string& path) : file_(path) {
    constexpr uint64_t kFooter = 48, kTrailer = 5;
    const uint64_t size = file_.size();
    if (size < kFooter) return;  // LevelDB says so
    char bytes[kFooter];
    std::string_view footer(bytes, file_.read(size - kFooter, bytes, kFooter));
    for (int block = 0; block < 2; ++block) {
      uint64_t offset = 0, length = 0;
      require(take_number(&footer, &offset) && take_number(&footer, &length) && offset <= size &&
                  length <= size - offset && length + kTrailer <= size - offset,
              path, ": a table whose blocks are not inside of it");
    }
  }

  Status Read(uint64_t offset, size_t count, Slice* result, char* scratch) const override {
    *result = Slice();
    try {
      *result = Slice(scratch, file_.read(offset, scratch, count));
      return Status::OK();
    } catch (const Error& problem) {
      return Status::IOError(problem.what());
    }
  }

 private:
  crema::RandomAccessFile file_;
};

std::string name_of_file(const std::string& path) { return path.substr(path.rfind('/') + 1); }

bool is_log(const std::string& name) {
  return name.ends_with(".log") || name.starts_with("MANIFEST-");
}

// Limit for file and write numbers. LevelDB asserts that they fit into 56 bits and increase, which
// aborts the program even where checksums agree.
constexpr uint64_t kMaxNumber = uint64_t{1} << 48;

// Reads the fields of a manifest record: integers with seven bits per byte, and strings.
class Fields {
 public:
  explicit Fields(const std::string& bytes) : bytes_(bytes) {}
  bool done() const { return at_ >= bytes_.size(); }
  bool whole() const { return whole_; }
  uint64_t number() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64 && !done(); shift += 7) {
      const auto byte = static_cast<unsigned char>(bytes_[at_++]);
      value |= uint64_t{byte & 127u} << shift;
      if (byte < 128) return value;
    }
    whole_ = false;
    return 0;
  }
  void text() {
    const uint64_t length = number();
    if (length > bytes_.size() - at_) whole_ = false;
    at_ = whole_ ? at_ + length : bytes_.size();
  }

 private:
  const std::string& bytes_;
  size_t at_ = 0;
  bool whole_ = true;
};

// File numbers of a manifest so far.
struct FileNumbers {
  uint64_t log = 0, next = 0;
};

// Whether a manifest record, which changes the set of tables, has numbers that LevelDB accepts.
bool has_good_numbers(const std::string& change, FileNumbers* last) {
  Fields in(change);
  uint64_t value = 0;
  const auto good = [&](uint64_t minimum) {
    value = in.number();
    return in.whole() && value >= minimum && value <= kMaxNumber;
  };
  while (!in.done()) {
    bool fine = true;
    switch (in.number()) {
      case 1:  // the comparator
        in.text();
        break;
      case 2:  // the log
        fine = good(0);
        last->log = value;
        break;
      case 4:  // the last write
      case 9:  // the previous log
        fine = good(0);
        break;
      case 3:  // the next file
        fine = good(1);
        last->next = value;
        break;
      case 5:  // where the next compaction begins
        in.number();
        in.text();
        break;
      case 6:  // a removed table
        in.number();
        fine = good(1);
        break;
      case 7:  // a new table: level, number, size, first and last key
        in.number();
        fine = good(1);
        in.number();
        in.text();
        in.text();
        break;
      default:
        fine = false;
    }
    if (!fine || !in.whole()) return false;
  }
  return true;
}

// A log record begins with the number of its first write and how many there are.
bool has_good_number(const std::string& writes) {
  uint64_t first = 0;
  uint32_t count = 0;
  if (writes.size() < sizeof first + sizeof count) return true;  // LevelDB reports this itself
  std::memcpy(&first, writes.data(), sizeof first);
  std::memcpy(&count, writes.data() + sizeof first, sizeof count);
  return first <= kMaxNumber && first + count > 0;
}

// A log consists of blocks of 32 KiB: pieces of records and up to 6 bytes of padding. A piece is a
// checksum of four bytes, its length, and whether it is a whole record (1), or the first (2), a
// middle (3) or the last piece (4) of one. LevelDB treats an incomplete record as one that was
// being written when the machine stopped, and pieces of zeros as space that was never written, and
// reports neither. (It verifies checksums itself.)
Status check_log(const std::string& path) {
  constexpr size_t kBlock = 32768, kHeader = 7;
  const crema::RandomAccessFile file(path);
  std::vector<unsigned char> block(kBlock);
  const auto damaged = [&](uint64_t offset, const char* what) {
    return Status::Corruption(cat(name_of_file(path), " ", what, " at byte ", offset));
  };
  const bool manifest = !path.ends_with(".log");
  bool inside = false, ended = false;
  std::string record;
  FileNumbers numbers;
  for (uint64_t start = 0; start < file.size(); start += kBlock) {
    const size_t size = file.read(start, block.data(), kBlock);
    for (size_t at = 0; at < size;) {
      if (kBlock - at < kHeader) break;
      const unsigned char* piece = block.data() + at;
      if (std::all_of(piece, piece + (size - at), [](unsigned char c) { return c == 0; })) {
        ended = true;  // preallocated by old versions, and then not used
        break;
      }
      if (ended) return damaged(start + at, "has records after an unused block");
      const size_t length = size - at < kHeader ? 0 : piece[4] + 256u * piece[5];
      if (size - at < kHeader + length) return damaged(start + at, "is cut short");
      const int kind = piece[6];
      if (kind < 1 || kind > 4 || inside != (kind > 2))
        return damaged(start + at, "has no record where one should begin or go on");
      inside = kind == 2 || kind == 3;
      if (kind < 3) record.clear();
      record.append(reinterpret_cast<const char*>(piece) + kHeader, length);
      if (!inside && !(manifest ? has_good_numbers(record, &numbers) : has_good_number(record)))
        return damaged(start + at, "has a record with numbers that cannot be");
      at += kHeader + length;
    }
  }
  if (inside) return damaged(file.size(), "is cut short");
  // The next file would get the number of an existing one.
  if (manifest && numbers.log >= numbers.next && numbers.next > 0)
    return damaged(file.size(), "gives its log a number that is still free");
  return Status::OK();
}

}  // namespace

void start_leveldb_thread() {
  static const bool started = [] {
    try {
      leveldb::Env::Default()->Schedule([](void*) {}, nullptr);
      return true;
    } catch (const std::system_error&) {
      return false;
    }
  }();
  require(
      started,
      "LevelDB gets no thread from the system; more memory, or a higher limit of it (ulimit -v) "
      "or of processes (ulimit -u), is needed");
}

LeveldbReadingEnv::LeveldbReadingEnv()
    : EnvWrapper(leveldb::Env::Default()), memory_(leveldb::NewMemEnv(leveldb::Env::Default())) {}

LeveldbReadingEnv::~LeveldbReadingEnv() = default;

bool LeveldbReadingEnv::hidden(const std::string& file) {
  const std::lock_guard<std::mutex> lock(mutex_);
  return removed_.count(file) > 0;
}

Status LeveldbReadingEnv::NewSequentialFile(const std::string& file,
                                            leveldb::SequentialFile** opened) {
  if (memory_->FileExists(file)) return memory_->NewSequentialFile(file, opened);
  *opened = nullptr;
  if (hidden(file)) return Status::NotFound(file);
  if (is_log(name_of_file(file))) {
    try {
      const Status status = check_log(file);
      if (!status.ok()) return status;
    } catch (const Error& problem) {
      return Status::IOError(problem.what());
    }
  }
  return target()->NewSequentialFile(file, opened);
}

Status LeveldbReadingEnv::NewRandomAccessFile(const std::string& file,
                                              leveldb::RandomAccessFile** opened) {
  if (memory_->FileExists(file)) return memory_->NewRandomAccessFile(file, opened);
  *opened = nullptr;
  // LevelDB then tries the names that its older versions used.
  if (!FileExists(file)) return Status::NotFound(file);
  try {
    *opened = new TableFile(file);
    return Status::OK();
  } catch (const Error& problem) {
    return Status::Corruption(problem.what());
  }
}

Status LeveldbReadingEnv::NewWritableFile(const std::string& file, leveldb::WritableFile** opened) {
  *opened = nullptr;
  if (open_) return Status::IOError(file, "databases are only read");
  return memory_->NewWritableFile(file, opened);
}

Status LeveldbReadingEnv::NewAppendableFile(const std::string& file,
                                            leveldb::WritableFile** opened) {
  *opened = nullptr;
  return Status::NotSupported(file, "databases are only read");
}

bool LeveldbReadingEnv::FileExists(const std::string& file) {
  return memory_->FileExists(file) || (!hidden(file) && target()->FileExists(file));
}

Status LeveldbReadingEnv::GetChildren(const std::string& folder, std::vector<std::string>* names) {
  std::vector<std::string> on_disk, in_memory;
  const Status status = target()->GetChildren(folder, &on_disk);
  if (!status.ok()) return status;
  memory_->GetChildren(folder, &in_memory);
  std::set<std::string> all(in_memory.begin(), in_memory.end());
  for (const std::string& name : on_disk) {
    if (!hidden(folder + "/" + name)) all.insert(name);
  }
  names->assign(all.begin(), all.end());
  return Status::OK();
}

Status LeveldbReadingEnv::GetFileSize(const std::string& file, uint64_t* size) {
  if (memory_->FileExists(file)) return memory_->GetFileSize(file, size);
  return target()->GetFileSize(file, size);
}

Status LeveldbReadingEnv::RemoveFile(const std::string& file) {
  memory_->RemoveFile(file);
  const std::lock_guard<std::mutex> lock(mutex_);
  removed_.insert(file);
  return Status::OK();
}

Status LeveldbReadingEnv::CreateDir(const std::string&) { return Status::OK(); }

Status LeveldbReadingEnv::RenameFile(const std::string& from, const std::string& to) {
  return memory_->RenameFile(from, to);
}

Status LeveldbReadingEnv::LockFile(const std::string& file, leveldb::FileLock** lock) {
  return memory_->LockFile(file, lock);
}

Status LeveldbReadingEnv::UnlockFile(leveldb::FileLock* lock) { return memory_->UnlockFile(lock); }

Status LeveldbReadingEnv::NewLogger(const std::string& file, leveldb::Logger** logger) {
  return memory_->NewLogger(file, logger);
}

void LeveldbReadingEnv::Schedule(void (*function)(void*), void* argument) {
  open_ = true;
  EnvWrapper::Schedule(function, argument);
}

}  // namespace crema
#endif
