// Goroutines, interface calls, growing stacks and garbage, for unwinding.
package main

import (
	"fmt"
	"sort"
	"strings"
	"sync"
)

type worker interface{ work(n int) int }
type sorter struct{}

func (sorter) work(n int) int {
	v := make([]int, n)
	for i := range v {
		v[i] = (i * 7919) % n
	}
	sort.Ints(v)
	return v[n/2]
}

//go:noinline
func deep(depth int, w worker, n int) int {
	var scratch [200]byte
	scratch[n%200] = byte(depth)
	if depth == 0 {
		return w.work(n)
	}
	return deep(depth-1, w, n) + int(scratch[depth%200])
}

func names(n int) int {
	seen := map[string]int{}
	for i := 0; i < n; i++ {
		seen[strings.Repeat("x", i%17)+fmt.Sprint(i)] = i
	}
	return len(seen)
}

func main() {
	var wait sync.WaitGroup
	sums := make([]int, 4)
	for g := range sums {
		wait.Add(1)
		go func() {
			defer wait.Done()
			for i := 0; i < 150; i++ {
				sums[g] += deep(20+i%40, sorter{}, 3000+i) + names(300)
			}
		}()
	}
	wait.Wait()
	fmt.Println(sums)
}
