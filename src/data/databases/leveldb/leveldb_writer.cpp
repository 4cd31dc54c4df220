// Writes a LevelDB.
#include "base/error.h"
#include "data/databases/database_writer.h"

#ifdef CREMA_LEVELDB
#include <leveldb/db.h>
#include <leveldb/write_batch.h>

#include "data/databases/leveldb/leveldb_env.h"
#endif

namespace crema {

#ifdef CREMA_LEVELDB
namespace {

class LeveldbWriter : public DatabaseWriter {
 public:
  LeveldbWriter(const std::string& path, const DatabaseFormat& format)
      : DatabaseWriter(path, format) {
    start_leveldb_thread();
    leveldb::Options options;
    options.create_if_missing = true;
    options.error_if_exists = true;
    options.block_size = 65536;
    options.write_buffer_size = 64 << 20;
    options.max_open_files = 100;
    leveldb::DB* opened = nullptr;
    const leveldb::Status status = leveldb::DB::Open(options, temporary_path(), &opened);
    database_.reset(opened);
    check(status);
  }

 private:
  void check(const leveldb::Status& status) const {
    if (!status.ok()) fail(path(), ": cannot write the LevelDB: ", status.ToString());
  }
  void add(const std::string& key, const google::protobuf::Message& record) override {
    pending_.Put(key, serialized(key, record));
    if (pending_.ApproximateSize() > (64u << 20)) flush();
  }
  void flush() override {
    check(database_->Write(leveldb::WriteOptions(), &pending_));
    pending_.Clear();
  }
  void close() override {
    flush();
    // No key is in this range, so this only turns the remaining log into tables. Readers check
    // tables best, and must read the whole log each time they open it.
    const leveldb::Slice nothing;
    database_->CompactRange(&nothing, &nothing);
    // Fails if any earlier write has failed.
    leveldb::WriteOptions synced;
    synced.sync = true;
    check(database_->Write(synced, &pending_));
    database_.reset();
  }

  std::unique_ptr<leveldb::DB> database_;
  leveldb::WriteBatch pending_;
};

}  // namespace

std::unique_ptr<DatabaseWriter> create_leveldb(const std::string& path,
                                               const DatabaseFormat& format) {
  return std::make_unique<LeveldbWriter>(path, format);
}

#else

std::unique_ptr<DatabaseWriter> create_leveldb(const std::string& path, const DatabaseFormat&) {
  fail(path,
       ": this program was built without LevelDB; write an LMDB, or build with -DCREMA_LEVELDB=ON");
}

#endif

}  // namespace crema
