#include "compiler/codegen/cuda/lanes.h"

#include "gtest/gtest.h"
