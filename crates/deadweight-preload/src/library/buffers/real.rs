//! The functions of the C library that move bytes, behind those that take their place.

pub(crate) use crate::real::{Real, real, start};

use core::ffi::c_int;

real!(fn write as write(fd: c_int, from: *const u8, len: usize) -> isize);
real!(fn read as read(fd: c_int, to: *mut u8, len: usize) -> isize);
real!(fn lseek as lseek(fd: c_int, offset: i64, whence: c_int) -> i64);
real!(fn close as close(fd: c_int) -> c_int);
real!(fn fork as fork() -> c_int);
