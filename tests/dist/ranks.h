// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "dist/group/process_group.h"
#include "tests/dist/fake_membership.h"

namespace weft::dist::testing {

/// The backends of the collectives' tests. `gloo` ranks are threads with a connection each. Under mpirun with
/// WEFT_TEST_MPI=1 it is `mpi` alone: all processes run the tests together, each as one rank.
std::vector<std::string> backends();
/// Backends that need a store and take a membership.
std::vector<std::string> connected_backends();
/// The names and, of those that have collectives of their own, `NAME_library`: what run_on() and errors_on() take, too.
std::vector<std::string> with_libraries(std::vector<std::string> names);

/// A fresh number, equal on all ranks (WEFT_TEST_SEED repeats it); all processes must call.
uint64_t shared_seed();

/// Runs the function as the ranks of one group, as run_ranks() does.
void run_on(const std::string& backend, int size, const std::function<void(const ProcessGroupPtr&)>& function,
            const GroupOptions& options = {});

/// As above over connections, with a membership; `threads` has none.
void run_on(const std::string& backend, int size, const std::function<void(const ProcessGroupPtr&)>& function,
            const GroupOptions& options, const std::shared_ptr<FakeJob>& job);

/// The text of the error that each rank's function ends with; empty where it ends well. A rank that fails does not tell
/// the others.
std::vector<std::string> errors_on(const std::string& backend, int size,
                                   const std::function<void(const ProcessGroupPtr&)>& function,
                                   const GroupOptions& options = {}, const std::shared_ptr<FakeJob>& job = {});

}  // namespace weft::dist::testing
