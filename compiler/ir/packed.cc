#include "compiler/ir/packed.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"

namespace polynao::ir {
namespace {

// The bytes are: expressions and buffers, each after the ones that it refers to by their numbers; then
// functions. kEnd and kBuffer stand where a kind of expression else would.
constexpr uint64_t kEnd = 0xfe;
constexpr uint64_t kBuffer = 0xff;

class Packer {
 public:
  explicit Packer(PackedWriter& writer) : writer_(writer) {}

  void Pack(absl::Span<const Function> functions) {
    for (const Function& function : functions) {
      for (const Param& param : function.params) {
        param.buffer ? Collect(param.buffer.node()) : Collect(param.var);
      }
      for (const Attribute& attribute : function.attributes) {
        for (const AttributeValue& value : attribute.values) {
          if (const Expr* e = std::get_if<Expr>(&value)) Collect(*e);
        }
      }
      Collect(function.body);
    }
    // In order of creation, so that the copies' ids compare as those of the originals do.
    std::sort(exprs_.begin(), exprs_.end(), [](Expr a, Expr b) { return a.id() < b.id(); });
    std::sort(buffers_.begin(), buffers_.end(), [](auto* a, auto* b) { return a->id < b->id; });
    size_t next = 0;
    for (Expr e : exprs_) {
      // Extents are older than their buffer, and the buffer is older than its loads.
      if (e.buffer() != nullptr) {
        while (next < buffers_.size() && buffers_[next]->id <= e.buffer()->id) {
          Write(buffers_[next++]);
        }
      }
      Write(e);
    }
    while (next < buffers_.size()) Write(buffers_[next++]);
    writer_.Unsigned(kEnd);
    writer_.Unsigned(functions.size());
    for (const Function& function : functions) Write(function);
  }

 private:
  void Collect(Expr e) {
    if (!collected_.insert(e.node()).second) return;
    for (Expr operand : e.operands()) Collect(operand);
    if (e.buffer() != nullptr) Collect(e.buffer());
    if (e.var()) Collect(e.var());
    exprs_.push_back(e);
  }

  void Collect(const BufferNode* buffer) {
    if (!collected_.insert(buffer).second) return;
    for (Expr extent : buffer->extents) Collect(extent);
    buffers_.push_back(buffer);
  }

  void Collect(Stmt s) {
    if (s.var()) Collect(s.var());
    if (s.buffer()) Collect(s.buffer().node());
    for (Expr operand : s.operands()) Collect(operand);
    for (Stmt child : s.children()) Collect(child);
  }

  void Write(Expr e) {
    writer_.Unsigned(static_cast<uint64_t>(e.kind()));
    writer_.Unsigned(static_cast<uint64_t>(e.type()));
    switch (e.kind()) {
      case ExprKind::kIntImm:
        writer_.Signed(e.int_value());
        break;
      case ExprKind::kFloatImm:
        writer_.Float(e.float_value());
        break;
      case ExprKind::kVar:
        writer_.Text(e.name());
        break;
      case ExprKind::kCall:
        POLYNAO_CHECK(e.callee() == nullptr) << "a build packs no extern function: " << e.name();
        writer_.Text(e.name());
        WriteExprs(e.operands());
        break;
      case ExprKind::kLoad:
      case ExprKind::kAddress:
        writer_.Unsigned(numbers_.at(e.buffer()));
        WriteExprs(e.operands());
        break;
      case ExprKind::kLet:
        WriteExpr(e.var());
        [[fallthrough]];
      default:
        // The kind says how many.
        for (Expr operand : e.operands()) WriteExpr(operand);
    }
    numbers_.emplace(e.node(), expr_count_++);
  }

  void Write(const BufferNode* buffer) {
    writer_.Unsigned(kBuffer);
    writer_.Text(buffer->name);
    writer_.Unsigned(static_cast<uint64_t>(buffer->type));
    WriteExprs(buffer->extents);
    writer_.Text(buffer->scope);
    numbers_.emplace(buffer, buffer_count_++);
  }

  void WriteExpr(Expr e) { writer_.Unsigned(numbers_.at(e.node())); }
  void WriteExprs(absl::Span<const Expr> exprs) {
    writer_.Unsigned(exprs.size());
    for (Expr e : exprs) WriteExpr(e);
  }

  void Write(Stmt s) {
    writer_.Unsigned(static_cast<uint64_t>(s.kind()));
    switch (s.kind()) {
      case StmtKind::kFor:
        writer_.Unsigned(static_cast<uint64_t>(s.for_kind()));
        writer_.Text(s.name());
        WriteExpr(s.var());
        break;
      case StmtKind::kLet:
        WriteExpr(s.var());
        break;
      case StmtKind::kAllocate:
      case StmtKind::kStore:
        writer_.Unsigned(numbers_.at(s.buffer().node()));
        break;
      case StmtKind::kPragma:
        writer_.Text(s.name());
        break;
      case StmtKind::kIf:
      case StmtKind::kEvaluate:
      case StmtKind::kSeq:
        break;
    }
    WriteExprs(s.operands());
    writer_.Unsigned(s.children().size());
    for (Stmt child : s.children()) Write(child);
  }

  void Write(const Function& function) {
    writer_.Text(function.name);
    writer_.Unsigned(function.params.size());
    for (const Param& param : function.params) {
      writer_.Unsigned(param.buffer ? 1 : 0);
      if (param.buffer) {
        writer_.Unsigned(numbers_.at(param.buffer.node()));
      } else {
        WriteExpr(param.var);
      }
      writer_.Unsigned(static_cast<uint64_t>(param.access));
      writer_.Text(param.scope);
    }
    writer_.Unsigned(function.attributes.size());
    for (const Attribute& attribute : function.attributes) {
      writer_.Text(attribute.key);
      writer_.Unsigned(attribute.values.size());
      for (const AttributeValue& value : attribute.values) {
        const Expr* e = std::get_if<Expr>(&value);
        writer_.Unsigned(e != nullptr ? 1 : 0);
        if (e != nullptr) {
          WriteExpr(*e);
        } else {
          writer_.Text(std::get<std::string>(value));
        }
      }
    }
    Write(function.body);
  }

  PackedWriter& writer_;
  absl::flat_hash_set<const void*> collected_;
  std::vector<Expr> exprs_;
  std::vector<const BufferNode*> buffers_;
  // Of what is written: expressions and buffers count by themselves.
  absl::flat_hash_map<const void*, uint64_t> numbers_;
  uint64_t expr_count_ = 0;
  uint64_t buffer_count_ = 0;
};

class Unpacker {
 public:
  Unpacker(PackedReader& reader, std::shared_ptr<Context> context)
      : reader_(reader), context_(std::move(context)) {}

  std::vector<Function> Unpack() {
    for (uint64_t kind = reader_.Unsigned(); kind != kEnd; kind = reader_.Unsigned()) {
      if (kind == kBuffer) {
        buffers_.push_back(ReadBufferNode());
      } else {
        exprs_.push_back(ReadNode(static_cast<ExprKind>(kind)));
      }
    }
    std::vector<Function> functions(reader_.Unsigned());
    for (Function& function : functions) Read(function);
    return functions;
  }

 private:
  Type ReadType() { return static_cast<Type>(reader_.Unsigned()); }
  Expr ReadExpr() { return exprs_.at(reader_.Unsigned()); }
  Buffer ReadBuffer() { return buffers_.at(reader_.Unsigned()); }
  // Valid until the next call.
  absl::Span<const Expr> ReadExprs() {
    operands_.resize(reader_.Unsigned());
    for (Expr& e : operands_) e = ReadExpr();
    return operands_;
  }

  Expr ReadNode(ExprKind kind) {
    const Type type = ReadType();
    switch (kind) {
      case ExprKind::kIntImm:
        return context_->Int(type, reader_.Signed());
      case ExprKind::kFloatImm:
        return context_->Float(type, reader_.Float());
      case ExprKind::kVar:
        return context_->NewVar(reader_.Text(), type);
      case ExprKind::kCast:
        return context_->Cast(type, ReadExpr());
      case ExprKind::kNot:
        return context_->Not(ReadExpr());
      case ExprKind::kSelect: {
        const Expr condition = ReadExpr(), then_value = ReadExpr();
        return context_->Select(condition, then_value, ReadExpr());
      }
      case ExprKind::kLet: {
        const Expr var = ReadExpr(), value = ReadExpr();
        return context_->Let(var, value, ReadExpr());
      }
      case ExprKind::kLoad: {
        const Buffer buffer = ReadBuffer();
        return context_->Load(buffer, ReadExprs());
      }
      case ExprKind::kAddress: {
        const Buffer buffer = ReadBuffer();
        return context_->Address(buffer, ReadExprs());
      }
      case ExprKind::kCall: {
        const std::string_view name = reader_.Text();
        return context_->Call(type, name, ReadExprs());
      }
      default: {
        const Expr a = ReadExpr();
        return context_->Binary(kind, a, ReadExpr());
      }
    }
  }

  Buffer ReadBufferNode() {
    const std::string_view name = reader_.Text();
    const Type type = ReadType();
    const absl::Span<const Expr> extents = ReadExprs();
    return context_->NewBuffer(name, type, {extents.begin(), extents.end()}, reader_.Text());
  }

  Stmt ReadStmt() {
    const StmtKind kind = static_cast<StmtKind>(reader_.Unsigned());
    ForKind for_kind = ForKind::kSerial;
    std::string_view name;
    Expr var;
    Buffer buffer;
    if (kind == StmtKind::kFor) for_kind = static_cast<ForKind>(reader_.Unsigned());
    if (kind == StmtKind::kFor || kind == StmtKind::kPragma) name = reader_.Text();
    if (kind == StmtKind::kFor || kind == StmtKind::kLet) var = ReadExpr();
    if (kind == StmtKind::kAllocate || kind == StmtKind::kStore) buffer = ReadBuffer();
    const absl::Span<const Expr> read = ReadExprs();
    // Children read expressions of their own.
    const std::vector<Expr> operands(read.begin(), read.end());
    std::vector<Stmt> children(reader_.Unsigned());
    for (Stmt& child : children) child = ReadStmt();
    switch (kind) {
      case StmtKind::kFor:
        return context_->For(var, operands[0], operands[1], children[0], for_kind, name);
      case StmtKind::kIf:
        return context_->If(operands[0], children[0], children[1]);
      case StmtKind::kLet:
        return context_->LetStmt(var, operands[0], children[0]);
      case StmtKind::kAllocate:
        return context_->Allocate(buffer, children[0]);
      case StmtKind::kStore:
        return context_->Store(
            buffer, absl::MakeConstSpan(operands).subspan(0, operands.size() - 1), operands.back());
      case StmtKind::kPragma:
        return context_->Pragma(name, operands, children[0]);
      case StmtKind::kEvaluate:
        return context_->Evaluate(operands[0]);
      case StmtKind::kSeq:
        return context_->Seq(children);
    }
    POLYNAO_UNREACHABLE(static_cast<int>(kind));
  }

  void Read(Function& function) {
    function.name = std::string(reader_.Text());
    function.context = context_;
    function.params.resize(reader_.Unsigned());
    for (Param& param : function.params) {
      if (reader_.Unsigned() != 0) {
        param.buffer = ReadBuffer();
      } else {
        param.var = ReadExpr();
      }
      param.access = static_cast<Access>(reader_.Unsigned());
      param.scope = std::string(reader_.Text());
    }
    function.attributes.resize(reader_.Unsigned());
    for (Attribute& attribute : function.attributes) {
      attribute.key = std::string(reader_.Text());
      const size_t count = reader_.Unsigned();
      attribute.values.reserve(count);
      for (size_t i = 0; i < count; ++i) {
        if (reader_.Unsigned() != 0) {
          attribute.values.emplace_back(ReadExpr());
        } else {
          attribute.values.emplace_back(std::string(reader_.Text()));
        }
      }
    }
    function.body = ReadStmt();
  }

  PackedReader& reader_;
  const std::shared_ptr<Context> context_;
  std::vector<Expr> exprs_;
  std::vector<Buffer> buffers_;
  std::vector<Expr> operands_;
};

}  // namespace

void PackFunctions(absl::Span<const Function> functions, PackedWriter& writer) {
  Packer(writer).Pack(functions);
}

std::vector<Function> UnpackFunctions(PackedReader& reader, std::shared_ptr<Context> context) {
  return Unpacker(reader, std::move(context)).Unpack();
}

}  // namespace polynao::ir
