// contended_in_go ROUNDS: two goroutines that do all their work under one mutex.
package main

import (
	"fmt"
	"os"
	"strconv"
	"sync"
)

type table struct {
	mutex sync.Mutex
	sum   uint64
}

//go:noinline
func work(seed uint64) uint64 {
	for i := 0; i < 300_000; i++ {
		seed = seed*6364136223846793005 + 1442695040888963407
	}
	return seed
}

func (t *table) add(seed uint64) {
	t.mutex.Lock()
	t.sum += work(seed) // the work under the lock
	t.mutex.Unlock()
}

func main() {
	rounds, err := strconv.Atoi(os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	var t table
	var both sync.WaitGroup
	for worker := uint64(0); worker < 2; worker++ {
		both.Add(1)
		go func() {
			defer both.Done()
			for i := 0; i < rounds; i++ {
				t.add(worker + uint64(i))
			}
		}()
	}
	both.Wait()
	fmt.Println(t.sum)
}
