// LeveldbReadingEnv: a view of a LevelDB's folder that reads the database without leaving a trace.
// Opened as usual, LevelDB takes a lock, turns its log into tables, writes a new manifest and
// deletes what it then considers superfluous. So it cannot read a read-only folder, only one
// process at a time can open it, and evidence of damage is gone afterwards. Only files that know
// LevelDB's headers include this.
#pragma once

#include <leveldb/env.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

namespace crema {

// Before a database is opened: starts the thread of LevelDB's compactions, or an Error. If LevelDB
// itself finds later that the system gives it none, it keeps a lock and waits for ever.
void start_leveldb_thread();

// LevelDB's writes while it opens a database stay in memory (at most a table made from the log),
// and files that it removes are only hidden. After opening, writes fail: LevelDB's compaction gives
// up and reading continues. A log or manifest that is cut off inside a record is an error; LevelDB
// would treat it as the end. Locks are no-ops: any number of readers can open the database.
class LeveldbReadingEnv : public leveldb::EnvWrapper {
 public:
  LeveldbReadingEnv();
  ~LeveldbReadingEnv() override;

  leveldb::Status NewSequentialFile(const std::string& file,
                                    leveldb::SequentialFile** opened) override;
  leveldb::Status NewRandomAccessFile(const std::string& file,
                                      leveldb::RandomAccessFile** opened) override;
  leveldb::Status NewWritableFile(const std::string& file, leveldb::WritableFile** opened) override;
  leveldb::Status NewAppendableFile(const std::string& file,
                                    leveldb::WritableFile** opened) override;
  bool FileExists(const std::string& file) override;
  leveldb::Status GetChildren(const std::string& folder, std::vector<std::string>* names) override;
  leveldb::Status GetFileSize(const std::string& file, uint64_t* size) override;
  leveldb::Status RemoveFile(const std::string& file) override;
  leveldb::Status RenameFile(const std::string& from, const std::string& to) override;
  leveldb::Status CreateDir(const std::string& folder) override;
  leveldb::Status LockFile(const std::string& file, leveldb::FileLock** lock) override;
  leveldb::Status UnlockFile(leveldb::FileLock* lock) override;
  leveldb::Status NewLogger(const std::string& file, leveldb::Logger** logger) override;
  // LevelDB schedules only compactions, the first when it is open.
  void Schedule(void (*function)(void*), void* argument) override;

 private:
  bool hidden(const std::string& file);
  std::unique_ptr<leveldb::Env> memory_;
  std::atomic<bool> open_{false};
  std::mutex mutex_;
  std::set<std::string> removed_;
};

}  // namespace crema
