# SPDX-License-Identifier: Apache-2.0
# weft-emulate --check streams: each planted fault is said, in every order of streams; its repaired twin and correct programs are
# silent. A program in which something was found ends with 86.
emulated_program(stream_faults stream_faults.cu)

function(stream_fault name expect)
  foreach(order inorder lazy random)
    emulated_test(stream_faults.${name}.${order} OPTIONS --check streams --streams ${order}
      COMMAND $<TARGET_FILE:emulated_stream_faults> ${name} EXPECT "${expect}")
    emulated_test(stream_faults.${name}_right.${order} OPTIONS --check streams --streams ${order}
      COMMAND $<TARGET_FILE:emulated_stream_faults> ${name}_right)
  endforeach()
endfunction()

set(bytes "bytes 0..16383 of the device allocation of 16384 bytes")
set(add "no order between streams: *\n *kernel [^\n]*add\\(float[^\n]*\n *writes,")
stream_fault(two_kernels "${add}\n *kernel [^\n]*copy[^\n]*\n *reads ${bytes};\n *missing: an event of stream [0-9]+")
stream_fault(asynchronous_read "${add}\n *kernel [^\n]*copy_later[^\n]*\n *reads bytes 0..1023 of the device allocation of 16384")
stream_fault(asynchronous_write "no order between streams: *\n *kernel [^\n]*copy_later[^\n]*\n *writes,\n *kernel [^\n]*copy[^\n]*\n *reads bytes 0..1023 of")
stream_fault(atomic_and_fill "no order between streams: *\n *kernel [^\n]*count[^\n]*\n *updates,\n *a fill of 4 bytes[^\n]*\n *writes bytes 0..3 of")
stream_fault(copy_and_kernel "no order between streams: *\n *a copy of 16384 bytes from pinned host memory to device memory[^\n]*\n *writes,\n *kernel [^\n]*add[^\n]*\n *writes ${bytes}")
stream_fault(ring_reuse "no order between streams: *\n *kernel [^\n]*copy[^\n]*\n *reads,\n *a copy of 16384 bytes[^\n]*\n *writes ${bytes}")
stream_fault(recorded_too_early "${add}")
stream_fault(wrong_stream_waits "${add}")
stream_fault(recorded_again "${add}\n *kernel [^\n]*copy")
stream_fault(default_stream "${add}\n *kernel [^\n]*copy[^\n]*the default stream")
stream_fault(fill_and_stream "no order between streams: *\n *a fill of 16384 bytes, the default stream[^\n]*\n *writes,\n *kernel [^\n]*add")
stream_fault(freed_on_another_stream "no order between streams: *\n *kernel [^\n]*add[^\n]*\n *writes,\n *cudaFreeAsync[^\n]*\n *frees ${bytes}")
stream_fault(allocated_on_another_stream "no order between streams: *\n *cudaMallocAsync[^\n]*\n *writes,\n *a fill of 16384 bytes")
stream_fault(used_after_free "use after free in stream order: *\n *kernel [^\n]*copy[^\n]*\n *reads ${bytes},\n *which was freed by cudaFreeAsync")
stream_fault(pinned_freed "no order between streams: *\n *cudaFreeHost[^\n]*\n *frees,\n *a copy of 16384 bytes|no order between streams: *\n *a copy of 16384 bytes[^\n]*\n *reads,\n *cudaFreeHost[^\n]*\n *frees")
stream_fault(graph_branches "${add}\n *kernel [^\n]*add[^\n]*\n *writes ${bytes};\n *missing: an edge from one node")
stream_fault(graph_and_kernel "no order between streams: *\n *kernel [^\n]*add[^\n]*a node of a graph that was added at [^\n]*launched at [^\n]*\n *writes,\n *kernel [^\n]*copy")
stream_fault(source_written "the host wrote the source of a copy that had not run: *\n *a copy of 16384 bytes from pinned host memory")
stream_fault(cached_memory "no order between streams: *\n *kernel [^\n]*copy[^\n]*\n *reads,\n *a copy of 16384 bytes[^\n]*\n *writes ${bytes}")
stream_fault(query "${add}\n *kernel [^\n]*copy")
# A host function that has run may have told the host anything: what is behind it in other streams is then taken for ordered.
emulated_test(stream_faults.host_function OPTIONS --check streams --streams lazy
  COMMAND $<TARGET_FILE:emulated_stream_faults> host_function EXPECT "${add}")
emulated_test(stream_faults.host_function_right OPTIONS --check streams --streams lazy
  COMMAND $<TARGET_FILE:emulated_stream_faults> host_function_right)
# What the host reads is not seen: the content is a NaN.
emulated_test(stream_faults.read_too_early OPTIONS --check streams --streams lazy
  COMMAND $<TARGET_FILE:emulated_stream_faults> read_too_early EXPECT "read -?nan")
emulated_test(stream_faults.read_too_early_right OPTIONS --check streams --streams lazy
  COMMAND $<TARGET_FILE:emulated_stream_faults> read_too_early_right EXPECT "read 5")

foreach(order inorder lazy random)
  foreach(right no_conflict_right order_through_others_right destroyed_stream_right)
    emulated_test(stream_faults.${right}.${order} OPTIONS --check streams --streams ${order}
      COMMAND $<TARGET_FILE:emulated_stream_faults> ${right})
  endforeach()
  emulated_test(machine.check_streams.${order} OPTIONS --check streams --streams ${order} COMMAND $<TARGET_FILE:emulated_machine>)
  emulated_test(faults.check_streams.streams.${order} OPTIONS --check streams --streams ${order}
    COMMAND $<TARGET_FILE:emulated_faults> streams EXPECT "no order between streams")
  emulated_test(faults.check_streams.pinned.${order} OPTIONS --check streams --streams ${order}
    COMMAND $<TARGET_FILE:emulated_faults> pinned EXPECT "the host wrote the source of a copy")
  foreach(right streams_right pinned_right)
    emulated_test(faults.check_streams.${right}.${order} OPTIONS --check streams --streams ${order}
      COMMAND $<TARGET_FILE:emulated_faults> ${right})
  endforeach()
endforeach()
