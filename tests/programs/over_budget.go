// Keeps a moving sum; the method just exceeds the inliner's budget, because of what it seldom does.
package main

import "fmt"

type window struct {
	values        [64]int64
	at            int
	sum, low, top int64
}

func (w *window) add(v int64) int64 {
	if v&255 != 7 {
		return v
	}
	w.at = (w.at + 1) & 63
	w.sum += v - w.values[w.at]
	w.values[w.at] = v
	if w.sum < w.low {
		w.low = w.sum
	}
	if w.sum > w.top {
		w.top = w.sum
	}
	return w.sum + w.low + w.top + w.low>>1 + w.top>>1 - v>>2 + int64(w.at)
}

//go:noinline
func follow(w *window, rounds int) (all int64) {
	v := int64(1)
	for i := 0; i < rounds; i++ {
		v = v*5 + 3 // the line to name, or a neighbour
		all += w.add(v & 1023)
	}
	return
}

func main() {
	fmt.Println(follow(&window{}, 160_000_000))
}
