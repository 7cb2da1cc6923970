//! The text of a result file, in whatever encoding a shell wrote it: PowerShell's `>` writes UTF-16.
//!
//! Other bytes than UTF-8 and UTF-16 are read as UTF-8, with U+FFFD for what is not: names may be odd, numbers are not.

/// Decodes the bytes of a file, without its byte order mark. UTF-16 without a mark is known by the zero byte beside
/// the first character, which is ASCII in each format that is read.
#[must_use]
pub fn text(bytes: &[u8]) -> String {
    match bytes {
        [0xff, 0xfe, rest @ ..] => utf16(rest, u16::from_le_bytes),
        [0xfe, 0xff, rest @ ..] => utf16(rest, u16::from_be_bytes),
        [a, 0, b, 0, ..] if *a > 0 && *b > 0 => utf16(bytes, u16::from_le_bytes),
        [0, a, 0, b, ..] if *a > 0 && *b > 0 => utf16(bytes, u16::from_be_bytes),
        [0xef, 0xbb, 0xbf, rest @ ..] => String::from_utf8_lossy(rest).into_owned(),
        _ => String::from_utf8_lossy(bytes).into_owned(),
    }
}

fn utf16(bytes: &[u8], unit: fn([u8; 2]) -> u16) -> String {
    let units = bytes.chunks_exact(2).map(|pair| unit([pair[0], pair[1]]));
    char::decode_utf16(units).map(|unit| unit.unwrap_or(char::REPLACEMENT_CHARACTER)).collect()
}

#[cfg(test)]
mod tests {
    use super::text;

    #[test]
    fn every_encoding_of_a_text_is_read_alike() {
        let plain = "goos: linux\r\nBenchmarkµ-8 1 7 ns/op 𝄞\n";
        let units = || plain.encode_utf16();
        let little: Vec<u8> = units().flat_map(u16::to_le_bytes).collect();
        let big: Vec<u8> = units().flat_map(u16::to_be_bytes).collect();
        let marked = |mark: &[u8], bytes: &[u8]| [mark, bytes].concat();
        for bytes in [
            plain.as_bytes().to_vec(),
            marked(b"\xef\xbb\xbf", plain.as_bytes()),
            marked(b"\xff\xfe", &little),
            marked(b"\xfe\xff", &big),
            little,
            big,
        ] {
            assert_eq!(text(&bytes), plain, "{bytes:?}");
        }
    }

    #[test]
    fn other_bytes_lose_nothing_but_their_odd_characters() {
        assert_eq!(text(b"Benchmark\xb5 1 7 ns/op"), "Benchmark\u{fffd} 1 7 ns/op");
        assert_eq!(text(b"\xff\xfea"), "");
        assert_eq!(text(b""), "");
    }
}
