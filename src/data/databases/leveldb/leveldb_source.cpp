// Records of a LevelDB. Its keys can only be found by reading all of it, so they are collected
// during training: the size is known after the first epoch, or on request (when shuffling).
#include "base/error.h"
#include "base/files.h"
#include "data/databases/given_file.h"
#include "data/databases/source.h"

#ifdef CREMA_LEVELDB
#include <leveldb/db.h>

#include <mutex>
#include <vector>

#include "data/databases/leveldb/leveldb_env.h"
#endif

namespace crema {

#ifdef CREMA_LEVELDB
namespace {

class LeveldbSource : public Source {
 public:
  explicit LeveldbSource(const std::string& path) : Source(path) {
    // Checked first, because LevelDB's own messages for these do not say what to do.
    if (!folder_exists(path))
      fail(path, ": is not a LevelDB: a LevelDB is a folder", what_it_is(path));
    if (!file_exists(path + "/CURRENT"))
      fail(path, ": is not a LevelDB: there is no file CURRENT in it", what_it_is(path));
    start_leveldb_thread();
    leveldb::Options options;
    options.env = &env_;
    options.paranoid_checks = true;
    options.max_open_files = 100;
    // For a log that was never made into tables: as few tables as possible.
    options.write_buffer_size = 64 << 20;
    leveldb::DB* opened = nullptr;
    const leveldb::Status status =
        guarded([&] { return leveldb::DB::Open(options, path, &opened); });
    database_.reset(opened);
    if (status.IsCorruption()) fail(path, ": ", reason(status));
    if (!status.ok()) fail(path, ": cannot open the LevelDB: ", status.ToString());

    leveldb::ReadOptions once;
    once.verify_checksums = true;
    walk_.reset(database_->NewIterator(once));
    check_walk(guarded([&] {
      walk_->SeekToFirst();
      return walk_->status();
    }));
    require(walk_->Valid(), path, ": the LevelDB holds no record");
  }

  int64_t size() const override {
    const std::lock_guard<std::mutex> lock(mutex_);
    while (walk_) advance();
    return static_cast<int64_t>(keys_.size());
  }

  RecordIndex record_index(int64_t position) const override {
    const std::lock_guard<std::mutex> lock(mutex_);
    while (walk_ && position >= static_cast<int64_t>(keys_.size())) advance();
    const int64_t known = static_cast<int64_t>(keys_.size());
    if (walk_ || position < known) return {0, position};
    return {position / known, position % known};
  }

  void read(int64_t index, google::protobuf::Message& record) const override {
    std::string value;
    leveldb::ReadOptions checked;
    checked.verify_checksums = true;
    check(guarded([&] { return database_->Get(checked, key(index), &value); }));
    parse(value.data(), value.size(), record);
  }

  std::string key(int64_t index) const override {
    const std::lock_guard<std::mutex> lock(mutex_);
    while (walk_ && index >= static_cast<int64_t>(keys_.size())) advance();
    require(index < static_cast<int64_t>(keys_.size()), "there are only ", keys_.size(),
            " records");
    return keys_[index];
  }

 private:
  static std::string reason(const leveldb::Status& status) {
    return cat("the database is damaged: ", status.ToString(),
               "; nothing in its folder was changed; copy or convert it again");
  }

  // A damaged table may claim a block of any size, for which LevelDB allocates memory before
  // reading.
  template <typename Work>
  static leveldb::Status guarded(const Work& work) {
    try {
      return work();
    } catch (const std::bad_alloc&) {
      return leveldb::Status::Corruption("a block claims more bytes than there is memory for");
    }
  }

  static void check(const leveldb::Status& status) {
    if (!status.ok()) fail(reason(status));
  }

  // Called after each step: LevelDB skips a part that it cannot read and continues.
  void check_walk(const leveldb::Status& status) const {
    if (!status.ok()) fail(path(), ", after record ", keys_.size(), ": ", reason(status));
  }

  void advance() const {
    check_walk(walk_->status());
    keys_.push_back(walk_->key().ToString());
    check_walk(guarded([&] {
      walk_->Next();
      return walk_->status();
    }));
    if (!walk_->Valid()) walk_.reset();
  }

  LeveldbReadingEnv env_;  // outlives the database
  std::unique_ptr<leveldb::DB> database_;
  mutable std::mutex mutex_;
  mutable std::unique_ptr<leveldb::Iterator> walk_;  // null: all keys are known
  mutable std::vector<std::string> keys_;
};

}  // namespace

std::unique_ptr<Source> open_leveldb(const std::string& path) {
  return std::make_unique<LeveldbSource>(path);
}

#else

std::unique_ptr<Source> open_leveldb(const std::string& path) {
  fail(path,
       ": this program was built without LevelDB; convert the database to an LMDB, or build with "
       "-DCREMA_LEVELDB=ON");
}

#endif

}  // namespace crema
