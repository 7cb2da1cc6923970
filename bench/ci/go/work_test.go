// Work for the measurement of `deadweight ci`, as a Go benchmark.
package work

import "testing"

var sink []byte

//go:noinline
func work(s uint64) uint64 {
	for i := uint64(0); i < steps; i++ {
		s = s*6364136223846793005 + i
	}
	return s
}

func BenchmarkOperation(b *testing.B) {
	b.ReportAllocs()
	var s uint64
	for i := 0; i < b.N; i++ {
		sink = make([]byte, 64)
		if more {
			sink = make([]byte, 32)
		}
		s += work(uint64(sink[7]))
	}
	if s == 1 {
		b.Fatal("chance")
	}
}
