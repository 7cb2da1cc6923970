// gc: an object for each event of each session, held by pointers. Fast: by value.
package main

import "fmt"

type event struct {
	at, kind int64
	values   [4]int64
}

func main() {
	sessions := make([][]held, 2000)
	x, sum := uint32(1), int64(0)
	for i := 0; i < 6_000_000; i++ {
		x = x*1664525 + 1013904223
		session := &sessions[x>>8%2000]
		if len(*session) >= 300 {
			for _, h := range (*session)[:150] {
				sum += value(h).kind
			}
			*session = append((*session)[:0], (*session)[150:]...)
		}
		*session = append(*session, hold(event{at: int64(i), kind: int64(x & 7)}))
	}
	fmt.Println(sum)
}
