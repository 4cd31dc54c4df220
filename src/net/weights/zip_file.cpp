#include "net/weights/zip_file.h"

#include "base/error.h"
#include "base/random_access_file.h"
#include "base/visible.h"

#ifdef CREMA_LIBZIP
#include <zip.h>

#include "base/late_library.h"
#endif

namespace crema {

#ifdef CREMA_LIBZIP
namespace {

// Few programs read zip files, and the library brings libcrypto along.
constinit LateLibrary zip_library("libcrema_zip.so");

#define CREMA_ZIP(name) constinit LateFunction<decltype(::name)> name(zip_library, #name);
CREMA_ZIP(zip_discard)
CREMA_ZIP(zip_error_fini)
CREMA_ZIP(zip_error_init_with_code)
CREMA_ZIP(zip_error_strerror)
CREMA_ZIP(zip_fclose)
CREMA_ZIP(zip_file_strerror)
CREMA_ZIP(zip_fopen_index)
CREMA_ZIP(zip_fread)
CREMA_ZIP(zip_get_num_entries)
CREMA_ZIP(zip_open)
CREMA_ZIP(zip_stat_index)
CREMA_ZIP(zip_strerror)
#undef CREMA_ZIP

}  // namespace
#endif

std::vector<std::string> ZipFile::names() const {
  std::vector<std::string> names;
  for (const auto& entry : entries_) names.push_back(entry.first);
  return names;
}

std::optional<uint64_t> ZipFile::size(const std::string& name) const {
  const auto found = entries_.find(name);
  if (found == entries_.end()) return {};
  return found->second.size;
}

#ifdef CREMA_LIBZIP

bool ZipFile::available() { return true; }

ZipFile::ZipFile(const std::string& path) : path_(path) {
  const uint64_t bytes = RandomAccessFile(path).size();
  int code = 0;
  archive_ = zip_open(path.c_str(), ZIP_RDONLY, &code);
  if (archive_ == nullptr) {
    zip_error_t error;
    zip_error_init_with_code(&error, code);
    const std::string reason = zip_error_strerror(&error);
    zip_error_fini(&error);
    fail(path, ": not a whole zip file: ", reason, "; was it downloaded whole?");
  }
  try {
    const zip_int64_t count = zip_get_num_entries(archive_, 0);
    for (zip_int64_t i = 0; i < count; ++i) {
      zip_stat_t about;
      const auto index = static_cast<zip_uint64_t>(i);
      constexpr zip_uint64_t kNeeded = ZIP_STAT_NAME | ZIP_STAT_SIZE | ZIP_STAT_COMP_SIZE |
                                       ZIP_STAT_COMP_METHOD | ZIP_STAT_ENCRYPTION_METHOD;
      const bool known = zip_stat_index(archive_, index, ZIP_FL_ENC_RAW, &about) == 0 &&
                         (about.valid & kNeeded) == kNeeded;
      require(known, path, ": entry ", i, " of the zip file is damaged");
      const bool stored = about.comp_method == ZIP_CM_STORE &&
                          about.encryption_method == ZIP_EM_NONE && about.comp_size == about.size;
      const std::string what = cat(path, ": ", visible(about.name));
      require(!stored || about.size <= bytes, what, " would have ", about.size,
              " bytes, but the file has ", bytes, "; was it downloaded whole?");
      const bool is_new = entries_.emplace(about.name, Entry{index, about.size, stored}).second;
      require(is_new, what, " is there twice");
    }
  } catch (...) {
    zip_discard(archive_);
    throw;
  }
}

ZipFile::~ZipFile() { zip_discard(archive_); }

std::vector<char> ZipFile::read(const std::string& name, uint64_t maximum) const {
  const Entry& entry = entries_.at(name);
  const std::string what = cat(path_, ": ", visible(name), ": ");
  require(entry.stored, what,
          "is compressed or encrypted; expected an entry that is stored as it is");
  require(entry.size <= maximum, what, "has ", entry.size, " bytes; at most ", maximum,
          " are read");
  zip_file_t* const file = zip_fopen_index(archive_, entry.index, 0);
  if (file == nullptr) fail(what, zip_strerror(archive_), "; was it downloaded whole?");
  std::vector<char> bytes(entry.size);
  const zip_int64_t got = zip_fread(file, bytes.data(), bytes.size());
  // The checksum is compared at the end of the entry.
  char beyond = 0;
  const bool whole =
      got == static_cast<zip_int64_t>(bytes.size()) && zip_fread(file, &beyond, 1) == 0;
  const std::string reason = zip_file_strerror(file);
  zip_fclose(file);
  require(whole, what, "cannot be read whole: ", reason, "; download or save the file again");
  return bytes;
}

#else

bool ZipFile::available() { return false; }

ZipFile::ZipFile(const std::string& path) : path_(path) {
  fail(path,
       ": this program was built without libzip, which files of torch.save need; build with "
       "-DCREMA_LIBZIP=ON where libzip-dev is installed, or, in Python: "
       "safetensors.torch.save_file(torch.load(\"",
       path, "\"), \"weights.safetensors\")");
}

ZipFile::~ZipFile() = default;

std::vector<char> ZipFile::read(const std::string& name, uint64_t /*maximum*/) const {
  fail(path_, ": ", visible(name), ": cannot be read without libzip");
}

#endif

}  // namespace crema
