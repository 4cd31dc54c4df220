// Accidents with data sets: a full disk, another user's folder, two writers of the same database,
// duplicate keys, names in any script. Bad pictures are in odd_images_test.cpp.
#include <google/protobuf/text_format.h>
#include <sys/stat.h>

#include "data/convert/convert.h"
#include "data/databases/database_writer.h"
#include "data/databases/find_database.h"
#include "data/databases/npy_writer.h"
#include "data/transforms/mean.h"
#include "fixtures.h"
#include "layers/layer.h"
#include "proto/layer.pb.h"
#include "write_failures.h"

namespace crema::tests {
namespace messy_data_test {

Datum noise_of(int i) {
  Datum datum;
  datum.set_channels(1);
  datum.set_height(64);
  datum.set_width(64);
  datum.set_label(i);
  for (uint64_t k = 0; k < 64 * 64; ++k)
    datum.mutable_data()->push_back(
        static_cast<char>(Random{1, 2}.word(static_cast<uint64_t>(i) << 20 | k)));
  return datum;
}

void write_noise(const std::string& path, Backend kind, int count, bool overwrite = false) {
  DatabaseFormat format(kind);
  format.overwrite = overwrite;
  const auto writer = create_database(path, format);
  for (int i = 0; i < count; ++i) writer->put(numbered_key(i, 8), noise_of(i));
  writer->finish();
}

std::vector<Backend> kinds() {
#ifdef CREMA_LEVELDB
  return {DataParameter::LMDB, DataParameter::LEVELDB, DataParameter::HDF5};
#else
  return {DataParameter::LMDB, DataParameter::HDF5};
#endif
}

// Everything that writes data, with the names of the results.
struct Writing {
  std::string name;
  std::function<void(const std::string& path)> write;  // more than 300 kB
};

std::vector<Writing> writings() {
  std::vector<Writing> all;
  for (const Backend kind : kinds())
    all.push_back({name_of(kind), [kind](const auto& path) { write_noise(path, kind, 200); }});
  all.push_back({"npy", [](const std::string& path) {
                   NpyWriter writer(path, false);
                   writer.put({1000, 100}, std::vector<float>(100000).data());
                   writer.finish();
                 }});
  all.push_back({"mean", [](const std::string& path) {
                   write_mean({{1, 1000, 100}, std::vector<float>(100000)}, path);
                 }});
  return all;
}

TEST(MessyData, AFullDiskLeavesNothing) {
  for (const Writing& writing : writings()) {
    SCOPED_TRACE(writing.name);
    const SmallDisk disk(256 << 10);
    if (!disk.mounted()) GTEST_SKIP() << "this user may not mount a file system";
    const std::string said = error_of([&] { writing.write(disk.path() + "/x"); });
    expect_part(said, disk.path() + "/x");
    expect_part(said, ": cannot ");
    EXPECT_TRUE(std::filesystem::is_empty(disk.path()));
  }
}

TEST(MessyData, AFolderOfOthersLeavesNothing) {
  for (const Writing& writing : writings()) {
    SCOPED_TRACE(writing.name);
    const Folder folder;
    chmod(folder.path().c_str(), 0555);
    std::string said;
    {
      const OtherUser other;
      said = error_of([&] { writing.write(folder.file("x")); });
    }
    expect_part(said, folder.file("x"));
    expect_part(said, "Permission denied");
    EXPECT_TRUE(folder.names().empty());
    chmod(folder.path().c_str(), 0755);
  }
}

// No write is allowed, and none happens: not even a lock.
TEST(MessyData, DatabasesOfOthersAreRead) {
  for (const Backend kind : kinds()) {
    SCOPED_TRACE(name_of(kind));
    const Folder folder;
    const std::string path = folder.file("x");
    write_noise(path, kind, 20);
    const auto files = contents(path);
    std::vector<std::string> closed = {path, folder.path()};
    for (const auto& [name, content] : files) closed.push_back(path + "/" + name);
    for (const std::string& entry : closed) chmod(entry.c_str(), 0555);
    {
      const OtherUser other;
      const FoundDatabase found = find_database(path);
      EXPECT_EQ(found.source->size(), 20);
      Datum datum;
      found.source->read(19, datum);
      EXPECT_EQ(datum.label(), 19);
    }
    EXPECT_EQ(contents(path), files);
    // Folders that may not even be read.
    for (const auto& [name, content] : files) chmod((path + "/" + name).c_str(), 0000);
    std::string said;
    {
      const OtherUser other;
      said = error_of([&] { find_database(path); });
    }
    expect_part(said, path);
    expect_part(said, "Permission denied");
    for (const std::string& entry : closed) chmod(entry.c_str(), 0755);
  }
}

TEST(MessyData, OfTwoWritersTheFirstToFinishWins) {
  for (const Backend kind : kinds()) {
    SCOPED_TRACE(name_of(kind));
    const Folder folder;
    const std::string path = folder.file("x");
    {
      const auto slow = create_database(path, kind);
      slow->put("slow", noise_of(1));
      write_noise(path, kind, 3);
      expect_part(error_of([&] { slow->finish(); }),
                  path + ": has appeared meanwhile; the new database is left out");
    }
    EXPECT_EQ(find_database(path).source->size(), 3);
    // Users who may replace it do so completely.
    {
      DatabaseFormat format(kind);
      format.overwrite = true;
      const auto slow = create_database(path, format);
      slow->put("slow", noise_of(1));
      write_noise(path, kind, 5, true);
      slow->finish();
    }
    EXPECT_EQ(find_database(path).source->size(), 1);
    std::vector<std::string> names = {"x"};
    if (kind == DataParameter::HDF5) names.push_back("x.txt");
    EXPECT_EQ(folder.names(), names);
  }
}

// The last one stays, if records have keys at all.
TEST(MessyData, AKeyThatComesTwiceIsReplaced) {
  for (const Backend kind : kinds()) {
    SCOPED_TRACE(name_of(kind));
    const Folder folder;
    const auto writer = create_database(folder.file("x"), kind);
    for (int i = 0; i < 3; ++i) writer->put(i == 1 ? "b" : "a", noise_of(i));
    writer->finish();
    const FoundDatabase found = find_database(folder.file("x"));
    std::vector<int> labels;
    for (int64_t i = 0; i < found.source->size(); ++i) {
      Datum datum;
      found.source->read(i, datum);
      labels.push_back(datum.label());
    }
    EXPECT_EQ(labels,
              kind == DataParameter::HDF5 ? (std::vector<int>{0, 1, 2}) : (std::vector<int>{2, 1}));
  }
}

// A list from Windows: names are bytes, whatever their encoding.
TEST(MessyData, NamesMayHaveAnyLetters) {
  NEEDS_IMAGES();
  const std::vector<std::string> names = {
      "k\xC3\xA4se.png",                    // UTF-8
      "\xE4\xBA\x8C \xF0\x9F\x90\x88.png",  // a Chinese two and a cat
      "k\xE4se.png",                        // Latin-1
      "two  blanks.png",
      "a, b.png",
      "it's \"it\".png",
      "100%s\\n.png",
      "-set.png",
      "twice.png",
      "twice.png",
      "de\xCC\x81ja\xCC\x80/vu 7.png",  // marks of their own; a number at the end
  };
  const Folder folder;
  std::string list, csv = "path,label\r\n";
  for (size_t i = 0; i < names.size(); ++i) {
    const auto value = static_cast<uint8_t>(names[i] == "twice.png" ? 99 : i);
    folder.write("in/" + names[i], encode_image({1, 1, 2, {value, value}}, "png"));
    list += cat(names[i], " ", i, "\r\n");
    std::string quoted = names[i];
    for (size_t at = 0; (at = quoted.find('"', at)) != std::string::npos; at += 2)
      quoted.insert(at, "\"");
    csv += cat("\"", quoted, "\",", i, "\r\n");
  }
  folder.write("list", list);
  folder.write("list.csv", csv);
  for (const char* name : {"list", "list.csv"}) {
    SCOPED_TRACE(name);
    const std::string database = folder.file(cat("db_", name));
    ImagesetOptions options;
    options.gray = true;
    const ImagesetResult result =
        convert_imageset(folder.file("in/"), folder.file(name), database, options, silent_log());
    EXPECT_EQ(result.skipped, 0);
    const std::unique_ptr<Source> source = open_lmdb(database);
    ASSERT_EQ(source->size(), static_cast<int64_t>(names.size()));
    // ImageData reads the same.
    LayerParameter message;
    ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(
        cat("name: \"d\" type: \"ImageData\" top: \"data\" top: \"label\" image_data_param { "
            "source: "
            "\"",
            folder.file(name), "\" root_folder: \"", folder.file("in/"),
            "\" batch_size: ", names.size(), " is_color: false }"),
        &message));
    Context context(Device::cpu);
    const std::unique_ptr<Layer> layer = make_layer(message, false, folder.path());
    layer->source()->open(context);
    layer->setup(context, {});
    Forward pass;
    for (const Shape& shape : layer->infer({}).tops) pass.top.emplace_back(context, shape);
    layer->forward(context, pass);
    const std::vector<float> data = to_floats(context, pass.top[0]),
                             labels = to_floats(context, pass.top[1]);
    for (size_t i = 0; i < names.size(); ++i) {
      const auto value = static_cast<uint8_t>(names[i] == "twice.png" ? 99 : i);
      Datum datum;
      source->read(static_cast<int64_t>(i), datum);
      EXPECT_EQ(source->key(static_cast<int64_t>(i)),
                cat(numbered_key(static_cast<int64_t>(i), 8), "_", names[i]));
      EXPECT_EQ(datum.data(), std::string(2, static_cast<char>(value))) << names[i];
      EXPECT_EQ(datum.label(), static_cast<int>(i));
      EXPECT_EQ(data[2 * i], value) << names[i];
      EXPECT_EQ(labels[i], i);
    }
  }
}

}  // namespace messy_data_test
}  // namespace crema::tests
