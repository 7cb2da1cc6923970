// Typical costs of Go programs: the first argument selects one, the second says how often.
package main

import (
	"fmt"
	"os"
	"strconv"
	"sync/atomic"
)

var last []byte

// A buffer of the largest possible size for each frame, which uses little of it.
//
//go:noinline
func frame(state uint32) byte {
	buffer := make([]byte, 32<<10) // the buffer to name
	last = buffer
	for i := 0; i < 900; i += 8 {
		state = state*1664525 + 1013904223
		buffer[i] = byte(state >> 24)
	}
	return buffer[state%900]
}

type point struct {
	x, y   float64
	weight [4]float64
}

// Collects the points within a window, without knowing how many there will be.
//
//go:noinline
func within(all []point, low, high float64) []point {
	var found []point
	for i := range all {
		if all[i].x >= low && all[i].x < high {
			found = append(found, all[i]) // the growth to name
		}
	}
	return found
}

type tally struct{ count, last int }

// Allocates a tally for each visitor.
//
//go:noinline
func tallies(visits int) int {
	all := make([]*tally, 512)
	for i := 0; i < visits; i++ {
		all[i&511] = &tally{i, i & 7} // the tally to name
	}
	return all[visits&511].count
}

var counts [256]atomic.Uint32

// Counts with atomic additions, in one thread.
//
//go:noinline
func marks(seed int) {
	for i := 0; i < 4096; i++ {
		counts[(i*31+seed)&255].Add(1) // the mark to name
	}
}

func main() {
	count, _ := strconv.Atoi(os.Args[2])
	sum := 0
	switch os.Args[1] {
	case "frames":
		for i := 0; i < count; i++ {
			sum += int(frame(uint32(i)))
		}
	case "points":
		all := make([]point, 3000)
		for i := range all {
			all[i] = point{x: float64(i*7919%1000) / 10, y: float64(i)}
		}
		for i := 0; i < count; i++ {
			sum += len(within(all, float64(i%20), float64(i%20+60)))
		}
	case "marks":
		for i := 0; i < count; i++ {
			marks(i)
		}
		sum = int(counts[7].Load())
	case "tallies":
		for i := 0; i < count; i++ {
			sum += tallies(2000)
		}
	}
	fmt.Println(sum)
}
