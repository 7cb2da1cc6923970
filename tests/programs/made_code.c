/* Writes a function into fresh memory and runs it, as a JIT compiler does. With an argument it also
   lists the function by name in a perf map, as JIT compilers do on request. With another one it runs
   it four times: a file that its own root hides can only be found while it lives. x86-64. */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    /* mov eax,edi; mov ecx,400000000; again: imul eax,eax,3; add eax,7; dec ecx; jnz again; ret */
    static const unsigned char code[] = {0x89, 0xf8, 0xb9, 0x00, 0x84, 0xd7, 0x17, 0x6b, 0xc0,
                                         0x03, 0x83, 0xc0, 0x07, 0xff, 0xc9, 0x75, 0xf6, 0xc3};
    void *made = mmap(0, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (made == MAP_FAILED)
        return 1;
    memcpy(made, code, sizeof code);
    if (argc > 1) {
        char list[64];
        snprintf(list, sizeof list, "/tmp/perf-%d.map", getpid());
        FILE *file = fopen(list, "w");
        if (!file)
            return 1;
        /* Printed raw, the name would clear a terminal. */
        fprintf(file, "%lx 1000 %s\x1b[2J\n", (unsigned long)made, argv[1]);
        fclose(file);
    }
    int (*run)(int) = (int (*)(int))made;
    int last = 0;
    for (int left = argc > 2 ? 4 : 1; left > 0; left--)
        last = run(argc);
    printf("%d\n", last);
    return 0;
}
