// SPDX-License-Identifier: Apache-2.0
#pragma once
// Everything a user needs: build a graph, compile it, run it.
#include "lathe/frontend/compile.h"
#include "lathe/frontend/families/family.h"
#include "lathe/frontend/families/llama.h"
#include "lathe/frontend/graph.h"
#include "lathe/frontend/nn/nn.h"
#include "lathe/ir/ops.h"
#include "lathe/ir/tensor.h"
#include "lathe/passes/dag_pattern.h"
#include "lathe/runtime/array.h"
#include "lathe/runtime/error.h"
#include "lathe/runtime/program.h"
#include "lathe/runtime/session.h"
