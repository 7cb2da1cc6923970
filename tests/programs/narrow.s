# A 32-bit program: counts, and exits through the 32-bit system call interface.
    .text
    .globl _start
    .type _start, @function
_start:
    movl $600000000, %ecx
    call count
    movl $1, %eax
    xorl %ebx, %ebx
    int $0x80
    .size _start, .-_start

    .type count, @function
count:
    addl $3, %eax
    decl %ecx
    jnz count
    ret
    .size count, .-count
