//! Memory that is zeroed for accumulators, and memory that is filled: by gcc 12 -O2. Not for other zeroing; see `native`.

use super::{C, Fixture};
use crate::Role;

/// How many instructions clear memory, and how many of those to count in it.
fn clearing(function: &Fixture) -> (usize, usize) {
    let roles = function.read().roles;
    let counted = roles.iter().filter(|role| **role == Role::AccumulatorZeroing).count();
    (roles.iter().filter(|role| matches!(role, Role::Zeroing(_))).count(), counted)
}

/// `unsigned counts[256] = {0}; for (i = 0; i < n; i++) counts[in[i]]++;`, then the largest.
const HISTOGRAM: Fixture = Fixture {
    addr: 0x0,
    code: "4881ec900300004989f8b98000000031c0488d5424884889d7f348ab4885f674204c89c7498d0c300f1f8400\
            000000000fb6074883c70183448488014839cf75ef660f6f15000000004889d7488d842488030000660fefc9\
            0f1f840000000000660f6f1f660f6fc14883c710660ffac2660ffada660f66c3660fdbc8660fdf47f0660feb\
            c84839f875d6660f6fd9660f6fe14881c490030000660f73db08660ffae2660f6fc3660ffac2660f66c4660f\
            dbd8660fdfc1660f6fc8660febcb660f6fd9660f6fe1660f73db04660ffae2660f6fc3660ffac2660f66c466\
            0fdbd8660fdfc1660febc3660f7ec0c3",
    names: &[],
    ..C
};

/// `double *c = calloc(n * n, 8);`, and in three loops `c[i * n + j] += a[i * n + k] * b[k * n + j];`
const PRODUCT: Fixture = Fixture {
    addr: 0xf0,
    code: "41544989d4554889f5be08000000534889fb4889d7480faffae8000000004989c34d85e474774e8d14e50000\
            00004989c14e8d04134a8d0c1031db0f1f4400004c89c631ff4c29d60f1f840000000000f20f100e488d54fd\
            004c89c80f1f4000f20f10024883c0084883c208f20f59c1f20f5840f8f20f1140f84839c875e14883c6084c\
            01e74939f075c54883c3014d01d04d01d14c01d14939dc75a35b4c89d85d415cc3",
    names: &[(0x10e, "calloc")],
    ..C
};

/// `memset(buf, 0, size);`, a loop of `buf[i] = in[i >> 1];`, a loop of `buf[i] ^= key;`
const MASKED: Fixture = Fixture {
    addr: 0x1a0,
    code: "41544989f431f6554489c5534889d34889cae8000000004885db74394889c731c00f1f80000000004889c248\
            d1ea410fb614148814074883c0034839d872e931c00f1f800000000040302c074883c0034839d872f35b5d41\
            5cc3",
    names: &[(0x1b7, "memset")],
    ..C
};

/// `memset(buf, 0, size); fill(buf);`, and a loop of `buf[i * 7] += buf[i];`
const TURNED: Fixture = Fixture {
    addr: 0x200,
    code: "554889f531f6534889fb4883ec08e8000000004889dfe8000000004885ed74214889df488d0cab4889d8660f\
            1f4400008b104883c00401174883c71c4839c875ef4883c4085b5dc3",
    names: &[(0x213, "memset"), (0x21b, "fill")],
    ..C
};

/// In a loop: `memset(o[k], 0, 16004); o[k]->refs += in[k];`
const HEADER: Fixture = Fixture {
    addr: 0x250,
    code: "85d27e444863d241544c8d24d7554889f5534889fb0f1f00488b3bba843e000031f64883c3084883c504e800\
            000000488b43f88b55fc01104c39e375db5b5d415cc3660f1f440000c3",
    names: &[(0x27f, "memset")],
    ..C
};

#[test]
fn counters_and_sums_are_zeroed_accumulators() {
    assert_eq!(clearing(&HISTOGRAM), (0, 1));
    assert_eq!(clearing(&PRODUCT), (0, 1));
}

#[test]
fn memory_filled_passed_on_or_accumulated_in_one_place_is_not() {
    assert_eq!(clearing(&MASKED), (1, 0));
    assert_eq!(clearing(&TURNED), (1, 0));
    assert_eq!(clearing(&HEADER), (1, 0));
}
