/*
 * void cpu_switch(void **save, void *resume): pushes the callee-saved registers, stores the stack
 * pointer in *save and continues where `resume` was stored by an earlier call (or prepared by
 * cpu_stack_prepare).
 *
 * cpu_switch_resume: the second half alone. A signal handler that gives a fiber up points the
 * interrupted context here, with the stack pointer that the worker's own context was saved under.
 *
 * cpu_fiber_entry: the first thing a new fiber runs.
 *
 * The order of the saved registers is known to cpu_stack_prepare() in cpu_fiber.c: a return address
 * above CPU_SAVED_WORDS words that may be zero.
 */
    .text

#if defined(__x86_64__)

    .globl cpu_switch
    .globl cpu_switch_resume
    .type cpu_switch, @function
    .p2align 5
cpu_switch:
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, (%rdi)
    movq %rsi, %rsp
cpu_switch_resume:
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    popq %rcx
    jmpq *%rcx /* not retq: the return predictor follows calls, not stacks, and took a third of the
                  time of a kernel of many barriers (dense_gemm: 35 ms against 23 with the jump) */
    .size cpu_switch, . - cpu_switch

    .globl cpu_fiber_entry
    .type cpu_fiber_entry, @function
    .p2align 4
cpu_fiber_entry:
    xorl %ebp, %ebp /* the end of the frame chain */
    callq cpu_fiber_main
    ud2
    .size cpu_fiber_entry, . - cpu_fiber_entry

#elif defined(__aarch64__)

    .globl cpu_switch
    .globl cpu_switch_resume
    .type cpu_switch, %function
    .p2align 4
cpu_switch:
    sub sp, sp, #160
    stp d8, d9, [sp, #0]
    stp d10, d11, [sp, #16]
    stp d12, d13, [sp, #32]
    stp d14, d15, [sp, #48]
    stp x19, x20, [sp, #64]
    stp x21, x22, [sp, #80]
    stp x23, x24, [sp, #96]
    stp x25, x26, [sp, #112]
    stp x27, x28, [sp, #128]
    stp x29, x30, [sp, #144]
    mov x2, sp
    str x2, [x0]
    mov sp, x1
cpu_switch_resume:
    ldp d8, d9, [sp, #0]
    ldp d10, d11, [sp, #16]
    ldp d12, d13, [sp, #32]
    ldp d14, d15, [sp, #48]
    ldp x19, x20, [sp, #64]
    ldp x21, x22, [sp, #80]
    ldp x23, x24, [sp, #96]
    ldp x25, x26, [sp, #112]
    ldp x27, x28, [sp, #128]
    ldp x29, x16, [sp, #144]
    add sp, sp, #160
    br x16 /* not ret, for the same reason: ret is predicted from the calls. By the architecture
              only; not measured on an aarch64 machine. The place it continues at is no landing pad
              of BTI, and need not be: this object is not marked for BTI, so neither is the
              executable, and cpu_switch is called from nowhere else. */
    .size cpu_switch, . - cpu_switch

    .globl cpu_fiber_entry
    .type cpu_fiber_entry, %function
    .p2align 4
cpu_fiber_entry:
    mov x29, xzr
    bl cpu_fiber_main
    brk #1
    .size cpu_fiber_entry, . - cpu_fiber_entry

#else
#error "the CPU device knows x86-64 and aarch64"
#endif

    .section .note.GNU-stack, "", %progbits
