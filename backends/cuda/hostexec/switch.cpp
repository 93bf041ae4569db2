// SPDX-License-Identifier: Apache-2.0
// void lt_switch(void** saveSp, void* newSp): the callee-saved registers only; the signal mask,
// MXCSR and the x87 word stay as they are.
asm(R"(
  .text
  .globl lt_switch
  .hidden lt_switch
  .type lt_switch,@function
lt_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
  .size lt_switch, .-lt_switch
)");
