//! Runs hex code in revm's interpreter: `revm-loop FILE TIMES` prints the median time of a run in
//! microseconds, gas and output. What a run needs is set up before the clock starts, as in the others.

use revm_interpreter::bytecode::Bytecode;
use revm_interpreter::context_interface::host::DummyHost;
use revm_interpreter::interpreter::{EthInterpreter, ExtBytecode, InputsImpl, SharedMemory};
use revm_interpreter::primitives::{Bytes, hardfork::SpecId, hex};
use revm_interpreter::{Interpreter, gas_table, instruction_table};
use std::time::Instant;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let [file, times] = <[String; 2]>::try_from(std::env::args().skip(1).collect::<Vec<_>>())
        .map_err(|_| "revm-loop FILE TIMES")?;
    let code = Bytes::from(hex::decode(std::fs::read_to_string(file)?.trim())?);
    let bytecode = Bytecode::new_raw(code);
    let table = instruction_table::<EthInterpreter, DummyHost>();
    let gas = gas_table();
    let mut host = DummyHost::new(SpecId::CANCUN);
    let mut each = Vec::new();
    let mut last = None;
    for _ in 0..times.parse::<usize>()?.max(1) {
        let mut interpreter = Interpreter::<EthInterpreter>::new(
            SharedMemory::new(),
            ExtBytecode::new(bytecode.clone()),
            InputsImpl::default(),
            false,
            SpecId::CANCUN,
            10_000_000_000,
        );
        let start = Instant::now();
        let action = interpreter.run_plain(&table, &gas, &mut host);
        each.push(start.elapsed());
        last = action.into_result_return();
    }
    each.sort_unstable();
    let result = last.ok_or("the code wants another account")?;
    let median = each[each.len() / 2].as_secs_f64() * 1e6;
    println!("{median:.3} {} {}", result.gas.total_gas_spent(), hex::encode_prefixed(&result.output));
    Ok(())
}
