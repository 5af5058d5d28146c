#include "compiler/codegen/diannao/value_numbering.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"

namespace polynao::diannao {
namespace {

// The number of terms that a sum may have. Longer sums are not taken apart, so that the work stays
// linear.
constexpr size_t kMaxTerms = 8;

class Numbering {
 public:
  explicit Numbering(Code& code)
      : code_(code),
        flow_(code),
        li_(code.set->Find("li")),
        mov_(code.set->Find("mov")),
        add_(code.set->Find("add")),
        sub_(code.set->Find("sub")),
        mul_(code.set->Find("mul")),
        addi_(code.set->Find("addi")),
        muli_(code.set->Find("muli")),
        select_(code.set->Find("select")),
        renamed_(code.home.size()),
        constants_(code.home.size()),
        depth_(code.home.size(), 0),
        sums_(code.home.size()) {
    for (const char* name : {"min", "max", "and", "or", "xor", "seq", "sne"}) {
      commutative_.push_back(code.set->Find(name));
    }
    std::iota(renamed_.begin(), renamed_.end(), 0);
    for (size_t r = 0; r < code.home.size(); ++r) {
      if (!code.IsValue(r)) depth_[r] = flow_.Depth(code.home[r]);
    }
  }

  void Run() {
    for (block_ = 0; block_ < static_cast<int>(code_.blocks.size()); ++block_) {
      std::vector<Op> ops = std::exchange(code_.blocks[block_].ops, {});
      for (Op& op : ops) Visit(op);
    }
  }

 private:
  // A sum of coefficient * register, and a constant. Its arithmetic wraps around as registers do,
  // so all rewriting is exact.
  struct Sum {
    absl::InlinedVector<std::pair<int, int64_t>, 4> terms;  // no coefficient is 0
    int64_t constant = 0;
  };
  struct Known {
    int block;
    int reg;
  };
  using Key = std::pair<const isa::Instruction*, absl::InlinedVector<int64_t, 4>>;

  void Visit(Op& op) {
    ForEachRead(op, [&](int64_t& reg) { reg = renamed_[reg]; });
    const int64_t written = WrittenRegister(op);
    if (!Floats(code_, op, constants_)) {
      if (written >= 0 && code_.IsValue(written)) depth_[written] = flow_.Depth(block_);
      code_.blocks[block_].ops.push_back(std::move(op));
      return;
    }
    renamed_[written] = Simplify(op);
  }

  // The register with the value of `op`, which floats.
  int Simplify(const Op& op) {
    const auto& f = op.fields;
    const isa::Instruction* const i = op.instruction;
    if (i == li_) return Constant(f[1]);
    if (i == mov_) return f[1];
    if (i == add_ || i == sub_) {
      Sum sum = Combine(SumOf(f[1]), SumOf(f[2]), i == add_ ? 1 : -1);
      if (sum.terms.size() <= kMaxTerms) return Computed(std::move(sum));
    }
    if (i == addi_) return Computed(Combine(SumOf(f[1]), Sum{.terms = {}, .constant = f[2]}, 1));
    if (i == muli_) return Product(f[1], f[2]);
    if (i == mul_ && constants_[f[1]]) return Product(f[2], *constants_[f[1]]);
    if (i == mul_ && constants_[f[2]]) return Product(f[1], *constants_[f[2]]);
    if (i == select_ && f[2] == f[3]) return f[2];
    if (i == select_ && constants_[f[1]]) return *constants_[f[1]] != 0 ? f[2] : f[3];
    if (std::optional<int64_t> value = Folded(op)) return Constant(*value);
    return Find(i, {f.begin() + 1, f.end()});
  }

  // The value of an operation on constants.
  std::optional<int64_t> Folded(const Op& op) const {
    std::vector<int64_t> values(op.fields.begin(), op.fields.end());
    size_t result = 0;
    bool reads = false;
    for (size_t i = 0; i < values.size(); ++i) {
      if (IsWritten(op.instruction->operands[i])) result = i;
      if (!IsRead(op.instruction->operands[i])) continue;
      if (!constants_[values[i]]) return std::nullopt;
      values[i] = *constants_[values[i]];
      reads = true;
    }
    if (!reads) return std::nullopt;  // `arg` depends on the core
    std::vector<int64_t> written(values.size(), 0);
    if (!code_.set->Execute(*op.instruction, values, {}, absl::MakeSpan(written)).ok()) {
      return std::nullopt;
    }
    return written[result];
  }

  // The register with the result of `instruction` on `operands`; computed here unless a register
  // has it already.
  int Find(const isa::Instruction* instruction, absl::InlinedVector<int64_t, 4> operands) {
    if (operands.size() == 2 && operands[0] > operands[1] &&
        std::find(commutative_.begin(), commutative_.end(), instruction) != commutative_.end()) {
      std::swap(operands[0], operands[1]);
    }
    // An entry of a block that does not dominate this one is replaced. Of blocks side by side the
    // last one counts:
    // no block dominated by the others comes later.
    Known& known = known_.try_emplace(Key(instruction, operands), Known{-1, -1}).first->second;
    if (known.block >= 0 && flow_.Dominates(known.block, block_)) return known.reg;
    const int reg = code_.NewRegister();
    known = {block_, reg};
    Op op{instruction, {reg}};
    op.fields.insert(op.fields.end(), operands.begin(), operands.end());
    int depth = 0;
    ForEachRead(op, [&](int64_t operand) { depth = std::max(depth, depth_[operand]); });
    renamed_.push_back(reg);
    constants_.push_back(instruction == li_ ? std::optional<int64_t>(operands[0]) : std::nullopt);
    depth_.push_back(depth);
    sums_.emplace_back();
    code_.blocks[block_].ops.push_back(std::move(op));
    return reg;
  }

  int Constant(int64_t value) { return Find(li_, {value}); }

  Sum SumOf(int reg) const {
    if (constants_[reg]) return {.terms = {}, .constant = *constants_[reg]};
    if (sums_[reg]) return *sums_[reg];
    return {.terms = {{reg, 1}}, .constant = 0};
  }

  static int64_t Multiply(int64_t a, int64_t b) {
    return static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
  }
  static int64_t Plus(int64_t a, int64_t b) {
    return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
  }

  // a + factor * b
  static Sum Combine(Sum a, const Sum& b, int64_t factor) {
    for (const auto& [reg, coefficient] : b.terms) {
      const int64_t more = Multiply(coefficient, factor);
      auto it = std::find_if(a.terms.begin(), a.terms.end(),
                             [&, reg = reg](const auto& term) { return term.first == reg; });
      if (it == a.terms.end()) {
        if (more != 0) a.terms.emplace_back(reg, more);
      } else if ((it->second = Plus(it->second, more)) == 0) {
        a.terms.erase(it);
      }
    }
    a.constant = Plus(a.constant, Multiply(b.constant, factor));
    return a;
  }

  // A register with the value of a sum.
  int Computed(Sum sum) {
    // Terms of outer loops come first. Within a loop, added terms come before subtracted terms,
    // which then need no product of their own; otherwise the order is that of the source.
    const auto comes_first = [&](const auto& a, const auto& b) {
      return std::pair(depth_[a.first], a.second < 0) < std::pair(depth_[b.first], b.second < 0);
    };
    for (auto term = sum.terms.begin(); term != sum.terms.end(); ++term) {
      std::rotate(std::upper_bound(sum.terms.begin(), term, *term, comes_first), term, term + 1);
    }
    int reg = -1;
    for (const auto& [term, coefficient] : sum.terms) {
      const bool subtract = reg >= 0 && coefficient < 0;
      const int64_t factor = subtract ? Multiply(coefficient, -1) : coefficient;
      const int product = factor == 1 ? term : Find(muli_, {term, factor});
      reg = reg < 0 ? product : Find(subtract ? sub_ : add_, {reg, product});
    }
    if (reg < 0) return Constant(sum.constant);
    if (sum.constant != 0) reg = Find(addi_, {reg, sum.constant});
    sums_[reg] = std::move(sum);
    return reg;
  }

  int Product(int reg, int64_t factor) {
    Sum sum = SumOf(reg);
    if (factor == 0) return Constant(0);
    // Distributing it over several terms of one loop would cost more than sharing saves.
    int deepest = 0;
    for (const auto& [term, coefficient] : sum.terms) deepest = std::max(deepest, depth_[term]);
    int at_deepest = 0;
    for (const auto& [term, coefficient] : sum.terms) at_deepest += depth_[term] == deepest;
    if (at_deepest > 1) {
      const int64_t constant = std::exchange(sum.constant, 0);
      sum = {.terms = {{Computed(std::move(sum)), 1}}, .constant = constant};
    }
    return Computed(Combine(Sum{}, sum, factor));
  }

  Code& code_;
  const Flow flow_;
  const isa::Instruction* const li_;
  const isa::Instruction* const mov_;
  const isa::Instruction* const add_;
  const isa::Instruction* const sub_;
  const isa::Instruction* const mul_;
  const isa::Instruction* const addi_;
  const isa::Instruction* const muli_;
  const isa::Instruction* const select_;
  std::vector<const isa::Instruction*> commutative_;
  int block_ = 0;
  // Of each register: the register that stands for it, its value, the depth of the innermost loop
  // whose iterations it depends on, and the sum that it is.
  std::vector<int> renamed_;
  Constants constants_;
  std::vector<int> depth_;
  std::vector<std::optional<Sum>> sums_;
  absl::flat_hash_map<Key, Known> known_;
};

}  // namespace

void NumberValues(Code& code) { Numbering(code).Run(); }

}  // namespace polynao::diannao
