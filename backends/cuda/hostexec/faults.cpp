// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/hostexec/faults.h"

#include <signal.h>
#include <ucontext.h>

#include <mutex>

#include "backends/cuda/hostexec/checks.h"
#include "backends/cuda/hostexec/sanitizer.h"

namespace lathe::cuda::host {
namespace {

struct sigaction oldSegv, oldBus;

Text addressOf(const Executor& x, const char* address) {
  if (x.contains(address))
    return text("the stack guard: a kernel thread uses more than %zu KiB of stack",
                (kStack - kGuard) >> 10);
  return globalName(x, address);
}

void onFault(int signal, siginfo_t* info, void* context) {
  Executor* x = current;
  if (!x || !lt_self) {
    // Not ours: the access faults again and meets the handler of before.
    sigaction(signal, signal == SIGBUS ? &oldBus : &oldSegv, nullptr);
    return;
  }
  const auto* machine = static_cast<const ucontext_t*>(context);
  const auto pc = uintptr_t(machine->uc_mcontext.gregs[REG_RIP]);
  const Module& module = *x->launch->module;
  const std::string line =
      module.contains(pc) ? module.lineOf(u32(pc - module.base()) + 1) : "a primitive";
  x->fatal(text("memory fault at %s by %s at %s",
                addressOf(*x, static_cast<const char*>(info->si_addr)).chars, whoIs(*lt_self).chars,
                line.c_str()));
}

}  // namespace

void installFaultHandler() {
  static std::once_flag once;
  std::call_once(once, [] {
    if (haveAsan()) return;
    struct sigaction action = {};
    action.sa_sigaction = onFault;
    // The handler leaves by a context switch, not by returning.
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
    sigaction(SIGSEGV, &action, &oldSegv);
    sigaction(SIGBUS, &action, &oldBus);
  });
}

void useSignalStack(void* stack, size_t bytes) {
  if (haveAsan()) return;
  stack_t signalStack = {};
  signalStack.ss_sp = stack;
  signalStack.ss_size = bytes;
  sigaltstack(&signalStack, nullptr);
}

}  // namespace lathe::cuda::host
