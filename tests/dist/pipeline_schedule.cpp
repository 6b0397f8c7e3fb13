// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <fstream>
#include <map>
#include <set>
#include <tuple>

#include "tests/dist/pipeline_training.h"
#include "tests/support/temporary_folder.h"

namespace weft::dist::testing::pipelines {
namespace {

using ::testing::HasSubstr;

/// A schedule on the clock: when each step of each stage begins and ends, where a forward of a stretch takes `forward`
/// ticks and a backward `backward`. Empty: stages wait for each other in a circle.
struct Clock {
  struct Span {
    PipelineStep step;
    int64_t begin, end;
  };
  std::vector<std::vector<Span>> stages;
  int64_t end = 0;
};

Clock run_clock(const PipelineSize& size, int64_t forward, int64_t backward) {
  const int P = size.stages, last = P * size.chunks - 1;
  Clock clock{.stages = std::vector<std::vector<Clock::Span>>(static_cast<size_t>(P))};
  std::vector<std::vector<PipelineStep>> left;
  for (int stage = 0; stage < P; ++stage) left.push_back(pipeline_schedule(size, stage));
  std::map<std::tuple<bool, int, int64_t>, int64_t> done;  // backward, stretch, micro-batch
  for (bool moved = true; moved;) {
    moved = false;
    for (int stage = 0; stage < P; ++stage) {
      auto& spans = clock.stages[static_cast<size_t>(stage)];
      const auto& steps = left[static_cast<size_t>(stage)];
      while (spans.size() < steps.size()) {
        const PipelineStep& step = steps[spans.size()];
        const int stretch = step.chunk * P + stage;
        int64_t begin = spans.empty() ? 0 : spans.back().end;
        const bool begins = step.backward ? false : stretch == 0;
        if (!begins) {
          const auto needs = step.backward && stretch < last ? std::tuple(true, stretch + 1, step.micro)
                             : step.backward                 ? std::tuple(false, stretch, step.micro)
                                                             : std::tuple(false, stretch - 1, step.micro);
          const auto found = done.find(needs);
          if (found == done.end()) break;
          begin = std::max(begin, found->second);
        }
        spans.push_back({step, begin, begin + (step.backward ? backward : forward)});
        done[{step.backward, stretch, step.micro}] = spans.back().end;
        clock.end = std::max(clock.end, spans.back().end);
        moved = true;
      }
    }
  }
  for (int stage = 0; stage < P; ++stage)
    if (clock.stages[static_cast<size_t>(stage)].size() < left[static_cast<size_t>(stage)].size()) return {};
  return clock;
}

/// One line for each stage; a forward is its micro-batch (0 … 9), the backward after it takes two columns. Letters: the
/// second chunk. As docs/pipeline_parallel.md draws it.
std::string drawn(const PipelineSize& size) {
  const Clock clock = run_clock(size, 1, 2);
  std::string text;
  for (int stage = 0; stage < size.stages; ++stage) {
    std::string line(static_cast<size_t>(clock.end), '.');
    for (const Clock::Span& span : clock.stages[static_cast<size_t>(stage)]) {
      const char name = static_cast<char>((span.step.chunk == 0 ? '0' : 'a') + span.step.micro);
      line[static_cast<size_t>(span.begin)] = name;
      if (span.step.backward)
        line[static_cast<size_t>(span.begin)] = '<', line[static_cast<size_t>(span.begin + 1)] = name;
    }
    text += str("stage ", stage, "  ", line, '\n');
  }
  return text;
}

TEST(PipelineSchedule, OneForwardOneBackward) {
  const auto text = [](int stage) {
    std::string all;
    for (const PipelineStep& step : pipeline_schedule({4, 1, 6}, stage))
      all += str(step.backward ? 'B' : 'F', step.micro, ' ');
    return all;
  };
  EXPECT_EQ(text(0), "F0 F1 F2 F3 B0 F4 B1 F5 B2 B3 B4 B5 ");
  EXPECT_EQ(text(1), "F0 F1 F2 B0 F3 B1 F4 B2 F5 B3 B4 B5 ");
  EXPECT_EQ(text(3), "F0 B0 F1 B1 F2 B2 F3 B3 F4 B4 F5 B5 ");
}

TEST(PipelineSchedule, EveryOneEndsHoldsAsFewAsItSaysAndIdlesAsItsFormulaSays) {
  for (int P = 1; P <= 6; ++P)
    for (int V = 1; V <= (P == 1 ? 1 : 4); ++V)
      for (int64_t M = 1; M <= 14; ++M) {
        SCOPED_TRACE(str(P, " stages, ", V, " chunks, ", M, " micro-batches"));
        const PipelineSize size{P, V, M};
        const Clock clock = run_clock(size, 1, 2);
        ASSERT_FALSE(clock.stages.empty()) << "stages wait for each other in a circle";
        const int64_t group = V == 1 ? 1 : M < P ? M : P + M % P;
        for (int stage = 0; stage < P; ++stage) {
          auto steps = pipeline_schedule(size, stage);
          const int64_t limit = V == 1 ? P - stage : 2 * (P - 1 - stage) + (V - 1) * group + 1;
          EXPECT_EQ(most_held(steps), std::min(limit, M * V)) << "stage " << stage;
          std::ranges::sort(steps);
          EXPECT_EQ(std::ranges::adjacent_find(steps), steps.end()) << "each once";
          EXPECT_EQ(steps.size(), static_cast<size_t>(2 * V * M));
        }
        const auto useful = static_cast<double>(3 * V * M), all = static_cast<double>(clock.end);
        if (V == 1 || M % P == 0) {
          EXPECT_NEAR(all / useful - 1, size.bubble(), 1e-12);
        } else {
          EXPECT_GE(all / useful - 1, size.bubble() - 1e-12);
        }
      }
}

/// Runs stages whose batches of messages end when the other sides have begun theirs; the stages that do not end.
int stages_in_a_circle(const PipelineSize& size, bool trains) {
  const int P = size.stages, last = P * size.chunks - 1;
  std::vector<std::vector<PipelineStep>> steps;
  std::vector<std::vector<std::vector<PipelineMessage>>> batches;
  for (int stage = 0; stage < P; ++stage) {
    steps.push_back(pipeline_schedule(size, stage));
    if (!trains) std::erase_if(steps.back(), [](const PipelineStep& step) { return step.backward; });
    batches.push_back(pipeline_messages(size, stage, trains));
    EXPECT_EQ(batches.back().size(), steps.back().size() + 1);
  }
  std::set<PipelineMessage> begun;
  std::vector<size_t> at(static_cast<size_t>(P));
  std::vector<std::set<std::tuple<bool, int, int64_t>>> has(at.size());  // inputs that arrived, and results, by stage
  int ended = 0;
  for (bool moves = true; moves;) {
    moves = false;
    for (size_t s = 0; s < at.size(); ++s) {
      if (at[s] == batches[s].size()) continue;
      const std::vector<PipelineMessage>& batch = batches[s][at[s]];
      for (const PipelineMessage& m : batch) {
        moves = begun.insert(m).second || moves;
        EXPECT_TRUE(!m.sends || has[s].contains({m.backward, m.stretch + (m.backward ? 1 : -1), m.micro})) << "made";
      }
      if (!std::ranges::all_of(batch, [&](PipelineMessage m) { return m.sends = !m.sends, begun.contains(m); }))
        continue;
      for (const PipelineMessage& m : batch)
        if (!m.sends) has[s].insert({m.backward, m.stretch, m.micro});
      moves = true;
      if (at[s]++ == steps[s].size()) {
        ++ended;
        continue;
      }
      const PipelineStep& step = steps[s][at[s] - 1];
      const int stretch = step.chunk * P + static_cast<int>(s);
      const auto key = std::tuple(step.backward, stretch, step.micro);
      EXPECT_TRUE(stretch == (step.backward ? last : 0) || has[s].contains(key)) << "arrived";
      has[s].insert(key);
    }
  }
  return P - ended;
}

TEST(PipelineSchedule, BatchesOfMessagesEndWhereEachStageWaitsForEachOfThem) {
  for (int P = 2; P <= 8; ++P)
    for (int V = 1; V <= 4; ++V)
      for (int64_t M = 1; M <= 18; ++M)
        for (const bool trains : {true, false}) {
          SCOPED_TRACE(str(P, " stages, ", V, " chunks, ", M, " micro-batches", trains ? "" : ", forwards"));
          EXPECT_EQ(stages_in_a_circle({P, V, M}, trains), 0);
          if (HasFailure()) return;
        }
}

TEST(PipelineSchedule, IsDrawnInTheDocumentation) {
  const std::string page = tests::read_text(std::string(WEFT_DOCS) + "/pipeline_parallel.md");
  for (const PipelineSize& size : {PipelineSize{4, 1, 8}, PipelineSize{4, 2, 8}})
    EXPECT_THAT(page, HasSubstr(drawn(size)));
}

}  // namespace
}  // namespace weft::dist::testing::pipelines
