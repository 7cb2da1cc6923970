// Waits for a worker by sleeping and checking again. A goroutine sleeps: the thread
// under it waits in Go's scheduler, which knows no line of this file.
package main

import (
	"fmt"
	"sync"
	"time"
)

type results struct {
	sync.Mutex
	ready []uint64
}

func (r *results) next() uint64 {
	for {
		r.Lock()
		if len(r.ready) > 0 {
			last := r.ready[0]
			r.ready = r.ready[1:]
			r.Unlock()
			return last
		}
		r.Unlock()
		time.Sleep(15 * time.Millisecond) // sleeps and looks again
	}
}

func (r *results) work(seed uint64) {
	for range 2_000_000 {
		seed ^= seed >> 31
		seed *= 0x94d049bb133111eb
	}
	r.Lock()
	r.ready = append(r.ready, seed)
	r.Unlock()
}

func main() {
	var r results
	var sum uint64
	for seed := uint64(1); seed <= 25; seed++ {
		go r.work(seed)
		sum += r.next()
	}
	fmt.Println(sum)
}
