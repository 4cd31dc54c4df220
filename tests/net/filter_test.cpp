// Which layers take part, and the log lines that say why others do not.
#include "net/graph/filter.h"

#include "net/prototxt/prototxt.h"
#include "support.h"

namespace crema::tests {
namespace filter_test {

struct Case {
  const char* layer;  // inside layer { }
  const char* state;  // inside state { }
  bool kept;
  const char* line;  // the last one logged; "" is none
};

const Case kCases[] = {
    {"", "", true, ""},
    {"include { phase: TEST }", "phase: TEST", true, ""},
    {"include { phase: TEST }", "phase: TRAIN", false,
     "The NetState phase (0) differed from the phase (1) specified by a rule in layer x"},
    {"include { phase: TRAIN }", "", false,
     "The NetState phase (1) differed from the phase (0) specified by a rule in layer x"},
    {"exclude { phase: TEST }", "phase: TEST", false, ""},
    {"exclude { phase: TEST }", "phase: TRAIN", true,
     "The NetState phase (0) differed from the phase (1) specified by a rule in layer x"},
    {"include { min_level: 3 }", "level: 2", false,
     "The NetState level (2) is above the min_level (3) specified by a rule in layer x"},
    {"include { min_level: 3 }", "level: 3", true, ""},
    {"include { max_level: 3 }", "level: 4", false,
     "The NetState level (4) is above the max_level (3) specified by a rule in layer x"},
    {"include { min_level: -1 max_level: 3 }", "", true, ""},
    {"include { stage: \"a\" stage: \"b\" }", "stage: \"b\" stage: \"a\"", true, ""},
    {"include { stage: \"a\" stage: \"b\" }", "stage: \"a\"", false,
     "The NetState did not contain stage 'b' specified by a rule in layer x"},
    {"include { not_stage: \"a\" }", "stage: \"a\"", false,
     "The NetState contained a not_stage 'a' specified by a rule in layer x"},
    {"include { not_stage: \"a\" }", "stage: \"b\"", true, ""},
    // One matching rule of several is enough, and all parts of one rule must match.
    {"include { phase: TRAIN } include { stage: \"a\" }", "phase: TEST stage: \"a\"", true,
     "The NetState phase (1) differed from the phase (0) specified by a rule in layer x"},
    {"include { phase: TRAIN stage: \"a\" }", "phase: TRAIN", false,
     "The NetState did not contain stage 'a' specified by a rule in layer x"},
    {"exclude { phase: TRAIN } exclude { stage: \"a\" }", "phase: TEST stage: \"a\"", false,
     "The NetState phase (1) differed from the phase (0) specified by a rule in layer x"},
    // An empty rule always matches.
    {"include { }", "", true, ""},
    {"exclude { }", "", false, ""},
    // A fork's phase never is.
    {"include { phase: RUN }", "phase: TEST", false,
     "The NetState phase (1) differed from the phase (6000) specified by a rule in layer x"},
};

TEST(Filter, FollowsTheRules) {
  for (const Case& c : kCases) {
    SCOPED_TRACE(cat(c.layer, " in ", c.state));
    const NetParameter net =
        parse_net_text(cat("state { ", c.state, " } layer { name: \"x\" ", c.layer, " }"), "f").net;
    Lines log;
    EXPECT_EQ(filter_net(net, net.state(), log).layer_size(), c.kept ? 1 : 0);
    EXPECT_EQ(log.all.empty() ? "" : log.all.back(), c.line);
  }
}

TEST(Filter, SaysWhichLayersStayed) {
  const NetParameter net =
      parse_net_text(
          "name: \"n\" force_backward: true layer { name: \"a\" include { phase: TRAIN } }"
          "layer { name: \"b\" } layer { name: \"c\" include { phase: TEST } }",
          "f")
          .net;
  NetState state;
  state.set_phase(TEST);
  std::vector<int> kept = {7};
  const NetParameter filtered = filter_net(net, state, silent_log(), &kept);
  EXPECT_EQ(kept, (std::vector<int>{1, 2}));
  EXPECT_EQ(filtered.layer(1).name(), "c");
  EXPECT_EQ(filtered.name(), "n");
  EXPECT_TRUE(filtered.force_backward());
}

TEST(Filter, SaysWhichRuleLeavesABlobOut) {
  const NetFile file = parse_net_text(
      "layer { name: \"d\" top: \"x\" include { phase: TEST stage: \"s\" } }\n"
      "layer { name: \"e\" top: \"x\" exclude { phase: TRAIN } exclude { min_level: 3 } }\n"
      "layer { name: \"f\" top: \"y\" }",
      "net");
  NetState state;
  state.set_phase(TRAIN);
  state.set_level(2);
  const auto why = [&](const char* blob) {
    return why_left_out(file.net, state, blob, [&](int layer) { return file.where(layer); });
  };
  EXPECT_EQ(why("x"),
            "layer \"d\" (net:1:1) makes it, but include { phase: TEST stage: \"s\" } "
            "leaves that layer out in phase TRAIN, level 2");
  EXPECT_EQ(why("y"), "");  // it is there
  EXPECT_EQ(why("z"), "");
  state.set_phase(TEST);
  state.add_stage("s");
  state.set_level(3);
  EXPECT_EQ(why("x"),
            "layer \"e\" (net:2:1) makes it, but exclude { min_level: 3 } leaves that "
            "layer out in phase TEST, level 3, stages s");
}

TEST(Filter, RefusesIncludeWithExclude) {
  const NetFile file = parse_net_text("\nlayer { name: \"a\" include { } exclude { } }", "f");
  EXPECT_EQ(error_of([&] {
              filter_net(file.net, NetState(), silent_log(), nullptr,
                         [&file](int layer) { return file.where(layer); });
            }),
            "f:2:1: layer \"a\": give include rules or exclude rules, not both");
}

TEST(Filter, CombinesStates) {
  const NetParameter net = parse_net_text("state { level: 3 stage: \"file\" }", "f").net;
  NetState outer;
  outer.add_stage("outer");
  const NetState state = net_state(TRAIN, net, outer);
  EXPECT_EQ(state.phase(), TRAIN);
  EXPECT_EQ(state.level(), 3);
  ASSERT_EQ(state.stage_size(), 2);
  EXPECT_EQ(state.stage(1), "outer");
  outer.set_level(5);
  outer.set_phase(TEST);
  EXPECT_EQ(net_state(TRAIN, net, outer).level(), 5);
  EXPECT_EQ(net_state(TRAIN, net, outer).phase(), TEST);
}

}  // namespace filter_test
}  // namespace crema::tests
