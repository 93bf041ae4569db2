# Each layer of the house is an object library with listed sources. They become two shared libraries:
# lathe_runtime of the run sides, and lathe of the compile sides, in one because two copies of an MLIR
# type id make isa<> fail silently. That no layer needs one above it is held by the tests
# layout/layering (includes) and layout/layers_link (symbols).

# What most of a file's time goes to are headers, so that several files compile in the time of one.
# Who edits one file waits for its group: the presets for development leave it off.
option(LATHE_UNITY "compile the sources of a layer in groups" OFF)
function(lathe_compile_in_groups target)
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${LATHE_UNITY} UNITY_BUILD_BATCH_SIZE 16)
endfunction()

# lathe_precompile(TARGET OWNER header...): headers that TARGET's files find precompiled. The target
# OWNER, which comes first, compiles them, and the others of the same flags take its result.
function(lathe_precompile target owner)
  if(NOT LATHE_PCH)
    return()
  endif()
  if(target STREQUAL owner)
    target_precompile_headers(${target} PRIVATE ${ARGN})
  else()
    target_precompile_headers(${target} REUSE_FROM ${owner})
  endif()
  if(CMAKE_CXX_COMPILER_ID MATCHES Clang)
    target_compile_options(${target} PRIVATE -fpch-instantiate-templates "SHELL:-Xclang -fno-pch-timestamp")
  endif()
endfunction()

# lathe_layer(NAME source...): a layer of the compile side, the target lathe_NAME.
function(lathe_layer name)
  add_library(lathe_${name} OBJECT ${ARGN})
  lathe_use_mlir(lathe_${name})
  lathe_compile_in_groups(lathe_${name})
  lathe_count_lines(lathe_${name} -O1)
  target_link_libraries(lathe_${name} PRIVATE fmt::fmt)
  # The lines of the library's own files that ops have do not tell where Lathe was built.
  target_compile_options(lathe_${name} PRIVATE -fmacro-prefix-map=${PROJECT_SOURCE_DIR}/=)
  # The step between operators and kernels sees the dialects of loops as well.
  if(name MATCHES "^backend(s_common|_cpu|_cuda)$")
    lathe_precompile(lathe_${name} lathe_backends_common ${PROJECT_SOURCE_DIR}/backends/pch.h)
  else()
    lathe_precompile(lathe_${name} lathe_ir ${PROJECT_SOURCE_DIR}/ir/pch.h)
  endif()
  target_sources(lathe PRIVATE $<TARGET_OBJECTS:lathe_${name}>)
endfunction()

# lathe_run_layer(NAME LIBRARIES target... SOURCES source...): a layer of the run side, which sees
# neither LLVM nor MLIR.
function(lathe_run_layer name)
  cmake_parse_arguments(PARSE_ARGV 1 layer "" "" "LIBRARIES;SOURCES")
  add_library(lathe_${name} OBJECT ${layer_SOURCES})
  lathe_compile_in_groups(lathe_${name})
  lathe_count_lines(lathe_${name})
  target_link_libraries(lathe_${name} PRIVATE fmt::fmt ${layer_LIBRARIES})
  if(NOT name STREQUAL device_cpu) # whose files have flags of their own
    lathe_precompile(lathe_${name} lathe_runtime_core ${PROJECT_SOURCE_DIR}/runtime/pch.h)
  endif()
  target_sources(lathe_runtime PRIVATE $<TARGET_OBJECTS:lathe_${name}>)
endfunction()
