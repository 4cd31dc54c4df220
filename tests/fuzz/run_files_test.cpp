// The files of a run: metrics, run.json, logs, and texts with flags.
#include <sstream>

#include "base/error.h"
#include "fuzz/fuzz.h"
#include "solver/readers/metrics_file.h"
#include "support.h"
#include "tools/flags/flag_reader.h"
#include "tools/runs/log_table.h"
#include "tools/runs/run_record_file.h"

namespace crema::tests {
namespace run_files_test {

std::vector<Files> texts(const std::vector<std::string>& contents) {
  std::vector<Files> corpus;
  for (const std::string& content : contents) corpus.push_back({{"text", content}});
  return corpus;
}

// Bytes as well as words: programs also write these files.
std::function<void(Dice&, Files&, const Files&)> damage(std::vector<std::string> words) {
  return [words = std::move(words)](Dice& dice, Files& files, const Files& other) {
    if (dice.one_in(4)) return damage_bytes(dice, files["text"], other.at("text"));
    damage_text(dice, files["text"], words, other.at("text"));
  };
}

TEST(Fuzz, Metrics) {
  const std::string start =
      R"({"iteration":0,"kind":"start","run":"5f0c92ab","net_name":"a","classes":"x\ny","started":"2026-01-31T12:00:00Z","values":{"epoch":3}})"
      "\n";
  const std::string train =
      R"({"iteration":10,"kind":"train","run":"5f0c92ab","time":1.52,"values":{"loss":0.31,"lr":null}})"
      "\n";
  const std::string confusion =
      R"({"iteration":10,"kind":"confusion","net":0,"run":"5f0c92ab","counts":[[1,2],[3,4]]})"
      "\n";
  const std::string end = R"({"iteration":20,"kind":"end","run":"5f0c92ab","why":"asked"})";
  fuzz({"metrics",
        [=] {
          return texts({start + train + confusion + end, train + train + start});
        },
        damage({"\n", "{", "}", "[", "]", ":", ",", "\"", "null", "1e400", "-1", "\\u0000",
                "\"run\"", "\"kind\"", "\"values\"", "\"counts\"", "\"start\"",
                "9223372036854775808"}),
        [](const std::string& folder, const Files&) {
          for (const crema::Run& run : read_runs(folder + "/text")) {
            run.iterations();
            run.last_loss();
            for (const Metric& metric : run.metrics) to_json(metric);
          }
        }});
}

TEST(Fuzz, RunRecords) {
  fuzz(
      {"run.json",
       [] {
         return texts(
             {R"({"command":"train -solver s","folder":"/a","host":"h","pid":12,"started":"2026-01-31T12:00:00Z","resumptions":[]})",
              R"({"host":"h","started":"x","resumptions":[{"iteration":4,"host":"g","started":"y"}]})"});
       },
       damage({"{", "}", "[", "]", "\"host\"", "\"started\"", "\"resumptions\"", "null", "1e400",
               "[[[[[[[["}),
       [](const std::string& folder, const Files&) { described_run(folder + "/text"); }});
}

TEST(Fuzz, Logs) {
  fuzz({"log",
        [] {
          return texts(
              {"I0131 12:00:00.000001 7 solver.cpp:1] Iteration 0, loss = 2.3\n"
               "I0131 12:00:00.100001 7 solver.cpp:2]     Train net output #0: loss = 2.3 (* 1 = "
               "2.3 loss)\n"
               "I0131 12:00:00.200001 7 sgd_solver.cpp:3] Iteration 0, lr = 0.01\n"
               "I0131 12:00:01.000001 7 solver.cpp:4] Iteration 100, Testing net (#0)\n"
               "I0131 12:00:01.300001 7 solver.cpp:5]     Test net output #0: accuracy = 0.9\n"
               "I0131 12:00:01.300001 7 solver.cpp:5]     Test net output #0: score = 0.9\n",
               "I1231 23:59:59 1 solver.cpp:1] Iteration 5 (2 iter/s, 1s/5 iters), loss = nan\n"
               "I0101 00:00:01 1 solver.cpp:1] Test score #0: 0.5\n"});
        },
        damage({"\n", "Iteration", "loss", "=", "#0:", "nan", "-", "1e999", "(* 1 =", "lr", "I0131",
                "99999999999999999999"}),
        [](const std::string&, const Files& files) {
          std::istringstream log(files.at("text"));
          const LogTables tables = read_log(log);
          csv_of(tables.train);
          for (const auto& [number, table] : tables.tests) csv_of(table);
          require(!tables.train.rows.empty() || !tables.tests.empty(), "no rows");
        }});
}

TEST(Fuzz, Flags) {
  fuzz({"flags",
        [] {
          return texts(
              {"-solver=s.prototxt --gpu 0\n# a comment\n-set 'a=b c' \"-flagfile=text\"\n",
               "train caffe\n--nosuch\n-v=1 -- rest\n"});
        },
        damage({"-", "--", "=", "\n", "\"", "'", "\\", "#", "-flagfile=text", "-v", "*", "\t"}),
        [](const std::string&, const Files& files) {
          const FlagWords words = flags_of_text(files.at("text"), "text: ");
          require(!words.flags.empty() || !words.arguments.empty(), "no words");
        }});
}

}  // namespace run_files_test
}  // namespace crema::tests
