# SPDX-License-Identifier: Apache-2.0
# Weft's own CUDA tests on the emulated GPU: all of them on an H100, the kernels of mma.sync on an A100, and streams that run late
# or in any order. twins.py knows which tests of a program meet a GPU.
find_program(WEFT_PYTHON3 python3 REQUIRED)

# twins(NAME PROGRAM LEAST [weft-emulate's options…]): fails when a test fails, or when fewer than LEAST pass. Most programs are
# targets of folders that come after this one: a name that is none stops the generation of the build.
function(twins name program least)
  if(program STREQUAL "test_train_image" AND NOT WEFT_BUILD_APPS)
    return()
  endif()
  add_test(NAME emulator.twins.${name} COMMAND ${WEFT_PYTHON3} -B ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/twins.py
    --emulate $<TARGET_FILE:weft-emulate> --bin $<TARGET_FILE_DIR:${program}> --limit 300 --least ${least} ${ARGN} ${program})
  set_tests_properties(emulator.twins.${name} PROPERTIES LABELS emulator TIMEOUT 900 ENVIRONMENT "OMP_NUM_THREADS=2;OMP_WAIT_POLICY=passive")
endfunction()

# What passed on 2026-11-25, less a few.
set(least_kernels 210)
set(least_hopper 32)
set(least_ops 730)
set(least_ladder 36)
set(least_engines 60)
set(least_core 18)
set(least_data 3)
set(least_nn 8)
set(least_dist 70)
set(least_golden 8)
set(least_train_image 10)
foreach(program engines data nn golden train_image)  # the others: `checked`, below
  twins(${program} test_${program} ${least_${program}})
endforeach()
# The twins that replace the kernels with wgmma and TMA.
foreach(program kernels ladder)
  twins(${program}.a100 test_${program} ${least_${program}} --gpu a100)
endforeach()
# Nothing runs before it is waited for; the first stream of a program is always late; any order, of warps and blocks too. No two
# operations on the same bytes may lack an order.
foreach(program core data nn dist engines ops train_image)
  twins(${program}.lazy test_${program} ${least_${program}} --streams lazy --check streams)
  twins(${program}.starve test_${program} ${least_${program}} --streams starve:1 --check streams)
  set(seeds 1 2 3)
  if(program MATCHES "engines|ops|train_image")
    set(seeds 1)  # 5, 5 and 30 s each
  endif()
  foreach(seed ${seeds})
    twins(${program}.random_${seed} test_${program} ${least_${program}} --streams random --seed ${seed} --check streams)
  endforeach()
endforeach()
foreach(program kernels ladder hopper)
  twins(${program}.random test_${program} ${least_${program}} --streams random --seed 1)
endforeach()
# Nothing is to be found: no race in a kernel or between streams, nothing read that was never written. What the tests themselves
# expect is seen as well, so these programs have no run without checks in the usual order.
foreach(program kernels hopper ops ladder core dist)
  twins(${program}.checked test_${program} ${least_${program}} --check races,uninitialised,streams)
endforeach()

# A GPU that reads the host's pageable memory itself.
twins(core.gh200 test_core ${least_core} --gpu gh200 --streams lazy --check streams)

# A machine with CUDA's driver and no GPU.
if(TARGET weft-info)
  emulated_test(twins.no_gpu OPTIONS --gpus 0 COMMAND $<TARGET_FILE:weft-info> EXPECT "GPU usable: no,.*cudaErrorNoDevice")
endif()
