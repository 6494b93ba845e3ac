// Does a process know from its environment whether it is one of several?
#include "sweep/ranks/launch.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

namespace shardscape::ranks {
namespace {

Launch launch_in(const std::map<std::string, std::string>& variables) {
  return launch_of([&](const char* name) {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

void expect_launch(const Launch& launch, Start start, int size) {
  EXPECT_EQ(launch.start, start);
  EXPECT_EQ(launch.size, size);
}

TEST(Launch, APlainStartIsAlone) { expect_launch(launch_in({{"HOME", "/root"}}), Start::alone, 1); }

// What the launchers set: mpirun(1) of Open MPI 4.1, "Exported Environment Variables"; Hydra of MPICH and Slurm's
// pmi2 (PMI-1 and PMI-2 wire protocols); srun(1), "OUTPUT ENVIRONMENT VARIABLES".
TEST(Launch, RanksOfMpi) {
  expect_launch(launch_in({{"OMPI_COMM_WORLD_SIZE", "4"}, {"PMIX_RANK", "2"}}), Start::together, 4);
  expect_launch(launch_in({{"PMI_RANK", "0"}, {"PMI_SIZE", "8"}}), Start::together, 8);
  expect_launch(launch_in({{"PMIX_RANK", "0"}, {"SLURM_STEP_NUM_TASKS", "16"}}), Start::together, 16);
  expect_launch(launch_in({{"PMIX_RANK", "0"}}), Start::together, 0);  // MPI will say how many
}

TEST(Launch, OneRankNeedsNoMpi) {
  expect_launch(launch_in({{"OMPI_COMM_WORLD_SIZE", "1"}, {"PMIX_RANK", "0"}}), Start::alone, 1);
  expect_launch(launch_in({{"PMIX_RANK", "0"}, {"SLURM_STEP_NUM_TASKS", "1"}}), Start::alone, 1);
}

TEST(Launch, TasksThatCannotTalkAreCopies) {
  expect_launch(launch_in({{"SLURM_STEP_NUM_TASKS", "4"}, {"SLURM_PROCID", "3"}}), Start::copies, 4);
  expect_launch(launch_in({{"SLURM_STEP_NUM_TASKS", "1"}}), Start::alone, 1);
}

TEST(Launch, ABatchScriptIsAloneHoweverManyTasksItsJobHas) {
  expect_launch(launch_in({{"SLURM_JOB_ID", "7"}, {"SLURM_NTASKS", "64"}, {"SLURM_PROCID", "0"}}),
                Start::alone, 1);
}

TEST(Launch, WhatIsNoNumberSaysNothing) {
  for (const char* text : {"", "-3", "0", "four", "4x", "99999999999999999999"}) {
    expect_launch(launch_in({{"OMPI_COMM_WORLD_SIZE", text}}), Start::alone, 1);
  }
}

TEST(Launch, AloneIsAllThereIs) {
  const auto ranks = alone();
  EXPECT_EQ(ranks->rank(), 0);
  EXPECT_EQ(ranks->size(), 1);
  EXPECT_EQ(ranks->gather("text"), std::vector<std::string>{"text"});
  EXPECT_EQ(ranks->broadcast("word"), "word");
  EXPECT_EQ(ranks->take(0), 0U);
  EXPECT_EQ(ranks->take(0), 1U);
  ranks->report({.rows = 5, .finished = true});
  ASSERT_EQ(ranks->reports().size(), 1U);
  EXPECT_EQ(ranks->reports().front().rows, 5U);
  EXPECT_FALSE(ranks->asked_to_stop());
  ranks->ask_to_stop();
  EXPECT_TRUE(ranks->asked_to_stop());
}

}  // namespace
}  // namespace shardscape::ranks
