# SPDX-License-Identifier: Apache-2.0
"""`python -m lathe` is the command `lathe`."""
import os
import sys


def main():
    program = os.path.join(os.path.dirname(__file__), "bin", "lathe")
    os.execv(program, [program, *sys.argv[1:]])


if __name__ == "__main__":
    main()
