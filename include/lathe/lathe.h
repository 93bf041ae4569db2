// SPDX-License-Identifier: Apache-2.0
#pragma once
// Everything a user needs: build a graph, compile it, run it.
#include "frontend/compile.h"
#include "frontend/families/llama.h"
#include "frontend/graph.h"
#include "frontend/nn/nn.h"
#include "ir/ops.h"
#include "ir/tensor.h"
#include "passes/dag_pattern.h"
#include "runtime/array.h"
#include "runtime/error.h"
#include "runtime/program.h"
#include "runtime/session.h"
