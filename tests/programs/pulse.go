// A sample each 15 ms, as a receiver wants: the pace is the program's purpose. Between two ticks it computes.
package main

import (
	"fmt"
	"os"
	"time"
)

func main() {
	out, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		panic(err)
	}
	ticker := time.NewTicker(15 * time.Millisecond)
	defer ticker.Stop()
	sample := uint32(1)
	for i := 0; i < 35; i++ {
		<-ticker.C
		for k := uint32(0); k < 400_000; k++ {
			sample = sample*1664525 + k
		}
		fmt.Fprintf(out, "sample %d %d\n", i, sample)
	}
}
