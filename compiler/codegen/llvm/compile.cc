#include "compiler/codegen/llvm/compile.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/status.h"
#include "base/text.h"
#include "compiler/codegen/llvm/emit_module.h"
#include "compiler/codegen/llvm/lane_loads.h"
#include "compiler/codegen/llvm/module_parts.h"
#include "compiler/codegen/llvm/opaque_starts.h"
#include "compiler/codegen/llvm/runtime/thread_pool.h"
#include "compiler/ir/externs.h"
#include "compiler/ir/type.h"
#include "compiler/ir/verify.h"
#include "compiler/ir/visit.h"
#include "isa/processor/processor.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/ScalarEvolution.h"
#include "llvm/Analysis/TargetLibraryInfo.h"
#include "llvm/Bitcode/BitcodeReader.h"
#include "llvm/Bitcode/BitcodeWriter.h"
#include "llvm/ExecutionEngine/Orc/CompileUtils.h"
#include "llvm/ExecutionEngine/Orc/LLJIT.h"
#include "llvm/IR/DiagnosticInfo.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/Verifier.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/DynamicLibrary.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/Transforms/Utils/Cloning.h"

namespace polynao::codegen {
namespace {

using llvm::orc::JITTargetMachineBuilder;
using llvm::orc::LLJIT;

void InitializeLlvm() {
  static std::once_flag once;
  std::call_once(once, [] {
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
    llvm::InitializeNativeTargetAsmParser();
    // Otherwise LLVM would reassociate float sums in loops marked for vectorisation.
    auto option = llvm::cl::getRegisteredOptions().find("hints-allow-reordering");
    POLYNAO_CHECK(option != llvm::cl::getRegisteredOptions().end())
        << "this LLVM can not keep the order of float sums in vectorised loops";
    static_cast<llvm::cl::opt<bool>*>(option->second)->setValue(false);
    // This pass moves what scalar code computes for masks to their registers. Of long functions it takes a quarter of
    // the time behind the optimizer, and code of vector loops has little of that.
    option = llvm::cl::getRegisteredOptions().find("disable-x86-domain-reassignment");
    if (option != llvm::cl::getRegisteredOptions().end()) {
      static_cast<llvm::cl::opt<bool>*>(option->second)->setValue(true);
    }
  });
}

absl::Status ToStatus(llvm::Error error) {
  return absl::InternalError(StrCat("LLVM: ", llvm::toString(std::move(error))));
}

// LLVM itself only prints a warning for a name it does not know.
absl::Status CheckCpu(const llvm::Triple& triple, const std::string& cpu) {
  std::string error;
  const llvm::Target* target = llvm::TargetRegistry::lookupTarget(triple.str(), error);
  POLYNAO_CHECK(target != nullptr) << error;
  const std::unique_ptr<llvm::MCSubtargetInfo> info(
      target->createMCSubtargetInfo(triple.str(), "", ""));
  if (info->isCPUStringValid(cpu)) return absl::OkStatus();
  return InvalidInput("'", cpu, "' is no CPU that LLVM knows for ", triple.str());
}

// What the module is compiled for.
struct Target {
  std::unique_ptr<JITTargetMachineBuilder> builder;
  std::unique_ptr<llvm::TargetMachine> machine;
  bool is_host = true;

  static absl::StatusOr<Target> Create(const LlvmOptions& options) {
    InitializeLlvm();
    if (options.optimization_level < 0 || options.optimization_level > 3) {
      return InvalidInput("optimization level: expected 0 to 3, got ", options.optimization_level);
    }
    auto host = JITTargetMachineBuilder::detectHost();
    if (!host) return ToStatus(host.takeError());
    Target target;
    target.builder = std::make_unique<JITTargetMachineBuilder>(std::move(*host));
    target.is_host = options.cpu.empty();
    if (!target.is_host) {
      RETURN_IF_ERROR(CheckCpu(target.builder->getTargetTriple(), options.cpu));
      *target.builder = JITTargetMachineBuilder(target.builder->getTargetTriple());
      target.builder->setCPU(options.cpu);
    }
    target.builder->setRelocationModel(llvm::Reloc::PIC_);
    target.builder->setCodeGenOptLevel(*llvm::CodeGenOpt::getLevel(options.optimization_level));
    target.builder->getOptions().AllowFPOpFusion = llvm::FPOpFusion::Strict;
    auto machine = target.builder->createTargetMachine();
    if (!machine) return ToStatus(machine.takeError());
    target.machine = std::move(*machine);
    return target;
  }

  // No processor that lowers its clock for vectors of 512 bits has this extension.
  bool HasCheapWideVectors() const {
    return machine->getTargetTriple().isX86() &&
           machine->getMCSubtargetInfo()->checkFeatures("+avx512vbmi2");
  }

  // Of the registers that vector loops fill.
  int64_t VectorBytes(bool wide_vectors) const {
    if (!machine->getTargetTriple().isX86()) return 16;
    if (wide_vectors && HasCheapWideVectors()) return 64;
    return machine->getMCSubtargetInfo()->checkFeatures("+avx2") ? 32 : 16;
  }

  bool HasGathers() const {
    const llvm::MCSubtargetInfo* features = machine->getMCSubtargetInfo();
    return machine->getTargetTriple().isX86() && !features->checkFeatures("+prefer-no-gather") &&
           (features->checkFeatures("+avx512f") || features->checkFeatures("+avx2,+fast-gather"));
  }

  // Of the table of processors' instructions, those for vectors that are used, and that the system lets the code use:
  // of this machine, what it has; of another one, Linux asks when the code runs.
  std::vector<const isa::ProcessorInstruction*> Instructions(bool wide_vectors) const {
    std::vector<const isa::ProcessorInstruction*> list;
    if (!machine->getTargetTriple().isX86()) return list;
    for (const isa::ProcessorInstruction& row : isa::ProcessorInstructions()) {
      const int64_t bytes = row.lanes * row.group * ir::ByteSize(row.b->type);
      const bool has_system = is_host ? isa::HostHas(row.feature)
                                      : !row.IsTile() || machine->getTargetTriple().isOSLinux();
      if (bytes <= VectorBytes(wide_vectors) && has_system &&
          machine->getMCSubtargetInfo()->checkFeatures(StrCat("+", row.feature))) {
        list.push_back(&row);
      }
    }
    return list;
  }

  bool HasNativeHalf() const {
    if (machine->getTargetTriple().isAArch64()) return true;
    const llvm::MCSubtargetInfo* features = machine->getMCSubtargetInfo();
    return machine->getTargetTriple().isX86() && features->checkFeatures("+f16c");
  }

  bool HasNativeFma() const {
    if (machine->getTargetTriple().isAArch64()) return true;
    const llvm::MCSubtargetInfo* features = machine->getMCSubtargetInfo();
    return machine->getTargetTriple().isX86() && features->checkFeatures("+fma");
  }
};

// Errors are reported elsewhere; remarks such as "loop not vectorized" are dropped.
void IgnoreDiagnostic(const llvm::DiagnosticInfo* info, void*) {
  POLYNAO_CHECK(info->getSeverity() != llvm::DS_Error) << "LLVM rejects what was emitted";
}

void IgnoreDiagnosticsIn(llvm::LLVMContext& context) {
  context.setDiagnosticHandlerCallBack(
      [](const llvm::DiagnosticInfo* info, void* data) { IgnoreDiagnostic(info, data); });
}

// Whether emitted code may call a library function of that name, so that an exported function must
// not have it: what LLVM knows of the C library (it makes memset of loops), memory, threads.
bool IsLibrarySymbol(std::string_view name, const llvm::Triple& triple) {
  if (name == "aligned_alloc" || name == "polynao_parallel_for") return true;
  llvm::LibFunc function;
  return llvm::TargetLibraryInfoImpl(triple).getLibFunc(llvm::StringRef(name), function);
}

// Emits the meanings of the extern functions that `function` calls. `texts`: of those that the module has.
absl::Status EmitExterns(const ir::Function& function, EmitOptions options, llvm::Module* module,
                         std::map<std::string, std::string>& texts,
                         std::vector<std::string>* failures) {
  options.is_meaning = true;
  for (const ir::ExternNode* callee : ir::ExternsOf(function)) {
    const auto [it, is_new] = texts.emplace(callee->name, callee->text);
    if (!is_new && it->second == callee->text) continue;
    if (!is_new) {
      return InvalidInput("two extern functions of this module are called '", callee->name, "'");
    }
    if (!ir::HasMeaning(*callee)) continue;
    RETURN_IF_ERROR(EmitFunction(ir::MeaningOf(*callee), options, module, failures));
  }
  return absl::OkStatus();
}

// Before code runs in this process: the functions that it calls are here.
absl::Status CheckExternsAreHere(const ir::Function& function) {
  llvm::sys::DynamicLibrary::LoadLibraryPermanently(nullptr);
  for (const ir::ExternNode* callee : ir::ExternsOf(function)) {
    if (ir::HasMeaning(*callee)) continue;
    if (llvm::sys::DynamicLibrary::SearchForAddressOfSymbol(callee->name) != nullptr) continue;
    return InvalidInput("the extern function '", callee->name,
                        "' is not in this process: declare it with a meaning, or compile to an "
                        "object file or to C and link it");
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<llvm::Module>> EmitModule(absl::Span<const ir::Function> functions,
                                                         const LlvmOptions& options,
                                                         const Target& target, bool is_exported,
                                                         llvm::LLVMContext* context,
                                                         std::vector<std::string>* failures) {
  IgnoreDiagnosticsIn(*context);
  auto module = std::make_unique<llvm::Module>("polynao", *context);
  module->setTargetTriple(target.machine->getTargetTriple().str());
  module->setDataLayout(target.machine->createDataLayout());
  const EmitOptions emit{.checks = options.checks,
                         .threads = options.threads,
                         .native_half = target.HasNativeHalf(),
                         .native_fma = target.HasNativeFma(),
                         .vector_bytes = target.VectorBytes(options.wide_vectors),
                         .has_gathers = target.HasGathers(),
                         .instructions = target.Instructions(options.wide_vectors),
                         .stream_bytes = options.stream_bytes,
                         .float_rules = options.float_rules};
  std::map<std::string, std::string> extern_texts;
  for (const ir::Function& function : functions) {
    RETURN_IF_ERROR(ir::Verify(function));
    RETURN_IF_ERROR(EmitExterns(function, emit, module.get(), extern_texts, failures));
    for (const std::string& name : {function.name, RawEntryName(function.name)}) {
      if (module->getFunction(name) != nullptr) {
        return InvalidInput("two functions of this module would be called '", name, "'");
      }
      if (is_exported && IsLibrarySymbol(name, target.machine->getTargetTriple())) {
        return InvalidInput("a function must not be called '", name,
                            "', which is a function of the C library that compiled code may call");
      }
    }
    RETURN_IF_ERROR(EmitFunction(function, emit, module.get(), failures));
  }
  if (options.wide_vectors && target.HasCheapWideVectors()) {
    for (llvm::Function& function : *module) {
      if (!function.isDeclaration()) function.addFnAttr("prefer-vector-width", "512");
    }
  }
  std::string errors;
  llvm::raw_string_ostream stream(errors);
  POLYNAO_CHECK(!llvm::verifyModule(*module, &stream)) << errors;
  return module;
}

void Optimize(llvm::Module& module, int level, llvm::TargetMachine* machine) {
  llvm::PipelineTuningOptions tuning;
  tuning.LoopVectorization = level >= 2;
  tuning.LoopInterleaving = level >= 2;
  tuning.SLPVectorization = level >= 2;
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager components;
  llvm::ModuleAnalysisManager modules;
  llvm::PassBuilder builder(machine, tuning);
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(components);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, components, modules);
  const llvm::OptimizationLevel levels[] = {
      llvm::OptimizationLevel::O0, llvm::OptimizationLevel::O1, llvm::OptimizationLevel::O2,
      llvm::OptimizationLevel::O3};
  llvm::ModulePassManager passes = level == 0
                                       ? builder.buildO0DefaultPipeline(levels[0])
                                       : builder.buildPerModuleDefaultPipeline(levels[level]);
  passes.run(module, modules);
  LowerLaneLoads(module);
  if (level == 0) return;
  for (llvm::Function& function : module) {
    if (function.isDeclaration()) continue;
    HideStarts(functions.getResult<llvm::LoopAnalysis>(function),
               functions.getResult<llvm::ScalarEvolutionAnalysis>(function));
  }
}

// Object code of each module, compiled side by side, each in a context and by a target machine of its own.
absl::StatusOr<std::vector<std::unique_ptr<llvm::MemoryBuffer>>> ObjectsOf(
    const std::vector<std::unique_ptr<llvm::Module>>& parts, int level,
    const JITTargetMachineBuilder& builder) {
  using Object = llvm::Expected<std::unique_ptr<llvm::MemoryBuffer>>;
  const auto compile = [&](llvm::StringRef bitcode) -> Object {
    llvm::LLVMContext context;
    IgnoreDiagnosticsIn(context);
    auto module = llvm::parseBitcodeFile(llvm::MemoryBufferRef(bitcode, "part"), context);
    if (!module) return module.takeError();
    auto machine = JITTargetMachineBuilder(builder).createTargetMachine();
    if (!machine) return machine.takeError();
    Optimize(**module, level, machine->get());
    return llvm::orc::SimpleCompiler(**machine)(**module);
  };
  std::vector<std::optional<Object>> compiled(parts.size());
  std::vector<llvm::SmallVector<char, 0>> texts(parts.size());
  std::vector<std::thread> others;
  for (size_t i = 0; i < parts.size(); ++i) {
    llvm::raw_svector_ostream stream(texts[i]);
    llvm::WriteBitcodeToFile(*parts[i], stream);
  }
  const auto run = [&](size_t i) {
    compiled[i].emplace(compile(llvm::StringRef(texts[i].data(), texts[i].size())));
  };
  for (size_t i = 1; i < parts.size(); ++i) others.emplace_back(run, i);
  if (!parts.empty()) run(0);
  for (std::thread& other : others) other.join();
  std::vector<std::unique_ptr<llvm::MemoryBuffer>> objects;
  absl::Status status;
  for (std::optional<Object>& object : compiled) {
    if (*object) {
      objects.push_back(std::move(**object));
    } else {
      status.Update(ToStatus(object->takeError()));
    }
  }
  if (!status.ok()) return status;
  return objects;
}

}  // namespace

struct CompiledFunction::Code {
  // Of all functions that were compiled together.
  struct Module {
    std::vector<std::string> failures;
    std::unique_ptr<LLJIT> jit;
  };
  ir::Function function;  // keeps the parameters' context alive
  std::shared_ptr<Module> module;
  RawEntry entry = nullptr;
};

CompiledFunction::CompiledFunction(std::unique_ptr<Code> code) : code_(std::move(code)) {}
CompiledFunction::~CompiledFunction() = default;

RawEntry CompiledFunction::entry() const { return code_->entry; }

absl::Status CompiledFunction::ToStatus(int32_t code) const {
  if (code == 0) return absl::OkStatus();
  const std::vector<std::string>& failures = code_->module->failures;
  POLYNAO_CHECK(code > 0 && static_cast<size_t>(code) <= failures.size()) << code;
  return InvalidInput(failures[code - 1]);
}

absl::Status CompiledFunction::Run(absl::Span<const ir::Argument> arguments) const {
  ASSIGN_OR_RETURN(const RawArguments raw, LayOutArguments(code_->function, arguments));
  return ToStatus(code_->entry(raw.buffers.data(), raw.scalars.data()));
}

absl::StatusOr<std::unique_ptr<CompiledFunction>> Compile(const ir::Function& function,
                                                          const LlvmOptions& options) {
  ASSIGN_OR_RETURN(auto compiled, CompileAll({function}, options));
  return std::move(compiled[0]);
}

absl::StatusOr<std::vector<std::unique_ptr<CompiledFunction>>> CompileAll(
    absl::Span<const ir::Function> functions, const LlvmOptions& options) {
  ASSIGN_OR_RETURN(Target target, Target::Create(options));
  for (const ir::Function& function : functions) RETURN_IF_ERROR(CheckExternsAreHere(function));
  // Nothing needs the functions' names in memory. Under its own name, calls of the C library's
  // function would call this one.
  std::vector<ir::Function> emitted(functions.begin(), functions.end());
  for (ir::Function& function : emitted) {
    if (IsLibrarySymbol(function.name, target.machine->getTargetTriple())) {
      StrAppend(&function.name, ".jit");
    }
  }
  auto code = std::make_shared<CompiledFunction::Code::Module>();
  auto context = std::make_unique<llvm::LLVMContext>();
  ASSIGN_OR_RETURN(
      std::unique_ptr<llvm::Module> module,
      EmitModule(emitted, options, target, /*is_exported=*/false, context.get(), &code->failures));
  const size_t threads = options.compile_threads > 0 ? static_cast<size_t>(options.compile_threads)
                                                     : std::thread::hardware_concurrency();
  std::vector<std::unique_ptr<llvm::MemoryBuffer>> objects;
  if (threads > 1) {
    const std::vector<std::unique_ptr<llvm::Module>> parts = ModuleParts(*module, threads);
    ASSIGN_OR_RETURN(objects, ObjectsOf(parts, options.optimization_level, *target.builder));
  }
  if (objects.empty()) Optimize(*module, options.optimization_level, target.machine.get());

  // LLJIT would make two more target machines, which takes as long as a small function.
  llvm::orc::LLJITBuilder builder;
  builder.setJITTargetMachineBuilder(*target.builder);
  builder.setDataLayout(module->getDataLayout());
  builder.setCompileFunctionCreator([&](JITTargetMachineBuilder) {
    return std::make_unique<llvm::orc::TMOwningSimpleCompiler>(std::move(target.machine));
  });
  auto jit = builder.create();
  if (!jit) return ToStatus(jit.takeError());
  code->jit = std::move(*jit);
  // The runtime is linked into this executable; looking up its symbols by name may not find them.
  llvm::orc::SymbolMap runtime;
  runtime[code->jit->mangleAndIntern("polynao_parallel_for")] = {
      llvm::orc::ExecutorAddr::fromPtr(&polynao_parallel_for),
      llvm::JITSymbolFlags::Exported | llvm::JITSymbolFlags::Callable};
  if (auto error =
          code->jit->getMainJITDylib().define(llvm::orc::absoluteSymbols(std::move(runtime)))) {
    return ToStatus(std::move(error));
  }
  for (std::unique_ptr<llvm::MemoryBuffer>& object : objects) {
    if (auto error = code->jit->addObjectFile(std::move(object))) return ToStatus(std::move(error));
  }
  if (objects.empty()) {
    if (auto error = code->jit->addIRModule(
            llvm::orc::ThreadSafeModule(std::move(module), std::move(context)))) {
      return ToStatus(std::move(error));
    }
  }
  std::vector<std::unique_ptr<CompiledFunction>> result;
  for (size_t i = 0; i < functions.size(); ++i) {
    auto entry = code->jit->lookup(RawEntryName(emitted[i].name));
    if (!entry) return ToStatus(entry.takeError());
    auto one = std::make_unique<CompiledFunction::Code>();
    one->function = functions[i];
    one->module = code;
    one->entry = entry->toPtr<RawEntry>();
    result.emplace_back(new CompiledFunction(std::move(one)));
  }
  return result;
}

absl::StatusOr<std::vector<std::string>> EmitLlvm(const ir::Module& module,
                                                  absl::Span<const LlvmOutput> outputs,
                                                  const LlvmOptions& options) {
  ASSIGN_OR_RETURN(Target target, Target::Create(options));
  llvm::LLVMContext context;
  std::vector<std::string> failures;
  ASSIGN_OR_RETURN(
      std::unique_ptr<llvm::Module> emitted,
      EmitModule(module.functions, options, target, /*is_exported=*/true, &context, &failures));
  std::vector<std::string> texts(outputs.size());
  const auto print = [&](LlvmOutput what) {
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (outputs[i] != what) continue;
      llvm::raw_string_ostream stream(texts[i]);
      // Other tools know no calls that stand for loads.
      const std::unique_ptr<llvm::Module> printed = llvm::CloneModule(*emitted);
      LowerLaneLoads(*printed);
      printed->print(stream, nullptr);
    }
  };
  print(LlvmOutput::kIr);
  const auto is_ir = [](LlvmOutput output) { return output == LlvmOutput::kIr; };
  if (std::all_of(outputs.begin(), outputs.end(), is_ir)) return texts;
  Optimize(*emitted, options.optimization_level, target.machine.get());
  print(LlvmOutput::kOptimizedIr);
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i] != LlvmOutput::kAssembly && outputs[i] != LlvmOutput::kObject) continue;
    llvm::SmallVector<char, 0> bytes;
    llvm::raw_svector_ostream stream(bytes);
    llvm::legacy::PassManager passes;
    const auto file_type = outputs[i] == LlvmOutput::kObject ? llvm::CodeGenFileType::ObjectFile
                                                             : llvm::CodeGenFileType::AssemblyFile;
    POLYNAO_CHECK(!target.machine->addPassesToEmitFile(passes, stream, nullptr, file_type))
        << "this target writes no such file";
    // The passes change the module.
    passes.run(*llvm::CloneModule(*emitted));
    texts[i].assign(bytes.begin(), bytes.end());
  }
  return texts;
}

absl::StatusOr<std::string> EmitLlvm(const ir::Module& module, LlvmOutput output,
                                     const LlvmOptions& options) {
  ASSIGN_OR_RETURN(std::vector<std::string> texts, EmitLlvm(module, {&output, 1}, options));
  return std::move(texts[0]);
}

}  // namespace polynao::codegen
