// The table of targets.
#include "compiler/target/target.h"

namespace polynao {
namespace {

// normalize and cse are not among the card's passes. Before tensorize they would hide the sums that
// patterns are found by. Scalar code beside the queues is shared and moved by the code generator
// itself, below loops and above waits (compiler/codegen/diannao): with licm and hoist_if there, they
// changed twelve operators' cycles by -0.2 % to +0.3 %.
constexpr std::string_view kCardPipeline =
    // Tiling leaves guards; constant ones and fused-axis arithmetic go first, so that the next
    // two see short affine conditions. What reduces or pads gets rid of its guards without
    // being split, and the layout that its instructions ask for ...
    "simplify,preprocess,"
    // ... and the guards that are left are taken out of the loops.
    "loop_partition,"
    // The pieces' indices and extents become constants ...
    "simplify,flatten,simplify,"
    // ... by which copies are seen to move nothing, once what pieces without a result load is gone;
    // conditions of the pieces that a nest's loops do not change leave them ...
    "dead_stores,copy_elision,hoist_if(max_growth=0),"
    // ... and which the patterns need. The pipeline sees queues only when there are instructions,
    // and doubles buffers that tensorize may have expanded. Then buffers get addresses, and
    // last comes the order between queues, which depends on the buffers that share bytes.
    "tensorize,cluster_regions,pipeline,storage,sync,"
    // Loops without instructions are left to the scalar unit, which has nothing else to do then. At
    // the end branches are joined: first those that the instructions in them have made equal, then
    // neighbours about one thread number.
    "licm,simplify,join_ifs";

constexpr std::string_view kProcessorPipeline =
    // LLVM and C compilers vectorise loops without guards inside.
    "simplify,loop_partition,simplify,"
    // What is left is put in order after the last simplify, which has an order of its own.
    // Then what does not vary leaves loops: lets first, which stand in the way of ifs. The ifs
    // need their conditions in place, so common subexpressions come last.
    // Arithmetic is left to LLVM and C compilers (left_to_compiler.h).
    "normalize,licm(leave=1),hoist_if,cse(leave=1)";

constexpr std::string_view kGpuPipeline =
    // Regions are made of the loops that the schedule made: a loop split by thread would have
    // conditions that differ between threads around what they do together. Operators that no
    // schedule binds to threads get them before.
    "simplify,bind_parallel,thread_regions,simplify,"
    // One sum for each address: `i / 7 * 7 + i % 7` and its like come together again, and what
    // follows moves and shares parts of addresses, which a Horner scheme of dimensions hides.
    // What is a thread's own keeps its dimensions, which are how the generator knows it.
    "flatten(keep_private=1),simplify,"
    // As for a CPU. After the regions are made, since what differs between threads can not
    // leave the loops around regions, and what does not is then computed for the whole block.
    "normalize,licm(leave=1),hoist_if,cse(leave=1)";

// Behind LLVM and C compilers.
constexpr MotionCosts kProcessorMotion = {.threshold = 1};

constexpr TargetFacts kTargets[] = {
    {.name = "diannao",
     .doc = "the card: programs of tensor instructions, simulated",
     .kind = TargetKind::kCard,
     .writes = ".bin, .nasm",
     .pipeline = kCardPipeline,
     // Nothing optimises the code of the scalar unit after this.
     .motion = {.threshold = 1, .unrolled_extent = 0, .beside_instructions = false},
     .has_externs = false,
     .instructions = isa::DianNao},
    {.name = "cpu",
     .doc = "this machine's processor, by LLVM",
     .kind = TargetKind::kProcessor,
     .writes = ".ll, .s, .o",
     .pipeline = kProcessorPipeline,
     .motion = kProcessorMotion,
     .has_threads = true,
     .has_tiles = true,
     .has_exact_math = false},
    {.name = "c",
     .doc = "C11 with OpenMP, by this machine's C compiler",
     .kind = TargetKind::kProcessor,
     .writes = ".c",
     .pipeline = kProcessorPipeline,
     .motion = kProcessorMotion,
     .has_exact_math = false},
    {.name = "cuda",
     .doc = "CUDA C for GPUs; run on this machine by a shim of their execution model",
     .kind = TargetKind::kGpu,
     .writes = "a bundle: kernel.cu, bundle.json, with nvcc .ptx and .cubin",
     .pipeline = kGpuPipeline,
     // A thread of a GPU behind nvcc.
     .motion = {.divide = 6,
                .divide_variable = 30,
                .unrolled_extent = 8,
                .max_live = 32,
                .leave_inner_threads = true},
     .has_externs = false,
     .has_exact_math = false},
    {.name = "interp",
     .doc = "the interpreter, whose values are the meaning of a function",
     .kind = TargetKind::kInterpreter,
     .writes = ".nir",
     .pipeline = "",
     // Every operation takes the same time.
     .motion = {.multiply = 1,
                .divide = 1,
                .divide_variable = 1,
                .intrinsic = 1,
                .load = 1,
                .threshold = 1,
                .unrolled_extent = 0}},
};

}  // namespace

absl::Span<const TargetFacts> Targets() { return kTargets; }

}  // namespace polynao
