// `crema parse_log`: the tables in logs of Caffe of ten years, of its forks and of several runs.
#include <gtest/gtest.h>

#include "tools/program.h"

namespace crema::tests {
namespace parse_log_test {

struct Logged {
  const char* name;
  const char* log;
  const char* train;  // the table; "": no such file
  const char* test;
};

class ParseLog : public testing::TestWithParam<Logged> {};

const Logged kLogs[] = {
    {"CaffeOf2015", R"(Log file created at: 2015/02/10 13:39:20
Running on machine: gpu-03.example.org
Log line format: [IWEF]mmdd hh:mm:ss.uuuuuu threadid file:line] msg
I0210 13:39:21.000000 25210 caffe.cpp:117] Use CPU.
I0210 13:39:22.000000 25210 solver.cpp:160] Solving LeNet
I0210 13:39:22.500000 25210 solver.cpp:264] Iteration 0, Testing net (#0)
I0210 13:39:25.250000 25210 solver.cpp:315]     Test net output #0: accuracy = 0.0875
I0210 13:39:25.250001 25210 solver.cpp:315]     Test net output #1: loss = 2.3e+00 (* 1 = 2.3e+00 loss)
I0210 13:39:25.500000 25210 solver.cpp:209] Iteration 0, loss = 2.40
I0210 13:39:25.500000 25210 solver.cpp:224]     Train net output #0: loss = 2.5 (* 1 = 2.5 loss)
I0210 13:39:25.500000 25210 solver.cpp:445] Iteration 0, lr = 0.01
I0210 13:39:35.000000 25210 solver.cpp:209] Iteration 100, loss = 0.2
I0210 13:39:35.000000 25210 solver.cpp:224]     Train net output #0: loss = 0.1875 (* 1 = 0.1875 loss)
I0210 13:39:35.000000 25210 solver.cpp:445] Iteration 100, lr = 0.001
)",
     "NumIters,Seconds,LearningRate,loss\n0.0,3.5,0.01,2.5\n100.0,13.0,0.001,0.1875\n",
     "NumIters,Seconds,LearningRate,accuracy,loss\n0.0,3.25,0.01,0.0875,2.3\n"},
    {"NanIsKept", R"(I1125 10:00:00.000000  9 solver.cpp:289] Solving n
I1125 10:00:01.000000  9 solver.cpp:239] Iteration 0 (0 iter/s, 0s/5 iters), loss = 1
I1125 10:00:01.000000  9 solver.cpp:258]     Train net output #0: loss = -nan (* 1 = -nan loss)
I1125 10:00:01.000000  9 solver.cpp:258]     Train net output #1: norm = inf
I1125 10:00:01.000000  9 sgd_solver.cpp:112] Iteration 0, lr = 1e-05
I1125 10:00:02.000000  9 solver.cpp:239] Iteration 5 (5 iter/s, 0s/5 iters), loss = nan
I1125 10:00:02.000000  9 solver.cpp:258]     Train net output #0: loss = nan (* 1 = nan loss)
I1125 10:00:02.000000  9 solver.cpp:258]     Train net output #1: norm = -inf
)",
     "NumIters,Seconds,LearningRate,loss,norm\n0.0,1.0,1e-05,nan,inf\n5.0,2.0,1e-05,nan,-inf\n",
     ""},
    {"RateLineIsOfItsOwnIteration", R"(I1125 10:00:00.000000  9 solver.cpp:289] Solving n
I1125 10:00:00.000000  9 solver.cpp:239] Iteration 0, loss = 1
I1125 10:00:00.000000  9 solver.cpp:258]     Train net output #0: loss = 1 (* 1 = 1 loss)
I1125 10:00:00.000000  9 sgd_solver.cpp:112] Iteration 0, lr = 0.1
I1125 10:00:01.000000  9 solver.cpp:347] Iteration 10, Testing net (#0)
I1125 10:00:01.000000  9 solver.cpp:414]     Test net output #0: loss = 4 (* 1 = 4 loss)
I1125 10:00:01.000000  9 solver.cpp:239] Iteration 10, loss = 1
I1125 10:00:01.000000  9 solver.cpp:258]     Train net output #0: loss = 2 (* 1 = 2 loss)
I1125 10:00:01.000000  9 sgd_solver.cpp:112] Iteration 10, lr = 0.01
)",
     "NumIters,Seconds,LearningRate,loss\n0.0,0.0,0.1,1.0\n10.0,1.0,0.01,2.0\n",
     "NumIters,Seconds,LearningRate,loss\n10.0,1.0,0.01,4.0\n"},
    {"ElementsAndLateColumns", R"(I1125 10:00:00.000000  9 solver.cpp:289] Solving n
I1125 10:00:00.000000  9 solver.cpp:347] Iteration 0, Testing net (#0)
I1125 10:00:00.000000  9 solver.cpp:414]     Test net output #0: class, "x" = 1
I1125 10:00:00.000000  9 solver.cpp:414]     Test net output #1: class, "x" = 2
I1125 10:00:00.000000  9 solver.cpp:347] Iteration 0, Testing net (#0)
I1125 10:00:00.000000  9 solver.cpp:414]     Test net output #0: class, "x" = 3
I1125 10:00:00.000000  9 solver.cpp:414]     Test net output #1: class, "x" = 4
I1125 10:00:00.000000  9 solver.cpp:414]     Test net output #2: new = 5
)",
     "",
     "NumIters,Seconds,LearningRate,\"class, \"\"x\"\"\",\"class, \"\"x\"\"[1]\",new\n"
     "0.0,0.0,nan,1.0,2.0,\n0.0,0.0,nan,3.0,4.0,5.0\n"},
    {"YearsAndLeapDays", R"(I1231 23:59:59.500000  9 solver.cpp:289] Solving n
I0101 00:00:00.500000  9 solver.cpp:239] Iteration 0, loss = 1
I0101 00:00:00.500000  9 solver.cpp:258]     Train net output #0: loss = 1 (* 1 = 1 loss)
I0228 00:00:00.500000  9 solver.cpp:258] Iteration 1, loss = 1
I0228 00:00:00.500000  9 solver.cpp:258]     Train net output #0: loss = 1 (* 1 = 1 loss)
I0301 00:00:00.500000  9 solver.cpp:258] Iteration 2, loss = 1
I0301 00:00:00.500000  9 solver.cpp:258]     Train net output #0: loss = 1 (* 1 = 1 loss)
I20280228 00:00:00.500000  9 solver.cpp:258] Iteration 3, loss = 1
I20280301 00:00:00.500000  9 solver.cpp:258] Iteration 4, loss = 1
I20280301 00:00:00.500000  9 solver.cpp:258]     Train net output #0: loss = 1 (* 1 = 1 loss)
)",
     "NumIters,Seconds,LearningRate,loss\n0.0,1.0,nan,1.0\n1.0,5011201.0,nan,1.0\n"
     "2.0,5097601.0,nan,1.0\n4.0,36720001.0,nan,1.0\n",
     ""},
    {"ResumedInOneFile", R"(I1125 10:00:00.000000  9 solver.cpp:289] Solving n
I1125 10:00:01.000000  9 solver.cpp:239] Iteration 0, loss = 1
I1125 10:00:01.000000  9 solver.cpp:258]     Train net output #0: loss = 1 (* 1 = 1 loss)
I1125 10:00:02.000000  9 solver.cpp:239] Iteration 5, loss = 1
I1125 10:00:02.000000  9 solver.cpp:258]     Train net output #0: loss = 2 (* 1 = 2 loss)
I1125 10:00:03.000000  9 solver.cpp:239] Iteration 10, loss = 1
I1125 10:00:03.000000  9 solver.cpp:258]     Train net output #0: loss = 3 (* 1 = 3 loss)
I1126 12:00:00.000000  9 caffe.cpp:231] Resuming from n_iter_5.solverstate
I1126 12:00:01.000000  9 solver.cpp:289] Solving n
I1126 12:00:01.000000  9 solver.cpp:298] Restoring previous solver status from n_iter_5.solverstate
I1126 12:00:02.000000  9 solver.cpp:239] Iteration 5, loss = 1
I1126 12:00:02.000000  9 solver.cpp:258]     Train net output #0: loss = 4 (* 1 = 4 loss)
I1126 12:00:03.000000  9 solver.cpp:239] Iteration 10, loss = 1
I1126 12:00:03.000000  9 solver.cpp:258]     Train net output #0: loss = 5 (* 1 = 5 loss)
)",
     "NumIters,Seconds,LearningRate,loss\n0.0,1.0,nan,1.0\n5.0,4.0,nan,4.0\n10.0,5.0,nan,5.0\n",
     ""},
    {"TwoRunsInOneFile",
     R"(I1125 10:00:00.000000  9 solver.cpp:289] Solving n
I1125 10:00:01.000000  9 solver.cpp:239] Iteration 0, loss = 1
I1125 10:00:01.000000  9 solver.cpp:258]     Train net output #0: loss = 1 (* 1 = 1 loss)
I1125 11:00:00.000000  9 solver.cpp:289] Solving n
I1125 11:00:01.500000  9 solver.cpp:239] Iteration 0, loss = 1
I1125 11:00:01.500000  9 solver.cpp:258]     Train net output #0: loss = 2 (* 1 = 2 loss)
)",
     "NumIters,Seconds,LearningRate,loss\n0.0,1.0,nan,1.0\n0.0,2.5,nan,2.0\n", ""},
    {"RolledBack", R"(I1125 10:00:00.000000  9 solver.cpp:289] Solving n
I1125 10:00:01.000000  9 solver.cpp:239] Iteration 4, loss = 1
I1125 10:00:01.000000  9 solver.cpp:258]     Train net output #0: loss = 1 (* 1 = 1 loss)
I1125 10:00:02.000000  9 solver.cpp:239] Iteration 6, loss = nan
I1125 10:00:02.000000  9 solver.cpp:258]     Train net output #0: loss = nan (* 1 = nan loss)
W1125 10:00:02.000000  9 events.cpp:52] In iteration 6: the loss is nan. Back to iteration 5 (rollback 1 of 3)
I1125 10:00:03.000000  9 solver.cpp:239] Iteration 6, loss = 1
I1125 10:00:03.000000  9 solver.cpp:258]     Train net output #0: loss = 2 (* 1 = 2 loss)
)",
     "NumIters,Seconds,LearningRate,loss\n4.0,1.0,nan,1.0\n6.0,3.0,nan,2.0\n", ""},
    {"WithoutItsHeadOrTimes", "Iteration 20, loss = 0.5\n    Train net output #0: loss = 0.25\n",
     "NumIters,Seconds,LearningRate,loss\n20.0,nan,nan,0.25\n", ""},
    {"CaffeOf2013", R"(I1212 10:00:00.000000  9 solver.cpp:41] Solving MNIST
I1212 10:00:01.000000  9 solver.cpp:50] Iteration 100, lr = 0.01
I1212 10:00:01.000000  9 solver.cpp:62] Iteration 100, loss = 0.5
I1212 10:00:02.000000  9 solver.cpp:87] Iteration 200, Testing net
I1212 10:00:03.000000  9 solver.cpp:114] Test score #0: 0.75
I1212 10:00:03.000000  9 solver.cpp:114] Test score #1: 0.5
)",
     "NumIters,Seconds,LearningRate,loss\n100.0,1.0,0.01,0.5\n",
     "NumIters,Seconds,LearningRate,score0,score1\n200.0,3.0,0.01,0.75,0.5\n"},
    {"SeveralRanks", R"([0] I1125 10:00:00.000000  9 solver.cpp:289] Solving n
[1] I1125 10:00:00.000000  8 solver.cpp:289] Solving n
[1] I1125 10:00:01.000000  8 solver.cpp:239] Iteration 0, loss = 7
[0] I1125 10:00:01.000000  9 solver.cpp:239] Iteration 0, loss = 1
[1] I1125 10:00:01.000000  8 solver.cpp:258]     Train net output #0: loss = 7 (* 1 = 7 loss)
[0] I1125 10:00:01.000000  9 solver.cpp:258]     Train net output #0: loss = 1 (* 1 = 1 loss)
)",
     "NumIters,Seconds,LearningRate,loss\n0.0,1.0,nan,1.0\n", ""},
    {"NvCaffeAndATimeOfAnotherTool",
     R"(2019-04-02T18:00:00Z node7 I0402 18:00:00.000000 19432 solver.cpp:342] Solving n
2019-04-02T18:00:01Z node7 I0402 18:00:01.000000 19432 solver.cpp:342] [0.0] Iteration 100 (12.3 iter/s, 8.1s/100 iter), 3.0/90ep, loss = 6.9
2019-04-02T18:00:01Z node7 I0402 18:00:01.000000 19432 solver.cpp:380]     [0.0]     Train net output #0: loss = 6.5 (* 1 = 6.5 loss)
2019-04-02T18:00:01Z node7 I0402 18:00:01.000000 19432 sgd_solver.cpp:180] [0.0] Iteration 100, lr = 0.02, m = 0.9, wd = 0.0001, gs = 1
2019-04-02T18:00:01Z node7 I0402 18:00:01.000000 19433 solver.cpp:342] [1.0] Iteration 200 (1 iter/s), loss = 9
)",
     "NumIters,Seconds,LearningRate,loss\n100.0,1.0,0.02,6.5\n", ""},
};

TEST_P(ParseLog, GivesItsTables) {
  const Logged& row = GetParam();
  const Folder folder;
  folder.write("logs/run.log", row.log);
  std::filesystem::create_directories(folder.file("tables"));
  const Outcome outcome = run(folder, "crema parse_log logs/run.log -output tables");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  for (const auto& [name, wanted] :
       {std::pair{"tables/run.log.train", row.train}, std::pair{"tables/run.log.test", row.test}}) {
    ASSERT_EQ(folder.has(name), *wanted != '\0') << name;
    if (*wanted) {
      EXPECT_EQ(folder.read(name), wanted) << name;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Logs, ParseLog, testing::ValuesIn(kLogs),
                         [](const auto& row) { return std::string(row.param.name); });

TEST(ParseLogFiles, EachTestNetHasItsTable) {
  const Folder folder;
  folder.write("run.log", R"(I1125 10:00:00.000000  9 solver.cpp:347] Iteration 0, Testing net (#0)
I1125 10:00:00.000000  9 solver.cpp:414]     Test net output #0: a = 1
I1125 10:00:00.000000  9 solver.cpp:347] Iteration 0, Testing net (#2)
I1125 10:00:00.000000  9 solver.cpp:414]     Test net output #0: b = 2
)");
  ASSERT_EQ(run(folder, "crema parse_log run.log").code, 0);
  EXPECT_EQ(folder.read("run.log.test"), "NumIters,Seconds,LearningRate,a\n0.0,0.0,nan,1.0\n");
  EXPECT_EQ(folder.read("run.log.test2"), "NumIters,Seconds,LearningRate,b\n0.0,0.0,nan,2.0\n");
  EXPECT_FALSE(folder.has("run.log.train"));
  // As parse_log.py is called.
  std::filesystem::create_directories(folder.file("out"));
  ASSERT_EQ(run(folder, "crema parse_log run.log out").code, 0);
  EXPECT_TRUE(folder.has("out/run.log.test"));
}

TEST(ParseLogFiles, WhatIsNoLogIsRefused) {
  const Folder folder;
  folder.write("notes.txt", "The Iteration was long, and lr = small.\n");
  for (const auto& [command, says] :
       {std::pair{"crema parse_log notes.txt", "notes.txt: has no line such as"},
        std::pair{"crema parse_log none.log", "none.log: cannot be read"},
        std::pair{"crema parse_log notes.txt here -output there", "the folder is given twice"}}) {
    const Outcome outcome = run(folder, command);
    EXPECT_EQ(outcome.code, 1) << command;
    expect_part(outcome.err, says);
  }
  EXPECT_FALSE(folder.has("notes.txt.train"));
}

}  // namespace parse_log_test
}  // namespace crema::tests
