//! The roles of the instructions that a trace's samples waited for, function by function. For authors of rules.
//!
//! `cargo run --release --example roles -- FILE [FUNCTION]`; the function named is shown in full. Not for users.
#![expect(clippy::print_stdout, reason = "an example that prints")]
#![expect(clippy::disallowed_methods, reason = "the core itself does none")]

use deadweight_code::{Abi, Code, Function, Role};
use deadweight_trace::symbols::Symbols;
use deadweight_trace::units::FileAddr;
use deadweight_trace::{Kind, Trace};
use std::collections::BTreeMap;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("which trace?")?;
    let (trace, _) = Trace::from_bytes(&std::fs::read(path)?)?;
    let symbols = &trace.symbols;
    let mut hits: BTreeMap<usize, Vec<(FileAddr, u64)>> = BTreeMap::new();
    let mut all = 0;
    for event in trace.events() {
        let Kind::Sample { kernel: false, stack, .. } = event.kind else { continue };
        let Some(leaf) = symbols.stack(stack).first() else { continue };
        let leaf = &symbols.locations[leaf.index()];
        let code = symbols.code.iter().rposition(|c| c.image == leaf.image && c.addr <= leaf.addr);
        all += 1;
        let holds = |code: &usize| {
            let code = &symbols.code[*code];
            leaf.addr.0 - code.addr.0 < code.bytes.len() as u64
        };
        if let Some(code) = code.filter(holds) {
            hits.entry(code).or_default().push((leaf.addr, 1));
        }
    }
    let mut hits: Vec<_> = hits.into_iter().collect();
    hits.sort_by_key(|(_, hits)| std::cmp::Reverse(hits.len()));
    for (code, hits) in hits.into_iter().take(12) {
        show(&trace, code, &hits, all);
    }
    Ok(())
}

fn show(trace: &Trace, code: usize, hits: &[(FileAddr, u64)], all: usize) {
    let symbols: &Symbols = &trace.symbols;
    let sealed = &symbols.code[code];
    let name = |at: FileAddr| {
        let found = sealed.targets.iter().find(|(addr, _)| *addr == at)?;
        Some(symbols.name(found.1))
    };
    let abi = Abi::of(symbols.name(symbols.images[sealed.image.index()].language));
    let bytes = Code { arch: trace.meta.arch, abi, addr: sealed.addr, bytes: &sealed.bytes };
    let function = Function::read(&bytes, &name);
    let percent = |part: usize| part as f64 * 100.0 / all as f64;
    let size = sealed.bytes.len();
    println!("{:5.1} %  {} ({size} bytes)", percent(hits.len()), symbols.name(sealed.name));
    let mut roles: BTreeMap<String, usize> = BTreeMap::new();
    for (ip, _) in hits {
        let role = function.role_of_sample(*ip).unwrap_or(Role::Work);
        *roles.entry(format!("{role:?}")).or_default() += 1;
    }
    let mut roles: Vec<_> = roles.into_iter().collect();
    roles.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    for (role, count) in roles {
        println!("        {:5.1} %  {role}", percent(count));
    }
    let whole = std::env::args().nth(2).is_some_and(|f| symbols.name(sealed.name).contains(&f));
    let lines = match whole {
        true => function.lines(&bytes, &name, hits),
        false => function.listing(&bytes, &name, hits),
    };
    for line in lines {
        let role = function.role_at(line.addr).filter(|role| *role != Role::Work);
        let role = role.map_or(String::new(), |role| format!("{role:?}"));
        println!("            {:6}  {:x}  {:40}  {role}", line.hits, line.addr.0, line.text);
    }
}
