# SPDX-License-Identifier: Apache-2.0

# Flags that every target of Weft is built with; not exported.
add_library(weft_build_flags INTERFACE)
target_compile_options(weft_build_flags INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wpedantic -Wshadow $<$<BOOL:${WEFT_WERROR}>:-Werror>>)
if(WEFT_UNITY AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  target_compile_options(weft_build_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wno-subobject-linkage>)  # true of no file by itself
endif()

# weft_by_the_dozen(TARGET): WEFT_UNITY compiles these sources in groups. Most files are short, and reading headers is most of their
# cost. Files with flags of their own are left out by CMake.
function(weft_by_the_dozen target)
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${WEFT_UNITY} UNITY_BUILD_BATCH_SIZE 12)
endfunction()

# weft_library(NAME folder-name): a static library of the *.cpp files of this folder (and the named SUBFOLDERS),
# with the alias weft::NAME and the root of the sources as include folder.
function(weft_library name)
  cmake_parse_arguments(arg "" "" "SUBFOLDERS;LINK;PRIVATE_LINK" ${ARGN})
  set(patterns *.cpp)
  foreach(folder ${arg_SUBFOLDERS})
    list(APPEND patterns ${folder}/*.cpp)
  endforeach()
  file(GLOB sources CONFIGURE_DEPENDS ${patterns})
  if(sources)
    add_library(weft_${name} STATIC ${sources})
    set(scope PUBLIC)
    target_link_libraries(weft_${name} PRIVATE weft_build_flags ${arg_PRIVATE_LINK})
    weft_by_the_dozen(weft_${name})
  else()
    add_library(weft_${name} INTERFACE)
    set(scope INTERFACE)
  endif()
  target_include_directories(weft_${name} ${scope} ${PROJECT_SOURCE_DIR})
  target_compile_features(weft_${name} ${scope} cxx_std_20)
  target_link_libraries(weft_${name} ${scope} ${arg_LINK})
  add_library(weft::${name} ALIAS weft_${name})
endfunction()

# weft_program(NAME sources… LINK libraries…): a program under build/bin.
function(weft_program name)
  cmake_parse_arguments(arg "" "" "LINK" ${ARGN})
  add_executable(${name} ${arg_UNPARSED_ARGUMENTS})
  target_link_libraries(${name} PRIVATE weft_build_flags ${arg_LINK})
  weft_by_the_dozen(${name})
  set_target_properties(${name} PROPERTIES BUILD_WITH_INSTALL_RPATH ON)
  set_property(GLOBAL APPEND PROPERTY WEFT_PROGRAMS ${name})
endfunction()

# weft_needs_apps(): what follows in this file of tests/ starts programs of apps/. A build without them leaves it out, and
# says so when all parts are known.
macro(weft_needs_apps)
  if(NOT WEFT_BUILD_APPS)
    get_filename_component(part ${CMAKE_CURRENT_SOURCE_DIR} NAME)
    set_property(GLOBAL APPEND PROPERTY WEFT_LEFT_OUT ${part})
    return()
  endif()
endmacro()

# In front of a test's command: a test that uses a GPU runs on this machine's, or under weft-emulate where there is none.
set(WEFT_ON_GPU "")
if(WEFT_HAVE_EMULATOR)
  set(WEFT_ON_GPU ${PROJECT_SOURCE_DIR}/tests/support/on_gpu ${CMAKE_BINARY_DIR}/bin/weft-emulate)
endif()

# What `tools/test` without a name builds and runs: the targets cpu_tests and quick_tests, the labels cpu (in a build without CUDA) and quick.
add_custom_target(cpu_tests)
add_custom_target(quick_tests)

# weft_in_tier(cpu|quick TARGETS names… TESTS names…): of tests that are no GoogleTest program.
function(weft_in_tier tier)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "TARGETS;TESTS")
  if(arg_TARGETS)
    add_dependencies(${tier}_tests ${arg_TARGETS})
  endif()
  set_property(TEST ${arg_TESTS} APPEND PROPERTY LABELS ${tier})
endfunction()

# weft_test(AREA [ALONE] [GPU] [ROWS] [TIERS cpu|quick…] LINK libraries…): one GoogleTest program of all *.cpp files of this folder; each test is a CTest
# test named AREA.Suite.Name and labelled AREA. What GoogleTest skips is skipped, and so is a test that the program does not
# have at that moment: CTest's list is made without WEFT_TEST_DEVICES, which takes whole devices away. ALONE: WEFT_UNITY compiles
# its files one by one all the same, since they have names in common. GPU: WEFT_ON_GPU starts it (not
# programs that start others, which would find the GPU as well: tests/orders has their tests for cuda). TIERS: which of the two its tests
# belong to; every test belongs to `all`. ROWS: they note rows for docs/ops.md (tests/support/rows.h).
function(weft_test area)
  cmake_parse_arguments(arg "ALONE;GPU;ROWS" "TIMEOUT" "LINK;SOURCES;ENVIRONMENT;TIERS" ${ARGN})
  if(WEFT_TEST_TIMEOUT)
    set(arg_TIMEOUT ${WEFT_TEST_TIMEOUT})
  elseif(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 300)
  endif()
  # ThreadSanitizer does not see the barriers of libgomp.
  set(omp_threads 2)
  if(WEFT_SANITIZE STREQUAL "thread")
    set(omp_threads 1)
  endif()
  set(fixture "")
  if(arg_ROWS)
    list(APPEND arg_SOURCES ${PROJECT_SOURCE_DIR}/tests/support/rows.cpp)
    list(APPEND arg_ENVIRONMENT WEFT_TEST_ROWS=${PROJECT_BINARY_DIR}/rows/${area})
    set(fixture FIXTURES_SETUP rows)
  endif()
  file(GLOB sources CONFIGURE_DEPENDS *.cpp)
  add_executable(test_${area} ${sources} ${arg_SOURCES})
  if(NOT arg_ALONE)
    weft_by_the_dozen(test_${area})
    set_target_properties(test_${area} PROPERTIES UNITY_BUILD_BATCH_SIZE 8)
  endif()
  target_include_directories(test_${area} PRIVATE ${PROJECT_SOURCE_DIR})
  target_link_libraries(test_${area} PRIVATE weft_build_flags ${arg_LINK} GTest::gtest GTest::gmock GTest::gtest_main)
  if(WEFT_SANITIZE)
    target_compile_options(test_${area} PRIVATE -Wno-maybe-uninitialized)  # GCC 12 says it of std::regex, falsely
  endif()
  if(WEFT_ON_GPU AND arg_GPU)
    if(CMAKE_VERSION VERSION_LESS 3.29)
      set_target_properties(test_${area} PROPERTIES CROSSCOMPILING_EMULATOR "${WEFT_ON_GPU}")
    else()
      set_target_properties(test_${area} PROPERTIES TEST_LAUNCHER "${WEFT_ON_GPU}")
    endif()
    add_dependencies(test_${area} weft-emulate)
  endif()
  foreach(tier ${arg_TIERS})
    add_dependencies(${tier}_tests test_${area})
  endforeach()
  gtest_discover_tests(test_${area} TEST_PREFIX "${area}." DISCOVERY_TIMEOUT 120 TEST_LIST ${area}_tests
    PROPERTIES SKIP_REGULAR_EXPRESSION ".  SKIPPED .|0 tests from 0 test suites ran" TIMEOUT ${arg_TIMEOUT} ${fixture})
  # Properties that are lists: gtest_discover_tests would take their later elements for other properties.
  set(properties ${CMAKE_CURRENT_BINARY_DIR}/${area}_properties.cmake)
  file(CONFIGURE OUTPUT ${properties} @ONLY CONTENT "foreach(test IN LISTS @area@_tests)
  set_tests_properties(\"\${test}\" PROPERTIES LABELS \"@area@;@arg_TIERS@\"
    ENVIRONMENT \"OMP_NUM_THREADS=@omp_threads@;OMP_WAIT_POLICY=passive;@arg_ENVIRONMENT@\")
endforeach()
")
  set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES ${properties})
endfunction()

# weft_transcripts(AREA [TIMEOUT s] [PROGRAMS targets…] [FILES files…]): each transcript (tests/transcript/transcript.py) is one test,
# AREA.NAME; by default all *.t of this folder. `tools/test AREA` builds the programs.
function(weft_transcripts area)
  cmake_parse_arguments(arg "" "TIMEOUT" "PROGRAMS;FILES" ${ARGN})
  find_program(WEFT_PYTHON3 python3 REQUIRED)
  find_program(WEFT_MPIRUN mpirun)
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 300)
  endif()
  if(WEFT_TEST_TIMEOUT AND WEFT_TEST_TIMEOUT GREATER arg_TIMEOUT)  # a transcript holds what would be many tests
    set(arg_TIMEOUT ${WEFT_TEST_TIMEOUT})
  endif()
  if(NOT arg_FILES)
    file(GLOB arg_FILES CONFIGURE_DEPENDS *.t)
  endif()
  # Optional parts of this build, by which `needs:` names them.
  get_cmake_property(variables VARIABLES)
  list(FILTER variables INCLUDE REGEX "^WEFT_HAVE_")
  set(parts "")
  foreach(variable ${variables})
    if(${variable})
      string(REPLACE WEFT_HAVE_ "" part ${variable})
      string(TOLOWER ${part} part)
      list(APPEND parts ${part})
    endif()
  endforeach()
  if(WEFT_HAVE_GLOO AND WEFT_HAVE_CRYPTO)
    list(APPEND parts ranks)
  endif()
  if(WEFT_RUNS_EMULATED)
    list(APPEND parts emulated)
  endif()
  if(NOT WEFT_MPIRUN)
    list(REMOVE_ITEM parts mpi)
  endif()
  list(JOIN parts " " parts)
  foreach(file ${arg_FILES})
    get_filename_component(name ${file} NAME_WLE)
    add_test(NAME ${area}.${name} COMMAND ${WEFT_PYTHON3} -B ${PROJECT_SOURCE_DIR}/tests/transcript/transcript.py
             --bin ${CMAKE_RUNTIME_OUTPUT_DIRECTORY} --seconds ${arg_TIMEOUT} ${file})
    math(EXPR timeout "${arg_TIMEOUT} + 20")
    set_tests_properties(${area}.${name} PROPERTIES LABELS ${area} TIMEOUT ${timeout} SKIP_RETURN_CODE 77
      ENVIRONMENT "WEFT_PARTS=${parts};WEFT_SHARED_DATA=${WEFT_SHARED_DATA}")
  endforeach()
  if(NOT TARGET test_${area})
    add_custom_target(test_${area})
  endif()
  if(arg_PROGRAMS)
    add_dependencies(test_${area} ${arg_PROGRAMS})
  endif()
endfunction()

# weft_optional(LIBRARY [FOLDER/]NAME found? include libraries…): of this folder, the files NAME.cpp and NAME_*.cpp or their stub
# no_NAME.cpp. What they include and link stays private to the library.
function(weft_optional library part found include)
  if(found)
    string(REGEX REPLACE "([^/]+)$" "no_\\1.cpp" other ${part})
    target_include_directories(weft_${library} SYSTEM PRIVATE ${include})
    target_link_libraries(weft_${library} PRIVATE ${ARGN})
  else()
    file(GLOB other CONFIGURE_DEPENDS ${part}.cpp ${part}_*.cpp)
  endif()
  set_source_files_properties(${other} PROPERTIES HEADER_FILE_ONLY TRUE)
endfunction()

# weft_loops(sources… OPTIONS flags…): files whose loops are written to vectorise, built for WEFT_MARCH and at -O3 (sanitizers
# choose a level of their own). Files with avx512 in their names are built for x86-64-v4: only such a processor calls them.
function(weft_loops)
  cmake_parse_arguments(PARSE_ARGV 0 loops "" "" "OPTIONS")
  set(options -O3 ${loops_OPTIONS})
  if(WEFT_SANITIZE)
    set(options -O2 ${loops_OPTIONS})  # -O1 fuses no multiply-adds: products would not have the bits of oneDNN's
  endif()
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64" AND WEFT_MARCH)
    list(APPEND options -march=${WEFT_MARCH})
  endif()
  set_source_files_properties(${loops_UNPARSED_ARGUMENTS} PROPERTIES COMPILE_OPTIONS "${options}")
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
    list(FILTER loops_UNPARSED_ARGUMENTS INCLUDE REGEX "avx512[^/]*$")
    set_property(SOURCE ${loops_UNPARSED_ARGUMENTS} APPEND PROPERTY COMPILE_OPTIONS -march=x86-64-v4)
  endif()
endfunction()
