module example.org/blake2s/bench

go 1.24.0

require (
	example.org/blake2s v0.0.0
	golang.org/x/crypto v0.45.0
)

require golang.org/x/sys v0.38.0 // indirect

replace example.org/blake2s => ../
