// Finds the nearest of many vehicles; the loop variable is a copy of each.
package main

import "fmt"

type vehicle struct {
	id    int
	x, y  float64
	log   [40]int64 // 344 bytes in all
	moved bool
	seats int
}

//go:noinline
func nearest(all []vehicle, x, y float64) int {
	best, at := 1e18, -1
	for _, v := range all { // the line to name
		if v.moved {
			continue
		}
		if d := (v.x-x)*(v.x-x) + (v.y-y)*(v.y-y); d < best {
			best, at = d, v.id
		}
	}
	return at
}

func main() {
	all := make([]vehicle, 500)
	for i := range all {
		all[i] = vehicle{id: i, x: float64(i * 37 % 101), y: float64(i * 53 % 97)}
	}
	sum := 0
	for i := 0; i < 40000; i++ {
		sum += nearest(all, float64(i%100), float64(i%89))
	}
	fmt.Println(sum)
}
