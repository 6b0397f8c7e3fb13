// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace weft::kernels::cpu {

/// Makes OpenMP threads that wait sleep after some ten microseconds instead of milliseconds, from here on. On a
/// processor that has other work, too, a waiting thread that spins keeps the thread that it waits for from running.
/// Where OMP_WAIT_POLICY or GOMP_SPINCOUNT says how to wait, or there is one thread only, nothing is done.
void make_waits_brief();

}  // namespace weft::kernels::cpu
