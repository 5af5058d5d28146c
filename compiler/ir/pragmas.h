// The keys of pragmas, the words that passes leave for each other in a function. A pragma changes
// no value: a function means the same without it. Besides the keys below, the name of an
// instruction family of the target's table ("memcpy", "conv", "add": compiler/passes/tensorize.h)
// marks a nest that is to become an instruction of that family; schedules write these, preprocess
// and tensorize read them. Any other key is a mistake (check_pragmas.h).
#ifndef COMPILER_IR_PRAGMAS_H_
#define COMPILER_IR_PRAGMAS_H_

#include <array>
#include <string_view>

namespace polynao::pragma {

// X(constant, key, operands, the statement below it, meaning, writers, readers)
// Writers and readers are the files that use the constant, besides tests; tools/check_tree compares.
//
// clang-format off
#define POLYNAO_PRAGMAS(X)                                                                        \
  X(kPad, "pad", "",                                                                              \
    "a nest over one store of select(inside, load, constant)",                                    \
    "The nest copies a tensor and pads it: it becomes a fill and a memcpy.",                      \
    "compiler/te/card/contraction_program.cc compiler/te/card/vector_program.cc "                 \
    "kernels/te/slice_program.cc",                                                                \
    "compiler/passes/preprocess_facts.cc compiler/passes/nest_builder.cc")                        \
  X(kRagged, "ragged", "",                                                                        \
    "a loop over tiles",                                                                          \
    "The tiles have unequal sizes: guards of copies become bounds, so that the loop stays whole.",\
    "compiler/te/card/elementwise_group.cc "                                                      \
    "compiler/ir/random_program.cc",                                                              \
    "compiler/passes/preprocess_facts.cc")                                                        \
  X(kTensorize, "tensorize", "",                                                                  \
    "a nest",                                                                                     \
    "The nest is to become an instruction of any family.",                                        \
    "",                                                                                           \
    "compiler/passes/tensorize.cc compiler/passes/tensor_match.cc")                               \
  X(kSlidingWindow, "sliding_window", "ahead: i64",                                               \
    "an allocation",                                                                              \
    "No iteration of the loop inside stores to an element that it or an earlier one has used, "   \
    "guards left aside; elements are used `ahead` iterations after they are stored, or later.",   \
    "compiler/te/lower.cc",                                                                       \
    "compiler/passes/preprocess_facts.cc compiler/passes/pipeline.cc "                            \
    "compiler/passes/copy_elision.cc")                                                            \
  X(kDoubleBuffer, "double_buffer", "copies: i64 (default 2)",                                    \
    "an allocation",                                                                              \
    "The buffer may get several copies, so that an iteration can load while another computes.",   \
    "compiler/te/lower.cc",                                                                       \
    "compiler/passes/pipeline.cc compiler/passes/pipeline_body.cc "                              \
    "compiler/passes/pipeline_emit.cc compiler/passes/turns.cc "                                  \
    "compiler/passes/copy_elision.cc")                                                            \
  X(kNoPartition, "no_partition", "",                                                             \
    "any statement",                                                                              \
    "Its bounds and conditions are evaluated at run time: no loop is split along them.",          \
    "compiler/te/lower.cc compiler/passes/nest_builder.cc",                                       \
    "compiler/passes/loop_partition.cc compiler/passes/partition_guards.cc")                      \
  X(kAddress, "address", "offset: i64",                                                           \
    "an allocation",                                                                              \
    "The buffer begins at this byte of its memory.",                                              \
    "compiler/passes/storage.cc",                                                                 \
    "compiler/passes/storage.cc")                                                                 \
  X(kFewIterations, "few_iterations", "",                                                         \
    "loops",                                                                                      \
    "They mostly have few iterations, and need no vectors and no second copy of their body.",     \
    "compiler/poly/fuse/inner_parts.cc",                                                          \
    "compiler/codegen/llvm/emit_statements.cc")
// clang-format on

#define POLYNAO_PRAGMA_CONSTANT(constant, key, ...) \
  inline constexpr std::string_view constant = key;
POLYNAO_PRAGMAS(POLYNAO_PRAGMA_CONSTANT)
#undef POLYNAO_PRAGMA_CONSTANT

struct Key {
  std::string_view name;
  std::string_view operands;
  std::string_view below;
  std::string_view meaning;
  std::string_view writers;
  std::string_view readers;
};

inline constexpr auto kKeys = std::to_array<Key>({
#define POLYNAO_PRAGMA_KEY(constant, ...) Key{__VA_ARGS__},
    POLYNAO_PRAGMAS(POLYNAO_PRAGMA_KEY)
#undef POLYNAO_PRAGMA_KEY
});

}  // namespace polynao::pragma

#endif  // COMPILER_IR_PRAGMAS_H_
