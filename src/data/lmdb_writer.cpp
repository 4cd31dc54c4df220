// Writes an LMDB. Its map grows as it fills, so that no size has to be guessed.
#include <lmdb.h>

#include <utility>
#include <vector>

#include "base/error.h"
#include "data/database_writer.h"

namespace crema {
namespace {

class LmdbWriter : public DatabaseWriter {
 public:
  explicit LmdbWriter(const std::string& path) : DatabaseWriter(path) {
    check(mdb_env_create(&environment_));
    check(mdb_env_set_mapsize(environment_, map_size_));
    // Nobody sees the database before it is whole: it is synced once, at the end.
    check(mdb_env_open(environment_, temporary_path().c_str(), MDB_NOSYNC, 0644));
  }
  ~LmdbWriter() override {
    if (environment_) mdb_env_close(environment_);
  }

 private:
  void check(int status) const {
    if (status != MDB_SUCCESS) fail(path(), ": cannot write the LMDB: ", mdb_strerror(status));
  }

  void add(const std::string& key, const std::string& value) override {
    require(static_cast<int>(key.size()) <= mdb_env_get_maxkeysize(environment_), path(),
            ": the key \"", key, "\" has ", key.size(), " bytes; an LMDB takes at most ",
            mdb_env_get_maxkeysize(environment_));
    pending_.emplace_back(key, value);
    pending_bytes_ += key.size() + value.size();
    if (pending_bytes_ > (64u << 20)) flush();
  }

  // One transaction; a full map fails it as a whole.
  int commit() {
    MDB_txn* transaction = nullptr;
    int status = mdb_txn_begin(environment_, nullptr, 0, &transaction);
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
      check(mdb_env_set_mapsize(environment_, map_size_));
    }
    check(status);
    pending_.clear();
    pending_bytes_ = 0;
  }

  void close() override {
    check(mdb_env_sync(environment_, 1));
    mdb_env_close(std::exchange(environment_, nullptr));
  }

  MDB_env* environment_ = nullptr;
  size_t map_size_ = size_t{1} << 24;
  std::vector<std::pair<std::string, std::string>> pending_;
  size_t pending_bytes_ = 0;
};

}  // namespace

std::unique_ptr<DatabaseWriter> create_lmdb(const std::string& path) {
  return std::make_unique<LmdbWriter>(path);
}

}  // namespace crema
