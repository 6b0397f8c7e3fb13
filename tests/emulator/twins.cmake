# SPDX-License-Identifier: Apache-2.0
# Weft's own CUDA tests on the emulated GPU: all of them on an H100, the kernels of mma.sync on an A100, and streams that run late
# or in any order. twins.py knows which tests of a program meet a GPU.
find_program(WEFT_PYTHON3 python3 REQUIRED)

# twins(NAME PROGRAM LEAST [weft-emulate's options…]): fails when a test fails, or when fewer than LEAST pass.
function(twins name program least)
  if(NOT TARGET ${program})
    return()
  endif()
  add_test(NAME emulator.twins.${name} COMMAND ${WEFT_PYTHON3} -B ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/twins.py
    --emulate $<TARGET_FILE:weft-emulate> --bin $<TARGET_FILE_DIR:${program}> --limit 300 --least ${least} ${ARGN} ${program})
  set_tests_properties(emulator.twins.${name} PROPERTIES LABELS emulator TIMEOUT 900)
endfunction()

twins(kernels test_kernels 195)
twins(hopper test_hopper 33)
twins(ops test_ops 600)
twins(ladder test_ladder 30)
twins(engines test_engines 55)
twins(core test_core 16)
twins(data test_data 2)
twins(nn test_nn 7)
twins(dist test_dist 50)
twins(golden test_golden 8)
twins(train_image test_train_image 10)
# The twins that replace the kernels with wgmma and TMA.
twins(kernels.a100 test_kernels 195 --gpu a100)
twins(ladder.a100 test_ladder 30 --gpu a100)
# Nothing runs before it is waited for; the first stream of a program is always late; any order, of warps and blocks too.
foreach(program core data dist)
  twins(${program}.lazy test_${program} 2 --streams lazy)
  twins(${program}.starve test_${program} 2 --streams starve:1)
  foreach(seed 1 2 3)
    twins(${program}.random_${seed} test_${program} 2 --streams random --seed ${seed})
  endforeach()
endforeach()
twins(kernels.random test_kernels 195 --streams random --seed 1)
twins(ladder.random test_ladder 30 --streams random --seed 1)
twins(hopper.random test_hopper 33 --streams random --seed 1)
# Nothing is to be found: no race in a kernel or between streams, nothing read that was never written.
set(all_checks --check races,uninitialised,streams)
twins(kernels.checked test_kernels 195 ${all_checks})
twins(hopper.checked test_hopper 33 ${all_checks})
twins(ops.checked test_ops 600 ${all_checks})
twins(ladder.checked test_ladder 30 ${all_checks})
twins(core.checked test_core 16 ${all_checks})
twins(dist.checked test_dist 50 ${all_checks})

# A machine with CUDA's driver and no GPU.
if(TARGET weft-info)
  emulated_test(twins.no_gpu OPTIONS --gpus 0 COMMAND $<TARGET_FILE:weft-info> EXPECT "GPU usable: no,.*cudaErrorNoDevice")
endif()
