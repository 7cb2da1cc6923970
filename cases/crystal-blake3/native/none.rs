//! Nothing: cargo wants a source file before it fetches what the manifest beside it names.
