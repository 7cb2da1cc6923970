//! tiny-reads: a record of eight bytes a call. Fast: through a buffer.
use std::io::Read;

fn main() -> std::io::Result<()> {
    let input = std::fs::File::open("/dev/stdin")?;
    #[cfg(fast)]
    let mut input = std::io::BufReader::new(input);
    #[cfg(not(fast))]
    let mut input = input;
    let (mut record, mut sum) = ([0u8; 8], 1u64);
    while input.read_exact(&mut record).is_ok() {
        for _ in 0..100 {
            sum = sum.wrapping_mul(31).wrapping_add(u64::from_le_bytes(record));
        }
    }
    println!("{sum}");
    Ok(())
}
