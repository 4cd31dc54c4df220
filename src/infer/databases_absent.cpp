// libcrema_infer reads no databases: it only says that a file or folder is one.
#include "base/error.h"
#include "data/databases/source.h"

namespace crema {

std::unique_ptr<Source> open_lmdb(const std::string&) { fail("libcrema_infer reads no LMDB"); }
std::unique_ptr<Source> open_leveldb(const std::string&) {
  fail("libcrema_infer reads no LevelDB");
}

}  // namespace crema
