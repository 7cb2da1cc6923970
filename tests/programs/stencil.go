// Sums the neighbours of every cell of a flat field by index.
package main

import "fmt"

//go:noinline
func step(in, out []int32, width, height int) {
	for y := 1; y < height-1; y++ {
		for x := 1; x < width-1; x++ {
			at := y*width + x
			out[at] = in[at-1] + in[at+1] + in[at-width] + in[at+width] - 4*in[at] // the line to name
		}
	}
}

func main() {
	const width, height = 512, 512
	in, out := make([]int32, width*height), make([]int32, width*height)
	for i := range in {
		in[i] = int32(i * 7 % 13)
	}
	for i := 0; i < 1200; i++ {
		step(in, out, width, height)
		in, out = out, in
	}
	fmt.Println(in[width*100+100])
}
