#include "simulator/queue.h"

#include <utility>

#include "base/check.h"

namespace polynao::simulator {

InstructionQueue::InstructionQueue(sc_core::sc_module_name name, isa::Queue queue, int64_t depth,
                                   QueueListener& listener)
    : sc_core::sc_module(name), queue_(queue), depth_(depth), listener_(listener) {
  SC_HAS_PROCESS(InstructionQueue);
  SC_METHOD(Dispatch);
  sensitive << wake_.event();
  dont_initialize();
}

void InstructionQueue::Push(Issued issued) {
  POLYNAO_CHECK(HasRoom()) << name();
  POLYNAO_CHECK(issued.ready > Now()) << name();
  if (idle()) wake_.NotifyAt(issued.ready);
  waiting_.push_back(std::move(issued));
}

void InstructionQueue::Dispatch() {
  if (active_ || waiting_.empty()) return;
  if (waiting_.front().ready > Now()) {
    wake_.NotifyAt(waiting_.front().ready);
    return;
  }
  current_ = std::move(waiting_.front());
  waiting_.pop_front();
  active_ = true;
  last_start_ = Now();
  listener_.UnitOf(*current_.instruction).Start(current_);
  listener_.OnProgress(queue_);
}

void InstructionQueue::Complete() {
  POLYNAO_CHECK(active_) << name();
  POLYNAO_CHECK(Now() > last_start_) << name() << ": an instruction takes at least a cycle";
  active_ = false;
  listener_.OnComplete(current_, last_start_);
  Dispatch();
  listener_.OnProgress(queue_);
}

}  // namespace polynao::simulator
