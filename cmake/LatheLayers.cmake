# Each layer of the house is an object library with listed sources. They become two shared libraries:
# lathe_runtime of the run sides, and lathe of the compile sides, in one because two copies of an MLIR
# type id make isa<> fail silently. That no layer needs one above it is held by the tests
# layout/layering (includes) and layout/layers_link (symbols).

# What most of a file's time goes to are headers, so that several files compile in the time of one.
# Who edits one file waits for its group: the presets for development leave it off.
option(LATHE_UNITY "compile the sources of a layer in groups" OFF)
function(lathe_compile_in_groups target)
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${LATHE_UNITY} UNITY_BUILD_BATCH_SIZE 8)
endfunction()

# lathe_layer(NAME source...): a layer of the compile side, the target lathe_NAME.
function(lathe_layer name)
  add_library(lathe_${name} OBJECT ${ARGN})
  lathe_use_mlir(lathe_${name})
  lathe_compile_in_groups(lathe_${name})
  target_link_libraries(lathe_${name} PRIVATE fmt::fmt)
  # The lines of the library's own files that ops have do not tell where Lathe was built.
  target_compile_options(lathe_${name} PRIVATE -fmacro-prefix-map=${PROJECT_SOURCE_DIR}/=)
  if(LATHE_PCH)
    if(name STREQUAL ir) # the first: the others take its precompiled header
      target_precompile_headers(lathe_ir PRIVATE ${PROJECT_SOURCE_DIR}/ir/pch.h)
    else()
      target_precompile_headers(lathe_${name} REUSE_FROM lathe_ir)
    endif()
    if(CMAKE_CXX_COMPILER_ID MATCHES Clang)
      target_compile_options(lathe_${name} PRIVATE -fpch-instantiate-templates "SHELL:-Xclang -fno-pch-timestamp")
    endif()
  endif()
  target_sources(lathe PRIVATE $<TARGET_OBJECTS:lathe_${name}>)
endfunction()

# lathe_run_layer(NAME LIBRARIES target... SOURCES source...): a layer of the run side, which sees
# neither LLVM nor MLIR.
function(lathe_run_layer name)
  cmake_parse_arguments(PARSE_ARGV 1 layer "" "" "LIBRARIES;SOURCES")
  add_library(lathe_${name} OBJECT ${layer_SOURCES})
  lathe_compile_in_groups(lathe_${name})
  target_link_libraries(lathe_${name} PRIVATE fmt::fmt ${layer_LIBRARIES})
  target_sources(lathe_runtime PRIVATE $<TARGET_OBJECTS:lathe_${name}>)
endfunction()
