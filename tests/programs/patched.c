/* Changes the constant in its own hot loop between rounds. x86-64. */
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

extern unsigned char patched[];

__attribute__((noinline)) static uint32_t count(uint32_t rounds)
{
    uint32_t sum = 1;
    __asm__ volatile("1: imul $3, %0, %0\n"
                     ".globl patched\n"
                     "patched: add $7, %0\n"
                     "dec %1\n"
                     "jnz 1b\n"
                     : "+r"(sum), "+r"(rounds));
    return sum;
}

int main(void)
{
    uintptr_t page = (uintptr_t)patched & ~((uintptr_t)sysconf(_SC_PAGESIZE) - 1);
    if (mprotect((void *)page, 8192, PROT_READ | PROT_WRITE | PROT_EXEC))
        return 1;
    uint32_t sum = 0;
    for (int round = 0; round < 400; round++) {
        patched[2] = round & 63;
        sum += count(1000000);
    }
    printf("%u\n", sum);
    return 0;
}
