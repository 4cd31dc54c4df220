// LmdbSource: the records that data/databases/lmdb/lmdb_file.h finds, parsed as messages.
#include "base/error.h"
#include "base/files.h"
#include "data/databases/datum_class.h"
#include "data/databases/given_file.h"
#include "data/databases/lmdb/lmdb_file.h"
#include "data/databases/source.h"

namespace crema {
namespace {

// Without locks: they need a writable folder, and a database is not written while it is used for
// training.
class LmdbSource : public Source {
 public:
  LmdbSource(const std::string& path, const std::string& file) : Source(path), file_(path, file) {}

  int64_t size() const override { return file_.size(); }
  void read(int64_t index, google::protobuf::Message& record) const override {
    const LmdbFile::Value value = file_.value(index);
    parse(value.begin, value.size, record);
  }
  std::optional<int64_t> class_of(int64_t index) const override {
    return class_of_datum(file_.value_size(index), [&](uint64_t offset, void* bytes, size_t count) {
      file_.read_value(index, offset, bytes, count);
    });
  }
  std::string key(int64_t index) const override { return file_.key(index); }

 private:
  LmdbFile file_;
};

}  // namespace

std::unique_ptr<Source> open_lmdb(const std::string& path) {
  const std::string file = folder_exists(path) ? path + "/data.mdb" : path;
  // Not require(): the description of the path opens a database.
  if (!file_exists(file))
    fail(path, ": is not an LMDB: there is no data.mdb in it", what_it_is(path));
  return std::make_unique<LmdbSource>(path, file);
}

}  // namespace crema
