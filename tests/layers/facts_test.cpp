// LayerFacts: every type declares its kind, and what a class declares is what its layers do.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "layers/layer_facts.h"
#include "layers/layer_run.h"
#include "layers/layer_types.h"

namespace crema::tests {
namespace facts_test {

// Types that are of no kind: no other type does what they do, or their class decides.
const std::set<std::string>& others() {
  static const std::set<std::string> types = {"Decode", "MultiStageMeanfield", "Parameter",
                                              "Python"};
  return types;
}

TEST(FactsTest, EveryTypeHasAKind) {
  for (const std::string& type : layer_types()) {
    EXPECT_EQ(facts_of(type).kind == LayerKind::other, others().count(type) > 0)
        << type << ": declare LayerFacts in its class; a public member, or REGISTER_LAYER does not "
        << "see it";
  }
}

TEST(FactsTest, LossesAreTheLayersWithALossWeight) {
  for (const std::string& type : layer_types()) {
    EXPECT_EQ(facts_of(type).kind == LayerKind::loss, LayerRegistry::find(type)->make()->is_loss())
        << type;
  }
}

TEST(FactsTest, SourcesSayWhereTheirSamplesComeFrom) {
  for (const std::string& type : layer_types()) {
    if (type == "Python") continue;  // may be one
    EXPECT_EQ(facts_of(type).kind == LayerKind::source,
              facts_of(type).content != SourceContent::none)
        << type;
  }
}

TEST(FactsTest, ActivationsOfLossesAreTypes) {
  for (const std::string& type : layer_types()) {
    const std::string activation(facts_of(type).activation);
    if (activation.empty()) continue;
    EXPECT_EQ(facts_of(type).kind, LayerKind::loss) << type;
    EXPECT_EQ(facts_of(activation).kind, LayerKind::activation) << type;
  }
}

TEST(FactsTest, AnUnknownTypeIsJudgedByItsName) {
  EXPECT_EQ(facts_of("FancyLoss").kind, LayerKind::loss);
  EXPECT_EQ(facts_of("FancyAccuracy").kind, LayerKind::metric);
  EXPECT_EQ(facts_of("Fancy").kind, LayerKind::other);
}

// Calls check(row, run, facts) for every row that can be run and is not of a fused layer.
template <typename Check>
void for_each_row(const Check& check) {
  for (const Row& row : read_rows(CREMA_TEST_DATA "/layers/rows")) {
    if (!row.error.empty()) continue;
    SCOPED_TRACE(row.id() + ": " + row.text);
    LayerRun run(row, {.backward = false});
    const std::string& type = run.layer().type();
    if (type != "Python" && type.find('+') == std::string::npos) check(row, run, facts_of(type));
  }
}

TEST(FactsTest, ShapesAreThoseOfTheFacts) {
  for_each_row([](const Row& row, LayerRun& run, const LayerFacts& facts) {
    if (row.bottoms.empty() || run.top_shapes().empty()) return;
    const Shape &bottom = row.bottoms[0].shape, &top = run.top_shapes()[0];
    if (facts.elementwise) {
      EXPECT_EQ(top, bottom);
      EXPECT_TRUE(facts.keeps_channels);
    }
    const bool other_axis = row.text.find("crop_param { axis") != std::string::npos;
    if (facts.keeps_channels && !other_axis && bottom.axes() > 1) {
      ASSERT_GT(top.axes(), 1);
      EXPECT_EQ(top[1], bottom[1]);
    }
  });
}

TEST(FactsTest, ZerosStayZeros) {
  std::set<std::string> seen;
  for_each_row([&](const Row& row, LayerRun& run, const LayerFacts& facts) {
    // 0 / 0; a window without values.
    const bool undefined = row.text.find("eps: 0 ") != std::string::npos ||
                           row.name.find("empty_window") != std::string::npos;
    if (!facts.keeps_zero || undefined) return;
    Start start = run.make_start();
    for (auto* const all : {&start.bottom, &start.parameter})
      for (std::vector<double>& values : *all) std::fill(values.begin(), values.end(), 0);
    const Outcome outcome = run.forward(start);
    for (const double value : outcome.top[0]) EXPECT_EQ(value, 0);
    seen.insert(run.layer().type());
  });
  for (const std::string& type : layer_types()) {
    const bool fused = type.find('+') != std::string::npos;
    EXPECT_TRUE(fused || !facts_of(type).keeps_zero || seen.count(type)) << type;
  }
}

TEST(FactsTest, LearnedBlobsAreThoseOfTheFacts) {
  // They learn with some of their fields only.
  const std::set<std::string> by_fields = {"BatchNorm", "FakeQuantize", "Normalize"};
  std::set<std::string> seen;
  for_each_row([&](const Row&, LayerRun& run, const LayerFacts& facts) {
    const std::vector<ParameterSpec>& parameters = run.layer().parameters();
    const auto learned = std::count_if(parameters.begin(), parameters.end(),
                                       [](const ParameterSpec& one) { return one.learned; });
    const std::string& type = run.layer().type();
    if (learned > 0 && by_fields.count(type) == 0) {
      EXPECT_GT(facts.learned, 0);
    }
    if (learned >= facts.learned) seen.insert(type);
  });
  for (const std::string& type : layer_types()) {
    EXPECT_TRUE(facts_of(type).learned == 0 || seen.count(type)) << type << " learns less";
  }
}

TEST(FactsTest, ValuesAreThoseOfTheFacts) {
  for_each_row([](const Row& row, LayerRun& run, const LayerFacts& facts) {
    const bool bounded = (std::isfinite(facts.least) || std::isfinite(facts.most)) &&
                         row.text.find("_param") == std::string::npos;
    if (!bounded && !facts.copies) return;
    const Start start = run.make_start();
    const Outcome outcome = run.forward(start);
    std::set<double> given = {0};
    for (size_t j = 0; j < start.bottom.size(); ++j)
      if (j == 0 || facts.kind == LayerKind::join)
        given.insert(start.bottom[j].begin(), start.bottom[j].end());
    for (const double value : outcome.top[0]) {
      if (bounded) {
        EXPECT_GE(value, facts.least);
        EXPECT_LE(value, facts.most);
      }
      if (facts.copies) {
        EXPECT_EQ(given.count(value), 1u) << value;
      }
    }
  });
}

// Nets that run at the same time share parameters unless a layer says that it changes them.
TEST(FactsTest, ForwardWritesNoParametersUnlessTheLayerSaysSo) {
  std::set<std::string> say, write;
  for (Row row : read_rows(CREMA_TEST_DATA "/layers/rows")) {
    if (!row.error.empty()) continue;
    SCOPED_TRACE(row.id() + ": " + row.text);
    const bool as_written = !row.training;
    row.training = false;
    std::unique_ptr<LayerRun> run;
    try {
      run = std::make_unique<LayerRun>(row, Setting{.backward = false});
    } catch (const Error&) {  // it needs labels in training only, say
      EXPECT_FALSE(as_written);
      continue;
    }
    if (run->layer().parameters().empty()) continue;
    const Start start = run->make_start();
    const bool changed = run->forward(start).parameter != start.parameter;
    const bool says = run->layer().traits().changes_parameters;
    EXPECT_TRUE(says || !changed) << "LayerTraits::changes_parameters";
    if (says) say.insert(run->layer().type());
    if (changed) write.insert(run->layer().type());
  }
  // A class in Python may change its blobs. The rows of the other two stay within their bounds.
  for (const char* type : {"Python", "GlobalLSEMargin", "LabelSpecificMargin"}) say.erase(type);
  EXPECT_EQ(say, write);
}

}  // namespace facts_test
}  // namespace crema::tests
