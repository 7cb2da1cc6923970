// Two goroutines count in neighbouring words. With the argument `apart` each word has 128 bytes of its own.
package main

import (
	"fmt"
	"os"
	"sync"
)

type counter struct {
	hits  uint64
	bytes uint64
}

type padded struct {
	counter
	_ [112]byte
}

//go:noinline
func count(c *counter, from, to uint64) {
	for i := from; i < to; i++ {
		c.hits++          // the line to name
		c.bytes += i & 63 // or this one
	}
}

func main() {
	const rounds = 200_000_000
	together := make([]counter, 2)
	apart := make([]padded, 2)
	var wait sync.WaitGroup
	for i := range together {
		own := &together[i]
		if len(os.Args) > 1 && os.Args[1] == "apart" {
			own = &apart[i].counter
		}
		wait.Add(1)
		go func() {
			defer wait.Done()
			count(own, uint64(i), rounds)
		}()
	}
	wait.Wait()
	fmt.Println(together[0].hits+together[1].hits, apart[0].bytes+apart[1].bytes)
}
