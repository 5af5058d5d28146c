#include "compiler/passes/sync.h"

#include <algorithm>
#include <array>
#include <deque>
#include <iterator>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "base/status.h"
#include "compiler/arith/analyzer.h"
#include "compiler/arith/const_range.h"
#include "compiler/arith/linear_form.h"
#include "compiler/ir/visit.h"
#include "compiler/passes/storage.h"

namespace polynao {
namespace {

using arith::ConstRange;
using arith::LinearForm;
using ir::Buffer;
using ir::Expr;
using ir::ExprKind;
using ir::Stmt;
using ir::StmtKind;

// Bytes of a memory. Buffers with an address lie in their memory, so that what shares bytes is seen
// to; any other buffer is a memory of its own.
struct Range {
  int64_t memory;
  int64_t begin;
  int64_t end;
  bool operator==(const Range&) const = default;
  bool Overlaps(const Range& other) const {
    return memory == other.memory && begin < other.end && other.begin < end;
  }
};

constexpr int64_t kSmem = 0;
constexpr int64_t kNmem = 1;
constexpr int64_t kWmem = 2;
constexpr int64_t kFirstBuffer = 3;  // plus the buffer's number

class ByteSet {
 public:
  bool operator==(const ByteSet&) const = default;

  void Add(Range r) {
    if (r.begin >= r.end) return;
    auto it = intervals_.upper_bound({r.memory, r.begin});
    if (it != intervals_.begin()) {
      auto before = std::prev(it);
      if (before->first.first == r.memory && before->second >= r.begin) it = before;
    }
    while (it != intervals_.end() && it->first.first == r.memory && it->first.second <= r.end) {
      r.begin = std::min(r.begin, it->first.second);
      r.end = std::max(r.end, it->second);
      it = intervals_.erase(it);
    }
    intervals_[{r.memory, r.begin}] = r.end;
  }

  void Add(const ByteSet& other) {
    other.ForEach([&](Range r) { Add(r); });
  }

  bool Overlaps(const ByteSet& other) const {
    auto a = intervals_.begin();
    auto b = other.intervals_.begin();
    while (a != intervals_.end() && b != other.intervals_.end()) {
      if (a->first.first == b->first.first && a->first.second < b->second &&
          b->first.second < a->second) {
        return true;
      }
      // The one that ends first meets no further interval of the other set.
      if (std::pair(a->first.first, a->second) < std::pair(b->first.first, b->second)) {
        ++a;
      } else {
        ++b;
      }
    }
    return false;
  }

  template <typename Visit>
  void ForEach(const Visit& visit) const {
    for (const auto& [at, end] : intervals_) visit(Range{at.first, at.second, end});
  }

 private:
  std::map<std::pair<int64_t, int64_t>, int64_t> intervals_;  // (memory, begin) to end
};

// Loops, lets and branches (with their side) around a statement, outermost first.
using Around = std::vector<std::pair<Stmt, bool>>;

// Bytes `range.memory` [begin, end) that depend on variables, all of them in `range`.
struct MovingBytes {
  Range range;
  bool is_write;
  LinearForm begin;
  LinearForm end;
  int id;
  Around around;
};

// What somebody reads and writes.
struct Work {
  ByteSet reads;
  ByteSet writes;
  // Besides, while the variables have the values that they had there. Ordered by id.
  std::vector<const MovingBytes*> moving = {};

  bool operator==(const Work&) const = default;
  void Add(const Work& other) {
    reads.Add(other.reads);
    writes.Add(other.writes);
    if (other.moving.empty()) return;
    std::vector<const MovingBytes*> all;
    std::set_union(moving.begin(), moving.end(), other.moving.begin(), other.moving.end(),
                   std::back_inserter(all),
                   [](const MovingBytes* a, const MovingBytes* b) { return a->id < b->id; });
    moving = std::move(all);
  }
  // What moves is anywhere where it may be.
  void Settle() {
    for (const MovingBytes* bytes : moving) (bytes->is_write ? writes : reads).Add(bytes->range);
    moving.clear();
  }
  // Whether the two must stay in order. `are_apart` says of two moving ones that they never meet.
  template <typename AreApart>
  bool Conflicts(const Work& other, const AreApart& are_apart) const {
    if (writes.Overlaps(other.reads) || writes.Overlaps(other.writes) ||
        reads.Overlaps(other.writes) || MovingMeets(other) || other.MovingMeets(*this)) {
      return true;
    }
    for (const MovingBytes* a : moving) {
      for (const MovingBytes* b : other.moving) {
        if ((a->is_write || b->is_write) && a->range.Overlaps(b->range) && !are_apart(*a, *b)) {
          return true;
        }
      }
    }
    return false;
  }
  bool MovingMeets(const Work& other) const {
    return std::any_of(moving.begin(), moving.end(), [&](const MovingBytes* bytes) {
      ByteSet range;
      range.Add(bytes->range);
      return other.writes.Overlaps(range) || (bytes->is_write && other.reads.Overlaps(range));
    });
  }
  // The part in memories that `wanted` names.
  template <typename Wanted>
  Work In(const Wanted& wanted) const {
    Work result;
    reads.ForEach([&](Range r) {
      if (wanted(r)) result.reads.Add(r);
    });
    writes.ForEach([&](Range r) {
      if (wanted(r)) result.writes.Add(r);
    });
    for (const MovingBytes* bytes : moving) {
      if (wanted(bytes->range)) (bytes->is_write ? result.writes : result.reads).Add(bytes->range);
    }
    return result;
  }
};

// The work of one statement, without its children's: of the scalar unit before it goes on, and of
// the instruction that it puts into a queue.
struct Touched {
  Work scalar;
  Work queued;
  isa::Queue queue = isa::Queue::kNone;
  const isa::Instruction* instruction = nullptr;  // of a call
  bool IsBarrier() const {
    return instruction != nullptr && instruction->barrier != isa::Instruction::Barrier::kNone;
  }
};

// Who runs a statement: a core; the memory core; or all cores of a cluster and its memory core,
// which is so outside the loops over tid of a function that has some.
enum class Level : uint8_t { kCore, kMemoryCore, kCluster };
constexpr int kActors = 2;  // the first two

struct State {
  // What instructions in the queues of a core and of the memory core may still read or write.
  std::array<std::array<Work, isa::kQueueCount>, kActors> queues;
  // What cores and memory core may have done in SMEM and GMEM since they last met at a barrier.
  std::array<Work, kActors> since_barrier;

  bool operator==(const State&) const = default;
  // For another iteration, or what follows a loop.
  void Settle() {
    for (auto& of_actor : queues) {
      for (Work& work : of_actor) work.Settle();
    }
    for (Work& work : since_barrier) work.Settle();
  }
  void Add(const State& other) {
    for (int actor = 0; actor < kActors; ++actor) {
      for (int q = 0; q < isa::kQueueCount; ++q) queues[actor][q].Add(other.queues[actor][q]);
      since_barrier[actor].Add(other.since_barrier[actor]);
    }
  }
};

class Syncer {
 public:
  Syncer(const ir::Function& function, const Target& target)
      : target_(target),
        addresses_(CollectAddresses(function.body)),
        c_(*function.context),
        analyzer_(c_) {}

  absl::StatusOr<Stmt> Top(Stmt s) {
    RETURN_IF_ERROR(Prepare(s));
    // Without a loop over cores, core 0 runs everything.
    const Level level = HasLoop(s, IsCoreLoop) ? Level::kCluster : Level::kCore;
    State state;
    if (!s.Is(StmtKind::kSeq) || !HasLoop(s, IsThreadLoop)) return Walk(s, state, level);
    // Nests of thread loops one after the other run on the same cores, but not in step.
    std::vector<Stmt> result;
    Work before;
    for (Stmt child : s.children()) {
      if (IsCall(child, "barrier.global")) before = {};
      const Work gmem = WorkIn(child, [](Range r) { return r.memory >= kFirstBuffer; });
      if (Conflicts(before, gmem)) {
        result.push_back(Call("barrier.global"));
        before = {};
        state = {};  // a barrier drains the queues
      }
      before.Add(gmem);
      ASSIGN_OR_RETURN(Stmt synced, Walk(child, state, level));
      result.push_back(synced);
    }
    return c_.Rebuild(s, {}, result);
  }

 private:
  static bool IsThreadLoop(Stmt s) {
    return s.Is(StmtKind::kFor) && s.for_kind() == ir::ForKind::kThread;
  }
  static bool IsCoreLoop(Stmt s) { return IsThreadLoop(s) && s.name() == "tid"; }

  static bool HasLoop(Stmt root, bool (*is_one)(Stmt)) {
    bool found = false;
    ir::ForEachStmt(root, [&](Stmt s) {
      found = found || is_one(s);
      return !found;
    });
    return found;
  }

  static bool IsCall(Stmt s, std::string_view name) {
    return s.Is(StmtKind::kEvaluate) && s.value().name() == name;
  }
  Stmt Call(std::string_view name) const { return c_.Evaluate(c_.Call(ir::Type::kI32, name, {})); }

  // ---- what statements touch

  // Notes the bounds of variables, what each statement touches, and which statements contain a
  // loop over cores or a barrier.
  absl::Status Prepare(Stmt s) {
    arith::Analyzer::Scope scope(analyzer_);
    if (s.Is(StmtKind::kFor)) {
      analyzer_.BindLoop(s.var(), s.min(), s.extent());
      // Where a loop runs no iteration, its bounds do not matter.
      const ConstRange count = RangeOf(s.extent());
      ranges_[s.var()] =
          RangeOf(s.min()) + ConstRange{0, count.max == arith::kInfinity
                                               ? count.max
                                               : std::max<int64_t>(count.max - 1, 0)};
    } else if (s.Is(StmtKind::kLet) && ir::IsInt(s.var().type())) {
      analyzer_.BindLet(s.var(), s.value());
      ranges_[s.var()] = RangeOf(s.value());
    }
    if (IsCoreLoop(s)) around_nests_[s] = around_;
    ASSIGN_OR_RETURN(touched_[s], Touch(s));
    bool for_all = IsCoreLoop(s) || touched_[s].IsBarrier();
    const bool is_around = s.Is(StmtKind::kFor) || s.Is(StmtKind::kIf) || s.Is(StmtKind::kLet);
    for (size_t i = 0; i < s.children().size(); ++i) {
      const Stmt child = s.children()[i];
      if (is_around) around_.emplace_back(s, i == 0);
      RETURN_IF_ERROR(Prepare(child));
      if (is_around) around_.pop_back();
      for_all = for_all || for_all_cores_.contains(child);
    }
    if (for_all) for_all_cores_.insert(s);
    return absl::OkStatus();
  }

  // The values that an integer may have.
  ConstRange RangeOf(Expr e) {
    if (e.Is(ExprKind::kIntImm)) return ConstRange::Point(e.int_value());
    if (auto it = ranges_.find(e); it != ranges_.end()) return it->second;
    const ConstRange of_type = ConstRange::OfType(e.type());
    const auto operand = [&](size_t i) { return RangeOf(e.operand(i)); };
    ConstRange range = of_type;
    switch (e.kind()) {
      case ExprKind::kCast:
        if (ir::IsInt(e.operand(0).type())) range = operand(0);
        break;
      case ExprKind::kAdd:
        range = operand(0) + operand(1);
        break;
      case ExprKind::kSub:
        range = operand(0) - operand(1);
        break;
      case ExprKind::kMul:
        range = operand(0) * operand(1);
        break;
      case ExprKind::kDiv:
        range = FloorDiv(operand(0), operand(1));
        break;
      case ExprKind::kMod:
        range = FloorMod(operand(0), operand(1));
        break;
      case ExprKind::kMin:
        range = Min(operand(0), operand(1));
        break;
      case ExprKind::kMax:
        range = Max(operand(0), operand(1));
        break;
      case ExprKind::kSelect:
        range = Union(operand(1), operand(2));
        break;
      case ExprKind::kLet:
        if (ir::IsInt(e.var().type())) ranges_[e.var()] = operand(0);
        range = operand(1);
        break;
      default:
        break;
    }
    if (!of_type.Contains(range)) range = of_type;  // it may wrap around
    ranges_[e] = range;
    return range;
  }

  int64_t MemoryOf(Buffer buffer) const {
    if (!addresses_.contains(buffer)) return kFirstBuffer + buffer->id;
    return buffer->scope == "smem" ? kSmem : buffer->scope == "nmem" ? kNmem : kWmem;
  }

  Range WholeBuffer(Buffer buffer) const {
    int64_t bytes = ir::ByteSize(buffer->type);
    for (Expr extent : buffer->extents) {
      if (!extent.Is(ExprKind::kIntImm)) return {MemoryOf(buffer), 0, arith::kInfinity};
      bytes *= extent.int_value();
    }
    auto address = addresses_.find(buffer);
    const int64_t begin = address == addresses_.end() ? 0 : address->second;
    return {MemoryOf(buffer), begin, begin + bytes};
  }

  // The bytes from `begin` to `end` behind the element at `indices`, for all values of the indices.
  Range BytesAt(Buffer buffer, absl::Span<const Expr> indices, int64_t begin, int64_t end) {
    const Range whole = WholeBuffer(buffer);
    if (indices.size() != 1) return whole;
    const ConstRange index = RangeOf(indices[0]);
    const ConstRange first =
        ConstRange::Point(whole.begin) + index * ConstRange::Point(ir::ByteSize(buffer->type));
    const ConstRange bytes = first + ConstRange{begin, end};
    if (index.IsPoint()) return {whole.memory, bytes.min, bytes.max};
    return {whole.memory, std::max(bytes.min, whole.begin), std::min(bytes.max, whole.end)};
  }

  // What the statement's own expressions, store or call touch; not its children's.
  absl::StatusOr<Touched> Touch(Stmt s) {
    Touched touched;
    for (Expr e : s.operands()) {
      ir::ForEachExpr(e, [&](Expr x) {
        if (!x.Is(ExprKind::kLoad)) return;
        const Buffer buffer(x.buffer());
        touched.scalar.reads.Add(BytesAt(buffer, x.operands(), 0, ir::ByteSize(buffer->type)));
      });
    }
    if (s.Is(StmtKind::kStore)) {
      touched.scalar.writes.Add(
          BytesAt(s.buffer(), s.indices(), 0, ir::ByteSize(s.buffer()->type)));
    }
    if (!s.Is(StmtKind::kEvaluate)) return touched;
    const Expr call = s.value();
    touched.instruction = target_.instructions->Find(call.name());
    if (touched.instruction == nullptr) {
      return InvalidInput("sync: no instruction is named '", call.name(), "'");
    }
    touched.queue = touched.instruction->queue;
    AddOperands(*touched.instruction, call, touched.queued);
    return touched;
  }

  // The memory that an instruction accesses: as its meaning says, where all that decides on it is
  // constant; else the whole buffers of its operands.
  void AddOperands(const isa::Instruction& instruction, Expr call, Work& work) {
    const auto argument = [&](const isa::Operand& operand) { return call.operand(operand.param); };
    bool is_constant = true;
    std::vector<int64_t> values;
    for (const isa::Operand& operand : instruction.operands) {
      // Offsets from the operand's address; a float changes no address.
      const bool is_offset =
          operand.kind != isa::OperandKind::kAddress && ir::IsInt(argument(operand).type());
      is_constant = is_constant && (!is_offset || argument(operand).Is(ExprKind::kIntImm));
      values.push_back(is_constant && is_offset ? argument(operand).int_value() : 0);
    }
    if (is_constant) {
      for (const isa::ByteRanges& bytes : target_.instructions->Footprint(instruction, values)) {
        const Expr address = argument(instruction.operands[bytes.operand]);
        AddBytes(address, LinearForm::Constant(bytes.begin), LinearForm::Constant(bytes.end()),
                 bytes.is_write, work);
      }
      return;
    }
    // As many bytes as the operands' extents in the meaning say, if they can be followed.
    absl::flat_hash_map<Expr, LinearForm> arguments;
    for (const isa::Operand& operand : instruction.operands) {
      if (operand.kind == isa::OperandKind::kAddress || !ir::IsInt(argument(operand).type())) {
        continue;
      }
      arguments[instruction.meaning.params[operand.param].var] = FormOf(argument(operand));
    }
    for (const isa::Operand& operand : instruction.operands) {
      if (operand.kind != isa::OperandKind::kAddress) continue;
      const ir::BufferNode& memory = *instruction.meaning.params[operand.param].buffer.node();
      std::optional<LinearForm> end = LinearForm::Constant(ir::ByteSize(memory.type));
      for (Expr extent : memory.extents) {
        const std::optional<LinearForm> form = FormOver(extent, arguments);
        end = end && form ? Product(*end, *form) : std::nullopt;
      }
      for (const bool is_write : {false, true}) {
        if (!(is_write ? operand.is_written : operand.is_read)) continue;
        AddBytes(argument(operand), LinearForm(), end, is_write, work);
      }
    }
  }

  // The bytes from `begin` to `end` behind an address; to the buffer's end if that is not known.
  void AddBytes(Expr address, const LinearForm& begin, const std::optional<LinearForm>& end,
                bool is_write, Work& work) {
    const Buffer buffer(address.buffer());
    const Range whole = WholeBuffer(buffer);
    ByteSet& settled = is_write ? work.writes : work.reads;
    if (address.operands().size() != 1 || !end) {
      settled.Add(whole);
      return;
    }
    const std::optional<LinearForm> at = Product(analyzer_.Form(address.operand(0)),
                                                 LinearForm::Constant(ir::ByteSize(buffer->type)));
    LinearForm first = LinearForm::Constant(whole.begin);
    if (!at || !first.Add(*at) || !first.Add(begin)) {
      settled.Add(whole);
      return;
    }
    LinearForm last = LinearForm::Constant(whole.begin);
    if (!last.Add(*at) || !last.Add(*end)) {
      settled.Add(whole);
      return;
    }
    if (first.IsConstant() && last.IsConstant()) {
      settled.Add({whole.memory, first.constant(), last.constant()});
      return;
    }
    // The form cancels what begin and end have in common, the expression knows more of remainders.
    const ConstRange index =
        RangeOf(address.operand(0)) * ConstRange::Point(ir::ByteSize(buffer->type)) +
        ConstRange::Point(whole.begin);
    const Range range = {whole.memory,
                         std::max({RangeOf(first).min, (index + RangeOf(begin)).min, whole.begin}),
                         std::min({RangeOf(last).max, (index + RangeOf(*end)).max, whole.end})};
    if (range.begin >= range.end) return;
    moving_.push_back({range, is_write, first, last, static_cast<int>(moving_.size()), around_});
    work.moving.push_back(&moving_.back());
  }

  // An argument as a sum, also of what widening conversions keep.
  LinearForm FormOf(Expr e) {
    const LinearForm form = analyzer_.Form(e, arith::Mode::kData);
    LinearForm result = LinearForm::Constant(form.constant());
    for (const LinearForm::Term& term : form.terms()) {
      const Expr atom = term.atom;
      const bool widens = atom.Is(ExprKind::kCast) && ir::IsInt(atom.operand(0).type()) &&
                          atom.type() == ir::Type::kI64;
      const LinearForm part = widens ? FormOf(atom.operand(0)) : LinearForm::Atom(atom);
      if (!result.Add(part, term.coefficient)) return form;
    }
    return result;
  }

  static std::optional<LinearForm> Product(const LinearForm& a, const LinearForm& b) {
    if (!a.IsConstant() && !b.IsConstant()) return std::nullopt;
    LinearForm product = a.IsConstant() ? b : a;
    if (!product.Scale(a.IsConstant() ? a.constant() : b.constant())) return std::nullopt;
    return product;
  }

  // `e`, of an instruction's meaning, over the forms of its arguments.
  static std::optional<LinearForm> FormOver(
      Expr e, const absl::flat_hash_map<Expr, LinearForm>& arguments) {
    if (e.Is(ExprKind::kIntImm)) return LinearForm::Constant(e.int_value());
    if (auto it = arguments.find(e); it != arguments.end()) return it->second;
    const bool is_sum = e.Is(ExprKind::kAdd) || e.Is(ExprKind::kSub);
    if (!is_sum && !e.Is(ExprKind::kMul)) return std::nullopt;
    std::optional<LinearForm> a = FormOver(e.operand(0), arguments);
    const std::optional<LinearForm> b = FormOver(e.operand(1), arguments);
    if (!a || !b) return std::nullopt;
    if (!is_sum) return Product(*a, *b);
    if (!a->Add(*b, e.Is(ExprKind::kAdd) ? 1 : -1)) return std::nullopt;
    return a;
  }

  ConstRange RangeOf(const LinearForm& form) {
    ConstRange range = ConstRange::Point(form.constant());
    std::vector<LinearForm::Term> terms(form.terms().begin(), form.terms().end());
    for (size_t i = 0; i < terms.size(); ++i) {
      // (x + 5) / 7 - x / 7 is 0 or 1 for all x.
      for (size_t j = i + 1; j < terms.size() && terms[i].coefficient != 0; ++j) {
        if (terms[i].coefficient != -terms[j].coefficient) continue;
        const std::optional<ConstRange> difference = QuotientsApart(terms[i].atom, terms[j].atom);
        if (!difference) continue;
        range = range + *difference * ConstRange::Point(terms[i].coefficient);
        terms[i].coefficient = terms[j].coefficient = 0;
      }
      range = range + RangeOf(terms[i].atom) * ConstRange::Point(terms[i].coefficient);
    }
    return range;
  }

  // The values of a - b, both divisions by one constant of what is a constant apart.
  std::optional<ConstRange> QuotientsApart(Expr a, Expr b) {
    if (!a.Is(ExprKind::kDiv) || !b.Is(ExprKind::kDiv) || a.operand(1) != b.operand(1) ||
        !a.operand(1).Is(ExprKind::kIntImm) || a.operand(1).int_value() <= 0) {
      return std::nullopt;
    }
    const std::optional<int64_t> apart = analyzer_.ConstantDifference(a.operand(0), b.operand(0));
    if (!apart) return std::nullopt;
    const int64_t divisor = a.operand(1).int_value();
    const ConstRange least = FloorDiv(ConstRange::Point(*apart), ConstRange::Point(divisor));
    return ConstRange{least.min, least.min + (*apart % divisor != 0 ? 1 : 0)};
  }

  // What statements around something say of the variables in it.
  void AssumeAround(const Around& around) {
    for (const auto& [s, is_first] : around) {
      if (s.Is(StmtKind::kFor)) analyzer_.BindLoop(s.var(), s.min(), s.extent());
      if (s.Is(StmtKind::kLet)) analyzer_.BindLet(s.var(), s.value());
      if (s.Is(StmtKind::kIf)) analyzer_.Assume(s.cond(), is_first);
    }
  }

  // Whether no values of the variables make the two meet.
  bool AreApart(const MovingBytes& a, const MovingBytes& b) {
    LinearForm b_behind_a = b.begin;
    LinearForm a_behind_b = a.begin;
    if (!b_behind_a.Add(a.end, -1) || !a_behind_b.Add(b.end, -1)) return false;
    if (RangeOf(b_behind_a).min >= 0 || RangeOf(a_behind_b).min >= 0) return true;
    // What the conditions around both say takes longer.
    arith::Analyzer::Scope scope(analyzer_);
    AssumeAround(a.around);
    AssumeAround(b.around);
    const auto is_positive = [&](const LinearForm& form) {
      for (const LinearForm::Term& term : form.terms()) {
        if (term.atom.type() != form.terms()[0].atom.type()) return false;
      }
      return !form.IsConstant() &&
             analyzer_.CanProve(
                 c_.Int(form.terms()[0].atom.type(), 0) <=
                 arith::SumExpr(c_, form.terms()[0].atom.type(), form.terms(), form.constant()));
    };
    return is_positive(b_behind_a) || is_positive(a_behind_b);
  }

  bool Conflicts(const Work& a, const Work& b) {
    return a.Conflicts(b,
                       [&](const MovingBytes& x, const MovingBytes& y) { return AreApart(x, y); });
  }

  // What `root` and all below it do in the memories that `wanted` names.
  template <typename Wanted>
  Work WorkIn(Stmt root, const Wanted& wanted) const {
    Work all;
    ir::ForEachStmt(root, [&](Stmt s) {
      const Touched& touched = touched_.at(s);
      all.Add(touched.scalar.In(wanted));
      all.Add(touched.queued.In(wanted));
      return true;
    });
    return all;
  }
  static bool IsShared(Range r) { return r.memory != kNmem && r.memory != kWmem; }

  // ---- waits

  // `s` with waits before what needs them. On entry `state` is what may be pending before it, on
  // exit after it.
  absl::StatusOr<Stmt> Walk(Stmt s, State& state, Level level) {
    const Touched& touched = touched_.at(s);
    if (touched.instruction != nullptr && touched.instruction->unit == isa::Unit::kControl) {
      // Outside the loops over tid a sync is the memory core's, as all but barriers.
      auto& queues = state.queues[level == Level::kCore ? 0 : 1];
      for (isa::Queue queue : touched.instruction->drains) queues[static_cast<int>(queue)] = {};
      if (touched.IsBarrier()) state = {};
      return s;
    }
    return level == Level::kCluster ? WalkInCluster(s, state) : WalkOnCore(s, state, level);
  }

  absl::StatusOr<Stmt> WalkOnCore(Stmt s, State& state, Level level) {
    const Touched& touched = touched_.at(s);
    auto& queues = state.queues[static_cast<int>(level)];
    const auto own = [&](int q) { return q == static_cast<int>(touched.queue); };
    std::vector<Stmt> result;
    std::array<bool, isa::kQueueCount> waits = {};
    for (int q = 0; q < isa::kQueueCount; ++q) {
      // A queue is in order, but the scalar unit reads an instruction's arguments before.
      waits[q] =
          Conflicts(queues[q], touched.scalar) || (!own(q) && Conflicts(queues[q], touched.queued));
    }
    Wait(waits, queues, result);
    if (s.Is(StmtKind::kFor) && !IsThreadLoop(s)) HoistWaits(s.body(), queues, result);
    if (touched.queue != isa::Queue::kNone) {
      Work& pending = queues[static_cast<int>(touched.queue)];
      pending.Add(touched.queued);
      if (touched.instruction->waits) pending = {};  // and with it all before it
    }
    ASSIGN_OR_RETURN(Stmt walked, WalkChildren(s, state, level));
    result.push_back(walked);
    return c_.Seq(result);
  }

  // Waits for the queues `which`: for all at once where nothing is pending in the others, since each
  // wait costs a drain.
  void Wait(const std::array<bool, isa::kQueueCount>& which,
            std::array<Work, isa::kQueueCount>& queues, std::vector<Stmt>& result) const {
    bool is_all = std::count(which.begin(), which.end(), true) > 1;
    for (int q = 0; q < isa::kQueueCount; ++q) {
      is_all = is_all && (which[q] || queues[q] == Work());
    }
    if (is_all) result.push_back(Call("sync"));
    for (int q = 0; q < isa::kQueueCount; ++q) {
      if (!which[q]) continue;
      if (!is_all) {
        result.push_back(Call(StrCat("sync.", isa::QueueName(static_cast<isa::Queue>(q)))));
      }
      queues[q] = {};
    }
  }

  // Waits for queues that a loop's body leaves alone, and would wait for in each iteration, go
  // before the loop; but not those behind an instruction that could start before.
  void HoistWaits(Stmt body, std::array<Work, isa::kQueueCount>& queues,
                  std::vector<Stmt>& result) {
    std::array<bool, isa::kQueueCount> used = {};
    Work lead;
    bool leading = true;
    ir::ForEachStmt(body, [&](Stmt s) {
      const Touched& touched = touched_.at(s);
      if (leading) {
        lead.Add(touched.scalar);
        lead.Add(touched.queued);
        leading = touched.instruction == nullptr;
      }
      if (touched.queue != isa::Queue::kNone) used[static_cast<int>(touched.queue)] = true;
      return true;
    });
    lead.Settle();
    std::array<bool, isa::kQueueCount> waits = {};
    for (int q = 0; q < isa::kQueueCount; ++q) {
      waits[q] = !used[q] && Conflicts(queues[q], lead);
    }
    Wait(waits, queues, result);
  }

  // Statements outside the loops over tid. What conflicts are between cores and memory core, or
  // between two nests of the cores, is ordered by a barrier in front of the second one.
  absl::StatusOr<Stmt> WalkInCluster(Stmt s, State& state) {
    const bool is_nest = IsCoreLoop(s);
    const bool is_block =
        s.Is(StmtKind::kSeq) || s.Is(StmtKind::kAllocate) || s.Is(StmtKind::kPragma);
    const bool for_all = for_all_cores_.contains(s);
    const bool is_memory_cores = !for_all && !is_block;
    // Loops and branches around nests are everybody's; so far only their own expressions.
    const Work work = is_nest || is_memory_cores ? WorkIn(s, IsShared) : touched_.at(s).scalar;
    std::vector<Stmt> result;
    const bool needs_barrier = Conflicts(state.since_barrier[0], work) ||
                               (!is_memory_cores && Conflicts(state.since_barrier[1], work));
    Stmt nest = s;
    if (needs_barrier) {
      if (is_nest && RunsOnce(s) && RunsForSure(s)) {
        ASSIGN_OR_RETURN(nest, WithBarrierInside(s, state));
      }
      if (nest == s) result.push_back(ClusterBarrier(state));
    }
    absl::StatusOr<Stmt> walked;
    if (is_nest) {
      walked = WalkOnCore(nest, state, Level::kCore);
    } else if (is_memory_cores) {
      walked = WalkOnCore(s, state, Level::kMemoryCore);
    } else if (s.Is(StmtKind::kFor)) {
      walked = WalkClusterLoop(s, state, result);
    } else {
      walked = WalkChildren(s, state, Level::kCluster);
    }
    RETURN_IF_ERROR(walked.status());
    if (!is_memory_cores) state.since_barrier[0].Add(work);
    if (!is_nest) state.since_barrier[1].Add(work);
    result.push_back(*walked);
    return c_.Seq(result);
  }

  // A nest of the cores with the barrier inside, behind computation that needs not wait for it; the
  // same nest if there is none.
  absl::StatusOr<Stmt> WithBarrierInside(Stmt nest, const State& state) {
    bool passed = false;
    Stmt body = nest.body();
    std::vector<Stmt> around;
    while (body.Is(StmtKind::kAllocate) || body.Is(StmtKind::kPragma)) {
      around.push_back(body);
      body = body.body();
    }
    if (!body.Is(StmtKind::kSeq)) return nest;
    std::vector<Stmt> children(body.children().begin(), body.children().end());
    size_t at = 0;
    for (; at < children.size(); ++at) {
      const Stmt child = children[at];
      bool waits = child.Is(StmtKind::kAllocate) || child.Is(StmtKind::kPragma);
      ir::ForEachStmt(child, [&](Stmt s) {
        const Touched& touched = touched_.at(s);
        if (touched.instruction == nullptr) return true;
        // A barrier drains the queues: what is copied before it would hold up the others.
        waits = waits || touched.queue != isa::Queue::kCompute;
        return true;
      });
      const Work work = WorkIn(child, IsShared);
      waits = waits || Conflicts(state.since_barrier[0], work) ||
              Conflicts(state.since_barrier[1], work);
      if (waits) break;
      passed = true;
    }
    if (!passed || at == children.size()) return nest;
    children.insert(children.begin() + at, Call("barrier.cluster"));
    Stmt result = c_.Seq(children);
    for (auto it = around.rbegin(); it != around.rend(); ++it) {
      result = c_.Rebuild(*it, it->operands(), {result});
    }
    result = c_.Rebuild(nest, nest.operands(), {result});
    // Where the nest stands.
    around_ = around_nests_.at(nest);
    arith::Analyzer::Scope scope(analyzer_);
    AssumeAround(around_);
    RETURN_IF_ERROR(Prepare(result));
    ++barriers_;
    return result;
  }

  Stmt ClusterBarrier(State& state) {
    state = {};
    ++barriers_;
    return Call("barrier.cluster");
  }

  // A loop that everybody in the cluster runs. A barrier before it may spare one inside.
  absl::StatusOr<Stmt> WalkClusterLoop(Stmt s, State& state, std::vector<Stmt>& before) {
    const State entry = state;
    const int count = barriers_;
    ASSIGN_OR_RETURN(const Stmt walked, WalkChildren(s, state, Level::kCluster));
    const int inside = std::exchange(barriers_, count) - count;
    if (!IsThreadLoop(s) && inside > 0 && !(entry == State())) {
      State cleared;
      const Stmt barrier = ClusterBarrier(cleared);
      ASSIGN_OR_RETURN(const Stmt after_barrier, WalkChildren(s, cleared, Level::kCluster));
      if (barriers_ - count <= inside) {
        before.push_back(barrier);
        state = cleared;
        return after_barrier;
      }
      barriers_ = count;
    }
    barriers_ += inside;
    return walked;
  }

  int64_t ThreadsOf(Stmt loop) const {
    return loop.name() == "cid" ? target_.machine->clusters()
                                : target_.machine->cores_per_cluster();
  }

  // A loop over cores of which each core runs at most one iteration.
  bool RunsOnce(Stmt loop) const {
    return IsThreadLoop(loop) && loop.min().IsInt(0) && loop.extent().Is(ExprKind::kIntImm) &&
           loop.extent().int_value() <= ThreadsOf(loop);
  }

  // A loop of which every core runs an iteration.
  bool RunsForSure(Stmt loop) const {
    if (!loop.extent().Is(ExprKind::kIntImm)) return false;
    if (!IsThreadLoop(loop)) return loop.extent().int_value() >= 1;
    return loop.min().IsInt(0) && loop.extent().int_value() >= ThreadsOf(loop);
  }

  absl::StatusOr<Stmt> WalkChildren(Stmt s, State& state, Level level) {
    switch (s.kind()) {
      case StmtKind::kFor:
        return WalkLoop(s, state, level);
      case StmtKind::kIf: {
        State other = state;
        ASSIGN_OR_RETURN(Stmt then_case, Walk(s.then_case(), state, level));
        ASSIGN_OR_RETURN(Stmt else_case, Walk(s.else_case(), other, level));
        state.Add(other);
        return c_.Rebuild(s, s.operands(), {then_case, else_case});
      }
      default: {
        std::vector<Stmt> children;
        for (Stmt child : s.children()) {
          ASSIGN_OR_RETURN(Stmt walked, Walk(child, state, level));
          children.push_back(walked);
        }
        return c_.Rebuild(s, s.operands(), children);
      }
    }
  }

  // The body starts with what is pending before the loop or after an iteration. That only grows
  // from one round to the next, so this ends; two rounds are the rule.
  absl::StatusOr<Stmt> WalkLoop(Stmt s, State& state, Level level) {
    const int barriers = barriers_;
    const auto walk = [&](State& pending) -> absl::StatusOr<Stmt> {
      barriers_ = barriers;
      return Walk(s.body(), pending, level);
    };
    State entry = state;
    State exit;
    Stmt body;
    while (true) {
      exit = entry;
      ASSIGN_OR_RETURN(body, walk(exit));
      exit.Settle();
      State next = entry;
      next.Add(exit);
      if (next == entry || RunsOnce(s)) break;
      entry = next;
    }
    // Early rounds bring in what the waits of later ones prevent: try without.
    State smaller = state;
    smaller.Add(exit);
    if (!RunsOnce(s) && !(smaller == entry)) {
      State smaller_exit = smaller;
      const int found = barriers_;
      ASSIGN_OR_RETURN(const Stmt smaller_body, walk(smaller_exit));
      smaller_exit.Settle();
      State next = smaller;
      next.Add(smaller_exit);
      if (next == smaller) {
        body = smaller_body;
        exit = smaller_exit;
      } else {
        barriers_ = found;
      }
    }
    if (RunsForSure(s)) {
      state = exit;
    } else {
      state.Add(exit);
    }
    return c_.Rebuild(s, s.operands(), {body});
  }

  const Target& target_;
  const AddressMap addresses_;
  ir::Context& c_;
  arith::Analyzer analyzer_;
  absl::flat_hash_map<Expr, ConstRange> ranges_;
  std::deque<MovingBytes> moving_;
  Around around_;                                   // what Prepare is at
  absl::flat_hash_map<Stmt, Around> around_nests_;  // loops over tid
  absl::flat_hash_map<Stmt, Touched> touched_;
  absl::flat_hash_set<Stmt> for_all_cores_;  // contain a loop over tid or a barrier
  int barriers_ = 0;                         // of clusters, in what has been walked
};

}  // namespace

absl::StatusOr<bool> Sync(ir::Function& function, const Target& target) {
  Syncer syncer(function, target);
  ASSIGN_OR_RETURN(Stmt body, syncer.Top(function.body));
  const bool changed = body != function.body;
  function.body = body;
  return changed;
}

}  // namespace polynao
