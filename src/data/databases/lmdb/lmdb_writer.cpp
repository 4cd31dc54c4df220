// Writes an LMDB. Its map grows as it fills, so no size has to be guessed.
#include <lmdb.h>

#include <cerrno>
#include <memory>
#include <utility>
#include <vector>

#include "base/error.h"
#include "data/databases/database_writer.h"

namespace crema {
namespace {

class LmdbWriter : public DatabaseWriter {
 public:
  LmdbWriter(const std::string& path, const DatabaseFormat& format) : DatabaseWriter(path, format) {
    MDB_env* made = nullptr;
    check(mdb_env_create(&made));
    environment_.reset(made);
    check(mdb_env_set_mapsize(made, map_size_));
    // The database is invisible until it is complete: it is synced once, at the end, and needs no
    // locks. Their file would be mapped, and on a full disk a mapped file means SIGBUS.
    check(mdb_env_open(made, temporary_path().c_str(), MDB_NOSYNC | MDB_NOLOCK, 0644));
  }

 private:
  struct Close {
    void operator()(MDB_env* environment) const { mdb_env_close(environment); }
  };

  void check(int status) const {
    // LMDB returns EIO for an incomplete write.
    constexpr const char* kShort = "not all bytes were written: is the disk or a quota full?";
    if (status != MDB_SUCCESS)
      fail(path(), ": cannot write the LMDB: ", status == EIO ? kShort : mdb_strerror(status));
  }

  void add(const std::string& key, const google::protobuf::Message& record) override {
    require(static_cast<int>(key.size()) <= mdb_env_get_maxkeysize(environment_.get()), path(),
            ": the key \"", key, "\" has ", key.size(), " bytes; an LMDB takes at most ",
            mdb_env_get_maxkeysize(environment_.get()));
    pending_.emplace_back(key, serialized(key, record));
    pending_bytes_ += key.size() + pending_.back().second.size();
    if (pending_bytes_ > (64u << 20)) flush();
  }

  // One transaction; if the map is full it fails as a whole.
  int commit() {
    MDB_txn* transaction = nullptr;
    int status = mdb_txn_begin(environment_.get(), nullptr, 0, &transaction);
    if (status != MDB_SUCCESS) return status;
    MDB_dbi database = 0;
    status = mdb_dbi_open(transaction, nullptr, 0, &database);
    for (auto entry = pending_.begin(); status == MDB_SUCCESS && entry != pending_.end(); ++entry) {
      MDB_val key{entry->first.size(), entry->first.data()},
          value{entry->second.size(), entry->second.data()};
      status = mdb_put(transaction, database, &key, &value, 0);
    }
    if (status == MDB_SUCCESS) return mdb_txn_commit(transaction);
    mdb_txn_abort(transaction);
    return status;
  }

  void flush() override {
    if (pending_.empty()) return;
    int status;
    while ((status = commit()) == MDB_MAP_FULL) {
      map_size_ *= 2;
      check(mdb_env_set_mapsize(environment_.get(), map_size_));
    }
    check(status);
    pending_.clear();
    pending_bytes_ = 0;
  }

  void close() override {
    check(mdb_env_sync(environment_.get(), 1));
    environment_.reset();
  }

  std::unique_ptr<MDB_env, Close> environment_;
  size_t map_size_ = size_t{1} << 24;
  std::vector<std::pair<std::string, std::string>> pending_;
  size_t pending_bytes_ = 0;
};

}  // namespace

std::unique_ptr<DatabaseWriter> create_lmdb(const std::string& path, const DatabaseFormat& format) {
  return std::make_unique<LmdbWriter>(path, format);
}

}  // namespace crema
