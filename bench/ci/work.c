// Work for the measurement of `deadweight ci`: 4 000 operations. PLANT=1: 5 % more time; PLANT=2: one more allocation of each.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
// What every build has of its own, such as a commit: another text of the same length.
__attribute__((used)) static const char version[] = VERSION;
#if PLANT == 1
#define STEPS 10500
#else
#define STEPS 10000
#endif
__attribute__((noipa)) static unsigned long work(unsigned long s) {
    for (unsigned long i = 0; i < STEPS; i++) s = s * 6364136223846793005ul + i;
    return s;
}
__attribute__((noipa)) static unsigned long operation(int i) {
    char *a = malloc(64);
    __asm__ volatile("" : : "r"(a) : "memory"); // else the compiler leaves it out
    memset(a, i, 64);
    unsigned long s = work((unsigned long)a[7]);
#if PLANT == 2
    char *b = malloc(32); // planted
    __asm__ volatile("" : : "r"(b) : "memory");
    memset(b, i, 32);
    s += (unsigned long)b[3];
    free(b);
#endif
    free(a);
    return s;
}
int main(void) {
    unsigned long s = 0;
    for (int i = 0; i < 4000; i++) s += operation(i);
    printf("%d\n", s != 1);
}
