// Pages of recorded runs: several compared, long ones, and texts that would do harm in HTML.
#include <gtest/gtest.h>

#include <array>
#include <regex>

#include "tools/program.h"

namespace crema::tests {
namespace report_page_test {

constexpr const char* start =
    R"({"iteration":0,"kind":"start","run":"RUN","time":0,"net_name":"n","net_file":"n.prototxt",)"
    R"("solver_file":"s.prototxt","started":"2026-01-01T00:00:00Z"})";

// A run of three displays and two tests; `best` is the accuracy of the first test.
std::string metrics(const std::string& id, const std::string& best) {
  std::string text = std::string(start) + R"(
{"iteration":0,"kind":"train","run":"RUN","time":1,"values":{"loss":2.5,"lr":0.1,"data_wait":0.25}}
{"iteration":100,"kind":"train","run":"RUN","time":2,"values":{"loss":null,"lr":0.1,"data_wait":0.75,"iterations_per_second":100}}
{"iteration":100,"kind":"test","run":"RUN","net":0,"time":2,"values":{"accuracy":BEST,"loss":0.9}}
{"iteration":200,"kind":"train","run":"RUN","time":3,"values":{"loss":0.5,"lr":0.1,"data_wait":0,"iterations_per_second":100}}
{"iteration":200,"kind":"test","run":"RUN","net":0,"time":3,"values":{"accuracy":0.5,"loss":0.7}}
{"iteration":200,"kind":"end","run":"RUN","time":4}
)";
  text = std::regex_replace(text, std::regex("RUN"), id);
  return std::regex_replace(text, std::regex("BEST"), best);
}

std::string page_of(const Folder& folder, const std::string& arguments) {
  const Outcome outcome = run(folder, "report " + arguments + " -output page.html");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  return folder.read("page.html");
}

size_t times(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

TEST(ReportPage, ShowsTheFiguresOfARun) {
  const Folder folder;
  folder.write("metrics.jsonl", metrics("aaaaaaaa", "0.9"));
  const std::string page = page_of(folder, "metrics.jsonl");
  for (const char* part :
       {"<b>50.00%</b><span>last test: accuracy",
        "<b>90.00%</b><span>best test: accuracy, "
        "iteration 100",
        "<b>200</b><span>iterations<", "<b>4.0 s</b>", "<b>25.00%</b><span>of the time waited",
        "<h2>Loss</h2>", "<h2>Test results</h2>", "<h2>Learning rate</h2>",
        "<h2>Iterations per second</h2>", "<h2>Waiting for data</h2>",
        "data-name=\"training: loss\" data-points=\"0,2.5 100,- 200,0.5\" data-seconds=\"1 2 3\""})
    expect_part(page, part);
  // The loss that is no number leaves a gap.
  EXPECT_TRUE(std::regex_search(
      page, std::regex("d=\"M[0-9.]+ [0-9.]+M[0-9.]+ [0-9.]+\" data-name=\"training: loss\"")));
}

TEST(ReportPage, ComparesRuns) {
  const Folder folder;
  folder.write("runs/a-10/metrics.jsonl", metrics("aaaaaaaa", "0.9"));
  folder.write("runs/a-2/metrics.jsonl", metrics("bbbbbbbb", "0.6"));
  folder.write("both.jsonl", metrics("aaaaaaaa", "0.9") + metrics("bbbbbbbb", "0.6"));
  folder.write("third.jsonl", metrics("cccccccc", "0.7"));
  struct Row {
    const char* arguments;
    std::vector<std::string> names;  // in this order
  };
  for (const Row& row :
       {Row{"runs", {"a-2", "a-10"}},
        Row{"runs/a-10 runs/a-2/metrics.jsonl", {"runs/a-10", "runs/a-2/metrics.jsonl"}},
        Row{"runs third.jsonl runs/a-2", {"a-2", "a-10", "third.jsonl"}},
        Row{"both.jsonl -run_id all", {"aaaaaaaa", "bbbbbbbb"}},
        Row{"both.jsonl -run_id bb,aa", {"aaaaaaaa", "bbbbbbbb"}},
        Row{"both.jsonl third.jsonl -run_id all",
            {"both.jsonl aaaaaaaa", "both.jsonl bbbbbbbb", "third.jsonl"}}}) {
    const std::string page = page_of(folder, row.arguments);
    expect_part(page, std::to_string(row.names.size()) + " runs compared");
    for (size_t i = 0; i < row.names.size(); ++i) {
      const std::string colour = "<i class=\"s" + std::to_string(i) + "\"></i>";
      expect_part(page, "<td>" + colour + row.names[i] +
                            "</td><td><span class=\"state ended\">ended</span>");
      expect_part(page, "<path class=\"curve s" + std::to_string(i));
    }
    expect_part(page, "<small class=\"best\">best 90.00% at 100</small>");
    expect_part(page, "<small>best 60.00% at 100</small>");
    for (const char* title : {"Training: loss", "Test: loss", "Accuracy", "Learning rate"})
      EXPECT_EQ(times(page, std::string("<h2>") + title + "</h2>"), 1u) << row.arguments;
  }
}

std::string solver(const std::string& rate, const std::string& folder) {
  return "base_lr: " + rate + " momentum: 0.9 snapshot_prefix: \"" + folder + "/s\" net: \"" +
         folder + "/train_val.prototxt\"\n";
}
std::string net(int outputs) {
  return "name: \"n\" layer { name: \"ip\" type: \"InnerProduct\" bottom: \"data\" top: \"ip\" "
         "inner_product_param { num_output: " +
         std::to_string(outputs) + " } }\n";
}

TEST(ReportPage, ShowsInWhichSettingsRunsDiffer) {
  const Folder folder;
  struct Row {
    const char *name, *rate, *accuracy;
    int outputs;
  };
  const std::vector<Row> runs = {
      {"a", "0.1", "0.25", 5}, {"b", "0.01", "0.75", 5}, {"c", "0.01", "0.5", 7}};
  for (const Row& run : runs) {
    const std::string at = std::string("runs/") + run.name;
    std::string text = metrics(std::string(8, run.name[0]), "0.9");
    text = std::regex_replace(text, std::regex("\"accuracy\":0.5"),
                              std::string("\"accuracy\":") + run.accuracy);
    folder.write(at + "/metrics.jsonl", text);
    folder.write(at + "/run.json", "{}");
    // One names the default of the others; each drew its seed.
    folder.write(at + "/solver.prototxt",
                 cat(solver(run.rate, at), "random_seed: 77", run.outputs, run.rate[2],
                     *run.name == 'a'   ? " type: \"Adam\""
                     : *run.name == 'b' ? " type: \"SGD\""
                                        : ""));
    folder.write(at + "/train_val.prototxt", net(run.outputs));
  }
  const std::string page = page_of(folder, "runs");
  expect_part(page,
              "<th>run</th><th>base_lr</th><th>type</th><th>ip num_output</th><th>state</th>");
  // The best first.
  const std::regex order(
      "b</td><td data-value=\"0.01\">0.01</td><td data-value=\"SGD\">SGD</td><td "
      "data-value=\"5\">5</td>[^]*"
      "c</td><td data-value=\"0.01\">0.01</td><td data-value=\"SGD\">SGD</td><td "
      "data-value=\"7\">7</td>[^]*"
      "a</td><td data-value=\"0.1\">0.1</td><td data-value=\"Adam\">Adam</td><td "
      "data-value=\"5\">5</td>");
  EXPECT_TRUE(std::regex_search(page, order));
  expect_part(page, "<title>b\nbase_lr 0.01\ntype SGD\nip num_output 5\naccuracy 0.75</title>");
  for (const char* same : {"momentum</th>", "random_seed</th>"})
    EXPECT_EQ(page.find(same), std::string::npos) << same;
  expect_part(page, "<div class=\"wide\"><svg class=\"parallel\"");
}

// The values of the last axis are that close to each other that one has no room.
TEST(ReportPage, LabelsTheEndsOfAnAxis) {
  const Folder folder;
  const char* accuracies[] = {"0.971", "0.952", "0.122"};
  for (int i = 0; i < 3; ++i) {
    const std::string at = cat("runs/", i);
    folder.write(
        at + "/metrics.jsonl",
        std::regex_replace(metrics(cat("aaaaaaa", i), "0.1"), std::regex("\"accuracy\":0.5"),
                           std::string("\"accuracy\":") + accuracies[i]));
    folder.write(at + "/run.json", "{}");
    folder.write(at + "/solver.prototxt", solver(cat("0.", i + 1), at));
    folder.write(at + "/train_val.prototxt", net(5));
  }
  const std::string page = page_of(folder, "runs");
  const auto ticks = [&](const std::string& text) {
    return std::regex_search(page, std::regex("class=\"tick\"[^>]*>" + text + "<"));
  };
  EXPECT_TRUE(ticks("0.971"));
  EXPECT_FALSE(ticks("0.952"));
  EXPECT_TRUE(ticks("0.122"));
  expect_part(page_of(folder, "runs/1 runs/2"), "Crema. runs/1, runs/2</p>");
}

TEST(ReportPage, ShowsSeedsThatWereChosen) {
  struct Row {
    const char* name;
    std::vector<std::pair<const char*, int>> runs;  // rate and seed
    bool shown;
  };
  for (const Row& row :
       {Row{"seeds alone", {{"0.1", 1}, {"0.1", 2}}, true},
        Row{"a sweep of both", {{"0.1", 1}, {"0.1", 2}, {"0.2", 1}, {"0.2", 2}}, true},
        Row{"drawn", {{"0.1", 81}, {"0.2", 12}}, false}}) {
    SCOPED_TRACE(row.name);
    const Folder folder;
    for (size_t i = 0; i < row.runs.size(); ++i) {
      const std::string at = cat("runs/", i);
      folder.write(at + "/metrics.jsonl", metrics(cat("aaaaaaa", i), "0.9"));
      folder.write(at + "/run.json", "{}");
      folder.write(at + "/solver.prototxt",
                   cat(solver(row.runs[i].first, at), "random_seed: ", row.runs[i].second));
      folder.write(at + "/train_val.prototxt", net(5));
    }
    EXPECT_EQ(times(page_of(folder, "runs"), "<th>random_seed</th>"), row.shown ? 1u : 0u);
  }
}

TEST(ReportPage, NamesNoClassesThatAreNotThoseOfTheTest) {
  const Folder folder;
  std::string text = metrics("aaaaaaaa", "0.9");
  text.insert(text.find("}\n"), ",\"classes\":\"one\\ntwo\\nthree\"");
  text +=
      "{\"iteration\":200,\"kind\":\"confusion\",\"net\":0,\"run\":\"aaaaaaaa\",\"counts\":[[1,2],["
      "3,4]]}\n";
  folder.write("metrics.jsonl", text);
  const std::string page = page_of(folder, "metrics.jsonl");
  expect_part(page, "<table class=\"confusion\"><tr><th></th><th>0</th><th>1</th>");
}

TEST(ReportPage, SaysHowRunsEnded) {
  const Folder folder;
  const std::string whole = metrics("aaaaaaaa", "0.9");
  const std::string cut = whole.substr(0, whole.find("{\"iteration\":200,\"kind\":\"end\""));
  const std::string head = R"({"iteration":200,"run":"aaaaaaaa","time":4,"kind":)";
  const std::vector<std::array<std::string, 3>> rows = {
      {"a", whole, "ended\">ended<"},
      {"b", cut, "silent\">no end recorded<"},
      {"c", cut + head + "\"end\",\"why\":\"stopped on request\"}\n",
       "stopped\">stopped on request<"},
      {"d", cut + head + "\"early_stop\",\"output\":\"accuracy\"}\n" + head + "\"end\"}\n",
       "stopped\">stopped early<"},
      {"e", cut + head + "\"train\",\"values\":{\"loss\":null}}\n", "diverged\">diverged<"}};
  for (const auto& row : rows) folder.write("runs/" + row[0] + "/metrics.jsonl", row[1]);
  const std::string page = page_of(folder, "runs");
  for (const auto& row : rows) {
    const std::regex cell("</i>" + row[0] + "</td><td><span class=\"state " + row[2]);
    EXPECT_TRUE(std::regex_search(page, cell)) << row[0];
  }
  expect_part(page, "</i>e (diverged)</span>");
}

TEST(ReportPage, DrawsAConstantInTheMiddleOfItsAxis) {
  const Folder folder;
  folder.write("metrics.jsonl", metrics("aaaaaaaa", "0.5"));
  const std::string page = page_of(folder, "metrics.jsonl");
  for (const char* name : {"learning rate", "accuracy"}) {
    const std::regex curve(std::string(" d=\"M[0-9.]+ 120.0L[^\"]*\" data-name=\"") + name);
    EXPECT_TRUE(std::regex_search(page, curve)) << name;
  }
}

TEST(ReportPage, KnowsTimeAndEpochsOfEachPoint) {
  const Folder folder;
  std::string text = metrics("aaaaaaaa", "0.9");
  text.insert(text.find("}\n"), ",\"values\":{\"epoch\":40}");
  // A resumed run: its clock starts again.
  text = text.substr(0, text.find("{\"iteration\":200,\"kind\":\"train\""));
  text += R"({"iteration":101,"kind":"start","run":"aaaaaaaa","time":0,"values":{"epoch":40}}
{"iteration":200,"kind":"train","run":"aaaaaaaa","time":1.5,"values":{"loss":0.5}}
)";
  folder.write("metrics.jsonl", text);
  expect_part(page_of(folder, "metrics.jsonl"),
              "data-points=\"0,2.5 100,- 200,0.5\" data-seconds=\"1 2 3.5\" data-epoch=\"40\"");
}

TEST(ReportPage, HasALineOfItsOwnForEachOfManyRuns) {
  const Folder folder;
  for (int i = 0; i < 9; ++i)
    folder.write("runs/" + std::to_string(i) + "/metrics.jsonl",
                 metrics("aaaaaaa" + std::to_string(i), "0.9"));
  folder.write("runs/9/metrics.jsonl", "");
  const std::string page = page_of(folder, "runs");
  expect_part(page, "9 runs compared");
  for (const char* classes : {"s0", "s7", "s0 d1"})
    expect_part(page, std::string("<path class=\"curve ") + classes + "\"");
}

TEST(ReportPage, RefusesWhatIsNotThere) {
  const Folder folder;
  folder.write("a/metrics.jsonl", metrics("aaaaaaaa", "0.9"));
  folder.write("b/metrics.jsonl", metrics("bbbbbbbb", "0.9"));
  folder.write("empty/.here", "");
  for (const auto& [arguments, message] : std::vector<std::pair<std::string, std::string>>{
           {"empty", "empty: there is no metrics.jsonl in this folder or its subfolders"},
           {"nowhere", "nowhere: "},
           {"a b -run_id aaaa", "-run_id aaaa: names runs of one file, but 2 are given"},
           {"a/metrics.jsonl -run_id a,x", "-run_id x: a/metrics.jsonl has no such run"},
           {"a b -model m.prototxt -weights w", "of one run, but several are to be compared"}}) {
    const Outcome outcome = run(folder, "report " + arguments);
    EXPECT_EQ(outcome.code, 1) << arguments;
    ASSERT_EQ(outcome.errors().size(), 1u) << outcome.err;
    expect_part(outcome.errors()[0], message);
  }
  EXPECT_FALSE(folder.has("report.html"));
}

TEST(ReportPage, DrawsAThousandPointsOfALongRun) {
  const Folder folder;
  std::string text = std::regex_replace(std::string(start), std::regex("RUN"), "aaaaaaaa") + "\n";
  for (int i = 0; i < 20000; ++i) {
    text += R"({"iteration":)" + std::to_string(i) +
            R"(,"kind":"train","run":"aaaaaaaa","time":1,"values":{"loss":)" +
            (i == 12345 ? "77.5" : std::to_string(1 + i % 7 * 0.1)) + "}}\n";
  }
  folder.write("metrics.jsonl", text);
  const std::string page = page_of(folder, "metrics.jsonl");
  std::smatch points;
  ASSERT_TRUE(std::regex_search(page, points, std::regex("data-points=\"([^\"]*)\"")));
  EXPECT_LE(times(points[1], ","), 1001u);
  EXPECT_GE(times(points[1], ","), 900u);
  expect_part(points[1], "12345,77.5");  // no peak is lost
  expect_part(points[1], " 19999,");
}

// Names as somebody might choose them, whether to do harm or not.
TEST(ReportPage, ShowsTextsAsTheyAre) {
  const Folder folder;
  const std::string bad = "<script>alert(1)</script>", home = "it's & \"so\" <b>";
  const std::string at = "runs/" + home + "/";
  std::string text = metrics("aaaaaaaa", "0.9");
  text = std::regex_replace(text, std::regex("\"n\""), "\"" + bad + "\"");
  text = std::regex_replace(text, std::regex("accuracy"), "acc</svg>" + bad);
  text += R"({"iteration":200,"kind":"rollback","run":"aaaaaaaa","time":4,"reason":")" + bad +
          "\",\"values\":{\"from\":300}}\n";
  text += R"({"iteration":200,"kind":"confusion","run":"aaaaaaaa","net":0,"time":4,)"
          R"("counts":[[5,1],[0,9]]})"
          "\n";
  folder.write(at + "metrics.jsonl", text);
  folder.write(at + "run.json", "{}");
  folder.write(at + "labels.txt", "cats & dogs\n</td>" + bad + "\n");
  folder.write(at + "solver.prototxt", "# </pre>" + bad + "\n");
  folder.write(at + "train_val.prototxt",
               "name: \"" + bad + "\" layer { name: \"" + bad +
                   "\" type: \"Input\" top: \"<img src=x onerror=alert(2)>\" input_param { shape "
                   "{ dim: 1 dim: 2 } } }\n");
  folder.write(at + "pictures/a.json",
               R"({"iteration":7,"title":"</h2>)" + bad +
                   R"(","pictures":[{"src":"data:image/png;base64,AAAA","caption":")" + bad +
                   R"("},{"src":"data:image/png;base64,AAAA","caption":"again"},)"
                   R"({"src":"javascript:alert"},{"src":"https://elsewhere.example/x.png"},)"
                   R"({"src":"data:image/png;base64,AA\" onerror=\"alert"}]})");
  folder.write(at + "pictures/b.json", "{\"pictures\":[{\"src\":");  // half copied
  for (const char* argument : {"runs", "runs runs/*/metrics.jsonl"}) {
    const std::string page = page_of(folder, argument);
    EXPECT_EQ(times(page, "<script>"), 1u) << "the page's own";
    EXPECT_EQ(times(page, "<b>"), times(page, "</b>"));
    for (const char* part :
         {"<script>alert", "javascript:alert", "elsewhere.example", "<img src=x", "\" onerror"})
      EXPECT_EQ(page.find(part), std::string::npos) << part;
    for (const char* part :
         {"&lt;script&gt;alert(1)", "<h1>it&#39;s &amp; &quot;so&quot; &lt;b&gt;</h1>",
          "<th>cats &amp; dogs</th>", "<th>&lt;/td&gt;&lt;script&gt;", "# &lt;/pre&gt;&lt;script",
          "&lt;/h2&gt;&lt;script", "acc&lt;/svg&gt;&lt;script"})
      expect_part(page, part);
    EXPECT_EQ(times(page, "<figure>"), 1u) << "the same picture twice is shown once";
    EXPECT_EQ(times(page, "src=\""), 1u);
  }
}

TEST(ReportPage, ShowsAConfusion) {
  const Folder folder;
  const std::string few = R"("counts":[[8,2],[0,10]]})";
  folder.write("few.jsonl", metrics("aaaaaaaa", "0.9") +
                                R"({"iteration":200,"kind":"confusion","net":0,"run":"aaaaaaaa",)" +
                                few + "\n");
  const std::string page = page_of(folder, "few.jsonl");
  for (const char* part : {"<td class=\"right q9\" title=\"0 → 0: 8 of 10 (80.0%)\">8</td>",
                           "<td class=\"wrong q5\" title=\"0 → 1: 2 of 10 (20.0%)\">2</td>",
                           "<td class=\"none q0\"", "<td>100.0%</td>"})
    expect_part(page, part);
  std::string csv;
  for (int label = 0; label < 21; ++label) {
    for (int answer = 0; answer < 21; ++answer)
      csv += std::string(answer > 0 ? "," : "") + (label == answer              ? "6"
                                                   : label == 3 && answer == 17 ? "2"
                                                                                : "0");
    csv += "\n";
  }
  folder.write("many/snapshots/n_confusion.csv", csv);
  folder.write("many/metrics.jsonl",
               metrics("aaaaaaaa", "0.9") +
                   R"({"iteration":200,"kind":"confusion","net":0,"run":"aaaaaaaa",)"
                   R"("file":"elsewhere/n_confusion.csv"})"
                   "\n");
  const std::string list = page_of(folder, "many");
  expect_part(list, "<tr><td>3</td><td>8</td><td>100.0%</td><td>75.0%</td></tr>");
  expect_part(list, "<tr><td>3</td><td>17</td><td>2</td><td>25.0%</td></tr></table>");
}

}  // namespace report_page_test
}  // namespace crema::tests
