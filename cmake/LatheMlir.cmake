# LLVM and MLIR: found once, linked as exactly the two shared libraries.
find_package(MLIR 22.1 REQUIRED CONFIG)
list(APPEND CMAKE_MODULE_PATH ${MLIR_CMAKE_DIR} ${LLVM_CMAKE_DIR})
include(TableGen) # tablegen()
include(AddLLVM)  # add_public_tablegen_target(); nothing else of it is used
include(AddMLIR)  # mlir_tablegen()
separate_arguments(LATHE_LLVM_DEFINITIONS NATIVE_COMMAND "${LLVM_DEFINITIONS}")
set(LATHE_LLVM_TOOLS ${LLVM_TOOLS_BINARY_DIR})

# What every target that sees MLIR headers needs. -isystem: the headers are not warning-free.
add_library(lathe_mlir_headers INTERFACE)
target_include_directories(lathe_mlir_headers SYSTEM INTERFACE ${LLVM_INCLUDE_DIRS} ${MLIR_INCLUDE_DIRS})
target_compile_options(lathe_mlir_headers INTERFACE ${LATHE_LLVM_DEFINITIONS})

function(lathe_use_mlir target)
  target_link_libraries(${target} PRIVATE $<BUILD_INTERFACE:lathe_mlir_headers>)
  add_dependencies(${target} LatheTableGen LathePassTableGen)
endfunction()
