// The environment variables that launchers set for their ranks.
#include "comm/launcher.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <map>

#include "support.h"

namespace crema::tests {
namespace launcher_test {

using Variables = std::map<std::string, std::string>;

std::optional<Launch> launch_with(const Variables& variables) {
  return launch_of([&](const char* name) -> const char* {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

Variables operator+(Variables a, const Variables& b) {
  for (const auto& [name, value] : b) a[name] = value;
  return a;
}

const Variables crema = {{"CREMA_RANK", "1"},
                         {"CREMA_RANKS", "2"},
                         {"CREMA_ADDRESS", "127.0.0.1:4242"},
                         {"CREMA_TOKEN", "a long enough secret"},
                         {"CREMA_LISTENING", ""}};
const Variables open_mpi = {{"OMPI_COMM_WORLD_RANK", "5"},
                            {"OMPI_COMM_WORLD_SIZE", "8"},
                            {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                            {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"}};
const Variables hydra = {
    {"PMI_RANK", "5"}, {"PMI_SIZE", "8"}, {"MPI_LOCALRANKID", "2"}, {"MPI_LOCALNRANKS", "3"}};
const Variables palsd = {
    {"PMI_RANK", "5"}, {"PMI_SIZE", "8"}, {"PMI_LOCAL_RANK", "1"}, {"PMI_LOCAL_SIZE", "2"}};
// The variables in a shell of sbatch or salloc.
const Variables slurm_job = {{"SLURM_JOB_ID", "123456"},
                             {"SLURM_JOBID", "123456"},
                             {"SLURM_NTASKS", "5"},
                             {"SLURM_PROCID", "0"},
                             {"SLURM_LOCALID", "0"},
                             {"SLURM_NODEID", "0"},
                             {"SLURM_JOB_NODELIST", "node[03-05]"},
                             {"SLURM_NODELIST", "node[03-05]"},
                             {"SLURM_TASKS_PER_NODE", "2(x2),1"}};
const Variables srun = slurm_job + Variables{{"SLURM_STEP_ID", "0"},
                                             {"SLURM_STEP_NUM_TASKS", "5"},
                                             {"SLURM_STEP_NODELIST", "node[04-05,9]"},
                                             {"SLURM_STEP_TASKS_PER_NODE", "2(x2),1"},
                                             {"SLURM_PROCID", "3"},
                                             {"SLURM_LOCALID", "1"},
                                             {"SLURM_NODEID", "1"}};
// mpirun in a job of Slurm: one helper a machine.
const Variables srun_helper = srun + Variables{{"SLURM_STEP_NUM_TASKS", "3"},
                                               {"SLURM_NTASKS", "3"},
                                               {"SLURM_STEP_TASKS_PER_NODE", "1(x3)"},
                                               {"SLURM_PROCID", "2"},
                                               {"SLURM_LOCALID", "0"},
                                               {"SLURM_NODEID", "2"}};
const Variables script = {
    {"RANK", "3"}, {"WORLD_SIZE", "4"}, {"MASTER_ADDR", "node01"}, {"MASTER_PORT", "23456"}};
const Variables torchrun =
    script +
    Variables{{"LOCAL_RANK", "1"}, {"LOCAL_WORLD_SIZE", "2"}, {"TORCHELASTIC_RUN_ID", "run7"}};

struct Row {
  const char* name;
  Variables variables;
  Launch launch;
};

class LauncherTest : public testing::TestWithParam<Row> {};

TEST_P(LauncherTest, IsRecognised) {
  const std::optional<Launch> launch = launch_with(GetParam().variables);
  const Launch& expected = GetParam().launch;
  ASSERT_TRUE(launch);
  EXPECT_EQ(launch->launcher, expected.launcher);
  EXPECT_EQ(launch->rank, expected.rank);
  EXPECT_EQ(launch->ranks, expected.ranks);
  EXPECT_EQ(launch->local_rank, expected.local_rank);
  EXPECT_EQ(launch->local_ranks, expected.local_ranks);
  EXPECT_EQ(launch->has_mpi, expected.has_mpi);
  EXPECT_EQ(launch->address, expected.address);
  EXPECT_EQ(launch->token, expected.token);
  EXPECT_EQ(launch->listening, expected.listening);
  EXPECT_EQ(launch->all_here, expected.all_here);
  EXPECT_EQ(launch->job, expected.job);
}

const Launch of_crema{"crema", 1,    2, 1, 2, false, "127.0.0.1:4242", "a long enough secret",
                      -1,      true, ""};
const Launch of_open_mpi{"mpirun", 5, 8, 1, 4, true, "", "", -1, false, ""};
const Launch of_hydra{"mpirun", 5, 8, 2, 3, true, "", "", -1, false, ""};
// 15000 + 123456 % 16381
const Launch of_srun{"srun", 3, 5, 1, 2, false, "node04:23789", "", -1, false, "srun 123456.0"};
const Launch of_torchrun{
    "torchrun", 3, 4, 1, 2, false, "node01:23457", "", -1, false, "torchrun run7 node01:23457"};
const Launch of_script{
    "torchrun", 3, 4, 0, 1, false, "node01:23456", "", -1, false, "torchrun  node01:23456"};

Launch with_mpi(Launch launch) {
  launch.has_mpi = true;
  return launch;
}

INSTANTIATE_TEST_SUITE_P(
    Launcher, LauncherTest,
    testing::Values(
        Row{"Crema", crema, of_crema},
        Row{"CremaRank0",
            crema + Variables{{"CREMA_RANK", "0"}, {"CREMA_LISTENING", "7"}},
            {"crema", 0, 2, 0, 2, false, "127.0.0.1:4242", "a long enough secret", 7, true, ""}},
        Row{"OpenMpi", open_mpi, of_open_mpi}, Row{"Hydra", hydra, of_hydra},
        Row{"OtherPmi", palsd, {"mpirun", 5, 8, 1, 2, true, "", "", -1, false, ""}},
        Row{"Srun", srun, of_srun},
        Row{"SrunSecondStep",
            srun + Variables{{"SLURM_STEP_ID", "1"}},
            {"srun", 3, 5, 1, 2, false, "node04:23916", "", -1, false, "srun 123456.1"}},
        Row{"SrunLastNode",
            srun + Variables{{"SLURM_PROCID", "4"}, {"SLURM_LOCALID", "0"}, {"SLURM_NODEID", "2"}},
            {"srun", 4, 5, 0, 1, false, "node04:23789", "", -1, false, "srun 123456.0"}},
        Row{"SrunFewerThanTheJob",
            srun + Variables{{"SLURM_STEP_NUM_TASKS", "4"}, {"SLURM_STEP_TASKS_PER_NODE", "2(x2)"}},
            {"srun", 3, 4, 1, 2, false, "node04:23789", "", -1, false, "srun 123456.0"}},
        Row{"SrunWithPmix", srun + Variables{{"SLURM_MPI_TYPE", "pmix_v4"}}, with_mpi(of_srun)},
        Row{"SrunWithoutMpi", srun + Variables{{"SLURM_MPI_TYPE", "none"}}, of_srun},
        Row{"SrunWithPmi2",
            srun + Variables{{"SLURM_MPI_TYPE", "pmi2"}, {"PMI_RANK", "3"}, {"PMI_SIZE", "5"}},
            with_mpi(of_srun)},
        Row{"Torchrun", torchrun, of_torchrun},
        Row{"TorchrunAtTheLastPort",
            torchrun + Variables{{"MASTER_PORT", "65535"}},
            {"torchrun", 3, 4, 1, 2, false, "node01:65534", "", -1, false,
             "torchrun run7 node01:65534"}},
        Row{"PyTorchJob", script, of_script},
        // All ranks on one machine, if the launcher says so.
        Row{"OpenMpiOnOneMachine",
            open_mpi + Variables{{"OMPI_COMM_WORLD_LOCAL_SIZE", "8"}},
            {"mpirun", 5, 8, 1, 8, true, "", "", -1, true, ""}},
        Row{"SrunOnOneMachine",
            srun + Variables{{"SLURM_STEP_TASKS_PER_NODE", "5"},
                             {"SLURM_STEP_NODELIST", "node04"},
                             {"SLURM_NODEID", "0"}},
            {"srun", 3, 5, 1, 5, false, "127.0.0.1:23789", "", -1, true, "srun 123456.0"}},
        Row{"TorchrunOnOneMachine",
            torchrun + Variables{{"LOCAL_WORLD_SIZE", "4"}},
            {"torchrun", 3, 4, 1, 4, false, "127.0.0.1:23457", "", -1, true,
             "torchrun run7 node01:23457"}},
        Row{"AScriptThatDoesNotSayHowManyAreHere",
            script + Variables{{"LOCAL_RANK", "1"}},
            {"torchrun", 3, 4, 1, 4, false, "node01:23456", "", -1, false,
             "torchrun  node01:23456"}},
        // A secret that the user has set.
        Row{"SrunWithAToken",
            srun + Variables{{"CREMA_TOKEN", "0123456789abcdef"}},
            {"srun", 3, 5, 1, 2, false, "node04:23789", "0123456789abcdef", -1, false,
             "srun 123456.0"}},
        Row{"TorchrunWithAToken",
            torchrun + Variables{{"CREMA_TOKEN", "0123456789abcdef"}},
            {"torchrun", 3, 4, 1, 2, false, "node01:23457", "0123456789abcdef", -1, false,
             "torchrun run7 node01:23457"}},
        // MPI carries a random one.
        Row{"OpenMpiWithAToken", open_mpi + Variables{{"CREMA_TOKEN", "short"}}, of_open_mpi},
        // One within another.
        Row{"CremaInAnyOther", crema + open_mpi + hydra + srun + torchrun, of_crema},
        Row{"OpenMpiInSlurm", open_mpi + srun_helper, of_open_mpi},
        Row{"HydraInSlurm", hydra + srun_helper, of_hydra},
        Row{"OpenMpiBesideVariablesOfAScript", open_mpi + script, of_open_mpi},
        Row{"SrunBesideVariablesOfAScript", srun + script, of_srun},
        Row{"TorchrunBySrun", torchrun + srun_helper, of_torchrun},
        Row{"TorchrunByMpirun", torchrun + open_mpi, of_torchrun}),
    [](const auto& info) { return std::string(info.param.name); });

TEST(Launcher, OfNoneIsNull) {
  EXPECT_FALSE(launch_with({}));
  // Shells in a job, old and new.
  EXPECT_FALSE(launch_with(slurm_job));
  EXPECT_FALSE(launch_with(
      slurm_job + Variables{{"SLURM_STEP_ID", "4294967290"}, {"SLURM_STEP_NUM_TASKS", "5"}}));
  // One rank of each.
  EXPECT_FALSE(launch_with({{"OMPI_COMM_WORLD_RANK", "0"}, {"OMPI_COMM_WORLD_SIZE", "1"}}));
  EXPECT_FALSE(launch_with({{"PMI_RANK", "0"}, {"PMI_SIZE", "1"}}));
  EXPECT_FALSE(launch_with({{"RANK", "0"}, {"WORLD_SIZE", "1"}}));
  EXPECT_FALSE(launch_with(srun + Variables{{"SLURM_PROCID", "0"},
                                            {"SLURM_LOCALID", "0"},
                                            {"SLURM_NODEID", "0"},
                                            {"SLURM_NTASKS", "1"},
                                            {"SLURM_STEP_NUM_TASKS", "1"},
                                            {"SLURM_STEP_TASKS_PER_NODE", "1"}}));
  // Two independent runs, each with its own mpirun.
  EXPECT_FALSE(
      launch_with(Variables{{"OMPI_COMM_WORLD_RANK", "0"}, {"OMPI_COMM_WORLD_SIZE", "1"}} + srun));
  // Names that other programs use too.
  EXPECT_FALSE(launch_with({{"RANK", "general"}}));
  EXPECT_FALSE(launch_with({{"WORLD_SIZE", "4"}}));
}

TEST(Launcher, ReadsTheEnvironment) {
  if (launch_of_environment()) GTEST_SKIP() << "the tests were started as one of several ranks";
  for (const auto& [name, value] : crema) setenv(name.c_str(), value.c_str(), 1);
  const std::optional<Launch> launch = launch_of_environment();
  for (const auto& [name, value] : crema) unsetenv(name.c_str());
  ASSERT_TRUE(launch);
  EXPECT_EQ(launch->token, "a long enough secret");
  EXPECT_FALSE(launch_of_environment());
}

TEST(Launcher, SaysWhichVariablesAreWrong) {
  const auto error = [](const Variables& variables) {
    return error_of([&] { launch_with(variables); });
  };
  EXPECT_EQ(
      error(open_mpi + Variables{{"OMPI_COMM_WORLD_RANK", "8"}}),
      "OMPI_COMM_WORLD_RANK is 8 in the environment, but OMPI_COMM_WORLD_SIZE is 8: ranks are "
      "numbered from 0");
  EXPECT_EQ(error(open_mpi + Variables{{"OMPI_COMM_WORLD_SIZE", "many"}}),
            "OMPI_COMM_WORLD_SIZE is \"many\" in the environment; expected a number from 1 to "
            "1048576");
  expect_part(error({{"PMI_RANK", "0"}}),
              "PMI_SIZE is \"\" in the environment; expected a number from 1 to 1048576: the other "
              "variables of its launcher are set");
  expect_part(error(hydra + Variables{{"MPI_LOCALNRANKS", "9"}}), "MPI_LOCALNRANKS is 9");
  expect_part(error(hydra + Variables{{"MPI_LOCALRANKID", "3"}}), "MPI_LOCALNRANKS is 3");
  expect_part(error(script + Variables{{"MASTER_ADDR", ""}}), "not MASTER_ADDR");
  expect_part(error(script + Variables{{"MASTER_PORT", "99999"}}), "MASTER_PORT is \"99999\"");
  expect_part(error(script + Variables{{"RANK", "4"}}), "RANK is 4");
  expect_part(error(srun + Variables{{"SLURM_STEP_TASKS_PER_NODE", "1(x5)"}}),
              "SLURM_STEP_TASKS_PER_NODE says that 1 ranks");
  const std::string short_token =
      "CREMA_TOKEN has 15 characters in the environment; expected a random secret of at least 16, "
      "such as `openssl rand -hex 16` prints";
  for (const Variables& launcher : {srun, torchrun, script, crema})
    EXPECT_EQ(error(launcher + Variables{{"CREMA_TOKEN", "0123456789abcde"}}), short_token);
  expect_part(error(crema + Variables{{"CREMA_TOKEN", ""}}), "but not CREMA_TOKEN");
  expect_part(error(crema + Variables{{"CREMA_RANK", "0"}, {"CREMA_LISTENING", "x"}}),
              "CREMA_LISTENING is \"x\"");
}

TEST(Launcher, TakesTheFirstHostOfAList) {
  const std::vector<std::pair<std::string, std::string>> rows = {
      {"node01", "node01"},
      {"node01,node02", "node01"},
      {"node[03-05,9],other", "node03"},
      {"node[3,5]", "node3"},
      {"node[7]", "node7"},
      {"other,node[03-05]", "other"},
      {"rack[1-2]n[01-04]-ib,x", "rack1n01-ib"},
      {"10.0.0.1", "10.0.0.1"},
  };
  for (const auto& [list, host] : rows) EXPECT_EQ(first_host(list), host) << list;
  expect_part(error_of([] { first_host("node[1"); }), "lacks a ]");
}

}  // namespace launcher_test
}  // namespace crema::tests
