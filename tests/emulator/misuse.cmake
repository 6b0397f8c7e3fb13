# SPDX-License-Identifier: Apache-2.0
# Planted misuses of collectives, barriers, asynchronous copies and division (misuse.cu): each with what must be reported, and
# its repaired twin, which must be silent. Included by CMakeLists.txt, which has emulated_program() and emulated_test().
emulated_program(misuse misuse.cu misuse_hopper.cu LINK CUDA::cuda_driver)
target_include_directories(emulated_misuse PRIVATE ${PROJECT_SOURCE_DIR})

# misuse(NAME text [OPTIONS…]): NAME ends with this report under these options; NAME_right ends with 0 under all checks.
function(misuse name expect)
  emulated_test(misuse.${name} OPTIONS ${ARGN} COMMAND $<TARGET_FILE:emulated_misuse> ${name} EXPECT "${expect}")
  foreach(seed 0 7)
    emulated_test(misuse.${name}_right.seed_${seed} OPTIONS --check races,uninitialised --seed ${seed}
      COMMAND $<TARGET_FILE:emulated_misuse> ${name}_right)
  endforeach()
endfunction()
set(at "at [^ ]*misuse.cu:[0-9]+")
set(hopper_at "at [^ ]*misuse_hopper.cu:[0-9]+")
set(inlined_at "at [^\n]*misuse_hopper.cu:[0-9]+")  # hopper.cuh comes first
set(races --check races)
set(undefined --check uninitialised)

misuse(mask_without_the_caller "thread \\(1,0,0\\) ${at}[^\n]*: shfl.sync: the thread is not in its own member mask 0x00000001.*cudaErrorLaunchFailure")
foreach(collective shuffle vote match reduction)
  string(REPLACE shuffle shfl instruction ${collective})
  string(REPLACE reduction redux instruction ${instruction})
  misuse(half_warp_calls_full_${collective} "deadlock.*waits for ${instruction}.sync ${at}[^\n]*, whose mask 0xffffffff names lanes 16-31: elsewhere.*waits for barrier 0 ${at}.*cudaErrorLaunchTimeout")
endforeach()
misuse(two_collectives_with_one_mask "deadlock.*waits for shfl.sync ${at}[^\n]*, whose mask 0xffffffff names lanes 16-31: elsewhere.*waits for vote.sync ${at}.*names lanes 0-15: elsewhere")
misuse(barrier_against_collective "deadlock.*waits for bar.warp.sync ${at}[^\n]*, whose mask 0xffffffff names lanes 8-31: elsewhere")
misuse(two_masks_at_two_places "deadlock.*waits for bar.warp.sync ${at}[^\n]*, whose mask 0xffffffff names lanes 0-15: elsewhere|data race")
misuse(guard_excludes_members "deadlock.*waits for bar.warp.sync ${at}[^\n]*, whose mask 0xffffffff names lanes 16-31: elsewhere")
misuse(shuffle_from_outside_the_mask "uninitialised: [^\n]*thread \\(0,0,0\\) ${at}[^\n]*: shfl: lane 0 reads lane 20, which mask 0x0000ffff does not name" ${undefined})
misuse(shuffle_from_an_exited_lane "uninitialised: [^\n]*${at}[^\n]*: shfl: lane 0 reads lane 3, which has exited" ${undefined})
misuse(shuffle_from_a_missing_lane "uninitialised: [^\n]*thread \\(39,0,0\\) ${at}[^\n]*: shfl: lane 7 reads lane 8, which this block does not have" ${undefined})

misuse(division_by_zero "uninitialised: [^\n]*thread \\(0,0,0\\) ${at}[^\n]*: integer division by zero" ${undefined})
misuse(remainder_by_zero "uninitialised: [^\n]*thread \\(0,0,0\\) ${at}[^\n]*: integer division by zero" ${undefined})

misuse(barrier_of_two_sizes "${at}[^\n]*: barrier 3 expects 96 threads here; those that came before expect 64.*cudaErrorLaunchFailure")
misuse(static_shared_one_past_the_end "${at}[^\n]*: illegal write of 4 bytes of shared memory, 0 bytes past its end [^\n]*tile[^\n]* ends here.*cudaErrorIllegalAddress")
misuse(atomic_one_past_the_end "${at}[^\n]*: illegal write of 4 bytes that begin at [^\n]*0 bytes past the end of a device allocation of 65536 bytes.*cudaErrorIllegalAddress")
misuse(copy_to_global_memory "${at}[^\n]*: illegal write of 4 bytes of shared memory.*cudaErrorIllegalAddress")
misuse(copy_misaligned "${at}[^\n]*: misaligned read of 16 bytes at global address.*cudaErrorMisalignedAddress")

misuse(copy_at_exit "race: [^\n]*cp.async ${at}[^\n]*: the thread exits and has not waited for the copy" ${races})
misuse(load_at_exit "race: [^\n]*thread \\(0,0,0\\): cp.async.bulk ${inlined_at}[^\n]*: the block ends before the copy to its shared memory has arrived" ${races})
misuse(store_at_exit "race: [^\n]*thread \\(0,0,0\\): cp.async.bulk ${inlined_at}[^\n]*: the block ends while the copy may still read its shared memory" ${races})
misuse(wgmma_at_exit "race: [^\n]*: wgmma ${inlined_at}[^\n]*: the warp exits and has not waited for it" ${races})

misuse(mbarrier_not_made "${inlined_at}[^\n]*: there is no mbarrier at shared address|mbarrier.init has not run")
misuse(mbarrier_written_over "${inlined_at}[^\n]*: mbarrier.init has not run, or its 8 bytes were written over|mbarrier.init has not run, or its 8 bytes were written over")
misuse(mbarrier_not_fenced "race: [^\n]*: the async proxy .cp.async.bulk ${inlined_at}[^\n]* uses an mbarrier that block .0,0,0., thread .0,0,0. initialised at [^\n]*. Missing: fence.mbarrier_init" ${races})
misuse(no_such_parity "${inlined_at}[^\n]*: parity 2, expected 0 or 1")
misuse(too_few_bytes "deadlock.*waits for mbarrier.try_wait ${inlined_at}[^\n]*: 0 of 1 arrivals and 16 bytes are missing")
misuse(too_few_arrivals "deadlock.*waits for mbarrier.try_wait ${inlined_at}[^\n]*: 1 of 2 arrivals and 0 bytes are missing")
misuse(too_many_arrivals "${hopper_at}[^\n]*: 2 arrivals are more than the mbarrier waits for")
misuse(load_misaligned "${inlined_at}[^\n]*: global address 0x[0-9a-f]+ is not a multiple of 16")
misuse(two_loads_to_one_place "${inlined_at}[^\n]*: it overwrites shared address [0-9]+, to which another copy of this block is still under way")
misuse(wrong_count_of_coordinates "${hopper_at}[^\n]*: 3 coordinates for a tensor map of 2 dimensions")
misuse(map_of_freed_memory "${hopper_at}[^\n]*that was freed.*cudaErrorIllegalAddress")

misuse(wgmma_without_fence "${hopper_at}[^\n]*: wgmma.fence must come before a warp's first wgmma")
misuse(wgmma_operand_out_of_bounds "${inlined_at}[^\n]*: operand a reaches from shared address")
misuse(sums_changed_without_fence "${hopper_at}[^\n]*: its sums were changed since the last wgmma.wait_group")
misuse(sums_written_before_wait "${hopper_at}[^\n]*: register 3 of the sums [^\n]* was written before the wait")

misuse(releases_more_registers "${inlined_at}[^\n]*: setmaxnreg.dec 48: the warp has 40 registers a thread.*cudaErrorLaunchFailure")
misuse(acquires_fewer_registers "${inlined_at}[^\n]*: setmaxnreg.inc 232: the warp has 248 registers a thread.*cudaErrorLaunchFailure")
misuse(registers_by_one_warp "${inlined_at}[^\n]*: setmaxnreg.dec 40: warp 1 has not executed it; all 4 warps of a warpgroup must.*cudaErrorLaunchFailure")
misuse(registers_of_two_sizes "${inlined_at}[^\n]*: setmaxnreg.dec 40: another warp of its warpgroup executes setmaxnreg.dec 32 at.*cudaErrorLaunchFailure")
misuse(registers_above_the_file "deadlock.*waits for 2304 registers of the block, of which [0-9]+ are free, ${inlined_at}.*cudaErrorLaunchTimeout")
misuse(cluster_wait_without_arriving "${hopper_at}[^\n]*: barrier.cluster.wait without barrier.cluster.arrive")
misuse(cluster_arrive_twice "${hopper_at}[^\n]*: barrier.cluster.arrive twice without barrier.cluster.wait")
