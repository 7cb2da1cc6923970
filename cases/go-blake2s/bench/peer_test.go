// Package bench compares package blake2s with that of golang.org/x/crypto, which is written in
// assembly on this kind of machine. A module of its own, so that the package depends on nothing.
package bench

import (
	"fmt"
	"testing"

	ours "example.org/blake2s/blake2s"
	theirs "golang.org/x/crypto/blake2s"
)

var data = make([]byte, 8<<10)

func TestTheSame(t *testing.T) {
	for n := range 300 {
		if ours, theirs := ours.Sum256(data[:n]), theirs.Sum256(data[:n]); ours != theirs {
			t.Errorf("%d bytes: %x, %x", n, ours, theirs)
		}
	}
}

func BenchmarkDigest(b *testing.B) {
	sum := make([]byte, 0, 32)
	compare(b, func(data []byte) {
		d := ours.New256()
		d.Write(data)
		sum = d.Sum(sum[:0])
	}, func(data []byte) {
		d, _ := theirs.New256(nil)
		d.Write(data)
		sum = d.Sum(sum[:0])
	})
}

func BenchmarkSum256(b *testing.B) {
	compare(b,
		func(data []byte) { ours.Sum256(data) },
		func(data []byte) { theirs.Sum256(data) },
	)
}

func compare(b *testing.B, ours, theirs func([]byte)) {
	for _, size := range []int{8, 1 << 10, 8 << 10} {
		for _, by := range []string{"ours", "x-crypto"} {
			hash := map[string]func([]byte){"ours": ours, "x-crypto": theirs}[by]
			b.Run(fmt.Sprintf("by=%s/size=%d", by, size), func(b *testing.B) {
				b.SetBytes(int64(size))
				b.ReportAllocs()
				for range b.N {
					hash(data[:size])
				}
			})
		}
	}
}
