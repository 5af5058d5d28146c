#include "compiler/codegen/cuda/kernels.h"

#include "gtest/gtest.h"
