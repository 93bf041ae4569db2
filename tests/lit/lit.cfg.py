# SPDX-License-Identifier: Apache-2.0
# IR tests. Run through CTest, or: lit -v <build>/tests/lit
import os

import lit.formats

config.name = "lathe"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir", ".test"]
config.test_exec_root = os.path.join(config.lathe_build, "tests", "lit")
config.environment["PATH"] = os.pathsep.join(
    [config.lathe_tools, config.llvm_tools, os.environ["PATH"]])
# What the library itself is told: kernel tiers, caches, numbers of threads.
config.environment.update({k: v for k, v in os.environ.items() if k.startswith("LATHE_")})
