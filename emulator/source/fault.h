// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace emulator::source {

/// Turns memory faults in kernel code into errors of the launch; faults elsewhere go to the handler that was installed
/// before. Gives the calling thread a signal stack, which is returned (nullptr where it has one).
char* install_fault_handler();
void remove_signal_stack(char* stack);

}  // namespace emulator::source
