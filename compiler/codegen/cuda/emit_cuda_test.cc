#include "compiler/codegen/cuda/emit_cuda.h"

#include "gtest/gtest.h"
