// SPDX-License-Identifier: Apache-2.0
// Precompiled for the tests that see nothing but the runtime, where a build is made for once.
#pragma once
#include <cmath>
#include <fstream>
#include <limits>
#include <random>
#include <regex>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lathe/runtime/checkpoint.h"
#include "lathe/runtime/device.h"
#include "lathe/runtime/json_reader.h"
#include "lathe/runtime/safetensors.h"
#include "lathe/runtime/sampler.h"
#include "lathe/runtime/session.h"
#include "lathe/runtime/tokenizer.h"
#include "runtime/pch.h"
#include "tests/unit/test_files.h"
