/* The kernel's interface for BPF programs: types and helper functions, by their numbers in `enum bpf_func_id`.
 * No header of the kernel is needed: the recorder fills in the offsets of members when it loads the programs. */
#pragma once

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long s64;

#define SECTION(name) __attribute__((section(name), used))
#define INLINE static inline __attribute__((always_inline))
#define likely(condition) __builtin_expect(!!(condition), 1)
#define unlikely(condition) __builtin_expect(!!(condition), 0)

/* Output goes to the event of the current CPU. */
#define THIS_CPU 0xffffffffULL

static void *(*const map_lookup)(const void *map, const void *key) = (void *)1;
static u64 (*const ktime_ns)(void) = (void *)5;
static u32 (*const processor_id)(void) = (void *)8;
static u64 (*const current_pid_tgid)(void) = (void *)14;
static long (*const perf_event_output)(void *context, const void *map, u64 cpu, void *data, u64 size) = (void *)25;
static long (*const get_stack)(void *context, void *frames, u32 size, u64 skip) = (void *)67;
static long (*const read_user)(void *to, u32 size, const void *from) = (void *)112;
static long (*const read_kernel)(void *to, u32 size, const void *from) = (void *)113;
static long (*const read_user_text)(void *to, u32 size, const void *from) = (void *)114;
static long (*const read_kernel_text)(void *to, u32 size, const void *from) = (void *)115;
static void *(*const current_task)(void) = (void *)158;
static u64 (*const attach_cookie)(void *context) = (void *)174;

/* Numbers that the recorder fills in: the address of such a name is its value. */
extern const u8 task_pid[], task_tgid[], task_comm[], task_pagefault_disabled[], bprm_filename[];
extern const u8 task_files[], files_fdt[], fdt_max_fds[], fdt_fd[], file_inode[], inode_ino[], inode_sb[];
extern const u8 ring_mask[];
#define FILLED_IN(name) ((u64)&name)

/* A member of a kernel structure, by an offset that the recorder fills in. */
#define MEMBER(type, structure, offset) (*(type *)((structure) + FILLED_IN(offset)))

/* The recorder's maps, filled in likewise. */
struct map {
	u32 unused;
};
extern const struct map cpus, rings, followed, tasks, call_filters, stack_times;
extern const struct map call_sites, fault_sites, wait_sites, alarms;
