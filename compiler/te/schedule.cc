#include "compiler/te/schedule.h"

#include <algorithm>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_join.h"
#include "base/check.h"
#include "base/status.h"
#include "base/text.h"
#include "compiler/ir/visit.h"
#include "isa/levels.h"

namespace polynao::te {

using ir::ForKind;

namespace {

constexpr std::string_view kThreadAxes[] = {isa::kClusterAxis, isa::kCoreAxis, "blockIdx.x",
                                            "blockIdx.y",      "blockIdx.z",   "threadIdx.x",
                                            "threadIdx.y",     "threadIdx.z"};

std::string_view KindName(const AxisData& axis) {
  switch (axis.kind) {
    case ForKind::kSerial:
      return "serial";
    case ForKind::kParallel:
      return "parallel";
    case ForKind::kUnroll:
      return "unrolled";
    case ForKind::kVectorize:
      return "vectorized";
    case ForKind::kThread:
      return axis.thread;
  }
  POLYNAO_UNREACHABLE(static_cast<int>(axis.kind));
}

}  // namespace

std::vector<const Operation*> ReadOperations(const GraphState& graph,
                                             absl::Span<const Body> bodies) {
  std::vector<const Operation*> operations;
  for (const Body& body : bodies) {
    ir::ForEachExpr(body.value, [&](Expr e) {
      if (!e.Is(ir::ExprKind::kLoad)) return;
      auto it = graph.producers.find(ir::Buffer(e.buffer()));
      POLYNAO_CHECK(it != graph.producers.end()) << "load of a foreign buffer " << e.buffer()->name;
      const Operation* operation = it->second.first;
      if (std::find(operations.begin(), operations.end(), operation) == operations.end()) {
        operations.push_back(operation);
      }
    });
  }
  return operations;
}

// ---- Stage --------------------------------------------------------------------------------------

void Stage::Reset(const Operation* operation, Axes axes, std::vector<Body> bodies) {
  data_.operation = operation;
  data_.axes = std::move(axes);
  data_.bodies = std::move(bodies);
  data_.spatial.clear();
  data_.reduce.clear();
  for (const std::string& name : operation->axis_names) {
    data_.spatial.push_back(NewAxis(name, false).data());
  }
  if (!data_.bodies.empty()) {
    for (const ReduceAxis& axis : data_.bodies[0].axes) {
      data_.reduce.push_back(NewAxis(std::string(axis.name()), true).data());
    }
  }
  data_.leaves = data_.spatial;
  data_.leaves.insert(data_.leaves.end(), data_.reduce.begin(), data_.reduce.end());
}

Axis Stage::NewAxis(std::string name, bool is_reduce) {
  AxisData axis;
  axis.stage = this;
  axis.name = std::move(name);
  axis.is_reduce = is_reduce;
  axis_pool_.push_back(std::move(axis));
  return Axis(&axis_pool_.back());
}

bool Stage::Check(bool condition, std::string_view primitive, const std::string& message) {
  if (!schedule_.status().ok()) return false;
  if (condition) return true;
  schedule_.Fail(StrCat("stage ", name(), ": ", primitive, ": ", message));
  return false;
}

size_t Stage::LeafPosition(Axis axis) const {
  return std::find(data_.leaves.begin(), data_.leaves.end(), axis.data()) - data_.leaves.begin();
}

bool Stage::CheckLeaf(Axis axis, std::string_view primitive) {
  if (!Check(static_cast<bool>(axis), primitive, "the axis is not set")) return false;
  if (!Check(axis.data()->stage == this, primitive,
             StrCat("axis ", axis.name(), " belongs to stage ", axis.data()->stage->name()))) {
    return false;
  }
  return Check(LeafPosition(axis) < data_.leaves.size(), primitive,
               StrCat("axis ", axis.name(), " is no leaf axis, leaves are [",
                      absl::StrJoin(data_.leaves, ", ",
                                    [](std::string* out, const AxisData* leaf) {
                                      StrAppend(out, leaf->name);
                                    }),
                      "]"));
}

bool Stage::CheckPlainLeaf(Axis axis, std::string_view primitive) {
  if (!CheckLeaf(axis, primitive)) return false;
  const AxisData& data = *axis.data();
  return Check(data.kind == ForKind::kSerial, primitive,
               StrCat("axis ", data.name, " is already ",
                      data.kind == ForKind::kThread ? "bound to " : "", KindName(data))) &&
         Check(data.pragmas.empty() && data.init_pragmas.empty(), primitive,
               StrCat("axis ", data.name, " has a pragma")) &&
         Check(!schedule_.IsAttachedAt(&data), primitive,
               StrCat("a stage is computed at axis ", data.name));
}

bool Stage::CheckStored(std::string_view primitive) {
  return Check(!data_.is_output, primitive, "the stage is an output, the caller owns its memory");
}

Axis Stage::axis(size_t i) {
  if (!Check(i < data_.spatial.size(), "axis",
             StrCat("there is no axis ", i, " of ", data_.spatial.size()))) {
    return Axis();
  }
  return Axis(data_.spatial[i]);
}

Axis Stage::reduce_axis(size_t i) {
  if (!Check(i < data_.reduce.size(), "reduce_axis",
             StrCat("there is no reduce axis ", i, " of ", data_.reduce.size()))) {
    return Axis();
  }
  return Axis(data_.reduce[i]);
}

std::vector<Axis> Stage::leaves() const {
  std::vector<Axis> axes;
  for (AxisData* leaf : data_.leaves) axes.emplace_back(leaf);
  return axes;
}

std::pair<Axis, Axis> Stage::DoSplit(Axis axis, AxisRelation::Kind kind, int64_t amount,
                                     int64_t before, std::string_view primitive) {
  if (!CheckPlainLeaf(axis, primitive)) return {};
  if (!Check(amount >= 1, primitive,
             StrCat("axis ", axis.name(), " by ", amount, ", expected 1 or more"))) {
    return {};
  }
  if (!Check(before >= 0, primitive,
             StrCat("axis ", axis.name(), " with ", before,
                    " places before it, expected 0 or more"))) {
    return {};
  }
  const bool is_reduce = axis.data()->is_reduce;
  if (!Check(before == 0 || !is_reduce, primitive,
             StrCat("axis ", axis.name(), " with places before it, expected a spatial axis"))) {
    return {};
  }
  const Axis outer = NewAxis(axis.name() + "o", is_reduce);
  const Axis inner = NewAxis(axis.name() + "i", is_reduce);
  data_.relations.push_back({kind, axis.data(), outer.data(), inner.data(), amount, before});
  const size_t position = LeafPosition(axis);
  data_.leaves[position] = outer.data();
  data_.leaves.insert(data_.leaves.begin() + position + 1, inner.data());
  return {outer, inner};
}

std::pair<Axis, Axis> Stage::Split(Axis axis, int64_t factor, int64_t before) {
  return DoSplit(axis, AxisRelation::Kind::kSplit, factor, before, "Split");
}

std::pair<Axis, Axis> Stage::SplitParts(Axis axis, int64_t parts) {
  return DoSplit(axis, AxisRelation::Kind::kSplitParts, parts, 0, "SplitParts");
}

std::array<Axis, 4> Stage::Tile(Axis x, Axis y, int64_t x_factor, int64_t y_factor) {
  const auto [xo, xi] = Split(x, x_factor);
  const auto [yo, yi] = Split(y, y_factor);
  Reorder({xo, yo, xi, yi});
  return {xo, yo, xi, yi};
}

Axis Stage::Rotate(Axis axis, Axis by, int64_t amount) {
  if (!CheckPlainLeaf(axis, "Rotate") || !CheckLeaf(by, "Rotate")) return Axis();
  if (!Check(LeafPosition(by) < LeafPosition(axis), "Rotate",
             StrCat("axis ", by.name(), " is not outside axis ", axis.name()))) {
    return Axis();
  }
  if (!Check(amount >= 0 && !axis.data()->is_reduce, "Rotate",
             StrCat("axis ", axis.name(), " by ", amount,
                    ", expected a spatial axis and 0 or more"))) {
    return Axis();
  }
  const Axis rotated = NewAxis(axis.name() + "r", false);
  data_.relations.push_back(
      {AxisRelation::Kind::kRotate, axis.data(), by.data(), rotated.data(), amount});
  data_.leaves[LeafPosition(axis)] = rotated.data();
  return rotated;
}

Axis Stage::Fuse(Axis outer, Axis inner) {
  if (!CheckPlainLeaf(outer, "Fuse") || !CheckPlainLeaf(inner, "Fuse")) return Axis();
  if (!Check(LeafPosition(inner) == LeafPosition(outer) + 1, "Fuse",
             StrCat("axis ", inner.name(), " is not right inside axis ", outer.name()))) {
    return Axis();
  }
  if (!Check(outer.data()->is_reduce == inner.data()->is_reduce, "Fuse",
             StrCat("of ", outer.name(), " and ", inner.name(),
                    " one is a reduce axis, expected both or none"))) {
    return Axis();
  }
  const Axis fused = NewAxis(StrCat(outer.name(), "_", inner.name()), outer.data()->is_reduce);
  data_.relations.push_back(
      {AxisRelation::Kind::kFuse, fused.data(), outer.data(), inner.data(), 0});
  const size_t position = LeafPosition(outer);
  data_.leaves[position] = fused.data();
  data_.leaves.erase(data_.leaves.begin() + position + 1);
  return fused;
}

Axis Stage::Fuse(const std::vector<Axis>& axes) {
  if (axes.empty()) {
    if (!Check(true, "Fuse", "")) return Axis();
    const Axis one = NewAxis("one", false);
    data_.leaves.insert(data_.leaves.begin(), one.data());
    return one;
  }
  Axis fused = axes[0];
  if (!CheckLeaf(fused, "Fuse")) return Axis();
  for (size_t i = 1; i < axes.size(); ++i) fused = Fuse(fused, axes[i]);
  return fused;
}

Stage& Stage::Reorder(const std::vector<Axis>& axes) {
  std::vector<size_t> positions;
  for (Axis axis : axes) {
    if (!CheckLeaf(axis, "Reorder")) return *this;
    const size_t position = LeafPosition(axis);
    if (!Check(std::find(positions.begin(), positions.end(), position) == positions.end(),
               "Reorder", StrCat("axis ", axis.name(), " is named twice"))) {
      return *this;
    }
    positions.push_back(position);
  }
  std::sort(positions.begin(), positions.end());
  for (size_t i = 0; i < axes.size(); ++i) data_.leaves[positions[i]] = axes[i].data();
  return *this;
}

Stage& Stage::ComputeAt(Stage& consumer, Axis axis) {
  if (!Check(&consumer != this, "ComputeAt", "a stage can not be computed inside itself") ||
      !Check(!data_.is_output, "ComputeAt", "the stage is an output") ||
      !Check(!data_.is_inlined, "ComputeAt", "the stage is inlined") ||
      !consumer.CheckLeaf(axis, StrCat("ComputeAt of ", name()))) {
    return *this;
  }
  data_.attach_stage = &consumer;
  data_.attach_axis = axis.data();
  data_.store_axis = nullptr;
  return *this;
}

Stage& Stage::StoreAt(Axis axis, int64_t ahead) {
  if (!Check(data_.attach_stage != nullptr, "StoreAt", "ComputeAt comes first") ||
      !Check(ahead >= 1, "StoreAt", StrCat("expected 1 or more iterations ahead, found ", ahead)) ||
      !Check(static_cast<bool>(axis), "StoreAt", "the axis is not set") ||
      !Check(axis.data()->stage == data_.attach_stage, "StoreAt",
             StrCat("axis ", axis.name(), " belongs to stage ", axis.data()->stage->name()))) {
    return *this;
  }
  data_.store_axis = axis.data();
  data_.ahead = ahead;
  return *this;
}

Stage& Stage::ComputeWhole(size_t d) { return SetLeast(d, INT64_MAX, "ComputeWhole"); }

Stage& Stage::ComputeAtLeast(size_t d, int64_t size) {
  if (!Check(size >= 1, "ComputeAtLeast", StrCat("expected 1 or more elements, found ", size))) {
    return *this;
  }
  return SetLeast(d, size, "ComputeAtLeast");
}

Stage& Stage::SetLeast(size_t d, int64_t size, std::string_view primitive) {
  if (!CheckStored(primitive)) return *this;
  if (!Check(d < data_.spatial.size(), primitive, StrCat("there is no dimension ", d))) {
    return *this;
  }
  data_.at_least.resize(data_.spatial.size());
  data_.at_least[d] = size;
  return *this;
}

Stage& Stage::ComputeRoot() {
  if (!Check(!data_.is_inlined, "ComputeRoot", "the stage is inlined")) return *this;
  data_.attach_stage = nullptr;
  data_.attach_axis = nullptr;
  data_.store_axis = nullptr;
  return *this;
}

Stage& Stage::ComputeInline() {
  if (!Check(!data_.is_output, "ComputeInline", "the stage is an output") ||
      !Check(data_.bodies.empty() || !data_.bodies[0].reducer, "ComputeInline",
             "the stage is a reduction") ||
      !Check(data_.attach_stage == nullptr, "ComputeInline",
             "the stage is computed at an axis of another one")) {
    return *this;
  }
  data_.is_inlined = true;
  return *this;
}

Stage& Stage::SetKind(Axis axis, ForKind kind, std::string_view thread,
                      std::string_view primitive) {
  if (!CheckLeaf(axis, primitive)) return *this;
  AxisData& data = *axis.data();
  if (!Check(data.kind == ForKind::kSerial, primitive,
             StrCat("axis ", data.name, " is already ",
                    data.kind == ForKind::kThread ? "bound to " : "", KindName(data))) ||
      !Check(
          kind == ForKind::kUnroll || !data.is_reduce, primitive,
          StrCat("axis ", data.name, " is a reduce axis, its iterations depend on one another"))) {
    return *this;
  }
  data.kind = kind;
  data.thread = thread;
  return *this;
}

Stage& Stage::Bind(Axis axis, std::string_view thread) {
  if (!Check(std::find(std::begin(kThreadAxes), std::end(kThreadAxes), thread) !=
                 std::end(kThreadAxes),
             "Bind",
             StrCat("\"", thread, "\" is no thread axis, expected one of ",
                    absl::StrJoin(kThreadAxes, ", ", [](std::string* out, std::string_view name) {
                      out->append(name);
                    })))) {
    return *this;
  }
  for (const AxisData* leaf : data_.leaves) {
    if (!Check(leaf == axis.data() || leaf->kind != ForKind::kThread || leaf->thread != thread,
               "Bind", StrCat("axis ", leaf->name, " is bound to ", thread, " already"))) {
      return *this;
    }
  }
  return SetKind(axis, ForKind::kThread, thread, "Bind");
}

Stage& Stage::Vectorize(Axis axis) { return SetKind(axis, ForKind::kVectorize, "", "Vectorize"); }
Stage& Stage::Unroll(Axis axis) { return SetKind(axis, ForKind::kUnroll, "", "Unroll"); }
Stage& Stage::Parallel(Axis axis) { return SetKind(axis, ForKind::kParallel, "", "Parallel"); }

Stage& Stage::Pragma(Axis axis, std::string_view key, std::vector<Expr> arguments) {
  if (!CheckLeaf(axis, "Pragma")) return *this;
  axis.data()->pragmas.push_back({std::string(key), std::move(arguments)});
  return *this;
}

Stage& Stage::PragmaInit(Axis axis, std::string_view key, std::vector<Expr> arguments) {
  if (!CheckLeaf(axis, "PragmaInit") ||
      !Check(!axis.data()->is_reduce, "PragmaInit",
             StrCat("axis ", axis.name(), " is a reduce axis")) ||
      !Check(!data_.reduce.empty(), "PragmaInit", "the stage is no reduction")) {
    return *this;
  }
  axis.data()->init_pragmas.push_back({std::string(key), std::move(arguments)});
  return *this;
}

Stage& Stage::SetScope(std::string_view scope) {
  if (!CheckStored("SetScope")) return *this;
  data_.scope = scope;
  return *this;
}

Stage& Stage::InPlace(const Tensor& source) {
  if (!CheckStored("InPlace")) return *this;
  if (!Check(source && source.graph() == schedule_.graph(), "InPlace",
             "the tensor is not set or belongs to another graph")) {
    return *this;
  }
  data_.in_place_of = source.operation();
  return *this;
}

Stage& Stage::DoubleBuffer(int copies) {
  if (!CheckStored("DoubleBuffer")) return *this;
  if (!Check(copies == 2 || copies == 3, "DoubleBuffer",
             StrCat(copies, " copies, expected 2 or 3"))) {
    return *this;
  }
  data_.copies = copies;
  return *this;
}

Stage& Stage::StorageAlign(Axis axis, int64_t factor, int64_t offset) {
  if (!CheckStored("StorageAlign")) return *this;
  if (!Check(static_cast<bool>(axis), "StorageAlign", "the axis is not set")) return *this;
  const size_t dimension =
      std::find(data_.spatial.begin(), data_.spatial.end(), axis.data()) - data_.spatial.begin();
  if (!Check(dimension < data_.spatial.size(), "StorageAlign",
             StrCat("axis ", axis.name(), " is no dimension of the stage")) ||
      !Check(dimension + 1 < data_.spatial.size(), "StorageAlign",
             StrCat("axis ", axis.name(), " is the last dimension, its stride is 1")) ||
      !Check(
          factor >= 1 && offset >= 0 && offset < factor, "StorageAlign",
          StrCat("factor ", factor, " and offset ", offset, ", expected 0 <= offset < factor"))) {
    return *this;
  }
  std::erase_if(data_.alignments, [&](const StorageAlignment& alignment) {
    return alignment.dimension == dimension;
  });
  data_.alignments.push_back({dimension, factor, offset});
  return *this;
}

// ---- Schedule -----------------------------------------------------------------------------------

Schedule::Schedule(const std::vector<Tensor>& outputs)
    : outputs_(outputs),
      no_operation_{.kind = Operation::Kind::kCompute,
                    .name = "(none)",
                    .shape = {},
                    .outputs = {},
                    .axes = {},
                    .axis_names = {},
                    .bodies = {}} {
  no_stage_.reset(new Stage(*this));
  no_stage_->Reset(&no_operation_, {}, {});
  if (outputs.empty()) {
    Fail("a schedule needs an output");
    return;
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (!outputs[i]) {
      Fail(StrCat("output ", i, " is not set"));
      return;
    }
    if (graph_ == nullptr) graph_ = outputs[i].graph();
    if (outputs[i].graph() != graph_) {
      Fail(StrCat("output ", outputs[i].name(), " belongs to another graph than ",
                  outputs[0].name()));
      return;
    }
    if (outputs[i].operation()->kind != Operation::Kind::kCompute) {
      Fail(StrCat("output ", outputs[i].name(), " is an input, expected a compute"));
      return;
    }
    if (std::find(outputs.begin(), outputs.begin() + i, outputs[i]) != outputs.begin() + i) {
      Fail(StrCat("output ", outputs[i].name(), " is named twice"));
      return;
    }
  }
  for (const Tensor& output : outputs) {
    AddReachable(output.operation());
    Find(output.operation())->data_.is_output = true;
  }
}

void Schedule::AddReachable(const Operation* operation) {
  if (operation->kind != Operation::Kind::kCompute || Find(operation) != nullptr) return;
  AddStage(operation, operation->axes, operation->bodies);
  for (const Operation* read : ReadOperations(*graph_, operation->bodies)) AddReachable(read);
}

Stage& Schedule::AddStage(const Operation* operation, Axes axes, std::vector<Body> bodies) {
  stages_.emplace_back(new Stage(*this));
  Stage& stage = *stages_.back();
  stage.Reset(operation, std::move(axes), std::move(bodies));
  by_operation_[operation] = &stage;
  return stage;
}

Stage* Schedule::Find(const Operation* operation) const {
  auto it = by_operation_.find(operation);
  return it == by_operation_.end() ? nullptr : it->second;
}

bool Schedule::IsAttachedAt(const AxisData* axis) const {
  return std::any_of(stages_.begin(), stages_.end(), [&](const std::unique_ptr<Stage>& stage) {
    return stage->data_.attach_axis == axis || stage->data_.store_axis == axis;
  });
}

const absl::Status& Schedule::status() const {
  return graph_ != nullptr && !graph_->status.ok() ? graph_->status : status_;
}

void Schedule::Fail(const std::string& message) {
  if (status().ok()) status_ = InvalidInput(message);
}

Stage& Schedule::operator[](const Tensor& tensor) {
  if (!tensor) {
    Fail("the tensor is not set");
    return *no_stage_;
  }
  Stage* stage = Find(tensor.operation());
  if (stage != nullptr) return *stage;
  Fail(StrCat("tensor ", tensor.name(),
              tensor.operation()->kind == Operation::Kind::kCompute
                  ? " has no stage: no output needs it"
                  : " has no stage: it is an input"));
  return *no_stage_;
}

namespace {

// `bodies` with `from`'s results replaced by `to`'s.
std::vector<Body> ReadInstead(std::vector<Body> bodies, const ir::BufferMap& buffers) {
  for (Body& body : bodies) body.value = ir::Substitute(body.value, {}, buffers);
  return bodies;
}

std::vector<Type> OutputTypes(const Operation& operation) {
  std::vector<Type> types;
  for (ir::Buffer buffer : operation.outputs) types.push_back(buffer->type);
  return types;
}

}  // namespace

Tensor Schedule::CacheRead(const Tensor& tensor, std::string_view scope,
                           const std::vector<Tensor>& readers, std::string_view name) {
  if (!status().ok()) return Tensor();
  if (!tensor || tensor.graph() != graph_) {
    Fail("CacheRead: the tensor is not set or belongs to another graph");
    return Tensor();
  }
  auto reads = [&](const Stage& stage) {
    for (const Body& body : stage.data_.bodies) {
      bool found = false;
      ir::ForEachExpr(body.value,
                      [&](Expr e) { found = found || ir::Buffer(e.buffer()) == tensor.buffer(); });
      if (found) return true;
    }
    return false;
  };
  std::vector<Stage*> reading;
  for (const Tensor& reader : readers) {
    Stage& stage = (*this)[reader];
    if (!status().ok()) return Tensor();
    if (!reads(stage)) {
      Fail(StrCat("stage ", stage.name(), ": CacheRead: it does not read ", tensor.name()));
      return Tensor();
    }
    reading.push_back(&stage);
  }
  if (readers.empty()) {
    for (const auto& stage : stages_) {
      if (reads(*stage)) reading.push_back(stage.get());
    }
  }
  if (reading.empty()) {
    Fail(StrCat("CacheRead: no stage reads ", tensor.name()));
    return Tensor();
  }
  Axes axes;
  for (const std::string& axis : tensor.operation()->axis_names) {
    axes.push_back(graph_->context->NewVar(axis, graph_->index_type));
  }
  Operation copy{.kind = Operation::Kind::kCompute,
                 .name = name.empty() ? StrCat(tensor.name(), ".", scope) : std::string(name),
                 .shape = tensor.shape(),
                 .outputs = {},
                 .axes = axes,
                 .axis_names = tensor.operation()->axis_names,
                 .bodies = {Body(tensor.At(axes))}};
  const Operation& added = graph_->Add(std::move(copy), {tensor.type()});
  AddStage(&added, axes, added.bodies).data_.scope = scope;
  for (Stage* stage : reading) {
    stage->data_.bodies =
        ReadInstead(std::move(stage->data_.bodies), {{tensor.buffer(), added.outputs[0]}});
  }
  return Tensor(graph_, &added);
}

Tensor Schedule::CacheWrite(const Tensor& tensor, std::string_view scope, std::string_view name) {
  Stage& stage = (*this)[tensor];
  if (!stage.Check(
          stage.data_.relations.empty() &&
              stage.data_.leaves.size() == stage.data_.spatial.size() + stage.data_.reduce.size() &&
              std::equal(stage.data_.spatial.begin(), stage.data_.spatial.end(),
                         stage.data_.leaves.begin()) &&
              std::all_of(stage.data_.leaves.begin(), stage.data_.leaves.end(),
                          [this](const AxisData* leaf) {
                            return leaf->kind == ForKind::kSerial && leaf->pragmas.empty() &&
                                   leaf->init_pragmas.empty() && !IsAttachedAt(leaf);
                          }),
          "CacheWrite", "the stage's axes were changed before")) {
    return Tensor();
  }
  if (!stage.Check(!stage.data_.is_inlined, "CacheWrite", "the stage is inlined")) return Tensor();
  const Operation& old = *stage.data_.operation;
  Operation computed{.kind = Operation::Kind::kCompute,
                     .name = name.empty() ? StrCat(old.name, ".", scope) : std::string(name),
                     .shape = old.shape,
                     .outputs = {},
                     .axes = stage.data_.axes,
                     .axis_names = old.axis_names,
                     .bodies = stage.data_.bodies};
  const Operation& added = graph_->Add(std::move(computed), OutputTypes(old));
  AddStage(&added, added.axes, added.bodies).data_.scope = scope;
  Axes axes;
  for (const std::string& axis : old.axis_names) {
    axes.push_back(graph_->context->NewVar(axis, graph_->index_type));
  }
  std::vector<Body> copies;
  for (ir::Buffer buffer : added.outputs) {
    copies.emplace_back(graph_->context->Load(buffer, axes));
  }
  stage.Reset(&old, axes, std::move(copies));
  const auto result = std::find(old.outputs.begin(), old.outputs.end(), tensor.buffer());
  return Tensor(graph_, &added, result - old.outputs.begin());
}

}  // namespace polynao::te
