// SPDX-License-Identifier: Apache-2.0
#pragma once
// All modules.
#include "frontend/nn/activations.h"
#include "frontend/nn/attention.h"
#include "frontend/nn/embedding.h"
#include "frontend/nn/linear.h"
#include "frontend/nn/mlp.h"
#include "frontend/nn/module.h"
#include "frontend/nn/norms.h"
#include "frontend/nn/rope.h"
#include "frontend/nn/self_attention.h"
#include "frontend/nn/softmax.h"
#include "frontend/nn/transformer.h"
