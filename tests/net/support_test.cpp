// What public prototxt files use, and how Crema treats it here: the table tests/compat/support.md.
// It is made from the registry and the schema; the test fails if it is out of date, and rewrites it
// with CREMA_UPDATE=1.
#include "support.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/descriptor.pb.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>

#include "base/files.h"
#include "layers/layer.h"
#include "net/prototxt/prototxt.h"
#include "proto/options.pb.h"
#include "proto/solver.pb.h"

namespace crema::tests {
namespace support_test {

namespace pb = google::protobuf;

std::string compat(const std::string& name) { return cat(CREMA_TEST_DATA "/compat/", name); }

// Rows of two columns.
std::vector<std::pair<std::string, std::string>> table(const std::string& name) {
  std::vector<std::pair<std::string, std::string>> rows;
  for (const std::string& line : split(read_file(compat(name)), '\n')) {
    if (line.empty() || line[0] == '#') continue;
    const std::vector<std::string> cells = split(line, '\t');
    EXPECT_EQ(cells.size(), 2u) << name << ": " << line;
    rows.emplace_back(cells.at(0), cells.at(1));
  }
  return rows;
}

// The upgraded type; "V1:POOLING3D" is one of an older generation's files.
std::string upgraded(const std::string& type) {
  if (type == "Pad(V0)") return "Convolution";
  const size_t colon = type.find(':');
  const std::string version = colon == std::string::npos ? "" : type.substr(0, colon);
  const std::string name = type.substr(colon + 1);
  const std::string text = version.empty() ? cat("layer { name: \"a\" type: \"", name, "\" }")
                           : version == "V1"
                               ? cat("layers { name: \"a\" type: ", name, " }")
                               : cat("layers { layer { name: \"a\" type: \"", name, "\" } }");
  try {
    return parse_net_text(text, "net").net.layer(0).type();
  } catch (const Error&) {
    return type;
  }
}

// The start of a block with such a message, inside a layer.
std::string block_of(const std::string& message) {
  static const std::map<std::string, std::string> blocks = {
      {"LayerParameter", ""},
      {"TransformationParameter", "transform_param { "},
      {"InterpParameter", "interp_param { "},
      {"PoolingParameter", "pooling_param { "},
      {"HingeLossParameter", "hinge_loss_param { "},
      {"PriorBoxParameter", "prior_box_param { "},
      {"DetectionOutputParameter", "detection_output_param { "},
      {"DataParameter", "data_param { "},
      {"ImageDataParameter", "image_data_param { "},
      {"VideoDataParameter", "video_data_param { "},
      {"EltwiseParameter", "eltwise_param { "},
      {"AccuracyParameter", "accuracy_param { "},
      {"ROIPoolingParameter", "roi_pooling_param { "},
      {"FillerParameter", "convolution_param { weight_filler { "}};
  return blocks.at(message);
}

class Support : public testing::Test {
 protected:
  Support() {
    for (const auto& [type, reason] : table("refused-types.tsv")) refused_[type] = reason;
    pb::FileDescriptorSet set;
    EXPECT_TRUE(set.ParseFromString(read_file(CREMA_SCHEMA)));
    for (const pb::FileDescriptorProto& file : set.file()) EXPECT_TRUE(pool_.BuildFile(file));
  }

  std::string of_type(const std::string& type) {
    const std::string today = upgraded(type);
    const auto reason = refused_.find(type);
    if (LayerRegistry::find(today)) {
      EXPECT_TRUE(reason == refused_.end()) << type << " is here: not a refused type any more";
      return today == type ? "used" : "used, as " + today;
    }
    EXPECT_TRUE(reason != refused_.end()) << type << " is neither registered nor refused";
    return reason == refused_.end() ? "?" : "not here: " + reason->second;
  }

  // The layer types of a family's field are at the start of its comment.
  bool supports_a_layer(const std::string& field) {
    const pb::FieldDescriptor* found =
        pool_.FindMessageTypeByName("crema.LayerParameter")->FindFieldByName(field);
    pb::SourceLocation position;
    EXPECT_TRUE(found && found->GetSourceLocation(&position)) << field;
    std::string words = position.leading_comments;
    std::replace_if(
        words.begin(), words.end(), [](char c) { return !isalnum(c) && c != '_'; }, ' ');
    for (const std::string& word : split(words, ' '))
      if (LayerRegistry::find(word)) return true;
    return false;
  }

  std::string of_field(const std::string& name) {
    const size_t dot = name.find('.');
    const std::string message = name.substr(0, dot), field = name.substr(dot + 1);
    SolverParameter::descriptor();  // links the schema in
    const pb::Descriptor* type =
        pb::DescriptorPool::generated_pool()->FindMessageTypeByName("crema." + message);
    const pb::FieldDescriptor* found = type ? type->FindFieldByName(field) : nullptr;
    EXPECT_TRUE(found) << name << " is not in the schema";
    if (!found) return "?";
    if (found->options().HasExtension(no_effect)) {
      const std::string reason = found->options().GetExtension(no_effect);
      return "accepted, no effect" + (reason.empty() ? "" : ": " + reason);
    }
    if (message == "LayerParameter" && found->message_type() && !supports_a_layer(field))
      return "read, for layers that are refused";
    return "used";
  }

  std::map<std::string, std::string> refused_;
  pb::DescriptorPool pool_;
};

TEST_F(Support, TheTableIsUpToDate) {
  std::string text =
      "# What public prototxt files use, and how Crema treats it\n\n"
      "Made by `net_tests --gtest_filter='Support*'` with `CREMA_UPDATE=1`. Files: of 2,401 public "
      "ones.\n\n| layer type | files | here |\n|---|---|---|\n";
  for (const auto& [type, files] : table("real-types.tsv"))
    text += cat("| ", type, " | ", files, " | ", of_type(type), " |\n");
  text += "\nFields that Caffe's own schema lacks:\n\n| field | files | here |\n|---|---|---|\n";
  for (const auto& [field, files] : table("real-fields.tsv"))
    text += cat("| ", field, " | ", files, " | ", of_field(field), " |\n");
  const std::string path = compat("support.md");
  if (getenv("CREMA_UPDATE")) std::ofstream(path) << text;
  EXPECT_EQ(read_file(path), text) << "run it with CREMA_UPDATE=1";
}

// Every row of the table about forks says what happens.
TEST_F(Support, OfForksIsAsTheTableSays) {
  int rows = 0;
  for (const std::string& line : split(read_file(compat("fork-fields.tsv")), '\n')) {
    if (line.empty() || line[0] == '#') continue;
    SCOPED_TRACE(line);
    const std::vector<std::string> cells = split(line, '\t');
    ASSERT_EQ(cells.size(), 3u);
    const std::string &what = cells[1], &decision = cells[2];
    const size_t dot = what.rfind('.');
    const pb::Descriptor* message =
        dot == std::string::npos
            ? nullptr
            : SolverParameter::descriptor()->file()->pool()->FindMessageTypeByName(
                  "crema." + what.substr(0, dot));
    const pb::FieldDescriptor* field =
        message ? message->FindFieldByName(what.substr(dot + 1)) : nullptr;
    const bool here = dot == std::string::npos ? LayerRegistry::find(upgraded(what)) != nullptr
                                               : field != nullptr;
    ++rows;
    if (decision == "used") {
      EXPECT_TRUE(here && (!field || !field->options().HasExtension(no_effect)));
    } else if (decision == "no effect") {
      EXPECT_TRUE(field && field->options().HasExtension(no_effect));
    } else {
      EXPECT_FALSE(here);
      const std::string text =
          dot == std::string::npos
              ? ""
              : cat("layer { ", block_of(what.substr(0, dot)), what.substr(dot + 1), ": 1 ");
      const std::string problem = error_of([&] {
        LayerParameter layer;
        layer.set_type(what);
        if (text.empty()) make_layer(layer, true);
        parse_net_text(text, "f");
      });
      EXPECT_NE(problem.find(": " + decision.substr(9)), std::string::npos) << problem;
    }
  }
  EXPECT_GT(rows, 100);
}

}  // namespace support_test
}  // namespace crema::tests
