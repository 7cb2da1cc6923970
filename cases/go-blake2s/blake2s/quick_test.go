package blake2s
import ("testing";"fmt")
func TestQuick(t *testing.T){
 fmt.Printf("%x\n", Sum256([]byte("abc")))
 fmt.Printf("%x\n", Sum256(make([]byte,1000)))
}
var buf=make([]byte,8192)
func bench(b *testing.B,n int){ b.SetBytes(int64(n)); b.ReportAllocs(); sum:=make([]byte,32); for i:=0;i<b.N;i++{ d:=New256(); d.Write(buf[:n]); d.Sum(sum[:0])}}
func bench1(b *testing.B,n int){ b.SetBytes(int64(n)); b.ReportAllocs(); for i:=0;i<b.N;i++{ s:=Sum256(buf[:n]); buf[0]^=s[0]}}
func BenchmarkN8(b *testing.B){bench(b,8)}
func BenchmarkN1K(b *testing.B){bench(b,1024)}
func BenchmarkN8K(b *testing.B){bench(b,8192)}
func BenchmarkS8(b *testing.B){bench1(b,8)}
func BenchmarkS1K(b *testing.B){bench1(b,1024)}
func BenchmarkS8K(b *testing.B){bench1(b,8192)}
