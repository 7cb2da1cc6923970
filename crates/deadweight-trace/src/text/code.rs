//! Machine code in the text form: `code sum @0x1139 554889e5..`, then `calls 0x1030 read`.
//!
//! Not for what the code means; see `deadweight-code`.

use super::TextError;
use super::stack::{Frames, Images, Mode, read_address};
use super::word::{Name, Words};
use crate::symbols::{FunctionCode, Symbols};
use crate::units::FileAddr;
use std::fmt::{self, Write};

/// Bytes per word, so that long code can be read in an editor.
const WORD: usize = 32;

/// Reads what follows `code`.
pub(super) fn read(
    words: &mut Words<'_>,
    symbols: &mut Symbols,
    images: &mut Images,
) -> Result<(), TextError> {
    let name = words.name("a function")?;
    if !words.take_char('@') {
        return Err(words.expected("@IMAGE+0xADDRESS"));
    }
    let (image, addr) = read_address(words, symbols, images, Mode::User)?;
    let mut bytes = Vec::new();
    while !words.at_end() {
        let here = words.clone();
        let word = words.word();
        let byte = |two: &[u8]| {
            let [high, low] = two else { return None };
            let digit = |c: &u8| char::from(*c).to_digit(16).and_then(|d| u8::try_from(d).ok());
            Some(digit(high)? << 4 | digit(low)?)
        };
        for two in word.as_bytes().chunks(2) {
            bytes.push(byte(two).ok_or_else(|| here.expected("bytes in hexadecimal"))?);
        }
    }
    if bytes.is_empty() {
        return Err(words.expected("bytes in hexadecimal"));
    }
    let name = symbols.intern(&name);
    symbols.code.push(FunctionCode { image, addr, name, bytes, targets: Vec::new() });
    Ok(())
}

/// Reads what follows `calls`.
pub(super) fn read_target(words: &mut Words<'_>, symbols: &mut Symbols) -> Result<(), TextError> {
    let here = words.clone();
    let addr = FileAddr(words.number("an address")?);
    let name = words.name("a function")?;
    let name = symbols.intern(&name);
    let code = symbols.code.last_mut().ok_or_else(|| here.expected("a line `code` before"))?;
    code.targets.push((addr, name));
    Ok(())
}

/// Writes all of it.
pub(super) fn write(out: &mut dyn Write, symbols: &Symbols, frames: &Frames<'_>) -> fmt::Result {
    for code in &symbols.code {
        write!(out, "code {}", Name(symbols.name(code.name)))?;
        frames.address(out, code.image, code.addr, Mode::User)?;
        for word in code.bytes.chunks(WORD) {
            let hex: String = word.iter().map(|byte| format!("{byte:02x}")).collect();
            write!(out, " {hex}")?;
        }
        writeln!(out)?;
        for (addr, name) in &code.targets {
            writeln!(out, "calls {:#x} {}", addr.0, Name(symbols.name(*name)))?;
        }
    }
    Ok(())
}
