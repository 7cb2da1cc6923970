//go:build !(goexperiment.simd && amd64)

package compress

// vectors says that the machine can do it four words at a time.
const vectors = false

// Use chooses the vectors or the pure form for all that follows, and says whether the machine can.
func Use(wanted bool) bool { return !wanted }

func simd(*[8]uint32, []byte, uint64) {}

func simdLast(*[8]uint32, []byte, uint64, bool) {}
