#include "data/databases/lmdb/lmdb_file.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <string_view>

#include "base/error.h"

namespace crema {
namespace {

// Byte offsets in a page and in a node of it.
constexpr size_t kPageHeader = 16, kPageFlags = 10, kPageLower = 12, kPageUpper = 14;
constexpr size_t kNodeHeader = 8, kNodeFlags = 4, kNodeKeySize = 6;
enum PageFlags : uint16_t { kBranch = 1, kLeaf = 2, kOverflow = 4, kMeta = 8 };
enum NodeFlags : uint16_t { kBigData = 1, kSubData = 2, kDuplicates = 4 };

constexpr uint32_t kMagic = 0xBEEFC0DE, kVersion = 1;
constexpr uint64_t kNoPage = ~uint64_t{0};
// Maximum number of levels: LMDB's own limit.
constexpr int kMaxLevels = 32;

// The header of a tree: of the free pages, and of the records.
struct TreeHead {
  uint32_t page_size;  // of the first tree only
  uint16_t flags, depth;
  uint64_t branch_pages, leaf_pages, overflow_pages, entries, root;
};
// The contents of a meta page after its header.
struct Meta {
  uint32_t magic, version;
  uint64_t address, map_size;
  TreeHead free_pages, records;
  uint64_t last_page, transaction;
};
static_assert(sizeof(TreeHead) == 48 && sizeof(Meta) == 136);

template <typename T>
T number_at(const unsigned char* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof(value));
  return value;
}

std::string_view text_at(const unsigned char* bytes, size_t count) {
  return {reinterpret_cast<const char*>(bytes), count};
}

// A thread's block of a file around the previous record. Consecutive small records, as without
// shuffle, are in the same pages, and a system call for each would cost more than the rest of their
// way into a batch.
struct Block {
  static constexpr size_t kSize = size_t{64} << 10, kLargestRecord = kSize / 4;
  uint64_t file = 0;
  int64_t next_record = -1;
  uint64_t begin = 0;
  size_t size = 0;
  std::unique_ptr<char[]> bytes;

  const char* find(uint64_t offset, size_t count) const {
    const bool inside = offset >= begin && offset + count <= begin + size;
    return inside ? bytes.get() + (offset - begin) : nullptr;
  }
};
thread_local Block block;

std::atomic<uint64_t> files{0};

}  // namespace

// Walks from the root to every record, in key order.
class LmdbFile::Walk {
 public:
  Walk(LmdbFile& file, const Tree& tree)
      : file_(file), tree_(tree), used_(tree.last_page + 1), levels_(tree.depth) {
    for (Level& level : levels_) level.page.resize(file.page_size_);
  }

  void run() {
    file_.entries_.reserve(tree_.entries);
    int depth = 0;
    enter(tree_.root, 0);
    while (depth >= 0) {
      Level& level = levels_[depth];
      if (depth + 1 == tree_.depth) {
        index(level);
        --depth;
      } else if (level.next == level.nodes) {
        --depth;
      } else {
        const unsigned char* node = node_of(level, level.next++);
        // A branch's node has no flags: their bytes are part of the number of the page below.
        const uint64_t below =
            number_at<uint32_t>(node) | uint64_t{number_at<uint16_t>(node + kNodeFlags)} << 32;
        enter(below, ++depth);
      }
    }
    if (file_.entries_.size() != tree_.entries)
      damaged("there are no more records, but the file says that it has ", tree_.entries);
  }

 private:
  struct Level {
    std::vector<unsigned char> page;
    uint64_t number = 0;
    int nodes = 0, next = 0;
  };

  template <typename... Parts>
  [[noreturn]] void damaged(const Parts&... parts) const {
    fail(file_.path_, ": the database is damaged (record ", file_.entries_.size(), "): ", parts...,
         "; copy or convert it again");
  }

  // Marks [first, first + count) as taken. If no page is taken twice there are no cycles.
  void take(uint64_t first, uint64_t count) {
    if (first < 2 || first > tree_.last_page || count > tree_.last_page - first + 1)
      damaged("page ", first, " is needed, but only 2 to ", tree_.last_page, " exist");
    for (uint64_t page = first; page < first + count; ++page) {
      if (used_[page]) damaged("page ", page, " is used twice");
      used_[page] = true;
    }
  }

  void enter(uint64_t number, int depth) {
    take(number, 1);
    Level& level = levels_[depth];
    const unsigned char* page = level.page.data();
    try {
      file_.read(number * file_.page_size_, level.page.data(), file_.page_size_);
    } catch (const Error& problem) {
      damaged(problem.what());
    }
    const uint16_t flags = number_at<uint16_t>(page + kPageFlags),
                   lower = number_at<uint16_t>(page + kPageLower),
                   upper = number_at<uint16_t>(page + kPageUpper);
    if (number_at<uint64_t>(page) != number ||
        flags != (depth + 1 == tree_.depth ? kLeaf : kBranch))
      damaged("page ", number, " is not the ", depth + 1 == tree_.depth ? "leaf" : "branch",
              " that should be there");
    if (lower <= kPageHeader || lower % 2 != 0 || lower > upper || upper > file_.page_size_)
      damaged("page ", number, " does not say what is in it");
    level.number = number;
    level.nodes = static_cast<int>((lower - kPageHeader) / 2);
    level.next = 0;
  }

  // Node i of a page; checks that its header and key are inside the page.
  const unsigned char* node_of(const Level& level, int i) const {
    const unsigned char* page = level.page.data();
    const size_t begin = number_at<uint16_t>(page + kPageHeader + 2 * i);
    if (begin < number_at<uint16_t>(page + kPageUpper) || begin + kNodeHeader > file_.page_size_ ||
        begin + kNodeHeader + number_at<uint16_t>(page + begin + kNodeKeySize) > file_.page_size_)
      damaged("node ", i, " of page ", level.number, " lies outside of it");
    return page + begin;
  }

  // Indexes the records of a leaf.
  void index(const Level& level) {
    std::string_view before = last_key_;
    for (int i = 0; i < level.nodes; ++i) {
      const unsigned char* node = node_of(level, i);
      const uint16_t flags = number_at<uint16_t>(node + kNodeFlags);
      if (flags & (kSubData | kDuplicates)) {
        fail(file_.path_, ": record ", file_.entries_.size(),
             " is a database inside this LMDB, or several values of one key; Crema reads LMDBs of "
             "plain records, as Caffe's tools write them");
      }
      Entry entry;
      entry.key_size = number_at<uint16_t>(node + kNodeKeySize);
      entry.value_size = number_at<uint32_t>(node);
      entry.overflow = flags == kBigData;
      const unsigned char *key = node + kNodeHeader, *value = key + entry.key_size;
      const size_t room = static_cast<size_t>(level.page.data() + file_.page_size_ - value);
      if (flags > kBigData || (entry.overflow ? sizeof(uint64_t) : entry.value_size) > room)
        damaged("node ", i, " of page ", level.number, " lies outside of it");
      const uint64_t start = level.number * file_.page_size_;
      entry.key = start + static_cast<uint64_t>(key - level.page.data());
      entry.value = start + static_cast<uint64_t>(value - level.page.data());
      if (entry.overflow) {
        const uint64_t first = number_at<uint64_t>(value);
        take(first, (kPageHeader + entry.value_size + file_.page_size_ - 1) / file_.page_size_);
        entry.value = first * file_.page_size_;
      }
      const std::string_view name = text_at(key, entry.key_size);
      if (name <= before) damaged("the keys of page ", level.number, " are not in ascending order");
      if (file_.entries_.size() == tree_.entries)
        damaged("the file says that it has no more than ", tree_.entries, " records, but it has");
      file_.entries_.push_back(entry);
      before = name;
    }
    last_key_.assign(before);
  }

  LmdbFile& file_;
  const Tree tree_;
  std::vector<bool> used_;  // of each page
  std::vector<Level> levels_;
  std::string last_key_;
};

LmdbFile::LmdbFile(std::string path, const std::string& file)
    : path_(std::move(path)), file_(file), id_(++files) {
  const Tree tree = read_meta();
  Walk(*this, tree).run();
}

LmdbFile::Tree LmdbFile::read_meta() {
  require(file_.size() > 0, path_, ": is not an LMDB: ", file_.path(), " is empty");
  Meta metas[2];
  for (int i = 0; i < 2; ++i) {
    unsigned char page[kPageHeader + sizeof(Meta)] = {};
    const uint64_t record_index = i * page_size_;
    const bool whole = file_.read(record_index, page, sizeof(page)) == sizeof(page);
    std::memcpy(&metas[i], page + kPageHeader, sizeof(Meta));
    const size_t size = metas[i].free_pages.page_size;
    require(whole && metas[i].magic == kMagic && number_at<uint64_t>(page) == uint64_t(i) &&
                number_at<uint16_t>(page + kPageFlags) == kMeta,
            path_, ": is not an LMDB, or it is damaged: ", file_.path(),
            " has no meta page at byte ", record_index);
    require(metas[i].version == kVersion, path_, ": this LMDB has version ", metas[i].version,
            " of the format, of which Crema reads version ", kVersion,
            ", or it is damaged; copy or convert it again");
    require(
        size >= 256 && size <= 32768 && (size & (size - 1)) == 0 && (i == 0 || size == page_size_),
        path_, ": is not an LMDB, or it is damaged: pages of ", size, " bytes");
    page_size_ = size;
  }
  // Only the numbers of their transactions say which meta page is current; if one were wrong, an
  // older state with fewer records would be read. The pages are written alternately, so the numbers
  // are consecutive; in a new database both are 0 and empty; and files only grow.
  const uint64_t even = metas[0].transaction, odd = metas[1].transaction;
  const Meta &meta = metas[odd > even], &older = metas[odd <= even];
  const bool in_turn =
      (even == 0 && odd == 0) || (even % 2 == 0 && (odd == even + 1 || odd + 1 == even));
  if (!in_turn || older.last_page > meta.last_page ||
      (older.transaction == 0 && older.records.root != kNoPage)) {
    fail(path_, ": the database is damaged: its meta pages, of transactions ", even, " and ", odd,
         ", do not follow each other; copy or convert it again");
  }
  const TreeHead& head = meta.records;

  const uint64_t there = file_.size() / page_size_;
  if (meta.last_page >= there) {
    fail(path_, ": the LMDB is cut off, or damaged: ", file_.path(), " has ", file_.size(),
         " bytes, but should have ", meta.last_page + 1, " pages of ", page_size_,
         "; copy or convert it again");
  }
  require(
      head.flags == 0, path_, ": this LMDB was made with flags (", head.flags,
      ") for keys in another order or several values of one; Crema reads LMDBs of plain records, "
      "as Caffe's tools write them; or the database is damaged");
  require(head.entries > 0 || head.root != kNoPage, path_, ": the LMDB holds no record");
  // In addition to its node a leaf needs at least two bytes per record.
  if (head.depth < 1 || head.depth > kMaxLevels ||
      head.entries > file_.size() / (kNodeHeader + 2)) {
    fail(path_, ": the database is damaged: it says that it has ", head.entries, " records in ",
         head.depth, " levels of pages; copy or convert it again");
  }
  return {meta.last_page, head.entries, head.root, head.depth};
}

void LmdbFile::read(uint64_t offset, void* bytes, size_t count) const {
  const size_t got = file_.read(offset, bytes, count);
  if (got != count) {
    fail("the database is damaged: ", file_.path(), " ends at byte ", offset + got,
         ", inside of what should be there: it was cut off after it had been opened");
  }
}

std::string LmdbFile::key(int64_t index) const {
  const Entry& entry = entries_[index];
  std::string key(entry.key_size, '\0');
  read(entry.key, key.data(), key.size());
  return key;
}

void LmdbFile::read_value(int64_t index, uint64_t offset, void* bytes, size_t count) const {
  const Entry& entry = entries_[index];
  read(entry.value + (entry.overflow ? kPageHeader : 0) + offset, bytes, count);
}

// The record's bytes, if they are in the thread's block, or if it is the next one and a new block
// is worth reading; null: neither, or the file ends.
const char* LmdbFile::find_in_block(int64_t index, size_t count) const {
  if (count > Block::kLargestRecord) return nullptr;
  const uint64_t offset = entries_[index].value;
  const bool is_next = block.file == id_ && block.next_record == index;
  if (block.file != id_) block.size = 0;
  block.file = id_;
  block.next_record = index + 1;
  if (const char* bytes = block.find(offset, count); bytes || !is_next) return bytes;
  if (!block.bytes) block.bytes = std::make_unique_for_overwrite<char[]>(Block::kSize);
  block.size = 0;
  block.begin = offset / page_size_ * page_size_;
  block.size = file_.read(block.begin, block.bytes.get(), Block::kSize);
  return block.find(offset, count);
}

LmdbFile::Value LmdbFile::value(int64_t index) const {
  const Entry& entry = entries_[index];
  const size_t header = entry.overflow ? kPageHeader : 0;
  Value value;
  value.size = entry.value_size;
  const char* bytes = find_in_block(index, header + value.size);
  if (!bytes) {
    value.bytes = std::make_unique_for_overwrite<char[]>(header + value.size);
    read(entry.value, value.bytes.get(), header + value.size);
    bytes = value.bytes.get();
  }
  value.begin = bytes + header;
  if (entry.overflow) {
    // Only here, because opening would otherwise read a page of every large value.
    const auto* page = reinterpret_cast<const unsigned char*>(bytes);
    const uint64_t pages = number_at<uint32_t>(page + kPageLower);
    require(number_at<uint64_t>(page) == entry.value / page_size_ &&
                number_at<uint16_t>(page + kPageFlags) == kOverflow &&
                pages >= (header + value.size + page_size_ - 1) / page_size_,
            "the database is damaged: page ", entry.value / page_size_,
            " is not the overflow page that should be there");
  }
  return value;
}

}  // namespace crema
