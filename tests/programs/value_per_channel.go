// A goroutine sends each value through a channel without a buffer; with `batches`, a slice of fifty thousand.
package main

import (
	"fmt"
	"os"
)

const values, size = 1_500_000, 50_000

func mixed(v uint64) uint64 {
	v ^= v << 13
	v ^= v >> 7
	return v ^ v<<17
}

func oneByOne() (sum uint64) {
	out := make(chan uint64)
	go func() {
		for i := uint64(1); i <= values; i++ {
			out <- mixed(i)
		}
		close(out)
	}()
	for v := range out { // the line to name
		sum += v % 1000
	}
	return sum
}

// A hundred times as many.
func inBatches() (sum uint64) {
	out := make(chan []uint64)
	go func() {
		for first := uint64(1); first <= 100*values; first += size {
			batch := make([]uint64, size)
			for i := range batch {
				batch[i] = mixed(first + uint64(i))
			}
			out <- batch
		}
		close(out)
	}()
	for batch := range out {
		for _, v := range batch {
			sum += v % 1000
		}
	}
	return sum
}

func main() {
	if len(os.Args) > 1 && os.Args[1] == "batches" {
		fmt.Println(inBatches())
		return
	}
	fmt.Println(oneByOne())
}
