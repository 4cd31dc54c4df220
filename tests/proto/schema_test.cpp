// The compiled schema against tables of facts: Caffe's own (every name, number, type and default)
// and what the two most used forks add (by name). And no field without a comment.
#include <google/protobuf/descriptor.h>
#include <google/protobuf/descriptor.pb.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/files.h"
#include "base/strings.h"
#include "proto/solver.pb.h"

namespace crema {
namespace schema_test {

namespace pb = google::protobuf;

constexpr int kFirstOwnNumber = 5000, kFirstForkNumber = 6000;

// Columns: message, field, number, label, type, default, packed; or ENUM, name, values.
std::vector<std::vector<std::string>> table(const std::string& name) {
  std::ifstream in(CREMA_TEST_DATA "/compat/" + name);
  std::vector<std::vector<std::string>> rows;
  for (std::string line; std::getline(in, line);) {
    if (line.empty() || line[0] == '#') continue;
    rows.push_back(split(line, '\t'));
    rows.back().resize(8);
  }
  return rows;
}

const pb::DescriptorPool& pool() {
  SolverParameter::descriptor();  // links the schema in
  return *pb::DescriptorPool::generated_pool();
}

const pb::Descriptor* message(const std::string& name) {
  return pool().FindMessageTypeByName("crema." + name);
}

std::string last_part(const std::string& name) { return name.substr(name.rfind('.') + 1); }

std::string label(const pb::FieldDescriptor& field) {
  return field.is_repeated() ? "repeated" : field.is_required() ? "required" : "optional";
}

std::string type(const pb::FieldDescriptor& field) {
  if (field.message_type()) return field.message_type()->full_name().substr(6);
  if (field.enum_type()) return field.enum_type()->full_name().substr(6);
  return field.type_name();
}

std::string default_of(const pb::FieldDescriptor& field) {
  if (!field.has_default_value()) return "";
  switch (field.cpp_type()) {
    case pb::FieldDescriptor::CPPTYPE_FLOAT:
      return cat(field.default_value_float());
    case pb::FieldDescriptor::CPPTYPE_DOUBLE:
      return cat(field.default_value_double());
    case pb::FieldDescriptor::CPPTYPE_INT32:
      return cat(field.default_value_int32());
    case pb::FieldDescriptor::CPPTYPE_INT64:
      return cat(field.default_value_int64());
    case pb::FieldDescriptor::CPPTYPE_UINT32:
      return cat(field.default_value_uint32());
    case pb::FieldDescriptor::CPPTYPE_UINT64:
      return cat(field.default_value_uint64());
    case pb::FieldDescriptor::CPPTYPE_BOOL:
      return field.default_value_bool() ? "true" : "false";
    case pb::FieldDescriptor::CPPTYPE_ENUM:
      return field.default_value_enum()->name();
    case pb::FieldDescriptor::CPPTYPE_STRING:
      return field.default_value_string();
    case pb::FieldDescriptor::CPPTYPE_MESSAGE:
      return "";
  }
  return "";
}

// "1e-08" and "1e-8" are one default.
std::string same_number(const std::string& text) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  return !text.empty() && *end == '\0' ? cat(value) : text;
}

// A fork made lists of these; on the wire and for one value nothing changes.
const std::set<std::string> kLists = {"SolverParameter.device_id"};

TEST(Schema, HoldsEveryFieldOfCaffe) {
  int fields = 0;
  for (const auto& row : table("schema.tsv")) {
    if (row[0] == "ENUM") continue;
    SCOPED_TRACE(row[0] + "." + row[1]);
    ++fields;
    const pb::Descriptor* type_of = message(row[0]);
    ASSERT_TRUE(type_of);
    const pb::FieldDescriptor* field = type_of->FindFieldByName(row[1]);
    ASSERT_TRUE(field);
    EXPECT_EQ(cat(field->number()), row[2]);
    const bool list = kLists.count(row[0] + "." + row[1]) > 0;
    EXPECT_EQ(label(*field), list ? "repeated" : row[3]);
    EXPECT_EQ(type(*field), row[4]);
    EXPECT_EQ(same_number(default_of(*field)), list ? "" : same_number(row[5]));
    EXPECT_EQ(field->is_packed() ? "packed" : "", row[6]);
  }
  EXPECT_GT(fields, 400);
}

TEST(Schema, HoldsEveryEnumValueOfCaffe) {
  for (const auto& row : table("schema.tsv")) {
    if (row[0] != "ENUM") continue;
    SCOPED_TRACE(row[1]);
    const pb::EnumDescriptor* type_of = pool().FindEnumTypeByName("crema." + row[1]);
    ASSERT_TRUE(type_of);
    std::set<std::string> expected, own;
    for (const std::string& value : split(row[2], ' ')) expected.insert(value);
    for (int i = 0; i < type_of->value_count(); ++i) {
      const pb::EnumValueDescriptor* value = type_of->value(i);
      if (value->number() < kFirstOwnNumber) {
        own.insert(cat(value->name(), "=", value->number()));
      }
    }
    EXPECT_EQ(own, expected);
  }
}

TEST(Schema, AddsToCaffesMessagesOnlyAtOwnAndForkNumbers) {
  std::map<std::string, std::set<std::string>> fields;
  for (const auto& row : table("schema.tsv")) {
    if (row[0] != "ENUM") fields[row[0]].insert(row[1]);
  }
  for (const auto& [name, known] : fields) {
    const pb::Descriptor* type_of = message(name);
    ASSERT_TRUE(type_of) << name;
    for (int i = 0; i < type_of->field_count(); ++i) {
      const pb::FieldDescriptor* field = type_of->field(i);
      EXPECT_TRUE(known.count(field->name()) || field->number() >= kFirstOwnNumber)
          << field->full_name();
    }
  }
}

// Not reachable from any text file: a storage format of one fork, and what only the reader of
// weight files looks at.
bool left_out(const std::vector<std::string>& row) {
  const std::string& name = row[1] == "ENUM" ? row[2] : row[1];
  return starts_with(name, "C2Tensor") || name == "DatumTypeInfo" ||
         (name == "BlobProto" && starts_with(row[2], "raw_"));
}

// Columns of this table: fork, message, field, number, label, type, default.
TEST(Schema, KnowsTheFieldsOfForksByName) {
  std::set<std::string> caffe;
  for (const auto& row : table("schema.tsv")) caffe.insert(row[0]);
  for (const auto& row : table("schema-forks.tsv")) {
    if (row[1] == "ENUM" || left_out(row)) continue;
    SCOPED_TRACE(row[1] + "." + row[2]);
    const pb::Descriptor* type_of = message(row[1]);
    ASSERT_TRUE(type_of);
    const pb::FieldDescriptor* field = type_of->FindFieldByName(row[2]);
    ASSERT_TRUE(field);
    EXPECT_EQ(label(*field), row[4]);
    if (row[5] == "bool" && field->enum_type() && field->enum_type()->FindValueByName("true")) {
      // More choices than the fork's two.
      EXPECT_NE(field->enum_type()->FindValueByName("false"), nullptr);
    } else {
      EXPECT_EQ(last_part(type(*field)), last_part(row[5]));
    }
    EXPECT_EQ(same_number(default_of(*field)), same_number(row[6]));
    if (caffe.count(row[1])) {
      EXPECT_GE(field->number(), kFirstForkNumber);
    }
  }
}

TEST(Schema, KnowsTheEnumValuesOfForksByName) {
  const std::map<std::string, std::string> wrapped = {{"Type", "NumberType.Type"},
                                                      {"Packing", "PixelOrder.Packing"}};
  for (const auto& row : table("schema-forks.tsv")) {
    if (row[1] != "ENUM" || left_out(row)) continue;
    SCOPED_TRACE(row[2]);
    const auto inside = wrapped.find(row[2]);
    const pb::EnumDescriptor* type_of =
        pool().FindEnumTypeByName("crema." + (inside == wrapped.end() ? row[2] : inside->second));
    ASSERT_TRUE(type_of);
    for (const std::string& pair : split(row[3], ' ')) {
      const std::vector<std::string> parts = split(pair, '=');
      const pb::EnumValueDescriptor* value = type_of->FindValueByName(parts[0]);
      ASSERT_TRUE(value) << parts[0];
      // Text files may give the number: it must mean the same, unless Caffe had the enum first.
      if (value->number() < kFirstForkNumber) {
        EXPECT_EQ(cat(value->number()), parts[1]);
      }
    }
  }
}

// The schema again, from its text, with comments.
class Comments : public ::testing::Test {
 protected:
  Comments() {
    pb::FileDescriptorSet set;
    EXPECT_TRUE(set.ParseFromString(read_file(CREMA_SCHEMA)));
    for (const pb::FileDescriptorProto& file : set.file()) {
      const pb::FileDescriptor* built = pool_.BuildFile(file);
      EXPECT_TRUE(built) << file.name();
      if (built && starts_with(file.name(), "proto/")) files_.push_back(built);
    }
  }

  template <typename Descriptor>
  void expect_comment(const Descriptor* what) {
    pb::SourceLocation position;
    ASSERT_TRUE(what->GetSourceLocation(&position)) << what->full_name();
    EXPECT_FALSE(trim(position.leading_comments).empty() &&
                 trim(position.trailing_comments).empty())
        << what->full_name() << " has no comment";
    ++commented_;
  }

  void check(const pb::EnumDescriptor* type_of) {
    expect_comment(type_of);
    for (int i = 0; i < type_of->value_count(); ++i) expect_comment(type_of->value(i));
  }

  void check(const pb::Descriptor* type_of) {
    if (type_of->options().map_entry()) return;  // protoc makes it of a map's field
    expect_comment(type_of);
    for (int i = 0; i < type_of->field_count(); ++i) expect_comment(type_of->field(i));
    for (int i = 0; i < type_of->enum_type_count(); ++i) check(type_of->enum_type(i));
    for (int i = 0; i < type_of->nested_type_count(); ++i) check(type_of->nested_type(i));
  }

  pb::DescriptorPool pool_;
  std::vector<const pb::FileDescriptor*> files_;
  int commented_ = 0;
};

TEST_F(Comments, ExplainEveryMessageFieldAndValue) {
  for (const pb::FileDescriptor* file : files_) {
    for (int i = 0; i < file->enum_type_count(); ++i) check(file->enum_type(i));
    for (int i = 0; i < file->message_type_count(); ++i) check(file->message_type(i));
  }
  EXPECT_GT(commented_, 1000);
}

}  // namespace schema_test
}  // namespace crema
