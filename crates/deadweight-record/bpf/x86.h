/* x86-64: the registers of a task that entered the kernel (`struct pt_regs`). */
#pragma once

#include "kernel.h"

struct registers {
	u64 r15, r14, r13, r12, bp, bx, r11, r10, r9, r8, ax, cx, dx, si, di, orig_ax, ip, cs, flags, sp, ss;
};

/* The code segment of a 32-bit program (`__USER32_CS`). */
#define COMPAT_SEGMENT 0x23

INLINE int is_compat(const struct registers *regs)
{
	return (regs->cs & 0xffff) == COMPAT_SEGMENT;
}

INLINE int is_user(const struct registers *regs)
{
	return (regs->cs & 3) == 3;
}

INLINE u64 instruction(const struct registers *regs)
{
	return regs->ip;
}

/* Arguments of a system call. */
#define ARG0(regs) ((regs)->di)
#define ARG1(regs) ((regs)->si)
#define ARG2(regs) ((regs)->dx)
#define ARG3(regs) ((regs)->r10)
#define ARG4(regs) ((regs)->r8)
#define ARG5(regs) ((regs)->r9)
/* Those of a 32-bit program. */
#define COMPAT_ARG0(regs) ((regs)->bx)
#define COMPAT_ARG1(regs) ((regs)->cx)
#define COMPAT_ARG2(regs) ((regs)->dx)
#define COMPAT_ARG3(regs) ((regs)->si)
#define COMPAT_ARG4(regs) ((regs)->di)
#define COMPAT_ARG5(regs) ((regs)->bp)

/* Which argument of a call is a path, counted from 1; 0 for none: of `open`, `stat`, `lstat`, `access`, `readlink`;
 * `openat`, `newfstatat`, `readlinkat`, `faccessat`, `statx`, `openat2`, `faccessat2`. */
INLINE u32 path_argument(u64 call)
{
	if (call == 2 || call == 4 || call == 6 || call == 21 || call == 89)
		return 1;
	if (call == 257 || call == 262 || call == 267 || call == 269 || call == 332 || call == 437 || call == 439)
		return 2;
	return 0;
}

/* Whether a call opens a file with O_DSYNC or O_DIRECT: where it does is worth a stack. `open` and `openat`. */
#define SELDOM_FLAGS (0010000 | 0040000)
INLINE int opens_with_seldom_flags(const struct registers *regs, u64 call)
{
	if (call == 257)
		return (ARG2(regs) & SELDOM_FLAGS) != 0;
	return call == 2 && (ARG1(regs) & SELDOM_FLAGS) != 0;
}

#define CONNECT 42

/* Stores become visible in their order. */
INLINE void publish(volatile u64 *where, u64 value)
{
	asm volatile("" ::: "memory");
	*where = value;
}
