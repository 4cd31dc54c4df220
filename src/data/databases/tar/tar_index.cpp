#include "data/databases/tar/tar_index.h"

#include <optional>
#include <unordered_set>

#include "base/error.h"
#include "base/visible.h"
#include "data/databases/tar/tar_labels.h"
#include "data/databases/tar/tar_reader.h"
#include "data/images/image_names.h"

namespace crema {
namespace {

// Larger than any picture that is decoded; and a label is a few bytes.
constexpr uint64_t kLargestImage = 256 << 20, kLargestLabel = 1 << 20;

// "./a/0001.seg.png" is key "a/0001" and ending "seg.png".
struct MemberName {
  std::string_view key, ending;  // empty: belongs to no record

  explicit MemberName(std::string_view name) {
    while (starts_with(name, "./")) name.remove_prefix(2);
    const size_t base = name.rfind('/') + 1;  // npos + 1 is 0
    const size_t dot = name.find('.', base);
    // Hidden files, as macOS adds to archives, start with the dot.
    if (dot == std::string_view::npos || dot == base) return;
    // Names like __info__ are kept for facts about the shard.
    const std::string_view top = name.substr(0, std::min(name.find('/'), dot));
    if (top.size() > 4 && starts_with(top, "__") && ends_with(top, "__")) return;
    key = name.substr(0, dot);
    ending = name.substr(dot + 1);
  }
};

class TarIndexer {
 public:
  explicit TarIndexer(const std::string& path) : file_(path), reader_(file_) {
    index_.bytes = file_.size();
  }

  TarIndex run() {
    TarMember member;
    while (reader_.next(member)) {
      const MemberName name(member.name);
      if (name.key.empty()) continue;
      if (name.key != key_) {
        end_record();
        key_ = name.key;
      }
      add(member, lower_case(std::string(name.ending)));
    }
    end_record();
    return std::move(index_);
  }

 private:
  struct Label {
    std::string name, text;
  };

  template <typename... Parts>
  [[noreturn]] void wrong(const Parts&... parts) const {
    fail(file_.path(), ": ", parts...);
  }

  void add(const TarMember& member, const std::string& ending) {
    const bool cls = ending == "cls", json = ending == "json", image = is_image_ending(ending);
    if ((!cls && !json && !image) || member.kind == TarMember::Kind::other) return;
    const std::string name = visible(member.name);
    if (member.kind == TarMember::Kind::link) {
      wrong("member \"", name,
            "\" is a link to another file; pack the files themselves, with tar "
            "--hard-dereference --dereference");
    }
    if (member.kind == TarMember::Kind::sparse)
      wrong("member \"", name, "\" is stored as a sparse file; pack it without tar --sparse");
    if (member.size == 0) wrong("member \"", name, "\" is empty");
    const uint64_t most = image ? kLargestImage : kLargestLabel;
    if (member.size > most) {
      wrong("member \"", name, "\" has ", size_text(member.size), "; ",
            image ? "an image" : "a label", " has at most ", size_text(most));
    }
    if (image) {
      if (image_)
        wrong("record \"", visible(key_), "\" has two images: \"", image_name_, "\" and \"", name,
              "\"");
      image_ = member;
      image_name_ = name;
      return;
    }
    std::optional<Label>& label = cls ? cls_ : json_;
    if (label) wrong("record \"", visible(key_), "\" has the member \"", name, "\" twice");
    label = {name, reader_.content(member)};
  }

  std::optional<TarLabel> label() const {
    const std::optional<Label>& from = cls_ ? cls_ : json_;
    if (!from) return {};
    try {
      if (cls_) return label_of_cls(from->text);
      return label_of_json(from->text);
    } catch (const Error& problem) {
      wrong("member \"", from->name, "\": ", problem.what());
    }
  }

  void end_record() {
    if (image_ || cls_ || json_) keep_record();
    image_.reset();
    cls_.reset();
    json_.reset();
  }

  void keep_record() {
    constexpr const char* kTogether =
        "; the members of a record are next to each other (tar --sort=name puts them so)";
    const std::optional<TarLabel> label = this->label();
    const std::string key = visible(key_);
    if (!image_ && !label) return;  // facts about other things
    if (!image_) {
      wrong("record \"", key, "\" has a label, \"", (cls_ ? cls_ : json_)->name,
            "\", but no image: ", key, ".jpg, .png, ...", kTogether);
    }
    if (!label) {
      wrong("record \"", key, "\" has an image, \"", image_name_, "\", but no label: ", key,
            ".cls with a number, or ", key, ".json with \"label\"", kTogether);
    }
    if (!keys_.insert(key_).second)
      wrong("record \"", key, "\" comes twice, the second time with \"", image_name_, "\"");
    TarRecord record;
    record.image = image_->begin;
    record.image_size = static_cast<uint32_t>(image_->size);
    record.key = index_.keys.size();
    record.key_size = static_cast<uint32_t>(key_.size());
    record.label = label->number;
    record.several = static_cast<uint32_t>(label->several.size());
    record.of_several = index_.labels.size();
    index_.keys += key_;
    index_.labels.insert(index_.labels.end(), label->several.begin(), label->several.end());
    index_.records.push_back(record);
  }

  RandomAccessFile file_;
  TarReader reader_;
  TarIndex index_;
  std::unordered_set<std::string> keys_;
  // The record that is being put together.
  std::string key_, image_name_;
  std::optional<TarMember> image_;
  std::optional<Label> cls_, json_;
};

}  // namespace

void TarIndex::append(TarIndex other, uint32_t shard) {
  for (TarRecord& record : other.records) {
    record.key += keys.size();
    record.of_several += labels.size();
    record.shard = shard;
  }
  bytes += other.bytes;
  keys += other.keys;
  labels.insert(labels.end(), other.labels.begin(), other.labels.end());
  records.insert(records.end(), other.records.begin(), other.records.end());
}

TarIndex index_tar(const std::string& path) { return TarIndexer(path).run(); }

}  // namespace crema
